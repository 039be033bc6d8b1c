# Shared by the bats files: where the program is, a home of its own for each file, and looks at results.
root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
HOLT=${HOLT_BIN:-$root/build/holt}
EXAMPLES=${HOLT_EXAMPLES:-$root/build/release/examples}

# Standard output of the command in $out, standard error in $err, exit code in $code.
holt_() {
  set +e
  "$HOLT" "$@" > "$BATS_TEST_TMPDIR/out" 2> "$BATS_TEST_TMPDIR/err"
  code=$?
  set -e
  out=$(tr -d '\0' < "$BATS_TEST_TMPDIR/out")
  err=$(cat "$BATS_TEST_TMPDIR/err")
}

# Fails and shows what came instead.
expect_code() {
  if [ "$code" != "$1" ]; then
    printf 'exit code %s, expected %s\nstdout: %s\nstderr: %s\n' "$code" "$1" "$out" "$err"
    return 1
  fi
}
expect_out() {
  if [ "$out" != "$1" ]; then
    printf 'stdout was: %s\nexpected: %s\nstderr: %s\n' "$out" "$1" "$err"
    return 1
  fi
}
expect_err_has() {
  if ! grep -qF -- "$1" <<< "$err"; then
    printf 'stderr has no "%s": %s\n' "$1" "$err"
    return 1
  fi
}
# Fails unless grep, given the same arguments, finds nothing ("! grep" fails only as the last command of a test).
refute_grep() {
  local found status=0
  found=$(grep "$@" 2>&1) || status=$?
  if [ "$status" != 1 ]; then
    printf 'grep %s ended with %s: %s\n' "$*" "$status" "$found"
    return 1
  fi
}
# An expression of jq that must be true of standard output, which must be one JSON document.
expect_json() {
  if [ "$(jq -s 'length' "$BATS_TEST_TMPDIR/out" 2> /dev/null)" != 1 ] || ! jq -e "$1" "$BATS_TEST_TMPDIR/out" > /dev/null; then
    printf 'not true: %s\nstdout: %s\nstderr: %s\n' "$1" "$out" "$err"
    return 1
  fi
}
# The error object on standard output and as the last line of standard error.
expect_json_error() {
  expect_json ".error.code == \"$1\" and (.error.message | length > 0)"
  tail -1 "$BATS_TEST_TMPDIR/err" | jq -e ".error.code == \"$1\"" > /dev/null
}

# A home with the prepared engine and images of HOLT_HOME and machines of its own.
own_home() {
  local prepared=${HOLT_HOME:-}
  if [ -z "$prepared" ] || [ ! -e "$prepared/data/engine/engine.json" ]; then
    skip "HOLT_HOME has no prepared engine; scripts/test prepares one"
  fi
  export HOLT_HOME=$BATS_FILE_TMPDIR/home
  if [ ! -e "$HOLT_HOME" ]; then
    mkdir -p "$HOLT_HOME" "$prepared/cache"
    ln -s "$prepared/data" "$HOLT_HOME/data"
    ln -s "$prepared/cache" "$HOLT_HOME/cache"
  fi
}

# In setup: the machine "$machine" of a file's own home, which all its tests share; setup_file names it.
own_machine() {
  own_home
  export HOLT_QUIET=1
  if ! "$HOLT" ls -q | grep -qx "$machine"; then "$HOLT" run -d --name "$machine" > /dev/null; fi
}
# In teardown_file.
remove_own_machine() {
  export HOLT_HOME=$BATS_FILE_TMPDIR/home
  if [ -e "$HOLT_HOME" ]; then "$HOLT" rm -f "$machine" > /dev/null; fi
}

# Waits until a command succeeds, a minute at most: the host has others to serve as well.
eventually() {
  local deadline=$((SECONDS + 60))
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || { printf 'never became true: %s\n' "$*"; return 1; }
    read -r -t 0.05 < <(:) || true
  done
}
