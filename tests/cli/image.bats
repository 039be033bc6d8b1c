#!/usr/bin/env bats
# Images from files and folders, what their configuration means for holt run, and the verbs about them.
load helpers

setup_file() {
  own_home
  # Images of this file's own beside the prepared engine and default image.
  local prepared
  prepared=$(readlink "$HOLT_HOME/data")
  rm "$HOLT_HOME/data"
  mkdir "$HOLT_HOME/data"
  ln -s "$prepared/engine" "$HOLT_HOME/data/engine"
  make_layouts
}

setup() {
  own_home
  export HOLT_QUIET=1
  app=$BATS_FILE_TMPDIR/app
}

teardown() {
  [ -z "${registry_pid:-}" ] || kill "$registry_pid"
  "$HOLT" ls -a -q | while read -r name; do "$HOLT" rm -f "$name" > /dev/null; done
}

# A static program that says where it is and who, in images with all kinds of configurations.
make_layouts() {
  local folder=$BATS_FILE_TMPDIR program
  program=$(find_program)
  mkdir "$folder/root"
  cp "$program" "$folder/root/app"
  tar -C "$folder/root" --owner=0 --group=0 --mtime=@0 -cf "$folder/root.tar" app
  image app '{"Entrypoint": ["/app"], "Cmd": ["show", "FROM"], "Env": ["FROM=image"], "WorkingDir": "/srv/x", "User": "1000:50",
    "StopSignal": "SIGQUIT", "ExposedPorts": {"80/tcp": {}}, "Volumes": {"/data": {}}, "Labels": {"a": "b"}}'
  image bare '{}'
  image waits '{"Cmd": ["/app", "wait", "/ended"], "StopSignal": "RTMIN+3"}'
}
image() { python3 "$BATS_TEST_DIRNAME/oci_image.py" "$BATS_FILE_TMPDIR/$1" "test/$1:1" "$2" "$BATS_FILE_TMPDIR/root.tar"; }

find_program() {
  local program
  for program in "${HOLT_BIN%/src/cli/holt}/tests/holt-scratch-app" "$root/build/release/tests/holt-scratch-app"; do
    if [ -x "$program" ]; then printf '%s\n' "$program"; return; fi
  done
  skip "holt-scratch-app is not built"
}

@test "AScratchImageOfALayoutRunsItsOwnCommand" {
  holt_ image import "$app"
  expect_code 0
  [[ $out == sha256:* ]]
  holt_ run test/app:1
  expect_code 0
  expect_out "/srv/x 1000 50
image"
}

@test "TheCommandStandsBehindTheEntrypointAndFlagsStandOverTheImage" {
  holt_ run --pull never -e FROM=flag -w /dev -u 0 test/app:1 -- show FROM
  expect_out "/dev 0 0
flag"
  holt_ run --entrypoint /app test/app:1
  expect_out scratch
}

@test "WithoutAnyCommandTheUsageErrorNamesTheImage" {
  "$HOLT" image import "$BATS_FILE_TMPDIR/bare" > /dev/null
  holt_ run test/bare:1
  expect_code 2
  expect_err_has test/bare:1
  holt_ run -d --rm test/bare:1
  expect_code 2
}

@test "IMG-29 ADetachedImageRunsItsCommandAndAStopSendsItsSignal" {
  "$HOLT" image import "$BATS_FILE_TMPDIR/waits" > /dev/null
  holt_ --json run -d --name waits test/waits:1
  expect_code 0
  expect_json '.command | startswith("waits:")'
  says_up() { [ "$("$HOLT" logs --exec waits)" = up ]; }
  eventually says_up
  "$HOLT" stop -t 60 waits > /dev/null
  "$HOLT" start waits > /dev/null
  [ "$("$HOLT" cp --raw waits:/ended -)" = 37 ]
  holt_ run -d --stop-signal NOPE test/waits:1
  expect_code 2
}

@test "IMG-30 ASavedArchiveIsReadFromAPipeAndAPlaceIsRunAsItIs" {
  "$HOLT" image import "$app" > /dev/null
  "$HOLT" image export test/app:1 -o "$BATS_TEST_TMPDIR/app.tar"
  tar -tf "$BATS_TEST_TMPDIR/app.tar" | grep -qx manifest.json
  digest=$("$HOLT" image inspect test/app:1 --format '{{.digest}}')
  "$HOLT" image rm test/app:1 > /dev/null
  "$HOLT" image prune --force > /dev/null
  holt_ run --pull never test/app:1
  expect_code 125
  [ "$("$HOLT" image import - again:1 < "$BATS_TEST_TMPDIR/app.tar")" = "$digest" ]
  cd "$BATS_TEST_TMPDIR"
  holt_ run ./app.tar
  expect_code 0
  expect_out "/srv/x 1000 50
image"
  "$HOLT" image export again:1 -o again.tar
  "$HOLT" image export again:1 -o - | cmp - again.tar
}

@test "AnExportIntoAPipeLeavesThePipeAndIsTheSameImage" {
  "$HOLT" image import "$app" > /dev/null
  cd "$BATS_TEST_TMPDIR"
  mkfifo pipe
  cat pipe > piped.tar 3>&- &
  reader=$!
  holt_ image export test/app:1 -o pipe
  expect_code 0
  wait "$reader"
  [ -p pipe ]
  "$HOLT" image export test/app:1 -o file.tar
  cmp piped.tar file.tar
  [ -z "$(compgen -G '*.part')" ]
  holt_ images -q
  grep -qx test/app:1 "$BATS_TEST_TMPDIR/out"
}

@test "IMG-30 WhatIsNoImageIsRefusedInASentence" {
  : > "$BATS_TEST_TMPDIR/empty"
  printf 'FROM debian\nRUN true\n' > "$BATS_TEST_TMPDIR/Dockerfile"
  for source in empty Dockerfile; do
    holt_ --json image import "$BATS_TEST_TMPDIR/$source" x:1
    [ "$code" != 0 ]
    expect_json '.error.code == "IMAGE_INVALID" or .error.code == "USAGE"'
  done
  holt_ --json image import /dev/null x:1
  [ "$code" != 0 ]
  holt_ --json image import "$BATS_TEST_TMPDIR/nope" x:1
  expect_json_error NOT_FOUND
  holt_ --json run "$BATS_TEST_TMPDIR/nope" -- true
  expect_code 125
  expect_json_error NOT_FOUND
}

@test "ARootFileSystemGetsItsConfigurationFromFlags" {
  holt_ image import "$BATS_FILE_TMPDIR/root.tar" --entrypoint /app --cmd show --cmd A -e A=b -w /w -u 7 test/root:1
  expect_code 0
  holt_ run test/root:1
  expect_out "/w 7 0
b"
}

@test "InspectShowsTheWholeConfiguration" {
  "$HOLT" image import "$app" > /dev/null
  holt_ image inspect test/app:1
  expect_json '.[0] | .config.exposedPorts == ["80/tcp"] and .config.volumes == ["/data"] and .config.labels == {"a": "b"}
    and .config.stopSignal == "SIGQUIT" and .config.workingDir == "/srv/x" and .config.user == "1000:50"
    and .config.entrypoint == ["/app"] and .config.cmd == ["show", "FROM"] and .config.env == ["FROM=image"]
    and (.layers | length) == 1 and (.manifestDigest | startswith("sha256:")) and .platform == "linux/amd64"'
}

@test "IMG-32 AnImageInUseStaysUnlessForced" {
  "$HOLT" image prune --all --force > /dev/null  # other names of the same image
  "$HOLT" image import "$app" > /dev/null
  "$HOLT" create box test/app:1 > /dev/null
  holt_ --json image rm test/app:1
  expect_code 1
  expect_json_error CONFLICT
  holt_ --json image prune --all --force
  expect_code 0
  "$HOLT" image inspect test/app:1 > /dev/null
  "$HOLT" start box > /dev/null
  holt_ --json image rm test/app:1
  expect_code 1
  expect_json_error CONFLICT
  "$HOLT" stop box > /dev/null
  holt_ image rm --force test/app:1
  expect_code 0
  holt_ start box
  expect_code 1
}

@test "IMG-32 ARunningMachineLivesOnWithoutItsImage" {
  "$HOLT" image import "$app" > /dev/null
  "$HOLT" run -d --name box test/app:1 wait /ended > /dev/null
  holt_ image rm --force test/app:1
  expect_code 0
  "$HOLT" image prune --all --force > /dev/null
  holt_ exec box -- /app
  expect_code 0
  expect_out scratch
}

@test "PruneNamesWhatWouldGoAndTakesIt" {
  "$HOLT" image import "$app" > /dev/null
  holt_ --json image prune --all --dry-run
  expect_json '(.images | index("test/app:1")) != null and .dryRun and .freedBytes > 0'
  "$HOLT" image inspect test/app:1 > /dev/null
  holt_ image prune --all < /dev/null
  expect_code 2
  holt_ --json image prune --all --force
  expect_json '(.images | index("test/app:1")) != null'
  holt_ --json images
  expect_json '. == []'
}

@test "IMG-08 VerifyNamesDamageAndWhatRepairsIt" {
  "$HOLT" image import "$app" > /dev/null
  holt_ image verify
  expect_code 0
  expect_out ""
  blob=$(ls -S "$HOLT_HOME"/data/images/blobs/sha256/* | head -1)
  chmod u+w "$blob"
  printf 'x' | dd of="$blob" bs=1 seek=100 conv=notrunc status=none
  holt_ --json image verify
  expect_code 1
  expect_json 'length >= 1 and (.[0].what | length > 0) and (.[0].fix | startswith("holt "))'
  "$HOLT" image prune --all --force > /dev/null
}

@test "IMG-08 AFileSystemThatIsGoneIsBuiltAgainByTheNextStart" {
  "$HOLT" image import "$app" > /dev/null
  "$HOLT" create box test/app:1 > /dev/null
  printf kept > "$BATS_TEST_TMPDIR/kept"
  "$HOLT" start box > /dev/null
  "$HOLT" cp "$BATS_TEST_TMPDIR/kept" box:/tmp/kept
  "$HOLT" stop box > /dev/null
  file=$("$HOLT" image inspect test/app:1 --format '{{.path}}')
  cp --sparse=always "$file" "$BATS_TEST_TMPDIR/before"
  rm -f "$file"
  holt_ start box
  expect_code 0
  cmp "$file" "$BATS_TEST_TMPDIR/before"
  [ "$("$HOLT" cp --raw box:/tmp/kept -)" = kept ]
  [ "$("$HOLT" exec box /app)" = scratch ]
  "$HOLT" stop box > /dev/null
  rm -rf "$(dirname "$file")" "$HOLT_HOME"/data/images/blobs
  holt_ --json start box
  expect_code 1
  expect_json_error NOT_FOUND
  expect_json '.error.hint | contains("test/app:1")'
}

@test "BuildSaysHowAnImageOfADockerfileComesHere" {
  holt_ --json build -t app .
  expect_code 1
  expect_json_error NOT_SUPPORTED
  expect_json '.error.hint | contains("docker save app | holt image import -")'
}

@test "TheRecipeOfTheDefaultImageIsShownAndItsProgramIsAskedFor" {
  holt_ image build-default --print-recipe --include nodejs
  expect_code 0
  [ "$(head -1 <<< "$out")" = mmdebstrap ]
  grep -qE '^--include=.*python3.*,nodejs$' <<< "$out"
  holt_ --json image build-default --print-recipe
  expect_json '.[0] == "mmdebstrap"'
  code=0
  PATH=/nonexistent "$HOLT" --json image build-default > "$BATS_TEST_TMPDIR/out" 2> "$BATS_TEST_TMPDIR/err" || code=$?
  out=$(cat "$BATS_TEST_TMPDIR/out") err=$(cat "$BATS_TEST_TMPDIR/err")
  expect_code 1
  expect_json_error RUNTIME_NOT_INSTALLED
  holt_ image build-default --tar "$BATS_FILE_TMPDIR/root.tar" --name made:1
  expect_code 0
  [ "$("$HOLT" image inspect made:1 --format '{{.config.cmd}}')" = '["/bin/bash"]' ]
}

@test "TheDefaultImageIsNeverAskedOfARegistry" {
  for image in "" holt/default holt/default:latest; do
    holt_ --json run --pull always $image -- true
    expect_code 125
    expect_json_error NOT_FOUND
  done
}

@test "BadFlagsOfImagesAreUsageErrors" {
  for arguments in "run --pull sometimes x" "pull --platform linux x" "pull UPPER" "image export x" "image import - --platform a"; do
    # shellcheck disable=SC2086
    holt_ $arguments < /dev/null
    expect_code 2 || { echo "$arguments"; return 1; }
  done
}

@test "IMG-25 TheLimitsOfImagesCanBeSet" {
  HOLT_IMAGE_MAX_ENTRIES=1 holt_ image import "$app" limited:1
  expect_code 0
  tar -C "$BATS_FILE_TMPDIR/root" -cf "$BATS_TEST_TMPDIR/two.tar" app ./app
  HOLT_IMAGE_MAX_ENTRIES=1 holt_ image import "$BATS_TEST_TMPDIR/two.tar" limited:2
  expect_code 1
  expect_err_has "more than 1 members"
  HOLT_IMAGE_MAX_BYTES=1000 holt_ image import "$BATS_TEST_TMPDIR/two.tar" limited:2
  expect_code 1
  HOLT_IMAGE_MAX_BYTES=much holt_ image import "$BATS_TEST_TMPDIR/two.tar" limited:2
  expect_code 1
  expect_err_has HOLT_IMAGE_MAX_BYTES
  holt_ image import "$BATS_TEST_TMPDIR/two.tar" limited:2
  expect_code 0
}

@test "IMG-31 ALimitOnTheSizeOfFilesIsAnError" {
  holt_limited() { (ulimit -f 1000000; exec "$HOLT" "$@"); }
  tar -C "$BATS_FILE_TMPDIR/root" -cf "$BATS_TEST_TMPDIR/one.tar" app
  run holt_limited image import "$BATS_TEST_TMPDIR/one.tar" limited:3
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"too large here"* && $output == *"ulimit -f"* ]]
  [ -z "$(ls "$HOLT_HOME/data/images/staging")" ]
}

registry() {
  python3 "$BATS_TEST_DIRNAME/oci_image.py" --serve "$1" "$BATS_TEST_TMPDIR/port" "$BATS_TEST_TMPDIR/log" 3>&- &
  registry_pid=$!
  eventually test -e "$BATS_TEST_TMPDIR/port"
  port=$(cat "$BATS_TEST_TMPDIR/port")
}

@test "IMG-04 AnInterruptedPullSaysThatItIsKeptAndTheNextGoesOnFromThere" {
  head -c 4000000 /dev/urandom > "$BATS_TEST_TMPDIR/noise"
  cp "$BATS_FILE_TMPDIR/root/app" "$BATS_TEST_TMPDIR/app"
  tar -C "$BATS_TEST_TMPDIR" -cf "$BATS_TEST_TMPDIR/layer.tar" app noise
  python3 "$BATS_TEST_DIRNAME/oci_image.py" "$BATS_TEST_TMPDIR/layout" x '{"Cmd": ["/app"]}' "$BATS_TEST_TMPDIR/layer.tar"
  touch "$BATS_TEST_TMPDIR/port.hold"
  registry "$BATS_TEST_TMPDIR/layout"
  HOLT_QUIET=0 "$HOLT" pull "127.0.0.1:$port/x:1" > "$BATS_TEST_TMPDIR/out" 2> "$BATS_TEST_TMPDIR/err" 3>&- &
  pull=$!
  has_half() { [ "$(cat "$HOLT_HOME"/data/images/blobs/partial/* | wc -c)" -gt 1000000 ]; }
  eventually has_half
  kill -INT "$pull"
  code=0
  wait "$pull" || code=$?
  out=$(cat "$BATS_TEST_TMPDIR/out") err=$(cat "$BATS_TEST_TMPDIR/err")
  expect_code 130
  expect_out ""
  expect_err_has "goes on from there"
  holt_ run --pull never "127.0.0.1:$port/x:1"
  expect_code 125
  rm "$BATS_TEST_TMPDIR/port.hold"
  : > "$BATS_TEST_TMPDIR/log"
  holt_ --json pull "127.0.0.1:$port/x:1"
  expect_code 0
  expect_json '.layers == 1 and (.cached | not) and .fetchedBytes > 0 and .fetchedBytes < 4000000'
  grep -qE '^blobs bytes=[1-9][0-9]*-' "$BATS_TEST_TMPDIR/log"
  holt_ run --pull missing "127.0.0.1:$port/x:1"
  expect_code 0
  expect_out scratch
  kill "$registry_pid"
  registry_pid=
  # Without its registry: here already.
  holt_ run "127.0.0.1:$port/x:1"
  expect_code 0
  holt_ run --pull always "127.0.0.1:$port/x:1"
  expect_code 125
}

@test "ProgressIsALineForEachLayerOnATerminalAndOneLineElsewhere" {
  "$HOLT" image prune --all --force > /dev/null
  registry "$app"
  HOLT_QUIET=0 holt_ pull "127.0.0.1:$port/app:1"
  expect_code 0
  expect_err_has "pulling 127.0.0.1:$port/app:1"
  expect_err_has "1 of 1 layers were new"
  refute_grep $'\e' "$BATS_TEST_TMPDIR/err"
  HOLT_QUIET=1 holt_ pull "127.0.0.1:$port/app:1"
  expect_code 0
  [ -z "$err" ]
  kill "$registry_pid"
  registry_pid=
  rm "$BATS_TEST_TMPDIR/port"

  "$HOLT" image prune --all --force > /dev/null
  echo above > "$BATS_TEST_TMPDIR/above"
  tar -C "$BATS_TEST_TMPDIR" -cf "$BATS_TEST_TMPDIR/above.tar" above
  python3 "$BATS_TEST_DIRNAME/oci_image.py" "$BATS_TEST_TMPDIR/two" x '{}' "$BATS_FILE_TMPDIR/root.tar" "$BATS_TEST_TMPDIR/above.tar"
  registry "$BATS_TEST_TMPDIR/two"
  HOLT_QUIET=0 python3 "$BATS_TEST_DIRNAME/typist.py" 24 80 -- "$HOLT" pull "127.0.0.1:$port/two:1" > "$BATS_TEST_TMPDIR/screen"
  grep -qF '[code 0]' "$BATS_TEST_TMPDIR/screen"
  grep -qF "holt: pulling 127.0.0.1:$port/two:1" "$BATS_TEST_TMPDIR/screen"
  "$HOLT" image inspect "127.0.0.1:$port/two:1" | jq -r '.[0].layers[]' > "$BATS_TEST_TMPDIR/layers"
  [ "$(wc -l < "$BATS_TEST_TMPDIR/layers")" = 2 ]
  while read -r layer; do
    for step in downloading done; do
      grep -qF "  ${layer:7:12}  $step" "$BATS_TEST_TMPDIR/screen" || { echo "$layer is never shown as $step"; return 1; }
    done
  done < "$BATS_TEST_TMPDIR/layers"
}

@test "HoltMirrorIsAskedInARegistrysPlace" {
  "$HOLT" image prune --all --force > /dev/null
  registry "$app"
  # Nothing listens at the registry itself.
  holt_ --json pull 127.0.0.1:1/app:1
  expect_json_error NETWORK_ERROR
  export HOLT_MIRROR="127.0.0.1:1=http://127.0.0.1:$port"
  holt_ --json pull 127.0.0.1:1/app:1
  expect_code 0
  expect_json '.reference == "127.0.0.1:1/app:1" and (.cached | not)'
  grep -q '^manifests ' "$BATS_TEST_TMPDIR/log"
  grep -q '^blobs ' "$BATS_TEST_TMPDIR/log"
  export HOLT_MIRROR=nonsense
  holt_ --json pull 127.0.0.1:1/app:1
  [ "$code" != 0 ]
  expect_json '.error.message | contains("HOLT_MIRROR")'
}

@test "IMG-16 ATagThatMovesIsFollowedAsThePolicySays" {
  for version in one two; do
    python3 "$BATS_TEST_DIRNAME/oci_image.py" "$BATS_TEST_TMPDIR/$version" x "{\"Env\": [\"V=$version\"]}" "$BATS_FILE_TMPDIR/root.tar"
  done
  ln -s one "$BATS_TEST_TMPDIR/current"
  registry "$BATS_TEST_TMPDIR/current"
  version_by() { "$HOLT" run --pull "$1" "127.0.0.1:$port/x:1" -- /app show V | tail -1; }
  [ "$(version_by missing)" = one ]
  ln -sfn two "$BATS_TEST_TMPDIR/current"
  : > "$BATS_TEST_TMPDIR/log"
  [ "$(version_by missing)" = one ]
  [ "$(version_by never)" = one ]
  [ ! -s "$BATS_TEST_TMPDIR/log" ]
  [ "$(version_by always)" = two ]
  kill "$registry_pid"
  registry_pid=
  [ "$(version_by missing)" = two ]
  [ "$(version_by never)" = two ]
  holt_ --json run --pull always "127.0.0.1:$port/x:1" -- /app
  expect_code 125
  expect_json_error NETWORK_ERROR
}
