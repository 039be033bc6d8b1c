#!/usr/bin/env bats
# create, start, stop, ls, inspect, logs, rm, cp with real machines.
load helpers

setup() {
  own_home
  export HOLT_QUIET=1
}
teardown() {
  if [ -e "${HOLT_HOME:-/nowhere}/state" ]; then "$HOLT" rm --all -f > /dev/null; fi
}

@test "AMachineGoesThroughItsLifeAndKeepsItsFiles" {
  holt_ create box
  expect_code 0
  expect_out box
  holt_ ls -q
  expect_out ""
  holt_ ls -a --json
  expect_json 'length == 1 and .[0].name == "box" and .[0].state == "created" and .[0].pid == null'
  holt_ start box
  expect_out box
  holt_ start box
  expect_code 0
  holt_ exec box sh -c 'echo kept > /root/kept'
  expect_code 0
  holt_ stop box
  expect_out box
  holt_ stop box
  expect_code 0
  holt_ inspect box
  expect_json '.[0].state == "stopped" and .[0].image.reference == "holt/default:latest" and .[0].network.mode == "none"'
  holt_ exec --no-start box true
  expect_code 125
  holt_ exec box cat /root/kept
  expect_out kept
  holt_ rm box
  expect_code 1
  holt_ ls -q
  expect_out box
  holt_ rm -f box
  expect_out box
  holt_ ls -a -q
  expect_out ""
}

@test "AMachineRunsWhateverTheUmaskSays" {
  (umask 0777 && exec "$HOLT" run --name masked -- true)
  [ "$(stat -c %A "$HOLT_HOME/state/machines/masked")" = drwx------ ]
}

@test "TheMachineObjectHasTheDocumentedKeys" {
  "$HOLT" create keys --label team=red -e SECRET=hidden > /dev/null
  holt_ inspect keys
  expect_json '.[0] | has("name") and has("id") and has("state") and has("reason") and has("image") and has("createdAt")
    and has("startedAt") and has("pid") and has("accelerator") and has("isolation") and has("jail") and has("resources") and has("network")
    and has("ports") and has("mounts") and has("env") and has("workdir") and has("user") and has("labels") and has("persistent")
    and has("diskBytes") and has("memoryBytes")'
  expect_json '.[0].env == ["SECRET"] and .[0].labels.team == "red" and .[0].resources == {"cpus":2,"memoryMb":1024,"diskGb":20}'
  refute_grep hidden "$BATS_TEST_TMPDIR/out"
  holt_ ls -a --filter label=team=red -q
  expect_out keys
  holt_ ls -a --filter label=team=blue -q
  expect_out ""
  holt_ ls -a --format '{{.labels.team}}{{.labels.none}}{{.reason.code}}|'
  expect_out "red|"
  holt_ ls -a --format '{{.Name}}'
  expect_code 2
  expect_out ""
  expect_err_has "--format: there is no key 'Name'"
  expect_err_has "Keys: name, id, state"
  holt_ inspect keys --format '{{.resources.cpu}}'
  expect_code 2
  expect_err_has "'resources' has no key 'cpu'"
  holt_ inspect kyes
  expect_code 1
  expect_err_has "There is no machine 'kyes'"
  expect_err_has "Did you mean 'keys'?"
  holt_ rm kyes
  expect_code 1
  expect_err_has "Did you mean 'keys'?"
  holt_ ls --filter state=created --format '{{.name}}:{{.resources.cpus}}'
  expect_out "keys:2"
}

@test "ANameIsTakenOnce" {
  "$HOLT" create twice > /dev/null
  holt_ --json create twice
  expect_code 1
  expect_json_error CONFLICT
  holt_ --json run --name twice -- true
  expect_code 125
  expect_json_error CONFLICT
}

@test "AUniqueBeginningNamesAMachineButNotForRm" {
  "$HOLT" create prefix-one > /dev/null
  holt_ inspect prefix --format '{{.name}}'
  expect_out prefix-one
  holt_ inspect pre
  expect_code 1
  holt_ rm prefix
  expect_code 1
  "$HOLT" create prefix-two > /dev/null
  holt_ --json inspect prefix
  expect_json_error CONFLICT
}

@test "SomeOfSeveralFailingIsOneAndTheOthersAreDone" {
  "$HOLT" create a1 > /dev/null
  "$HOLT" create a2 > /dev/null
  holt_ rm a1 missing a2
  expect_code 1
  expect_out "a1
a2"
  expect_err_has missing
}

@test "RmAllAsksAndWithoutATerminalRefuses" {
  "$HOLT" create stays > /dev/null
  holt_ rm --all < /dev/null
  expect_code 2
  expect_err_has --force
  holt_ ls -a -q
  expect_out stays
}

@test "ANamedRunIsKeptUnlessRm" {
  holt_ run --name named -- true
  holt_ ls -a -q
  expect_out named
  holt_ run --rm --name gone -- true
  expect_code 0
  only_named() { [ "$("$HOLT" ls -a -q)" = named ]; }
  eventually only_named
}

@test "LogsAreThereAfterAStop" {
  "$HOLT" run -d --name talker > /dev/null
  "$HOLT" exec talker sh -c 'echo said-on-console > /dev/console' < /dev/null
  "$HOLT" stop talker > /dev/null
  holt_ logs talker
  expect_code 0
  grep -q said-on-console "$BATS_TEST_TMPDIR/out"
  holt_ logs -n 1 --json talker
  [ "$(wc -l < "$BATS_TEST_TMPDIR/out")" = 1 ]
  jq -e '.source == "console" and has("text") and has("ts") and has("stream")' "$BATS_TEST_TMPDIR/out"
}

@test "FilesComeThroughBothWaysBitByBit" {
  "$HOLT" run -d --name files > /dev/null
  cd "$BATS_TEST_TMPDIR"
  head -c 67108864 /dev/urandom > big
  holt_ --json cp big files:/root/big
  expect_code 0
  expect_json '.files == 1 and .bytes == 67108864'
  [ "$("$HOLT" exec files sha256sum /root/big < /dev/null | cut -d' ' -f1)" = "$(sha256sum < big | cut -d' ' -f1)" ]
  "$HOLT" cp files:/root/big back
  cmp big back
  rm back

  mkdir -p tree/sub 'tree/with space'
  echo one > tree/sub/one
  : > 'tree/with space/empty'
  ln -s sub/one tree/link
  chmod 750 tree/sub/one
  holt_ cp tree files:/root/
  expect_code 1
  expect_err_has "-r"
  holt_ cp -r tree files:/root/
  expect_code 0
  [ "$("$HOLT" exec files sh -c 'cd /root/tree && cat link && stat -c %a sub/one && ls "with space"' < /dev/null)" = "one
750
empty" ]
  "$HOLT" cp -r files:/root/tree copied
  diff -r --no-dereference tree copied

  echo into-name > small
  "$HOLT" cp small files:/root/renamed
  "$HOLT" cp files:/root/renamed .
  cmp small renamed
  "$HOLT" cp --raw - files:/root/piped < small
  "$HOLT" cp --raw files:/root/piped - | cmp - small
  "$HOLT" cp --mode 600 small files:/root/secret
  [ "$("$HOLT" exec files stat -c %a /root/secret < /dev/null)" = 600 ]

  holt_ --json cp files:/root/missing .
  expect_code 1
  expect_json_error NOT_FOUND
  holt_ --json cp missing files:/root/x
  expect_code 1
  expect_json_error NOT_FOUND
  holt_ cp small files:/no/such/folder/x
  expect_code 1
  [ ! -e files: ] && [ ! -e 'files:' ]
}

@test "AKilledMonitorOrVmmIsNoticedAndTheMachineStartsAgain" {
  "$HOLT" run -d --name crash > /dev/null
  "$HOLT" exec crash sh -c 'echo synced > /root/f; sync' < /dev/null
  kill -9 "$("$HOLT" inspect crash --format '{{.pid}}')"
  failed() { [ "$("$HOLT" inspect crash --format '{{.state}}')" = failed ]; }
  eventually failed
  holt_ inspect crash
  expect_json '.[0].reason.code | length > 0'
  holt_ exec crash cat /root/f
  expect_out synced
}

@test "TwentyMachinesAtOnceAllWorkAndNothingIsLeft" {
  pids=()
  for i in $(seq 20); do
    "$HOLT" run -- sh -c "echo $i" < /dev/null > "$BATS_TEST_TMPDIR/$i" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  for i in $(seq 20); do [ "$(cat "$BATS_TEST_TMPDIR/$i")" = "$i" ]; done
  nothing_left() { [ -z "$("$HOLT" ls -a -q)" ]; }
  eventually nothing_left
}
