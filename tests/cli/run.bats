#!/usr/bin/env bats
# holt run and holt exec in real machines: bytes, codes, origins, streams.
load helpers

setup_file() { export machine=t-exec-$$; }
setup() { own_machine; }
teardown_file() { remove_own_machine; }

@test "RunPrintsWhatTheCommandPrintsAndNothingElse" {
  holt_ run -- python3 -c 'print(2**10)'
  expect_code 0
  expect_out 1024
  [ -z "$err" ]
}

@test "AnUnnamedMachineIsGoneAfterItsCommand" {
  holt_ run -- true
  expect_code 0
  no_other_machine() { [ "$("$HOLT" ls -a -q)" = "$machine" ]; }
  eventually no_other_machine
}

@test "CHAN-24 EmulationIsSaidOnceOnStandardErrorAndNotUnderQuiet" {
  HOLT_QUIET=0 holt_ run -- true
  expect_code 0
  if [ "$("$HOLT" inspect "$machine" --format '{{.accelerator}}')" = tcg ]; then
    [ "$(grep -c 'isolation boundary' "$BATS_TEST_TMPDIR/err")" = 1 ]
  else
    refute_grep 'isolation boundary' "$BATS_TEST_TMPDIR/err"
  fi
}

@test "EXEC-15 BytesAreBytes" {
  "$HOLT" exec "$machine" printf '\000\377\r\n\303' > "$BATS_TEST_TMPDIR/bytes" < /dev/null
  [ "$(od -An -tx1 < "$BATS_TEST_TMPDIR/bytes" | tr -d ' ')" = 00ff0d0ac3 ]
  head -c 1048576 /dev/urandom > "$BATS_TEST_TMPDIR/random"
  "$HOLT" exec "$machine" cat < "$BATS_TEST_TMPDIR/random" | cmp - "$BATS_TEST_TMPDIR/random"
}

@test "EXEC-16 TheTwoStreamsStayApart" {
  holt_ exec "$machine" sh -c 'echo out; echo err >&2'
  expect_code 0
  expect_out out
  [ "$err" = err ]
}

@test "EXEC-09 TheGuestsCodePassesThrough" {
  for expected in 0 1 2 3 124 125 126 127 255; do
    holt_ exec "$machine" sh -c "exit $expected"
    expect_code "$expected"
    [ -z "$err" ]
    holt_ exec --json "$machine" sh -c "exit $expected"
    expect_code "$expected"
    expect_json ".exitCode == $expected and .origin == \"guest\" and .timedOut == false and .signal == null"
  done
}

@test "EXEC-08 ASignalIs128PlusItsNumber" {
  holt_ exec --json "$machine" sh -c 'kill -9 $$'
  expect_code 137
  expect_json '.origin == "signal" and .signal == 9 and .oom == false'
  holt_ exec "$machine" sh -c 'kill -TERM $$'
  expect_code 143
}

@test "EXEC-08 WhatCannotBeInvokedIs126Or127AndNamesThePath" {
  holt_ exec "$machine" /nope
  expect_code 127
  expect_err_has /nope
  holt_ exec "$machine" /etc
  expect_code 126
  expect_err_has /etc
  holt_ exec "$machine" /etc/passwd
  expect_code 126
  holt_ exec -w /no/such/folder "$machine" true
  expect_code 126
  expect_err_has /no/such/folder
  holt_ exec -u nobody-here "$machine" true
  expect_code 126
  expect_err_has nobody-here
}

@test "EXEC-01 OurTimeoutIs124WithItsOrigin" {
  holt_ exec --json --timeout 500ms "$machine" sh -c 'echo begun; sleep 30'
  expect_code 124
  expect_json '.origin == "timeout" and .timedOut == true and .stdout == "begun\n"'
}

@test "TheExitCodeFileTellsOurCodesFromTheGuests" {
  holt_ exec --exit-code-file "$BATS_TEST_TMPDIR/code" "$machine" sh -c 'exit 125'
  jq -e '.exitCode == 125 and .origin == "guest"' "$BATS_TEST_TMPDIR/code"
  holt_ exec --exit-code-file "$BATS_TEST_TMPDIR/code" no-such-machine true
  expect_code 125
  jq -e '.exitCode == 125 and .origin == "holt"' "$BATS_TEST_TMPDIR/code"
  jq -e 'keys == ["durationMs","exitCode","oom","origin","signal","timedOut"]' "$BATS_TEST_TMPDIR/code"
}

@test "AnExitCodeFileThatIsAPipeIsWrittenToAndStays" {
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  cat "$BATS_TEST_TMPDIR/pipe" > "$BATS_TEST_TMPDIR/code" 3>&- &
  reader=$!
  holt_ exec --exit-code-file "$BATS_TEST_TMPDIR/pipe" "$machine" sh -c 'exit 3'
  expect_code 3
  wait "$reader"
  [ -p "$BATS_TEST_TMPDIR/pipe" ]
  jq -e '.exitCode == 3' "$BATS_TEST_TMPDIR/code"
}

@test "OfSeveralFilesOfVariablesTheLaterCountsAndAFlagOverBoth" {
  cd "$BATS_TEST_TMPDIR"
  printf 'A=1\nB=1\nC=1\n' > first
  printf '# comment\n\n  B=2\r\nC=2' > second
  holt_ run -e C=3 --env-file first --env-file second -- sh -c 'printf %s "$A$B$C"'
  expect_code 0
  expect_out 123
}

@test "EverythingBehindTheNameIsTheGuests" {
  holt_ exec "$machine" echo --json -x -- --timeout=3
  expect_out "--json -x -- --timeout=3"
  holt_ exec "$machine" -- printf '%s|' a '' 'b c'
  expect_out "a||b c|"
}

@test "EXEC-10 StandardInputIsForwardedWhenItIsNoTerminal" {
  printf 'hello' | "$HOLT" exec "$machine" cat > "$BATS_TEST_TMPDIR/copy"
  [ "$(cat "$BATS_TEST_TMPDIR/copy")" = hello ]
  holt_ exec "$machine" cat < /dev/null
  expect_code 0
  expect_out ""
}

@test "ACommandThatDoesNotReadItsInputEndsAllTheSame" {
  yes | timeout 30 "$HOLT" exec "$machine" true
}

@test "EnvironmentFolderAndUserReachTheCommand" {
  COPIED=from-here holt_ exec -e 'A=x y$(id)' -e COPIED -w /tmp "$machine" sh -c 'echo "$A|$COPIED|$PWD"'
  expect_out 'x y$(id)|from-here|/tmp'
  holt_ exec -u 1234 "$machine" id -u
  expect_out 1234
  holt_ exec -u nobody "$machine" id -un
  expect_out nobody
}

@test "EXEC-17 NothingOfTheHostsEnvironmentIsInTheGuest" {
  SECRET_OF_HOST=xyzzy holt_ exec "$machine" env
  refute_grep -E 'xyzzy|HOLT_|BATS' "$BATS_TEST_TMPDIR/out"
}

@test "JsonKeepsBytesThatAreNoText" {
  holt_ exec --json "$machine" printf '\377\000'
  expect_json '.stdoutB64 == "/wA=" and .stdoutTruncated == false and (has("stderrB64") | not)'
}

@test "EXEC-07 CapturedOutputIsCutAndSaysSo" {
  holt_ exec --json --max-output 10 "$machine" sh -c 'printf 0123456789x'
  expect_json '.stdout == "0123456789" and .stdoutTruncated == true'
  holt_ exec --json --max-output 11 "$machine" sh -c 'printf 0123456789x'
  expect_json '.stdoutTruncated == false'
}

@test "EXEC-04 OutputWrittenJustBeforeTheEndIsWhole" {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    "$HOLT" exec "$machine" sh -c 'head -c 300000 /dev/zero; exit 7' < /dev/null > "$BATS_TEST_TMPDIR/zeros" || [ $? = 7 ]
    [ "$(stat -c %s "$BATS_TEST_TMPDIR/zeros")" = 300000 ]
  done
}

@test "EXEC-33 AReaderThatLeavesEndsTheCommandQuietly" {
  run bash -c "'$HOLT' exec $machine sh -c 'echo \$\$ > /tmp/yes.pid; exec yes' < /dev/null | head -1; exit \${PIPESTATUS[0]}"
  [ "$status" = 141 ]
  [ "$output" = y ]
  gone() { ! "$HOLT" exec "$machine" sh -c 'kill -0 $(cat /tmp/yes.pid)' < /dev/null 2> /dev/null; }
  eventually gone
}

@test "EXEC-23 AnInterruptReachesTheCommandOnce" {
  "$HOLT" exec "$machine" sh -c 'trap "echo got >> /tmp/got; exit 9" INT; echo ready > /tmp/ready; while :; do sleep 0.05; done' < /dev/null &
  pid=$!
  ready() { "$HOLT" exec "$machine" test -e /tmp/ready < /dev/null; }
  eventually ready
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" = 9 ]
  [ "$("$HOLT" exec "$machine" cat /tmp/got < /dev/null)" = got ]
}

@test "EXEC-23 TerminationOfACommandThatDoesNotHeedItIs143WithinThreeSeconds" {
  "$HOLT" exec "$machine" sh -c 'trap "" TERM INT; echo > /tmp/deaf; while :; do sleep 0.05; done' < /dev/null &
  pid=$!
  deaf() { "$HOLT" exec "$machine" test -e /tmp/deaf < /dev/null; }
  eventually deaf
  kill -TERM $pid
  code=0
  wait $pid || code=$?
  [ "$code" = 143 ]
}

@test "AnInterruptOfRunLeavesNoMachine" {
  "$HOLT" run -- sleep 300 < /dev/null &
  pid=$!
  running() { [ "$("$HOLT" ls -q | wc -l)" = 2 ]; }
  eventually running
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" = 130 ]
  alone() { [ "$("$HOLT" ls -a -q)" = "$machine" ]; }
  eventually alone
}

@test "CHAN-24 RequireKvmRefusesEmulation" {
  if [ "$("$HOLT" inspect "$machine" --format '{{.accelerator}}')" = kvm ]; then skip "KVM works here"; fi
  holt_ --json run --require-kvm -- true
  expect_code 125
  expect_json_error KVM_UNAVAILABLE
  holt_ ls -a -q
  expect_out "$machine"
}

@test "RunAsJsonSaysHowItRan" {
  holt_ run --json -- sh -c 'echo hi; exit 3'
  expect_code 3
  expect_json '.stdout == "hi\n" and .exitCode == 3 and .origin == "guest" and (.bootMs | type == "number")
    and (.accelerator == "tcg" or .accelerator == "kvm") and (.isolation | type == "string") and (.machine | startswith("holt-"))'
}

@test "TheDefaultsOfAMachineAreTwoCpusAndAGibibyte" {
  holt_ exec "$machine" nproc
  expect_out 2
  holt_ run --cpus 1 -m 512M -- sh -c 'nproc; awk "/MemTotal/ {print (\$2 < 530000)}" /proc/meminfo'
  expect_out "1
1"
}
