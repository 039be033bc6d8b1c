#!/usr/bin/env bats
# An image that holds one static program and nothing else.
load helpers

setup() {
  own_home
  export HOLT_QUIET=1
  # Images of this test's own beside the prepared engine.
  if [ -L "$HOLT_HOME/data" ]; then
    prepared_data=$(readlink "$HOLT_HOME/data")
    rm "$HOLT_HOME/data"
    mkdir "$HOLT_HOME/data"
    ln -s "$prepared_data/engine" "$HOLT_HOME/data/engine"
  fi
}

# The guest program itself is static; outside its place it says so in one line and ends with 2.
static_program() {
  local guest
  for guest in "${HOLT_BIN%/cli/holt}/guest/holt-guest" "$root/build/holt-guest"; do
    if [ -x "$guest" ]; then printf '%s\n' "$guest"; return; fi
  done
  return 1
}

@test "EXEC-30 AScratchImageRunsListsReadsWritesAndCopies" {
  mkdir "$BATS_TEST_TMPDIR/root"
  cp "$(static_program)" "$BATS_TEST_TMPDIR/root/app"
  tar -C "$BATS_TEST_TMPDIR/root" --owner=0 --group=0 -cf "$BATS_TEST_TMPDIR/scratch.tar" .
  "$HOLT" image import "$BATS_TEST_TMPDIR/scratch.tar" test/scratch:1 > /dev/null
  holt_ run test/scratch:1 -- /app
  expect_code 2
  expect_err_has "PID 1 of a holt machine"
  "$HOLT" run -d --name scratch test/scratch:1 > /dev/null
  holt_ exec scratch app
  expect_code 127
  holt_ exec -e PATH=/ -u 1000 -w /dev scratch app
  expect_code 2
  holt_ exec -t scratch /app < /dev/null
  expect_code 2
  printf 'text' > "$BATS_TEST_TMPDIR/file"
  "$HOLT" cp "$BATS_TEST_TMPDIR/file" scratch:/new
  "$HOLT" cp scratch:/new "$BATS_TEST_TMPDIR/back"
  [ "$(cat "$BATS_TEST_TMPDIR/back")" = text ]
  "$HOLT" cp -r scratch:/ "$BATS_TEST_TMPDIR/all" || true
  cmp "$BATS_TEST_TMPDIR/all/app" "$BATS_TEST_TMPDIR/root/app"
  # An export of it names the way: by a machine.
  holt_ image export test/scratch:1 -o "$BATS_TEST_TMPDIR/none.tar"
  expect_err_has "holt cp -a out:/ -"
  "$HOLT" cp -a scratch:/ - > "$BATS_TEST_TMPDIR/root.tar"
  tar -xOf "$BATS_TEST_TMPDIR/root.tar" ./app | cmp - "$BATS_TEST_TMPDIR/root/app"
  "$HOLT" image import "$BATS_TEST_TMPDIR/root.tar" test/again:1 > /dev/null
  id=$("$HOLT" exec -d scratch /app)
  holt_ exec --wait "$id"
  expect_code 2
  "$HOLT" stop scratch > /dev/null
  "$HOLT" rm scratch > /dev/null
}
