#!/usr/bin/env bats
# Images from a real registry: Debian's docker-registry on the loopback, filled by skopeo. Plain, with TLS, and with a
# token server; then images of three kinds run.
load helpers

setup_file() {
  local tool
  export PATH=$PATH:$root/build/cache/registry/root/usr/bin  # where scripts/setup unpacks it
  for tool in docker-registry skopeo umoci openssl python3; do
    if ! command -v "$tool" > /dev/null; then
      echo "$tool" > "$BATS_FILE_TMPDIR/missing"
      return
    fi
  done
  own_home
  own_images
  cd "$BATS_FILE_TMPDIR"
  make_certificates
  start_registry plain
  start_registry tls "tls: {certificate: $PWD/server.crt, key: $PWD/server.key}"
  "$BATS_TEST_DIRNAME/token_server.py" token.key token.crt token.port asked.log > token.out 2>&1 3>&- &
  echo $! >> pids
  eventually [ -e token.port ]
  start_registry token "" "auth:
  token: {realm: http://127.0.0.1:$(cat token.port)/token, service: holt-test-registry, issuer: holt-test-issuer, rootcertbundle: $PWD/token.crt}"
  fill_registry
}

teardown_file() {
  local pid
  if [ -e "$BATS_FILE_TMPDIR/pids" ]; then
    while read -r pid; do kill "$pid" 2> /dev/null || true; done < "$BATS_FILE_TMPDIR/pids"
  fi
}

setup() {
  [ ! -e "$BATS_FILE_TMPDIR/missing" ] || skip "there is no $(cat "$BATS_FILE_TMPDIR/missing")"
  own_home
  export HOLT_QUIET=1
  cd "$BATS_FILE_TMPDIR"
  plain=127.0.0.1:$(cat plain.port) tls=127.0.0.1:$(cat tls.port) token=127.0.0.1:$(cat token-registry.port)
}

# Images of this file's own beside the prepared engine.
own_images() {
  local prepared
  prepared=$(readlink "$HOLT_HOME/data")
  rm "$HOLT_HOME/data"
  mkdir "$HOLT_HOME/data"
  ln -s "$prepared/engine" "$HOLT_HOME/data/engine"
}

# An authority, a server's certificate of it, and the key that signs tokens.
make_certificates() {
  local ec=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
  openssl req -x509 "${ec[@]}" -keyout ca.key -out ca.crt -days 2 -subj "/CN=holt test authority" 2> /dev/null
  openssl req "${ec[@]}" -keyout server.key -out server.csr -subj /CN=registry 2> /dev/null
  printf 'subjectAltName=IP:127.0.0.1\n' > server.ext
  openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile server.ext 2> /dev/null
  openssl req -x509 -newkey rsa:2048 -nodes -keyout token.key -out token.crt -days 2 -subj "/CN=holt test tokens" 2> /dev/null
}

# start_registry NAME [HTTP [REST]]: all serve the same folder; the port goes to NAME.port.
start_registry() {
  local name=$1 ports=$1.port
  [ "$name" != token ] || ports=token-registry.port
  cat > "$name.yml" << END
version: 0.1
log: {accesslog: {disabled: false}, formatter: text}
storage: {filesystem: {rootdirectory: $PWD/registry}, maintenance: {uploadpurging: {enabled: false}}}
http:
  addr: 127.0.0.1:0
  ${2:-}
${3:-}
END
  OTEL_TRACES_EXPORTER=none docker-registry serve "$name.yml" > "$name.log" 2>&1 3>&- &
  echo $! >> pids
  eventually grep -q 'listening on 127.0.0.1:' "$name.log"
  sed -nE 's/.*listening on 127\.0\.0\.1:([0-9]+).*/\1/p' "$name.log" | head -1 > "$ports"
}

find_program() {
  local program
  for program in "${HOLT_BIN%/src/cli/holt}/tests/holt-scratch-app" "$root/build/release/tests/holt-scratch-app"; do
    if [ -x "$program" ]; then printf '%s\n' "$program"; return; fi
  done
}

# Four layers; what the second has of /etc/two the last replaces.
make_image() {
  local layers=() layer
  mkdir -p l0 l1/etc l2/etc l3/etc
  head -c 3000000 /dev/urandom > l0/noise
  printf 'one\n' > l1/etc/one
  printf 'two\n' > l2/etc/two
  printf 'replaced\n' > l3/etc/two
  for layer in l0 l1 l2 l3; do
    tar -C "$layer" --owner=0 --group=0 --mtime=@0 -cf "$layer.tar" .
    layers+=("$layer.tar")
  done
  "$BATS_TEST_DIRNAME/oci_image.py" layout app '{"Env": ["A=b"], "Cmd": ["/app"], "WorkingDir": "/srv"}' "${layers[@]}"
}

push() { skopeo --insecure-policy copy -q --dest-tls-verify=false "$@"; }

fill_registry() {
  local program
  make_image
  push oci:layout:app "docker://127.0.0.1:$(cat plain.port)/team/app:1"
  push --format v2s2 oci:layout:app "docker://127.0.0.1:$(cat plain.port)/docker/app:1"
  program=$(find_program)
  if [ -n "$program" ]; then
    mkdir root
    cp "$program" root/app
    tar -C root --owner=0 --group=0 --mtime=@0 -cf root.tar app
    "$BATS_TEST_DIRNAME/oci_image.py" scratch scratch:1 '{"Entrypoint": ["/app"], "WorkingDir": "/w", "User": "1000:50"}' root.tar
    push oci:scratch "docker://127.0.0.1:$(cat plain.port)/scratch:1"
  fi
}

digest_at_registry() { skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$plain/$1"; }
forget_images() { "$HOLT" image prune --all --force > /dev/null; }

@test "APlainRegistryOnTheLoopbackIsAskedWithoutAnyFlag" {
  forget_images
  holt_ --json pull "$plain/team/app:1"
  expect_code 0
  expect_json ".reference == \"$plain/team/app:1\" and .manifestDigest == \"$(digest_at_registry team/app:1)\" and .layers == 4
    and .fetchedBytes > 2500000 and (.cached | not)"
  holt_ --json image inspect "$plain/team/app:1"
  expect_json '.[0].config | .env == ["A=b"] and .cmd == ["/app"] and .workingDir == "/srv"'
  holt_ --json pull "$plain/team/app:1"
  expect_json '.cached and .fetchedBytes == 0'
  holt_ --json image verify
  expect_code 0
}

@test "DockersMediaTypesGiveTheSameFiles" {
  forget_images
  holt_ --json pull "$plain/docker/app:1"
  expect_code 0
  expect_json ".manifestDigest == \"$(digest_at_registry docker/app:1)\""
  ext4=$("$HOLT" image inspect "$plain/docker/app:1" --format '{{.path}}')
  [ "$(PATH=$PATH:/sbin:/usr/sbin debugfs -R 'cat /etc/two' "$ext4" 2> /dev/null)" = replaced ]
  PATH=$PATH:/sbin:/usr/sbin debugfs -R 'cat /noise' "$ext4" 2> /dev/null | cmp - l0/noise
}

@test "IMG-15 ADigestIsPulledAndChecked" {
  digest=$(digest_at_registry team/app:1)
  forget_images
  holt_ --json pull "$plain/team/app@$digest"
  expect_code 0
  expect_json ".manifestDigest == \"$digest\""
  holt_ --json pull "$plain/team/app@sha256:$(printf '0%.0s' {1..64})"
  expect_code 1
  expect_json_error NOT_FOUND
}

@test "WhatIsNotThereIsNotFound" {
  for name in team/app:2 team/nothing:1; do
    holt_ --json pull "$plain/$name"
    expect_code 1
    expect_json_error NOT_FOUND
  done
}

@test "TlsOfAnAuthorityOfOnesOwnNeedsItsFile" {
  forget_images
  holt_ --json pull "$tls/team/app:1"
  expect_code 1
  expect_json_error NETWORK_ERROR
  expect_json '(.error.message | contains("certificate")) and (.error.hint | contains("--ca-file"))'
  holt_ --json pull --ca-file ca.crt "$tls/team/app:1"
  expect_code 0
  expect_json ".manifestDigest == \"$(digest_at_registry team/app:1)\""
  forget_images
  holt_ pull --insecure "$tls/team/app:1"
  expect_code 0
}

# auth_file USER:PASSWORD
auth_file() { printf '{"auths": {"%s": {"auth": "%s"}}}' "$token" "$(printf '%s' "$1" | base64 -w0)" > auth.json; }

@test "IMG-10 ATokenServerIsAskedWithTheCredentialsOfAFile" {
  forget_images
  auth_file 'alice:in wonderland'
  : > asked.log
  holt_ --json pull --auth-file auth.json "$token/team/app:1"
  expect_code 0
  [ "$(cat asked.log)" = "GET holt-test-registry repository:team/app:pull alice" ]

  forget_images
  printf '{"auths": {"%s": {"identitytoken": "looking-glass"}}}' "$token" > auth.json
  : > asked.log
  export REGISTRY_AUTH_FILE=$PWD/auth.json
  holt_ pull "$token/team/app:1"
  expect_code 0
  [ "$(cat asked.log)" = "POST holt-test-registry repository:team/app:pull alice" ]
}

@test "IMG-10 AWrongPasswordIsUnauthorizedAndNowhereToBeSeen" {
  forget_images
  auth_file 'alice:a-wrong-secret'
  : > asked.log
  export HOLT_LOG=trace
  holt_ --json pull --auth-file auth.json "$token/team/app:1"
  expect_code 1
  expect_json_error UNAUTHORIZED
  expect_json '.error.message | contains("incorrect username or password")'
  [ "$(cat asked.log)" = "GET holt-test-registry repository:team/app:pull stranger" ]
  refute_grep -F -e a-wrong-secret -e "$(printf 'alice:a-wrong-secret' | base64)" "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
  holt_ --json pull --auth-file none.json "$token/team/app:1"
  expect_code 2
  expect_json_error NOT_FOUND
}

@test "IMG-16 ATagThatMovesIsSeenByAPullAndNotByARun" {
  forget_images
  old=$("$HOLT" pull "$plain/team/app:1")
  umoci config --image layout:app --config.env NEW=yes --tag moved
  push oci:layout:moved "docker://$plain/team/app:1"
  [ "$("$HOLT" image inspect "$plain/team/app:1" --format '{{.digest}}')" = "$old" ]
  new=$("$HOLT" pull "$plain/team/app:1")
  [ "$new" != "$old" ]
  push oci:layout:app "docker://$plain/team/app:1"
}

@test "AScratchImageOfARegistryRuns" {
  [ -n "$(find_program)" ] || skip "holt-scratch-app is not built"
  holt_ run "$plain/scratch:1" -- show PATH
  expect_code 0
  [[ $out == "/w 1000 50"* ]]
  holt_ run --pull never "$plain/scratch:1"
  expect_code 0
  expect_out scratch
}

@test "ABusyboxLikeImageOfARegistryRuns" {
  command -v busybox > /dev/null || skip "there is no busybox"
  mkdir -p busybox/bin
  cp "$(command -v busybox)" busybox/bin/busybox
  ldd busybox/bin/busybox > /dev/null 2>&1 && skip "busybox is not static"
  for name in sh echo cat ls; do ln -sf busybox "busybox/bin/$name"; done
  tar -C busybox --owner=0 --group=0 --mtime=@0 -cf busybox.tar bin
  "$BATS_TEST_DIRNAME/oci_image.py" busybox-layout busybox:1 '{"Cmd": ["sh"], "Env": ["PATH=/bin"]}' busybox.tar
  push oci:busybox-layout "docker://$plain/busybox:1"
  holt_ run "$plain/busybox:1" -- sh -c 'ls -1 /bin | cat'
  expect_code 0
  expect_out "busybox
cat
echo
ls
sh"
}

@test "APythonImageOfARegistryRuns" {
  tar=$(compgen -G "$root/build/cache/image/default-*.tar" | head -1) || skip "scripts/setup has not made the default image's tar"
  "$BATS_TEST_DIRNAME/oci_image.py" python python:3 '{"Cmd": ["python3"], "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}' "$tar"
  push oci:python "docker://$plain/python:3"
  holt_ run "$plain/python:3" -- python3 -c 'print(sum(range(10)))'
  expect_code 0
  expect_out 45
}
