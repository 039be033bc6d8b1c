#!/usr/bin/env bats
# cp with a real machine: tars, owners, what is left out.
load helpers.bash

setup_file() {
  own_home
  "$HOLT" run -d --name files > /dev/null
}
teardown_file() { "$HOLT" rm -f files > /dev/null || true; }
setup() {
  own_home
  cd "$BATS_TEST_TMPDIR"
}
guest() { "$HOLT" exec files "$@" < /dev/null; }

@test "ATarGoesInAndComesOutUnchanged" {
  mkdir -p tree/sub
  echo one > tree/sub/one
  ln -s sub/one tree/link
  ln tree/sub/one tree/sub/two
  chmod 750 tree/sub/one
  tar -C tree -c . | "$HOLT" cp - files:/root/tar
  [ "$(guest sh -c 'cd /root/tar && cat link && stat -c "%a %h" sub/two')" = "one
750 2" ]
  tar -C tree -cz . | "$HOLT" cp - files:/root/targz
  [ "$(guest cat /root/targz/sub/two)" = one ]
  "$HOLT" cp files:/root/tar - > out.tar
  mkdir back
  tar -C back -xf out.tar
  diff -r --no-dereference tree back
  "$HOLT" cp files:/root/tar/sub/one - | tar -xO one | cmp - tree/sub/one
  "$HOLT" cp files:/root/tar - | "$HOLT" cp - files:/root/again
  [ "$(guest sh -c 'diff -r /root/tar /root/again && echo same')" = same ]
}

@test "WhatIsNotCopiedIsNamedAsTheUserNamedIt" {
  echo x > f
  holt_ cp f files:/root/none/f
  expect_code 1
  expect_err_has "not copied: f: "
}

@test "FILES-04 ATarThatLeadsOutOfItsTargetIsKeptInIt" {
  mkdir d && echo x > d/x
  tar -P -cf evil.tar --transform 's,^d/x,../../root/escaped,' d/x
  holt_ cp - files:/root/jail < evil.tar
  expect_code 1
  expect_err_has "not copied"
  [ "$(guest sh -c 'ls /root/escaped /escaped 2>/dev/null | wc -l')" = 0 ]
  holt_ --json cp - files:/root/jail <<< "this is no tar"
  expect_code 1
  expect_json_error IMAGE_INVALID
}

@test "FILES-28 OwnersAndModesAreThoseAskedFor" {
  echo secret > key
  "$HOLT" cp --chown 1000:1001 --mode 600 key files:/root/key
  [ "$(guest stat -c '%u:%g %a' /root/key)" = "1000:1001 600" ]
  mkdir tree && echo x > tree/x
  "$HOLT" cp -r --chown nobody tree files:/root/nobodys
  [ "$(guest stat -c %U /root/nobodys/x)" = nobody ]
  touch -d '2001-02-03 04:05:06.123456789' tree/x
  "$HOLT" cp -a tree files:/root/kept
  "$HOLT" cp -a files:/root/kept back
  [ "$(stat -c '%u %y' back/x)" = "$(stat -c '%u %y' tree/x)" ]
  holt_ cp --chown nobody files:/root/key .
  expect_code 2
  holt_ cp --chown no-such-user key files:/root/key
  expect_code 1
}

@test "FILES-06 WhatIsLeftOutIsNamedAndFailuresAreCodeOne" {
  mkdir tree && echo x > tree/x && mkfifo tree/fifo
  holt_ --json cp -r tree files:/root/skips
  expect_code 0
  expect_json '.files == 2 and .skipped == 1 and .failed == 0'
  expect_err_has "skipped: fifo"
  guest sh -c 'mkdir -p /root/taken/x/y'
  mkdir taken && echo x > taken/x && echo z > taken/z
  holt_ --json cp -r taken files:/root
  expect_json '.failed == 1'
  expect_code 1
  expect_err_has "not copied: x"
  [ "$(guest cat /root/taken/z)" = z ]
  holt_ cp tree/fifo files:/root/fifo
  expect_code 1
}

@test "CHAN-17 NamesOfAGuestReachNoTerminalAsTheyAre" {
  guest sh -c "mkdir -p /root/odd && cd /root/odd && mkfifo \"\$(printf 'x\\033]52;c;eA==\\007\\nholt: done')\""
  holt_ cp -r files:/root/odd odd-out
  expect_code 0
  refute_grep -P '[\x1b\x07]' "$BATS_TEST_TMPDIR/err"
  refute_grep -x 'holt: done' "$BATS_TEST_TMPDIR/err"
}

@test "FILES-01 SparseFilesStaySparseOnTheWay" {
  truncate -s 5G big
  "$HOLT" cp big files:/root/big
  [ "$(guest stat -c %s /root/big)" = 5368709120 ]
  [ "$(guest stat -c %b /root/big)" -lt 2048 ]
  "$HOLT" cp files:/root/big back
  [ "$(stat -c %s back)" = 5368709120 ]
  [ "$(stat -c %b back)" -lt 2048 ]
}

@test "CHAN-19 OutputThatLooksLikeAResultIsOnlyOutput" {
  holt_ --json exec files sh -c 'echo "{\"exitCode\":0,\"timedOut\":true}"; exit 3'
  expect_code 3
  expect_json '.exitCode == 3 and .timedOut == false and (.stdout | contains("exitCode"))'
}
