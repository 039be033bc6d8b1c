#!/usr/bin/env bats
# A holt and a monitor of different versions: both versions are named, and what to do (FRONT-28).
load helpers

setup() {
  own_home
  export HOLT_QUIET=1
  python=$(python3 -c 'import sys; print(sys.executable)')
}
teardown() {
  [ -z "${monitor_pid:-}" ] || kill "$monitor_pid" || true
  "$HOLT" rm -f old > /dev/null
}

# Takes the place of a monitor that greets in version 2 of the protocol: a frame of 16 bytes of header and one CBOR map.
other_monitor() {
  cat > "$BATS_TEST_TMPDIR/monitor.py" << 'END'
import os, socket, struct, sys

folder, ready = sys.argv[1:]
os.chdir(folder)
os.unlink("monitor.sock")
listener = socket.socket(socket.AF_UNIX)
listener.bind("monitor.sock")
listener.listen(64)
open(ready, "w").close()
hello = b"\xa1Gversion\x02"
while True:
    client, _ = listener.accept()
    greeting = client.recv(65536)
    client.sendall(struct.pack("<IIBBHI", len(hello), 0, greeting[8], 0, 0, 0) + hello)
    client.close()
END
  "$python" "$BATS_TEST_TMPDIR/monitor.py" "$HOLT_HOME/state/machines/old" "$BATS_TEST_TMPDIR/ready" 3>&- &
  monitor_pid=$!
  eventually test -e "$BATS_TEST_TMPDIR/ready"
}

@test "FRONT-28 AMachineOfAnotherVersionIsRefusedWithBothVersionsAndCanBeEnded" {
  "$HOLT" run -d --name old > /dev/null
  other_monitor
  for arguments in "exec old true" "cp old:/etc/hostname -" "pause old" "suspend old" "stop old"; do
    # shellcheck disable=SC2086
    holt_ --json $arguments < /dev/null
    [ "$code" != 0 ]
    expect_json_error NOT_SUPPORTED || { echo "of: $arguments"; return 1; }
    expect_json '(.error.message | contains("version 2") and contains("version 1")) and (.error.hint | contains("holt stop --kill old"))'
  done
  holt_ ls -a --format '{{.name}} {{.state}}'
  expect_code 0
  expect_out "old running"
  holt_ stop --kill old
  expect_code 0
  expect_out old
  kill "$monitor_pid"
  monitor_pid=
  holt_ exec old true
  expect_code 0
}

@test "FRONT-28 AMonitorRefusesWhatAHoltOfAnotherVersionDescribes" {
  monitor=
  for candidate in "${HOLT_BIN%/cli/holt}/monitor/holt-monitor" "$root/build/release/src/monitor/holt-monitor"; do
    if [ -x "$candidate" ]; then monitor=$candidate; break; fi
  done
  [ -n "$monitor" ] || skip "holt-monitor is not found beside holt"
  cat > "$BATS_TEST_TMPDIR/holt-monitor" << END
#!$python
import json, os, sys

launch_fd = 5
with os.fdopen(os.dup(launch_fd)) as source:
    launch = json.load(source)
launch["version"] += 1
changed = os.memfd_create("launch", 0)
os.write(changed, json.dumps(launch).encode())
os.lseek(changed, 0, os.SEEK_SET)
os.dup2(changed, launch_fd)
os.execv("$monitor", sys.argv)
END
  chmod +x "$BATS_TEST_TMPDIR/holt-monitor"
  export HOLT_MONITOR=$BATS_TEST_TMPDIR/holt-monitor HOLT_SHIM=${monitor%/*}/holt-memro.so
  holt_ --json run --name old -- true
  expect_code 125
  expect_json_error NOT_SUPPORTED
  expect_json '(.error.message | contains("version 2") and contains("version 1")) and (.error.hint | contains("HOLT_MONITOR"))'
  unset HOLT_MONITOR HOLT_SHIM
  holt_ run -- true
  expect_code 0
}

@test "FRONT-28 AMachineThatANewerHoltMadeIsLeftAlone" {
  "$HOLT" create old > /dev/null
  record=$HOLT_HOME/state/machines/old/machine.json
  jq -c '.version = 2' "$record" > "$BATS_TEST_TMPDIR/record"
  cp "$BATS_TEST_TMPDIR/record" "$record"
  for arguments in "start old" "exec old true" "update --cpus 1 old"; do
    # shellcheck disable=SC2086
    holt_ --json $arguments
    [ "$code" != 0 ]
    expect_json_error INVALID_STATE || { echo "of: $arguments"; return 1; }
    expect_json '(.error.message | contains("version 2") and contains("version 1")) and (.error.hint | contains("newer holt"))'
  done
  holt_ --json inspect old
  expect_code 0
  expect_json '.[0].reason.message | contains("version 2") and contains("version 1")'
  holt_ ls -a -q
  expect_code 0
  expect_out old
  cmp "$record" "$BATS_TEST_TMPDIR/record"
}
