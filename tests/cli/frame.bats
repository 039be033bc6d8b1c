#!/usr/bin/env bats
# The frame of the command line: help, misuse, JSON errors. Nothing here starts a machine.
load helpers

setup() { export HOLT_HOME=$BATS_TEST_TMPDIR/home; }
# Help, misuse and refusals never touch state.
teardown() { [ ! -e "$BATS_TEST_TMPDIR/home" ] || { find "$BATS_TEST_TMPDIR/home"; return 1; }; }

@test "HelpBeginsWithAnExampleForEveryVerb" {
  holt_ help
  expect_code 0
  [[ $out == Example:* ]]
  for verb in run create start exec cp ls inspect logs stop pause suspend resume update wait stats events rm prune images "image inspect" "image import" "image rm" \
    "agent run" "dev replay" doctor version help completion; do
    holt_ $verb --help
    expect_code 0
    [[ $out == Example?(s):*holt* ]] || { echo "$verb"; return 1; }
    holt_ help $verb
    [[ $out == Example?(s):*holt* ]] || { echo "help $verb"; return 1; }
  done
}

@test "FRONT-08 AGroupOfVerbsHasHelpAndIsNoVerbItself" {
  for group in image agent dev; do
    holt_ help $group
    expect_code 0
    [[ $out == Example:*holt*Verbs:* ]] || { echo "$group: $out"; return 1; }
    help=$out
    for flag in -h --help "--json --help" "-q -h"; do
      holt_ $group $flag
      expect_code 0
      expect_out "$help"
      [ -z "$err" ]
    done
    holt_ $group
    expect_code 2
    expect_out ""
    expect_err_has "Usage: holt $group "
    holt_ $group nope --help
    expect_code 2
    expect_err_has nope
  done
  holt_ --json image
  expect_code 2
  expect_json_error USAGE
}

@test "HelpAndVersionNeedNoHome" {
  run env -i "$HOLT" --help
  [ "$status" = 0 ]
  run env -i "$HOLT" run --help
  [ "$status" = 0 ]
  run env -i "$HOLT" --version
  [ "$status" = 0 ]
  [[ $output == "holt "* ]]
  run env -i "$HOLT" version
  [ "$status" = 0 ]
}

@test "FRONT-02 VersionAsJsonHasTheDocumentedKeys" {
  for words in "version --json" "--json --version" "--version --json" "--json version"; do
    # shellcheck disable=SC2086
    holt_ $words
    expect_code 0
    expect_json '(keys == ["api","commit","engine","version"]) and .api == 1 and (.engine | has("qemu") and has("kernel"))'
  done
}

@test "MisuseIsTwoAndSaysWhatToDo" {
  local long
  long=$(printf 'x%.0s' $(seq 1 100000))
  while IFS= read -r arguments; do
    eval "holt_ $arguments"
    expect_code 2 || { echo "of: ${arguments:0:80}"; return 1; }
    [ -z "$out" ] || { echo "stdout of $arguments: $out"; return 1; }
    [[ $err == "holt: "* ]] || { echo "stderr of $arguments: $err"; return 1; }
  done << END

lss
''
--nope
--nope ls
ls --nope
ls extra
run --nope -- true
run --timeout
run --timeout= -- true
run --timeout 0 -- true
run --timeout -1 -- true
run --timeout nan -- true
run --timeout '5 minutes' -- true
run --timeout '' -- true
run -e =x -- true
run -e NOT_SET_ANYWHERE -- true
run --cpus two -- true
run -m 1K -- true
run -m lots -- true
run --name a --name b -- true
run --rm --keep -- true
run ''
run --label novalue -- true
exec
exec m
exec m --
exec --
exec --start --no-start m true
cp
cp a
cp a b
cp a b c
cp m:/a n:/b
cp m: b
cp a m:
cp m:relative b
cp '' m:/a
stop
stop --all m
rm
rm --all m
inspect
logs
start
create
image
image nope
agent
-- ls
ls --format '{{.name'
version --format x
--color pink ls
run --$long -- true
END
}

@test "FRONT-03 FilesThatFlagsNameAreLookedAtBeforeAnythingElse" {
  cd "$BATS_TEST_TMPDIR"
  printf 'A=1\n  # comment\n\r\nNOT_SET_ANYWHERE\n' > copies
  printf '=x\n' > nameless
  mkdir folder
  while IFS='|' read -r arguments part; do
    # shellcheck disable=SC2086
    holt_ $arguments
    expect_code 2 || { echo "of: $arguments"; return 1; }
    expect_err_has "$part"
  done << END
run --env-file none -- true|--env-file: open none
create --env-file folder x|--env-file: folder is no regular file
run --env-file copies -- true|--env-file copies, line 4: NOT_SET_ANYWHERE
create --env-file nameless x|--env-file nameless, line 1
run --exit-code-file none/x -- true|--exit-code-file: there is no folder
exec --exit-code-file folder m true|--exit-code-file: folder is a folder
image export -o none/x app|--output: there is no folder
agent run --history none hello|--history none
agent run --save none/x hello|--save: there is no folder
END
}

@test "FRONT-03 AMistypedNameIsToldByTheOneThatWasMeant" {
  while IFS='|' read -r arguments part hint; do
    # shellcheck disable=SC2086
    holt_ $arguments
    expect_code 2 || { echo "of: $arguments"; return 1; }
    expect_err_has "holt: $part"
    expect_err_has "holt: hint: $hint"
  done << END
exce m true|unknown verb 'exce'|Did you mean 'exec'?
rmi x|unknown verb 'rmi'|Did you mean 'image rm'?
restart m|unknown verb 'restart'|'holt stop NAME', then 'holt start NAME'.
push x|unknown verb 'push'|'holt image export'
image list|'image' has no verb 'list'|Did you mean 'ls'? Usage: holt image
image inspct x|'image' has no verb 'inspct'|Did you mean 'inspect'? Usage: holt image
run --tiemout 3s -- true|unknown flag '--tiemout'|Did you mean '--timeout'? See 'holt run --help'.
create -x|unknown flag '-x'|See 'holt create --help'.
END
  holt_ agent
  refute_grep chat "$BATS_TEST_TMPDIR/err"
}

@test "FRONT-03 AMistakeIsSaidInAFewWordsAndWhereTheHelpIs" {
  while IFS='|' read -r arguments part hint; do
    # shellcheck disable=SC2086
    holt_ $arguments < /dev/null
    expect_code 2 || { echo "of: $arguments"; return 1; }
    expect_err_has "holt: $part"
    expect_err_has "holt: hint: $hint"
  done << END
run --timeout|--timeout has no value|See 'holt run --help'.
--home|--home has no value|See 'holt help'.
run --name a --name b -- true|--name stands there more than once|See 'holt run --help'.
rm|name machines|See 'holt rm --help'.
prune|say what|See 'holt prune --help'.
wait --for never x|--for: 'never'|See 'holt wait --help'.
image export app|say where to|See 'holt image export --help'.
END
}

@test "HelpHasTheOtherNamesOfAVerbAndWhatPlaceholdersStandFor" {
  holt_ ls --help
  grep -qx 'Also: holt ps' "$BATS_TEST_TMPDIR/out"
  holt_ images --help
  grep -qx 'Also: holt image ls' "$BATS_TEST_TMPDIR/out"
  refute_grep DURATION "$BATS_TEST_TMPDIR/out"
  holt_ run --help
  for line in 'DURATION: 500ms, ' 'SIZE: ' 'NAME[=VALUE]: '; do grep -qF "$line" "$BATS_TEST_TMPDIR/out"; done
}

@test "ErrorsAreJsonWhereJsonIsAskedFor" {
  holt_ --json lss
  expect_code 2
  expect_json_error USAGE
  holt_ run --json --nope -- true
  expect_code 2
  expect_json_error USAGE
  HOLT_JSON=1 holt_ lss
  expect_json_error USAGE
  holt_ rm --json
  expect_json_error USAGE
  expect_json '.error | keys == ["cause","code","hint","machine","message","retryable"]'
}

@test "FlagsOfLaterVersionsAreRefusedNotIgnored" {
  for flag in --net "--allow-host h" "--allow-cidr c" "--allow-port 1" "-p 1:2" "-v a:b" "--snapshot s" "-f Holtfile" "--ttl 5m" --read-only; do
    holt_ --json run $flag -- true
    expect_code 2 || { echo "$flag"; return 1; }
    expect_json_error NOT_SUPPORTED
  done
  holt_ --json --host http://x ls
  expect_json_error NOT_SUPPORTED
  HOLT_NET=1 holt_ --json run -- true
  expect_json_error NOT_SUPPORTED
  holt_ --json agent run --allow-internet-access hello
  expect_code 2
  expect_json_error NOT_SUPPORTED
}

@test "VerbsOfLaterVersionsSaySo" {
  for verb in fork "snapshot create" serve mcp rename port config "agent chat"; do
    holt_ $verb whatever --flag
    expect_code 1 || { echo "$verb"; return 1; }
    expect_err_has "later version"
  done
  holt_ --json mcp
  expect_code 1
  expect_json_error NOT_SUPPORTED
}

@test "NoColourAndNoAnimationOutsideATerminal" {
  holt_ help
  refute_grep $'\x1b' "$BATS_TEST_TMPDIR/out"
  holt_ lss
  refute_grep $'\x1b' "$BATS_TEST_TMPDIR/err"
}

@test "ClosedStreamsAreNoFailure" {
  run bash -c "'$HOLT' version <&- >&- 2>&-"
  [ "$status" = 0 ]
  run bash -c "'$HOLT' help | true; exit \${PIPESTATUS[0]}"
  [ "$status" = 0 ] || [ "$status" = 141 ]
}

@test "AFullDiskOnStandardOutputIsAnError" {
  run bash -c "'$HOLT' help > /dev/full"
  [ "$status" = 1 ]
  [[ $output == *"standard output"* ]]
}
