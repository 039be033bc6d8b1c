#!/usr/bin/env bats
# Doctor, lists and images on a host without machines.
load helpers

setup() { export HOLT_HOME=$BATS_TEST_TMPDIR/home; }

@test "ListsAreEmptyAndFineWithoutAnyMachine" {
  holt_ ls --json
  expect_code 0
  expect_json '. == []'
  holt_ ls -a
  expect_code 0
  [[ $out == NAME*STATE*IMAGE*CPUS*MEM*PORTS*CREATED ]]
  holt_ ls -q
  expect_out ""
  holt_ images --json
  expect_json '. == []'
}

@test "WhatIsNotThereIsNotFound" {
  for arguments in "inspect nope" "start nope" "stop nope" "rm nope" "logs nope" "cp nope:/x ." "image inspect nope" "image rm nope"; do
    holt_ --json $arguments
    expect_code 1 || { echo "$arguments"; return 1; }
    expect_json_error NOT_FOUND || { echo "$arguments"; return 1; }
  done
  holt_ rm -f nope
  expect_code 0
  holt_ exec nope true
  expect_code 125
  holt_ --json run --pull never no/such/image -- true
  expect_code 125
  expect_json_error NOT_FOUND
  holt_ create --pull never x no/such/image
  expect_code 1
  holt_ ls -a -q
  expect_out ""
}

@test "BadMachineNamesAreRefusedByTheRule" {
  for name in a--b -- _x x- 'a b' a/b ../x .; do
    holt_ --json start "$name" x
    [ "$code" != 0 ]
    [ ! -e "$HOLT_HOME/state/machines/x" ]
  done
  holt_ --json create 'a/b'
  expect_code 1
  expect_json_error INVALID_CONFIG
}

@test "AnImageIsImportedListedInspectedAndRemoved" {
  mkdir -p "$BATS_TEST_TMPDIR/root/etc"
  echo hello > "$BATS_TEST_TMPDIR/root/etc/hello"
  tar -C "$BATS_TEST_TMPDIR/root" -cf "$BATS_TEST_TMPDIR/small.tar" .
  holt_ image import "$BATS_TEST_TMPDIR/small.tar" test/small:1
  expect_code 0
  [[ $out == sha256:* ]]
  holt_ images --json
  expect_json 'length == 1 and .[0].reference == "test/small:1" and .[0].usedBy == []'
  holt_ images --format '{{.reference}}'
  expect_out "test/small:1"
  for verb in "image inspect" "image rm"; do
    # shellcheck disable=SC2086
    holt_ $verb test/smlal:1
    expect_code 1
    expect_err_has "Did you mean 'test/small:1'?"
  done
  holt_ run --pull never test/small -- true
  expect_code 125
  expect_err_has "Did you mean 'test/small:1'?"
  "$HOLT" image import "$BATS_TEST_TMPDIR/small.tar" test/other > /dev/null
  holt_ image inspect test/ohter
  expect_err_has "Did you mean 'test/other'?"
  "$HOLT" image rm test/other > /dev/null
  holt_ images --format '{{.size}} {{.nope}}'
  expect_code 2
  expect_err_has "Keys: reference, digest, size"
  holt_ image inspect test/small:1 --json
  expect_json '.[0].platform == "linux/amd64"'
  holt_ image rm test/small:1
  expect_code 0
  expect_out "test/small:1"
  holt_ image ls --json
  expect_json '. == []'
  HOLT_HOME=$BATS_TEST_TMPDIR/home2
  "$HOLT" image import - test/piped < "$BATS_TEST_TMPDIR/small.tar"
}

# A root file system of one file in small.tar, in the folder that is the current one then.
small_tar() {
  cd "$BATS_TEST_TMPDIR"
  mkdir root
  echo hello > root/hello
  tar -C root -cf small.tar .
}

# Of several names: the array of what succeeded on standard output, the errors on standard error, in this order.
expect_partly() {
  expect_code 1
  expect_json "$1"
  local codes
  codes=$(grep '^{"error"' "$BATS_TEST_TMPDIR/err" | jq -r .error.code | tr '\n' ' ')
  [ "$codes" = "$2 " ] || { echo "errors were: $codes; stderr: $err"; return 1; }
  tail -1 "$BATS_TEST_TMPDIR/err" | jq -e .error > /dev/null
}

@test "FRONT-02 WhatSucceededOfSeveralIsPrintedAndWhatFailedIsNamed" {
  small_tar
  holt_ --json pull ./small.tar ./nope.tar
  expect_partly 'length == 1 and (.[0].digest | startswith("sha256:"))' NOT_FOUND
  holt_ --json pull ./nope.tar ./small.tar /dev/null
  expect_partly 'length == 1 and .[0].cached' "NOT_FOUND USAGE" || expect_partly 'length == 1' "NOT_FOUND IMAGE_INVALID"
  holt_ --json pull ./nope.tar ./gone.tar
  expect_code 1
  expect_json_error NOT_FOUND
  expect_json '.error.message | contains("gone.tar")'
  holt_ pull ./nope.tar ./small.tar
  expect_code 1
  [[ $out == sha256:* ]]
  expect_err_has nope.tar

  "$HOLT" image import small.tar test/a:1
  "$HOLT" image import small.tar test/b:1
  holt_ --json image inspect test/a:1 nope:1 test/b:1
  expect_partly 'map(.reference) == ["test/a:1", "test/b:1"]' NOT_FOUND
  holt_ --json image rm nope:1 test/a:1 gone:1 test/b:1
  expect_partly '. == ["test/a:1", "test/b:1"]' "NOT_FOUND NOT_FOUND"
}

@test "IMG-10 AFileOfCredentialsThatCannotBeUsedIsRefusedAtOnce" {
  small_tar
  echo 'no json' > bad.json
  echo '[]' > list.json
  mkdir folder.json
  head -c 1100000 /dev/zero > large.json
  for arguments in "pull %s ./small.tar" "create %s box ./small.tar" "run %s ./small.tar -- true"; do
    for wrong in none.json:NOT_FOUND bad.json:INVALID_CONFIG list.json:INVALID_CONFIG folder.json:NOT_REGULAR large.json:TOO_LARGE; do
      # shellcheck disable=SC2059
      holt_ --json $(printf "$arguments" "--auth-file ${wrong%:*}")
      expect_code 2
      expect_json_error "${wrong#*:}"
      expect_json "(.error.message | startswith(\"--auth-file: \") and contains(\"${wrong%:*}\")) and (.error.hint | length > 0)"
    done
    # shellcheck disable=SC2059
    HOLT_AUTH_FILE=none.json holt_ $(printf "$arguments" "-q")
    expect_code 2
    expect_err_has none.json
  done
  if [ "$(id -u)" != 0 ]; then
    echo '{}' > secret.json
    chmod 000 secret.json
    holt_ --json pull --auth-file secret.json ./small.tar
    expect_code 2
    expect_json_error PERMISSION_DENIED
  fi
  holt_ --json images
  expect_json '. == []'
  echo '{}' > good.json
  holt_ pull --auth-file good.json ./small.tar
  expect_code 0
}

@test "WhatIsNoTarLeavesNoImage" {
  head -c 100000 /dev/urandom > "$BATS_TEST_TMPDIR/noise"
  holt_ --json image import "$BATS_TEST_TMPDIR/noise" test/noise
  expect_code 1
  expect_json_error IMAGE_INVALID
  holt_ images --json
  expect_json '. == []'
}

@test "DoctorNamesWhatIsMissingAndTheRemedy" {
  holt_ doctor --json
  expect_code 1
  expect_json '.ok == false and ([.checks[] | select(.id == "engine")][0] | .status == "fail" and (.fix | length > 0))'
  HOLT_QEMU=/nowhere holt_ doctor --json
  expect_code 1
  expect_json '[.checks[] | select(.id == "vmm")][0].status == "fail"'
}

# A home in which processes died at bad moments.
damaged_home() {
  mkdir -p "$HOLT_HOME/state/machines/.removing-0123" "$HOLT_HOME/state/machines/broken" "$HOLT_HOME/cache/templates/half"
  touch -d '1 hour ago' "$HOLT_HOME/state/machines/.removing-0123"
  touch "$HOLT_HOME/state/machines/broken/lock" "$HOLT_HOME/state/machines/broken/monitor.sock"
  head -c 5000 /dev/urandom > "$HOLT_HOME/state/machines/broken/machine.json"
  echo rubbish > "$HOLT_HOME/cache/templates/half/template.json"
  chmod 755 "$HOLT_HOME/state/machines"
}

@test "LIFE-20 DoctorFixPutsRightWhatNeedsNoDecisionAndLeavesTheRest" {
  damaged_home
  holt_ doctor --json
  expect_json '.fixed == [] and ([.checks[] | select(.id == "machines")][0] | .status == "warn" and (.detail | contains("broken (")) and (.fix | contains("rm --force")))'
  [ -e "$HOLT_HOME/cache/templates/half" ]
  holt_ doctor --fix --json
  expect_json '[.fixed[].what] | contains(["made a folder", "closed a folder to other users", "removed what a dead process left", "removed the socket of a dead monitor", "removed a template that was damaged or half-made"])'
  [ -d "$HOLT_HOME/data" ]
  [ "$(stat -c %a "$HOLT_HOME/state/machines")" = 700 ]
  [ "$(ls -A "$HOLT_HOME/state/machines")" = broken ]
  [ "$(stat -c %s "$HOLT_HOME/state/machines/broken/machine.json")" = 5000 ]
  [ ! -e "$HOLT_HOME/cache/templates/half" ]
  holt_ doctor --fix --json
  # That KVM does not work here is found out anew each time.
  expect_json '[.fixed[].what] - ["forgot that KVM did not work"] == [] and ([.checks[] | select(.id == "machines")][0].status == "warn")'
  holt_ rm --force broken
  expect_code 0
  holt_ doctor --json
  expect_json '[.checks[] | select(.id == "machines")][0].status == "ok"'
}

@test "DoctorWritesABundleAndReplacesNothing" {
  damaged_home
  holt_ doctor --bundle "$BATS_TEST_TMPDIR/report.tar"
  [ "$(stat -c %a "$BATS_TEST_TMPDIR/report.tar")" = 600 ]
  [ "$(tar tf "$BATS_TEST_TMPDIR/report.tar")" = "./doctor.json
./machines/broken/machine.json" ]
  tar xOf "$BATS_TEST_TMPDIR/report.tar" ./doctor.json | jq -e '.checks and .versions.holt'
  before=$(sha256sum "$BATS_TEST_TMPDIR/report.tar")
  holt_ --json doctor --bundle "$BATS_TEST_TMPDIR/report.tar"
  expect_code 1
  expect_json_error CONFLICT
  [ "$(sha256sum "$BATS_TEST_TMPDIR/report.tar")" = "$before" ]
  holt_ doctor --bundle "$BATS_TEST_TMPDIR/none/report.tar"
  expect_code 1
}

@test "FRONT-08 DoctorTellsEachPartOfTheJailAndTheFixOfWhatIsMissing" {
  holt_ doctor --json
  expect_json '[.checks[] | select(.id | startswith("jail."))] | map(.id) == ["jail.user", "jail.namespaces", "jail.files",
    "jail.syscalls", "jail.privileges", "jail.limits"] and all(.status == "ok" or (.fix | length > 0))'
  HOLT_JAIL=off holt_ doctor --json
  expect_json '[.checks[] | select(.id | startswith("jail."))] | all(.status == "warn" and (.detail | startswith("off")))'
  HOLT_JAIL=nonsense holt_ --json doctor
  expect_code 1
  expect_json_error INVALID_CONFIG
}

@test "FRONT-08 DoctorIsDoneIn15Seconds" {
  SECONDS=0
  holt_ doctor
  [ "$SECONDS" -le 15 ]
}
