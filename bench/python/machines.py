"""How fast machines are from Python, beside C++ and the command line: one table, with the bars of docs/benchmarks.md.

    build/venv/bin/python bench/python/machines.py [FOLDER_OF_BUILD]

scripts/setup first; the wheels and what python/requirements.lock names must be installed. Machines live in a temporary
home that shares engine, images and templates with HOLT_HOME. Exit code 1 where a bar was missed.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic_ai.workspaces import Workspace, WorkspaceRef
from pydantic_ai_harness.smol_sandbox import SmolSandboxBackend

import holt
from holt.pydantic_ai import HoltSandboxBackend

ROOT = Path(__file__).resolve().parents[2]
EXECS = 100
ROUNDS = 4  # C++ and Python take turns, so that both see the same weather
FIRST_OPERATIONS = 9
FILE = os.urandom(8 << 20)


@contextmanager
def temporary_home() -> Iterator[None]:
    prepared = Path(os.environ.get("HOLT_HOME") or ROOT / "build" / "home")
    with tempfile.TemporaryDirectory() as folder:
        for shared in ("data", "cache"):
            (prepared / shared).mkdir(exist_ok=True)
            (Path(folder) / shared).symlink_to(prepared / shared)
        os.environ["HOLT_HOME"] = folder
        yield


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


async def seconds_of(work: Awaitable[object]) -> float:
    begin = time.perf_counter()
    await work
    return time.perf_counter() - begin


class Table:
    """The table as it grows, and what missed its bar."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        self.row("what", "measured", "bar")
        print("|---|---|---|---|")

    def row(self, what: str, measured: str, bar: str = "", met: bool | None = None) -> None:
        if met is False:
            self.missed.append(what)
        verdict = "" if met is None else "met" if met else "missed"
        print(f"| {what:<66} | {measured:>28} | {bar:>18} | {verdict:<6} |", flush=True)


def exec_of_true(table: Table, machine: holt.Machine, cpp: Path) -> None:
    same = holt.AsyncMachine(machine)
    in_cpp: list[float] = []
    in_python: list[float] = []
    in_asyncio: list[float] = []

    async def on_the_loop() -> list[float]:
        return [await seconds_of(same.exec(["true"])) * 1e3 for _ in range(EXECS // ROUNDS)]

    for _ in range(ROUNDS):
        shown = subprocess.run([cpp, machine.name, str(EXECS // ROUNDS)], check=True, capture_output=True, text=True)
        in_cpp += map(float, shown.stdout.split())
        in_python += [seconds(lambda: machine.exec(["true"])) * 1e3 for _ in range(EXECS // ROUNDS)]
        in_asyncio += asyncio.run(on_the_loop())
    base = statistics.median(in_cpp)
    table.row('exec(["true"]) from C++', f"{base:.2f} ms")
    for name, times in (("Machine", in_python), ("AsyncMachine", in_asyncio)):
        over = statistics.median(times) - base
        table.row(f"the same from Python, {name}", f"{base + over:.2f} ms, {over:+.2f} ms", "<= 1 ms over C++", over <= 1)


async def write_and_read(backend: object, path: str) -> tuple[float, float]:
    workspace = Workspace(backend)  # type: ignore[arg-type]
    await workspace.write_bytes("warm-up", b"x")
    written = await seconds_of(workspace.write_bytes(path, FILE))
    begin = time.perf_counter()
    back = await workspace.read_bytes(path)
    read = time.perf_counter() - begin
    assert back == FILE
    return written, read


def big_file(table: Table, name: str) -> None:
    ref = WorkspaceRef(provider="smol", id=name)
    ours = [asyncio.run(write_and_read(HoltSandboxBackend(ref=ref), "ours")) for _ in range(3)]
    theirs = asyncio.run(write_and_read(SmolSandboxBackend(ref=ref), "theirs"))
    size = len(FILE) / 1e6
    for direction, index in (("write_bytes", 0), ("read_bytes", 1)):
        own = statistics.median(times[index] for times in ours)
        ratio = theirs[index] / own
        table.row(f"8 MiB by {direction}, the Harness's SmolSandbox (shell)", f"{size / theirs[index]:.2f} MB/s")
        table.row(f"8 MiB by {direction}, HoltSandbox", f"{size / own:.0f} MB/s, {ratio:.0f} x", ">= 20 x", ratio >= 20)


def first_operation(table: Table, program: Path) -> None:
    def by_the_program() -> None:
        subprocess.run([program, "--quiet", "run", "--", "true"], check=True, stdin=subprocess.DEVNULL)

    def by_python() -> None:
        machine = holt.Machine.create(persistent=False)
        machine.exec(["true"])
        made.append(machine)

    def by_a_new_interpreter() -> None:
        script = "import holt\nwith holt.Machine.create(persistent=False) as machine: machine.exec(['true'])"
        subprocess.run([sys.executable, "-c", script], check=True)

    async def by_holt_sandbox() -> None:
        backend = HoltSandboxBackend()
        await backend.run(["true"])
        assert backend.ref is not None
        made.append(holt.Machine.open(backend.ref.id))

    ways: dict[str, Callable[[], object]] = {
        "holt run -- true, process start to exit": by_the_program,
        "Machine.create and exec, in a running interpreter": by_python,
        "the same as a program: interpreter, import, removal": by_a_new_interpreter,
        "HoltSandbox, to the result of its first command": lambda: asyncio.run(by_holt_sandbox()),
    }
    made: list[holt.Machine] = []
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(FIRST_OPERATIONS + 1):
        for name, work in ways.items():
            took = seconds(work) * 1e3
            while made:
                made.pop().remove(force=True)
            if turn > 0:
                times[name].append(took)
    base = 0.0
    for name, taken in times.items():
        median = statistics.median(taken)
        if not base:
            base = median
            table.row(name, f"{base:.0f} ms")
        else:
            over = median - base
            table.row(name, f"{median:.0f} ms, {over:+.0f} ms", "<= 100 ms over run", over <= 100)


def main() -> int:
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "release"
    load = os.getloadavg()[0]
    with temporary_home():
        name = "pydantic-ai-" + "0" * 31 + "b"
        machine = holt.Machine.create(name)
        try:
            accelerator = machine.info().accelerator
            print(f"{os.cpu_count()} CPUs, accelerator {accelerator}, load before {load:.1f}\n")
            table = Table()
            exec_of_true(table, machine, build / "bench" / "holt_bench_exec_latency")
            big_file(table, name)
        finally:
            machine.remove(force=True)
        first_operation(table, build / "src" / "cli" / "holt")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
