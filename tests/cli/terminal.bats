#!/usr/bin/env bats
# Terminals: holt exec -t, holt run -t and holt shell on a terminal of the test's own.
load helpers

setup_file() { export machine=t-term-$$; }
setup() { own_machine; }
teardown_file() { remove_own_machine; }

# typed ROWS COLUMNS [EXPECT TYPE]... -- PROGRAM...: what came on the terminal in $out.
typed() {
  out=$(python3 "$BATS_TEST_DIRNAME/typist.py" "$@" | tr -d '\0')
}
expect_has() {
  if ! grep -qF -- "$1" <<< "$out"; then
    printf 'the terminal has no "%s":\n%s\n' "$1" "$out"
    return 1
  fi
}

@test "EXEC-21 SizeTypeAndCodeAreThoseOfTheTerminal" {
  TERM=screen typed 31 97 -- "$HOLT" exec "$machine" sh -c 'stty size; echo $TERM; tty; printf x; exit 3'
  expect_has "31 97"
  expect_has screen
  expect_has /dev/pts/
  expect_has "x
[code 3]"
  expect_has "[restored]"
}

@test "EXEC-21 AResizeReachesTheProgram" {
  typed 20 80 ready '!resize 44 111' -- \
    "$HOLT" exec -it "$machine" sh -c 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done'
  expect_has "44 111"
  expect_has "[code 0]"
}

@test "EXEC-21 ControlCInterruptsTheProgramAndNotHolt" {
  typed 24 80 ready '\x03' -- \
    "$HOLT" exec -it "$machine" sh -c 'trap "echo got; exit 5" INT; echo ready; while :; do sleep 0.05; done'
  expect_has got
  expect_has "[code 5]"
  expect_has "[restored]"
}

@test "EXEC-21 ControlDEndsTheInput" {
  typed 24 80 ready 'line\n\x04' -- "$HOLT" exec -it "$machine" sh -c 'echo ready; cat; echo done'
  expect_has done
  expect_has "[code 0]"
}

@test "EXEC-21 TheTerminalIsRestoredWhenTheGuestProcessOrTheMachineIsKilled" {
  typed 24 80 ready "!run '$HOLT' exec $machine sh -c 'kill -9 \$(cat /tmp/pid)'" -- \
    "$HOLT" exec -it "$machine" sh -c 'echo $$ > /tmp/pid; echo ready; exec sleep 12345'
  expect_has "[code 137]"
  expect_has "[restored]"
  "$HOLT" run -d --name "$machine-2" > /dev/null
  pid=$("$HOLT" inspect "$machine-2" --format '{{.pid}}')
  typed 24 80 ready "!run kill -9 $pid" -- "$HOLT" exec -it "$machine-2" sh -c 'echo ready; exec sleep 12345'
  "$HOLT" rm -f "$machine-2" > /dev/null
  expect_has "[code 125]"
  expect_has "[restored]"
}

@test "EXEC-21 SignalsOfOthersEndItAndTheTerminalIsRestored" {
  typed 24 80 ready '!kill TERM' -- "$HOLT" exec -it "$machine" sh -c 'echo ready; exec sleep 12345'
  expect_has "[code 143]"
  expect_has "[restored]"
}

@test "EXEC-22 NoTerminalWithoutOne" {
  holt_ exec "$machine" sh -c 'tty; echo "[${TERM-unset}]"; test -t 0 || test -t 1 || test -t 2 || echo none' < /dev/null
  expect_out "not a tty
[unset]
none"
  holt_ exec "$machine" sh -c 'cd /tmp && rm -rf g && git init -q g && cd g && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && git log --format=%s' < /dev/null
  expect_code 0
  expect_out m
  typed 24 80 -- "$HOLT" exec -T "$machine" tty
  expect_has "not a tty"
}

@test "EXEC-21 ATerminalCanBeForcedWhereThereIsNone" {
  printf 'typed\n' | "$HOLT" exec -t "$machine" sh -c 'tty; cat' > "$BATS_TEST_TMPDIR/forced"
  grep -q /dev/pts/ "$BATS_TEST_TMPDIR/forced"
  [ "$(grep -c typed "$BATS_TEST_TMPDIR/forced")" = 2 ]
  holt_ exec -t -T "$machine" true
  expect_code 2
}

@test "EXEC-21 AShellIsALoginShellWithJobControl" {
  typed 24 80 '# ' 'shopt login_shell; sleep 100\n' login_shell '\x03' '# ' 'exit 7\n' -- "$HOLT" shell "$machine"
  expect_has "login_shell"
  expect_has "[code 7]"
  expect_has "[restored]"
  typed 24 80 '$ ' 'exit 4\n' -- "$HOLT" sh --shell /bin/sh -u nobody -w /tmp "$machine"
  expect_has "[code 4]"
  holt_ shell "$machine" < /dev/null
  expect_code 2
  expect_err_has "no terminal"
}

@test "EXEC-21 RunGivesATerminalToo" {
  typed 24 80 '>>> ' 'print(6*7)\n' '>>> ' 'exit(9)\n' -- "$HOLT" run -- python3 -q
  expect_has 42
  expect_has "[code 9]"
}

@test "CHAN-21 LogsOnATerminalCannotCommandIt" {
  "$HOLT" exec "$machine" sh -c 'printf "\033]52;c;aGk=\a\033[2Jplain words\n" > /dev/console' < /dev/null
  typed 24 200 -- "$HOLT" logs -n 1 "$machine"
  expect_has '\x1b]52;c;aGk=\x07\x1b[2Jplain words'
  "$HOLT" logs -n 1 "$machine" | grep -q $'\033]52;c;aGk=\a\033\[2Jplain words'
}

@test "FRONT-04 ADeletionIsAskedForOnATerminalAndTakesAYesInAnyCase" {
  "$HOLT" create "$machine-3" --label gone=soon > /dev/null
  typed 24 80 '[y/N]' '\x03' -- "$HOLT" rm --filter label=gone=soon
  expect_has "[code 130]"
  expect_has "[restored]"
  typed 24 80 '[y/N]' 'n\n' -- "$HOLT" rm --filter label=gone=soon
  expect_has "Nothing was deleted"
  expect_has "[code 1]"
  "$HOLT" inspect "$machine-3" > /dev/null
  holt_ rm --filter label=gone=soon < /dev/null
  expect_code 2
  expect_err_has --force
  typed 24 80 '[y/N]' 'Y\n' -- "$HOLT" rm --filter label=gone=soon
  expect_has "[code 0]"
  holt_ inspect "$machine-3"
  expect_code 1
}
