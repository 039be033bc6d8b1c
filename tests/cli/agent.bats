#!/usr/bin/env bats
# holt agent run, holt dev replay and the example program, with real machines and replayed models.
load helpers

setup() {
  own_home
  export HOLT_QUIET=1
}
teardown() {
  if [ -n "${server:-}" ]; then kill "$server" 2> /dev/null || true; fi
  if [ -e "${HOLT_HOME:-/nowhere}/state" ]; then "$HOLT" rm --all -f > /dev/null; fi
}

# Serves a script and points the provider at it.
replay() {
  "$HOLT" dev replay "$1" > "$BATS_TEST_TMPDIR/url" 2> "$BATS_TEST_TMPDIR/replay-err" 3>&- &
  server=$!
  listening() { [ -s "$BATS_TEST_TMPDIR/url" ]; }
  eventually listening
  ANTHROPIC_BASE_URL=$(head -1 "$BATS_TEST_TMPDIR/url")
  export ANTHROPIC_BASE_URL ANTHROPIC_API_KEY=replayed
}
# Its exit code: 0 when every request fitted and every entry was used.
end_replay() {
  kill "$server"
  local ended=0
  wait "$server" || ended=$?
  server=
  if [ "$ended" != 0 ]; then cat "$BATS_TEST_TMPDIR/replay-err"; fi
  return "$ended"
}
script() { cat > "$BATS_TEST_TMPDIR/script.jsonl"; }

@test "TwoRunsWorkInOneMachineAndTheScriptIsThereAfterwards" {
  replay "$root/examples/primes.replay.jsonl"
  cd "$BATS_TEST_TMPDIR"
  holt_ agent run --json --save history.json 'Write a script that prints the first 10 primes, and run it.'
  expect_code 0
  expect_json '.output | test("2, 3, 5")'
  expect_json '.workspace.provider == "smol" and (.workspace.id | test("^pydantic-ai-[0-9a-f]{32}$")) and (.messages | length) == 6'
  machine=$(jq -r .workspace.id out)
  jq -e 'length == 6' history.json
  holt_ agent run --json --history history.json --save history.json 'Now make it print the first 100.'
  expect_code 0
  expect_json ".workspace.id == \"$machine\" and (.messages | length) == 12"
  [ "$("$HOLT" ls -a -q)" = "$machine" ]
  holt_ exec -w /workspace "$machine" python3 primes.py
  [[ $out == *" 541" ]]
  end_replay
}

@test "TheExampleProgramDoesTheSame" {
  [ -x "$EXAMPLES/primes" ] || skip "examples/primes is not built"
  replay "$root/examples/primes.replay.jsonl"
  run "$EXAMPLES/primes"
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == *"2, 3, 5"* ]]
  [[ $output == *"machine of both runs: pydantic-ai-"* ]]
  [ -z "$("$HOLT" ls -a -q)" ]
  end_replay
}

@test "StepsGoToStandardErrorAndTheAnswerToStandardOutput" {
  script << 'END'
{"reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "echo from-the-machine"}}]}}
{"expect": {"results": ["from-the-machine"]}, "reply": {"text": "done"}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  HOLT_QUIET=0 holt_ agent run 'Say it.'
  expect_code 0
  expect_out done
  expect_err_has "shell echo from-the-machine"
  expect_err_has "workspace pydantic-ai-"
  end_replay
}

@test "EventsAreLinesOfJsonWithTheResultLast" {
  script << 'END'
{"reply": {"text": "hello"}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  holt_ agent run --events 'Greet.'
  expect_code 0
  jq -es 'all(has("event_kind")) and last.event_kind == "agent_run_result" and last.output == "hello"' "$BATS_TEST_TMPDIR/out"
}

@test "ANamedMachineIsTheWorkspaceWhereOneIsNamed" {
  "$HOLT" run -d --name mine > /dev/null
  script << 'END'
{"reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "hostname"}}]}}
{"expect": {"results": ["mine"]}, "reply": {"text": "ok"}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  echo 'Which one?' | "$HOLT" agent run --json --workspace mine - > "$BATS_TEST_TMPDIR/out"
  expect_json '.workspace.id == "mine"'
  [ "$("$HOLT" ls -a -q)" = mine ]
}

@test "AFailedRunSavesWhatItDid" {
  script << 'END'
{"reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "true"}}]}}
{"reply": {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no more"}}}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  cd "$BATS_TEST_TMPDIR"
  holt_ --json agent run --save history.json 'Try.'
  expect_code 1
  expect_json '.error.message | test("no more")'
  jq -e 'length >= 2 and .[0].kind == "request"' history.json
}

@test "ModelErrorsAreTypedAndSayWhatToDo" {
  script << 'END'
{"reply": {"status": 401, "body": {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  holt_ --json agent run 'Try.'
  expect_code 1
  expect_json '.error.code == "UNAUTHORIZED"'
  refute_grep replayed "$BATS_TEST_TMPDIR/err"
  unset ANTHROPIC_API_KEY
  holt_ agent run 'Try.'
  expect_code 1
  expect_err_has ANTHROPIC_API_KEY
  holt_ agent run --model nope:x 'Try.'
  expect_code 1
  expect_err_has nope
  [ -z "$("$HOLT" ls -a -q)" ]
}

@test "AMissingModelIsAFailureOfTheModelAndAMissingMachineOneOfTheEngine" {
  script << 'END'
{"reply": {"status": 404, "body": {"type": "error", "error": {"type": "not_found_error", "message": "model: nope"}}}}
{"reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "true"}}]}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  holt_ --json agent run 'Try.'
  expect_code 1
  expect_json_error NOT_FOUND
  holt_ --json agent run --workspace no-such-machine 'Try.'
  expect_code 125
  expect_json_error NOT_FOUND
  holt_ --json agent run --workspace pydantic-ai-0123456789abcdef0123456789abcdef 'Try.'
  expect_code 125
  expect_json_error NOT_FOUND
}

@test "ASaveThatFailsHidesNeitherTheAnswerNorTheErrorOfTheRun" {
  script << 'END'
{"reply": {"text": "hello"}}
{"reply": {"status": 401, "body": {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  unwritable=$BATS_TEST_TMPDIR/$(printf '%0300d' 0)
  holt_ agent run --save "$unwritable" 'Greet.'
  expect_code 1
  expect_out hello
  expect_err_has "--save"
  holt_ --json agent run --save "$unwritable" 'Again.'
  expect_code 1
  expect_json_error UNAUTHORIZED
  expect_err_has "--save"
}

@test "WhatIsNoHistoryIsRefusedBeforeAnythingStarts" {
  export ANTHROPIC_API_KEY=x ANTHROPIC_BASE_URL=http://127.0.0.1:9
  echo '{"not": "a history"}' > "$BATS_TEST_TMPDIR/bad.json"
  holt_ --json agent run --history "$BATS_TEST_TMPDIR/bad.json" 'Go on.'
  expect_code 2
  expect_json_error INVALID_CONFIG
  holt_ --json agent run --history /no/such/file 'Go on.'
  expect_code 2
  expect_json_error NOT_FOUND
  holt_ --json agent run --save /no/such/folder/x 'Go.'
  expect_code 2
  expect_json_error USAGE
  holt_ --json agent run --save "$BATS_TEST_TMPDIR" 'Go.'
  expect_code 2
  expect_json_error USAGE
  holt_ agent run ''
  expect_code 2
  holt_ agent run - < /dev/null
  expect_code 2
  [ -z "$("$HOLT" ls -a -q)" ]
}

@test "ARefOfAForeignMachineInAHistoryIsRefused" {
  "$HOLT" create private > /dev/null
  script << 'END'
{"reply": {"text": "hello"}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  cd "$BATS_TEST_TMPDIR"
  holt_ agent run --save history.json 'Greet.'
  expect_code 0
  jq '(.[] | select(.kind == "response")).workspace_ref = {"provider": "smol", "id": "private"}' history.json > forged.json
  holt_ --json agent run --history forged.json 'Again.'
  expect_code 1
  expect_json_error INVALID_CONFIG
  [ "$("$HOLT" inspect private --format '{{.state}}')" = created ]
}

@test "ReplayFailsLoudlyOnAMisfitAndOnWhatWasNotUsed" {
  script << 'END'
{"expect": {"user": "something else"}, "reply": {"text": "hello"}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  holt_ agent run 'Greet.'
  expect_code 1
  ended=0
  end_replay || ended=$?
  [ "$ended" = 1 ]
  [ "$(grep -c . "$BATS_TEST_TMPDIR/replay-err")" -ge 2 ]
  printf '{"reply": 3}\n' > "$BATS_TEST_TMPDIR/broken.jsonl"
  holt_ dev replay "$BATS_TEST_TMPDIR/broken.jsonl"
  expect_code 1
  holt_ dev replay --listen nonsense "$root/examples/primes.replay.jsonl"
  expect_code 2
}

@test "AnInterruptEndsTheRunWith130AndKeepsTheMessages" {
  script << 'END'
{"reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "trap '' TERM; touch /workspace/begun; sleep 250"}}]}}
END
  replay "$BATS_TEST_TMPDIR/script.jsonl"
  HOLT_QUIET=0 "$HOLT" agent run --save "$BATS_TEST_TMPDIR/history.json" 'Wait.' > "$BATS_TEST_TMPDIR/out" 2> "$BATS_TEST_TMPDIR/err" < /dev/null 3>&- &
  pid=$!
  begun() { m=$("$HOLT" ls -q) && [ -n "$m" ] && "$HOLT" exec "$m" test -e /workspace/begun < /dev/null; }
  eventually begun
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" = 130 ]
  jq -e 'length >= 2' "$BATS_TEST_TMPDIR/history.json"
  grep -q "workspace $m is kept" "$BATS_TEST_TMPDIR/err"
}
