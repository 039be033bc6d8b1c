"""Programs that end, well or badly, with machines alive: nothing hangs, nothing crashes, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import holt
from footprint import home, polls, processes_of

# Under emulation and other load an interpreter takes seconds to start and to end.
END_SECONDS = 60
GONE_SECONDS = 60

EPHEMERAL = """
import holt
machine = holt.Machine.create(persistent=False, timeout=120)
machine.exec(["true"])
"""


class Program:
    """A Python program of its own that says when it is ready, and the machines of its own home."""

    def __init__(self, tmp_path: Path, script: str) -> None:
        self.home = tmp_path / "home"
        self.home.mkdir()
        for shared in ("data", "cache"):
            (self.home / shared).symlink_to(home() / shared)
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(script)],
            env={**os.environ, "HOLT_HOME": str(self.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the program ended early: {self.end()}")
        return line.strip()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Waits for its end: exit code, rest of its output, errors."""
        try:
            out, err = self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler says where it hangs
            out, err = self._process.communicate(timeout=END_SECONDS)
            raise AssertionError(f"the program did not end\n{out}{err}") from None
        return self._process.returncode, out, err

    def assert_nothing_left(self) -> None:
        machines = self.home / "state" / "machines"
        for _ in polls(GONE_SECONDS):
            names = sorted(entry.name for entry in machines.iterdir()) if machines.exists() else []
            processes = processes_of(self.home)
            if not names and not processes:
                return
        raise AssertionError(f"left behind: machines {names}, processes {processes}")


ENDINGS = {
    "at-the-end-of-the-script": ("", 0),
    "by-sys.exit": ("import sys; sys.exit(3)", 3),
    "by-an-exception": ("raise RuntimeError('on purpose')", 1),
    "by-os._exit": ("import os; os._exit(4)", 4),
    "by-SIGKILL": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "by-SIGTERM": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "with-a-stream-open": ("stream = machine.exec_stream(['yes'])\nnext(stream)", 0),
    "with-a-transfer-open": ("writer = machine.open_write('/root/x')\nwriter.write(b'x' * 100000)", 0),
    "with-a-thread-in-a-command": (
        "import threading\n"
        "command = ['sh', '-c', 'touch /run/started; sleep 1000']\n"
        "threading.Thread(target=lambda: machine.exec(command), daemon=True).start()\n"
        "machine.exec('until [ -e /run/started ]; do sleep 0.05; done', shell=True)",
        0,
    ),
    "with-a-reference-cycle": ("class A: pass\na = A(); a.a = a; a.m = machine", 0),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_front_24_interpreter_ends_with_a_machine_alive(ending: str, tmp_path: Path) -> None:
    rest, code = ENDINGS[ending]
    program = Program(tmp_path, EPHEMERAL + rest)
    status, out, err = program.end()
    assert status == code, err
    assert "Fatal" not in err and "leaked" not in err, err
    program.assert_nothing_left()


def test_front_24_control_c_in_a_blocking_call_is_a_keyboard_interrupt_at_once(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        EPHEMERAL
        + """
import threading
def tell():
    machine.exec("until [ -e /run/started ]; do sleep 0.05; done", shell=True)
    print("ready", flush=True)
threading.Thread(target=tell).start()
try:
    machine.exec(["sh", "-c", "touch /run/started; sleep 1000"])
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(machine.exec(["echo", "still here"]).text, flush=True)
""",
    )
    assert program.line() == "ready"
    begin = time.monotonic()
    program.signal(signal.SIGINT)
    assert program.line() == "interrupted"
    assert time.monotonic() - begin < 15
    assert program.line() == "still here"
    assert program.end()[0] == 0
    program.assert_nothing_left()


def test_front_24_control_c_during_create_leaves_no_machine(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        """
import holt
print("ready", flush=True)
try:
    holt.Machine.create(on_progress=lambda *_: print("booting", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(len(holt.Machine.list()), flush=True)
""",
    )
    assert program.line() == "ready"
    assert program.line() == "booting"
    program.signal(signal.SIGINT)
    lines = [program.line(), program.line()]
    while lines[-2] == "booting":
        lines.append(program.line())
    assert lines[-2:] == ["interrupted", "0"]
    assert program.end()[0] == 0
    program.assert_nothing_left()


def test_front_24_a_forked_child_is_refused_and_its_end_stops_nothing(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        EPHEMERAL
        + """
import os, sys
stream = machine.exec_stream(["sh", "-c", "echo one; read line; echo $line"], stdin="pipe")
assert next(stream).data == b"one\\n"
child = os.fork()
if child == 0:
    wrong = []
    for use in (lambda: machine.exec(["true"]), lambda: holt.Machine.create(persistent=False),
                lambda: holt.Machine.list(), lambda: next(stream), lambda: machine.remove(force=True)):
        try:
            use()
            wrong.append("worked")
        except holt.InvalidStateError as error:
            if "fork" not in str(error): wrong.append(str(error))
        except BaseException as error:
            wrong.append(repr(error))
    print(wrong, flush=True)
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
stream.write(b"two\\n")
print([event.data for event in stream if event.kind == "stdout"], flush=True)
print(machine.exec(["echo", "alive"]).text, flush=True)
""",
    )
    assert program.line() == "[]"
    assert program.line() == "7"
    assert program.line() == "[b'two\\n']"
    assert program.line() == "alive"
    assert program.end()[0] == 0
    program.assert_nothing_left()


def _in_a_spawned_child(name: str) -> bytes:
    return holt.Machine.open(name).exec(["echo", "from a child"]).stdout


def test_front_24_spawned_processes_share_a_machine_by_its_name(machine: holt.Machine) -> None:
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        answers = pool.map_async(_in_a_spawned_child, [machine.name] * 4).get(timeout=120)
    assert answers == [b"from a child\n"] * 4
    assert machine.exec(["true"]).success


def test_front_24_twenty_threads_use_one_machine(machine: holt.Machine) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def use(number: int) -> bytes:
        machine.write_file(f"/root/of-{number}", b"%d" % number)
        return machine.exec(["cat", f"/root/of-{number}"]).stdout

    with ThreadPoolExecutor(20) as threads:
        assert list(threads.map(use, range(60))) == [b"%d" % number for number in range(60)]


def test_front_24_two_event_loops_in_two_threads_use_one_machine(machine: holt.Machine) -> None:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    same = holt.AsyncMachine(machine)

    async def some(word: str) -> list[bytes]:
        return [result.stdout for result in await asyncio.gather(*(same.exec(["echo", word]) for _ in range(10)))]

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda word: asyncio.run(some(word)), ["first", "second"])
    assert first == [b"first\n"] * 10
    assert second == [b"second\n"] * 10
