#!/usr/bin/env bats
# pause, suspend, resume, update, wait, stats, events, prune, with real machines.
load helpers

setup() {
  own_home
  export HOLT_QUIET=1
}
teardown() {
  if [ -e "${HOLT_HOME:-/nowhere}/state" ]; then "$HOLT" rm --all -f > /dev/null; fi
}

@test "LIFE-25 PauseSuspendAndResumeKeepWhatRuns" {
  holt_ run --name box -m 256 -- sh -c '(while :; do sleep 0.05; date +%N > /run/beat; done) > /dev/null 2>&1 &'
  expect_code 0
  holt_ pause box
  expect_out box
  holt_ exec box true
  expect_code 0
  holt_ pause box
  holt_ ls --json
  expect_json '.[0].state == "paused"'
  holt_ resume box
  expect_out box
  holt_ suspend box
  expect_out box
  holt_ suspend box
  expect_code 0
  holt_ inspect box
  expect_json '.[0].state == "suspended" and .[0].pid == null and .[0].suspendedBytes > 0'
  holt_ exec --no-start box true
  expect_code 125
  holt_ exec box sh -c 'a=$(cat /run/beat); sleep 1; b=$(cat /run/beat); [ "$a" != "$b" ]'
  expect_code 0
  holt_ inspect box
  expect_json '.[0].bootKind == "resume"'
  holt_ suspend box
  holt_ stop box
  expect_out box
  holt_ suspend box
  expect_code 1
  holt_ --json resume box
  expect_code 1
  expect_json_error INVALID_STATE
}

@test "LIFE-18 TheConsoleAndTheEventsAreThereAfterAStopAndFollowingEndsWithTheMachine" {
  holt_ run -d --name box -m 256
  "$HOLT" logs -f --events box > "$BATS_TEST_TMPDIR/events" &
  follower=$!
  holt_ exec box sh -c 'echo said > /dev/console'
  holt_ stop box
  wait "$follower"
  grep -q ' started ' "$BATS_TEST_TMPDIR/events"
  grep -q ' stopped ' "$BATS_TEST_TMPDIR/events"
  holt_ logs box
  grep -q said "$BATS_TEST_TMPDIR/out"
  holt_ events --json box
  [ "$(jq -s 'map(.stream) | index("stopped") > index("started")' "$BATS_TEST_TMPDIR/out")" = true ]
  holt_ logs --events --since 1h -n 1 box
  [ "$(wc -l < "$BATS_TEST_TMPDIR/out")" = 1 ]
  holt_ logs --console --events box
  expect_code 2
}

@test "UpdateChangesLabelsSizesAndTheDiskAtOnce" {
  holt_ run -d --name box -m 256 --label a=1
  holt_ update box --label team=red --remove-label a --cpus 1 --disk 22G
  expect_out box
  holt_ inspect box
  expect_json '.[0].labels == {"team":"red"} and .[0].resources.cpus == 2 and .[0].nextResources.cpus == 1 and .[0].resources.diskGb == 22'
  holt_ exec box sh -c 'df --output=size -BG / | tail -1'
  [ "${out//[^0-9]/}" -ge 21 ]
  holt_ update box --disk 10G
  expect_code 1
  holt_ update box
  expect_code 2
  holt_ rm --filter label=team=blue -f
  expect_out ""
  holt_ rm --filter label=team=red -f
  expect_out box
}

@test "UpdateChangesTheEnvironmentFromTheNextStartOnAndShowsNoValue" {
  holt_ run -d --name box -m 256 -e KEPT=1 -e OLD=x
  printf '# ours\nFILED=2\n' > "$BATS_TEST_TMPDIR/env"
  holt_ update box -e NEW=secret-value --env-file "$BATS_TEST_TMPDIR/env" --remove-env OLD
  expect_out box
  holt_ exec box sh -c 'echo "$KEPT,$OLD,$NEW"'
  expect_out "1,x,"
  "$HOLT" stop box > /dev/null
  holt_ exec box sh -c 'echo "$KEPT,$OLD,$NEW,$FILED"'
  expect_out "1,,secret-value,2"
  holt_ inspect box
  expect_json '.[0].env == ["FILED","KEPT","NEW"]'
  refute_grep secret-value "$BATS_TEST_TMPDIR/out"
  "$HOLT" logs --events box > "$BATS_TEST_TMPDIR/events"
  refute_grep secret-value "$BATS_TEST_TMPDIR/events"
  holt_ update box -e =x
  expect_code 2
  [ "$(stat -c %a "$HOLT_HOME/state/machines/box/env.json")" = 600 ]
}

@test "ABundleOfDoctorHoldsLogsAndNoValueOfAnEnvironment" {
  holt_ run -d --name box -m 256 -e TOKEN=s3cret-value --label team=label-value
  "$HOLT" exec box sh -c 'echo "token $TOKEN" > /dev/console' < /dev/null
  "$HOLT" stop box > /dev/null
  holt_ doctor --bundle "$BATS_TEST_TMPDIR/report.tar"
  expect_code 0
  tar xOf "$BATS_TEST_TMPDIR/report.tar" > "$BATS_TEST_TMPDIR/all"
  grep -q 'token (redacted)' "$BATS_TEST_TMPDIR/all"
  grep -q '"kind":"stopped"' "$BATS_TEST_TMPDIR/all"
  refute_grep -a s3cret-value "$BATS_TEST_TMPDIR/all"
  refute_grep -a label-value "$BATS_TEST_TMPDIR/all"
  grep -q TOKEN "$BATS_TEST_TMPDIR/all"
}

@test "EXEC-28 WaitForExitTellsTheCodeOfTheCommandOfRunDetached" {
  holt_ run -d --name box -m 256 -- sh -c 'until [ -e /tmp/go ]; do sleep 0.05; done; exit 6'
  expect_code 0
  holt_ wait --for exit --timeout 100ms box
  expect_code 1
  "$HOLT" wait --for exit box > "$BATS_TEST_TMPDIR/exit" &
  waiter=$!
  id=$("$HOLT" exec -d box sh -c 'exit 3')
  holt_ wait --for exit "$id"
  expect_code 0
  expect_out 3
  "$HOLT" exec box touch /tmp/go < /dev/null
  wait "$waiter"
  [ "$(cat "$BATS_TEST_TMPDIR/exit")" = 6 ]
  holt_ --json wait --for exit box
  expect_json '.machine == "box" and .exitCode == 6 and .running == false'
  "$HOLT" stop box > /dev/null
  holt_ --json wait --for exit box
  expect_code 1
  expect_json_error INVALID_STATE
  "$HOLT" start box > /dev/null
  holt_ --json wait --for exit box
  expect_code 1
  expect_json_error NOT_FOUND
  holt_ wait --for dinner box
  expect_code 2
}

@test "WaitStatsAndAttachTellOfTheMachine" {
  holt_ create box -m 256
  holt_ wait --for ready --timeout 200ms box
  expect_code 1
  "$HOLT" wait --for ready box > "$BATS_TEST_TMPDIR/ready" &
  waiter=$!
  holt_ start --wait ready box
  wait "$waiter"
  [ "$(cat "$BATS_TEST_TMPDIR/ready")" = running ]
  holt_ stats --no-stream --json box
  expect_json '.machine == "box" and .memLimit > 100000000 and .hostRss > 0 and .cpuPercent >= 0'
  holt_ stats --no-stream
  grep -q '^box ' "$BATS_TEST_TMPDIR/out"
  "$HOLT" wait box > "$BATS_TEST_TMPDIR/ended" &
  waiter=$!
  holt_ stop box
  wait "$waiter"
  [ "$(cat "$BATS_TEST_TMPDIR/ended")" = stopped ]
  "$HOLT" start --attach box > "$BATS_TEST_TMPDIR/attached" &
  attached=$!
  eventually "$HOLT" exec --no-start box sh -c 'echo hello > /dev/console'
  holt_ stop box
  wait "$attached"
  grep -q hello "$BATS_TEST_TMPDIR/attached"
}

@test "PruneShowsAsksAndTakesOnlyWhatHasEnded" {
  holt_ create old
  holt_ run -d --name up -m 256
  holt_ prune
  expect_code 2
  holt_ prune --machines
  expect_code 2
  holt_ prune --machines --dry-run --json
  expect_json '.removed == [{"kind":"machine","name":"old","bytes":.removed[0].bytes}] and .freedBytes > 0 and .dryRun'
  holt_ prune --machines --older-than 1h -f
  expect_out ""
  holt_ prune --machines -f
  expect_out "machine old"
  holt_ ls -a -q
  expect_out up
}
