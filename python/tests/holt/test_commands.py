"""Commands from Python: results, streams, the background."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from helpers import gone, line_of, processes, until

import holt


def test_result_says_how_it_ended_and_what_it_wrote(machine: holt.Machine) -> None:
    result = machine.exec("printf 'a\\0\\377'; echo err >&2; exit 3", shell=True)
    assert (result.exit_code, result.signal, result.returncode, result.success) == (3, None, 3, False)
    assert result.stdout == b"a\0\xff" and result.text == "a\0�"
    assert result.stderr == b"err\n" and result.stderr_text == "err\n"
    assert 0 < result.duration < 60
    killed = machine.exec("kill -9 $$", shell=True)
    assert (killed.exit_code, killed.signal, killed.returncode) == (None, 9, 137)


def test_missing_programs_are_results_and_missing_folders_errors(machine: holt.Machine) -> None:
    assert machine.exec(["no-such-program"]).returncode == 127
    assert machine.exec(["/etc/passwd"]).returncode == 126
    with pytest.raises(holt.NotFoundError):
        machine.exec(["true"], working_dir="/no/such/folder")
    with pytest.raises(holt.Error) as unknown:
        machine.exec(["true"], user="nobody-of-that-name")
    assert unknown.value.code == "NOT_FOUND"


def test_options_reach_the_command(machine: holt.Machine) -> None:
    result = machine.exec("pwd; id -u; echo $A; cat", shell=True, working_dir="/tmp", user="65534",
                          env={"A": "ü"}, stdin="typed")  # fmt: skip
    assert result.text == "/tmp\n65534\nü\ntyped"
    assert machine.exec(["printf", "%s", b"\xff\xfe"]).stdout == b"\xff\xfe"
    assert machine.exec(["printf", "%s", os.fsdecode(b"\xff")]).stdout == b"\xff"


def test_timeout_kills_everything_the_command_started(machine: holt.Machine) -> None:
    result = machine.exec("sleep 4241 & setsid sleep 4241 & sleep 4241", shell=True, timeout=0.3)
    assert result.timed_out and result.returncode == 124 and not result.success
    assert gone(machine, "sleep 4241")


def test_deadline_of_the_host_ends_the_call_and_the_command(machine: holt.Machine) -> None:
    with pytest.raises(TimeoutError) as late:
        machine.exec(["sleep", "4242"], deadline=0.3)
    assert isinstance(late.value, holt.TimeoutError) and late.value.code == "TIMEOUT"
    assert gone(machine, "sleep 4242")


def test_output_is_kept_to_its_limit_and_says_so(machine: holt.Machine) -> None:
    result = machine.exec("head -c 300000 /dev/zero; head -c 10 /dev/zero >&2", shell=True, output_limit=100_000)
    assert (len(result.stdout), result.stdout_truncated) == (100_000, True)
    assert (len(result.stderr), result.stderr_truncated) == (10, False)
    with pytest.raises(holt.OutputLimitError) as too_much:
        machine.exec("yes sleep 4247 & yes", shell=True, output_limit=1000, over_limit="fail")
    assert too_much.value.limit == 1000 and len(too_much.value.stdout_preview) == 1000
    assert gone(machine, "yes sleep 4247")
    large = machine.exec(["head", "-c", "8388608", "/dev/zero"])
    assert (len(large.stdout), large.stdout_truncated) == (8 << 20, False)


def test_limits_bound_a_command(machine: holt.Machine) -> None:
    result = machine.exec("ulimit -n", shell=True, limits=holt.ResourceLimits(open_files=37))
    assert result.text == "37\n"
    hungry = machine.exec(["python3", "-c", "x = bytearray(300 << 20)"], limits=holt.ResourceLimits(memory=64 << 20))
    assert hungry.oom and not hungry.success


def test_a_repeat_with_the_same_idempotency_key_starts_nothing(machine: holt.Machine) -> None:
    script = "echo once >> /root/once; echo done; exit 3"
    for _ in range(2):
        result = machine.exec(script, shell=True, idempotency_key="only-one")
        assert (result.text, result.exit_code) == ("done\n", 3)
    with pytest.raises(holt.ConflictError):
        machine.exec("another", shell=True, idempotency_key="only-one")
    first = machine.start_command(["sleep", "4246"], idempotency_key="one-in-the-background")
    again = machine.start_command(["sleep", "4246"], idempotency_key="one-in-the-background")
    assert first.id == again.id
    machine.kill_command(first.id)
    assert machine.read_file("/root/once") == b"once\n"


def test_events_come_in_order_and_the_exit_last(machine: holt.Machine) -> None:
    events = list(machine.exec_stream("echo out; sleep 0.1; echo err >&2; exit 4", shell=True))
    assert [(event.kind, event.data) for event in events[:-1]] == [("stdout", b"out\n"), ("stderr", b"err\n")]
    assert events[-1].kind == "exit" and events[-1].result and events[-1].result.exit_code == 4


def test_stream_takes_input_while_it_runs(machine: holt.Machine) -> None:
    with machine.exec_stream("while read l; do echo got $l; done; echo end", shell=True, stdin="pipe") as stream:
        stream.write(b"one\n")
        assert line_of(stream) == b"got one\n"
        stream.write(bytearray(b"two\n"))
        assert line_of(stream) == b"got two\n"
        stream.close_stdin()
        stream.close_stdin()
        assert b"".join(event.data for event in stream) == b"end\n"
        assert stream.next() is None
        stream.write(b"to nobody")


def test_megabytes_go_through_a_stream_both_ways(machine: holt.Machine) -> None:
    data = os.urandom(1 << 20) * 6
    with machine.exec_stream(["cat"], stdin="pipe") as stream:

        def feed() -> None:
            stream.write(data)
            stream.close_stdin()

        writer = threading.Thread(target=feed)
        writer.start()
        got = b"".join(event.data for event in stream)
        writer.join(60)
    assert got == data


def test_next_times_out_and_the_stream_goes_on(machine: holt.Machine) -> None:
    stream = machine.exec_stream(["cat"], stdin="pipe")
    with pytest.raises(holt.TimeoutError):
        stream.next(timeout=0.1)
    assert stream.try_next() == (False, None)
    stream.write(b"x")
    event = stream.next(timeout=60)
    assert event and event.data == b"x"
    stream.kill()
    stream.kill()
    assert stream.next() is None and stream.try_next() == (True, None)
    assert list(stream) == []


def test_signal_reaches_the_command(machine: holt.Machine) -> None:
    program = "import signal, sys; signal.signal(15, lambda *_: (print('term', flush=True), sys.exit(5)))\n"
    stream = machine.exec_stream(["python3", "-c", program + "print('ready', flush=True); signal.pause()"])
    assert line_of(stream) == b"ready\n"
    stream.signal(signal.SIGTERM)
    assert line_of(stream) == b"term\n"
    assert (last := next(stream).result) and last.exit_code == 5
    for bad in (0, 65, -1):
        with pytest.raises(holt.InvalidConfigError):
            stream.signal(bad)


def test_kill_from_another_thread_ends_a_next_that_waits(machine: holt.Machine) -> None:
    stream = machine.exec_stream(["sleep", "4243"])
    until(lambda: processes(machine, "sleep 4243"))
    killer = threading.Timer(0.2, stream.kill)
    killer.start()
    begin = time.monotonic()
    assert list(stream) == []
    assert time.monotonic() - begin < 5
    assert gone(machine, "sleep 4243")


def test_a_dropped_stream_kills_its_command(machine: holt.Machine) -> None:
    stream = machine.exec_stream(["sleep", "4244"])
    until(lambda: processes(machine, "sleep 4244"))
    del stream
    assert gone(machine, "sleep 4244")


def test_terminal_has_its_size_and_changes_it(machine: holt.Machine) -> None:
    script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done"
    with machine.exec_stream(script, shell=True, terminal=(24, 80)) as stream:
        assert line_of(stream) == b"24 80\r\n"
        stream.resize(50, 132)
        assert line_of(stream) == b"50 132\r\n"
    for wrong in ((24,), "24x80", 24):
        with pytest.raises(TypeError):
            machine.exec_stream(["true"], terminal=wrong)  # type: ignore[arg-type]
    with pytest.raises(holt.InvalidConfigError):
        machine.exec_stream(["true"], terminal=(70_000, 1))


def test_background_commands_outlive_their_callers_stream(machine: holt.Machine) -> None:
    info = machine.start_command("echo one; read x; echo $x; exec sleep 4245", shell=True, stdin="two\n")
    assert info.running and info.pid > 1
    stream = machine.attach_command(info.id)
    data = b""
    while data != b"one\ntwo\n":
        data += next(stream).data
    stream.kill()
    assert [one.id for one in machine.commands() if one.running] == [info.id]
    with pytest.raises(holt.TimeoutError):
        machine.wait_command(info.id, timeout=0.1)
    machine.signal_command(info.id, signal.SIGTERM)
    ended = machine.wait_command(info.id, timeout=60)
    assert ended.result and ended.result.signal == signal.SIGTERM and ended.stdout_bytes == 8
    assert [event.kind for event in machine.attach_command(info.id, stdout_offset=4)] == ["stdout", "exit"]
    assert not machine.kill_command(info.id).running
    with pytest.raises(holt.NotFoundError):
        machine.wait_command("no-such-id")
    with pytest.raises(TypeError):
        machine.wait_command(info.pid)  # type: ignore[arg-type]


def test_misused_input_is_refused(machine: holt.Machine) -> None:
    with pytest.raises(TypeError):
        machine.exec(["cat"], stdin=7)  # type: ignore[arg-type]
    with pytest.raises(holt.InvalidConfigError):
        machine.exec_stream(["cat"], stdin="typed")  # type: ignore[arg-type]
    stream = machine.exec_stream(["cat"], stdin="pipe")
    with pytest.raises(TypeError):
        stream.write("text")  # type: ignore[arg-type]
    stream.kill()
