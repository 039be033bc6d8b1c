#!/usr/bin/env bats
# Detached commands, limits, and standard output that is slow or gone.
load helpers

setup_file() { export machine=t-det-$$; }
setup() { own_machine; }
teardown_file() { remove_own_machine; }

@test "EXEC-28 ADetachedCommandIsFoundAttachedWaitedForAndListed" {
  holt_ exec -d "$machine" sh -c 'echo one; echo two >&2; sleep 1; echo three; exit 7'
  expect_code 0
  id=$out
  [[ $id == "$machine":* ]]
  holt_ exec --list "$machine"
  expect_code 0
  grep -F "$id" <<< "$out" | grep -q running
  holt_ exec --attach "$id"
  expect_code 7
  expect_out "one
three"
  expect_err_has two
  holt_ exec --wait "$id"
  expect_code 7
  holt_ --json exec --list "$machine"
  expect_json "map(select(.id == \"$id\"))[0] | .running == false and .exitCode == 7 and .stdoutBytes == 10 and .command[0] == \"sh\""
}

@test "EXEC-12 ADetachedCommandIsSignalledAndKilled" {
  id=$("$HOLT" exec -d "$machine" sh -c 'trap "exit 9" TERM; echo trapped; while :; do sleep 0.05; done')
  # Before that the signal would end it.
  traps() { "$HOLT" --json exec --list "$machine" | jq -e --arg id "$id" 'any(.[]; .id == $id and .stdoutBytes > 0)'; }
  eventually traps
  holt_ exec --kill TERM "$id"
  expect_code 0
  holt_ exec --wait "$id"
  expect_code 9
  id=$("$HOLT" exec -d "$machine" sleep 300)
  holt_ --json exec --kill KILL "$id"
  expect_json ".machine == \"$machine\" and .id == \"$id\" and .signal == 9"
  expect_code 0
  holt_ exec --kill SIGKILL "$id"
  expect_code 0
  holt_ exec --wait "$id"
  expect_code 137
}

@test "EXEC-28 AnIdOfAnEarlierLifeIsNotFound" {
  id=$("$HOLT" exec -d "$machine" sleep 300)
  "$HOLT" stop "$machine" > /dev/null
  "$HOLT" start "$machine" > /dev/null
  holt_ --json exec --attach "$id"
  expect_code 125
  expect_json_error NOT_FOUND
}

@test "EXEC-11 AnInterruptedLookLeavesTheCommandAlone" {
  id=$("$HOLT" exec -d "$machine" sh -c 'echo up; exec sleep 300')
  "$HOLT" exec --attach "$id" > "$BATS_TEST_TMPDIR/look" &
  pid=$!
  looking() { grep -q up "$BATS_TEST_TMPDIR/look"; }
  eventually looking
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" = 130 ]
  holt_ --json exec --list "$machine"
  expect_json "map(select(.id == \"$id\"))[0].running"
  "$HOLT" exec --kill KILL "$id"
}

@test "ADetachedProgramThatIsMissingIs127" {
  holt_ exec -d "$machine" /nope
  expect_code 127
  expect_out ""
  expect_err_has /nope
}

@test "DetachedFlagsThatDoNotFitAreUsageErrors" {
  for flags in "-d --list" "--attach x" "--attach x: y" "--kill TERM nocolon" "--kill NOPE a:b" "-d -i"; do
    # shellcheck disable=SC2086
    holt_ exec $flags "$machine" true
    expect_code 2
  done
}

@test "RunDetachedWithACommandLeavesItRunning" {
  name=$("$HOLT" run -d --name "$machine-d" -- sh -c 'echo up; exec sleep 300')
  [ "$name" = "$machine-d" ]
  holt_ --json exec --list "$name"
  expect_json 'length == 1 and .[0].running'
  "$HOLT" rm -f "$name" > /dev/null
}

@test "EXEC-11 AMachineOfRunDetachedWithRmGoesWithItsCommand" {
  name=$("$HOLT" run -d --rm -- sh -c 'until [ -e /tmp/go ]; do sleep 0.05; done')
  "$HOLT" ls -q | grep -qx "$name"
  # The machine may be gone before this one's exit is known.
  "$HOLT" exec "$name" touch /tmp/go < /dev/null || true
  no_machine() { ! "$HOLT" ls -a -q | grep -qx "$name"; }
  eventually no_machine
  holt_ run -d --rm -- /nope
  expect_code 127
  holt_ run -d --rm --pull never no-such-image -- true
  expect_code 125
  only() { [ "$("$HOLT" ls -a -q)" = "$machine" ]; }
  eventually only
}

@test "LimitsHoldAndMistakesInThemAreNamed" {
  holt_ exec --ulimit nofile=77 --ulimit cpu=9 "$machine" sh -c 'ulimit -n; ulimit -t'
  expect_out "77
9"
  holt_ exec --json --ulimit memory=32M "$machine" python3 -c 'x = bytearray(1 << 28)'
  expect_code 137
  expect_json '.oom == true'
  holt_ exec --ulimit nproc=5 "$machine" sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait'
  [ "$code" != 0 ]
  holt_ exec --ulimit walk=1 "$machine" true
  expect_code 2
  expect_err_has walk
}

@test "EXEC-33 AFullDeviceBehindStandardOutputIs125" {
  code=0
  "$HOLT" exec "$machine" seq 1000000 < /dev/null > /dev/full 2> "$BATS_TEST_TMPDIR/err" || code=$?
  [ "$code" = 125 ]
  grep -q "standard output" "$BATS_TEST_TMPDIR/err"
}

@test "EXEC-33 ASlowPipeThatDoesNotBlockGetsEveryByte" {
  python3 - "$HOLT" "$machine" << 'END'
import fcntl, os, select, subprocess, sys
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
program = subprocess.Popen([sys.argv[1], "exec", sys.argv[2], "seq", "200000"], stdin=subprocess.DEVNULL, stdout=write)
os.close(write)
data = b""
while piece := os.read(read, 4096):
    data += piece
    select.select([], [], [], 0.0005)
assert program.wait() == 0
assert data == b"".join(b"%d\n" % n for n in range(1, 200001)), len(data)
END
}

@test "EXEC-23 UserSignalsReachTheCommandToo" {
  "$HOLT" exec "$machine" sh -c 'trap "exit 11" USR1; echo > /tmp/usr; while :; do sleep 0.05; done' < /dev/null &
  pid=$!
  ready() { "$HOLT" exec "$machine" test -e /tmp/usr < /dev/null; }
  eventually ready
  kill -USR1 $pid
  code=0
  wait $pid || code=$?
  [ "$code" = 11 ]
}

@test "EXEC-23 ASecondInterruptKillsACommandThatIgnoresTheFirst" {
  "$HOLT" exec "$machine" sh -c 'trap "echo got >> /tmp/ints" INT; echo > /tmp/deaf; while :; do sleep 0.05; done' < /dev/null &
  pid=$!
  deaf() { "$HOLT" exec "$machine" test -e /tmp/deaf < /dev/null; }
  eventually deaf
  kill -INT $pid
  once() { [ "$("$HOLT" exec "$machine" cat /tmp/ints < /dev/null)" = got ]; }
  eventually once
  kill -INT $pid
  kill -INT $pid 2> /dev/null || true
  code=0
  wait $pid || code=$?
  [ "$code" = 130 ]
}

@test "EXEC-29 ScriptsOfAMebibyteOnStandardInputRunWhole" {
  { for i in $(seq 1 25000); do printf 'n=%s # padding padding padding padding %s\n' "$i" "$i"; done; printf 'cat << X\n$n "quoted"\nX\n'; } > "$BATS_TEST_TMPDIR/script"
  [ "$(stat -c %s "$BATS_TEST_TMPDIR/script")" -gt 1048576 ]
  "$HOLT" exec "$machine" sh < "$BATS_TEST_TMPDIR/script" > "$BATS_TEST_TMPDIR/result"
  [ "$(cat "$BATS_TEST_TMPDIR/result")" = '25000 "quoted"' ]
  holt_ exec "$machine" echo next
  expect_out next
}
