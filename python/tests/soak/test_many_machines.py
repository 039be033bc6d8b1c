"""Twenty machines at once, and two hundred one after the other."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import smol
from pydantic_ai.workspaces import Workspace
from pydantic_ai_harness.smol_sandbox import SmolSandbox, SmolSandboxBackend

import holt
from footprint import Footprint, anonymous_kib, machine_folders, settled_growth
from holt.pydantic_ai import HoltSandbox, HoltSandboxBackend

MACHINES = 20
WORKSPACES = 8
LOCAL = smol.ConnectOptions(target="local")


async def _use(number: int) -> tuple[str, bytes]:
    machine = await holt.AsyncMachine.create(persistent=False, labels={"number": str(number)}, timeout=240)
    try:
        await machine.write_file("/root/number", str(number).encode())
        shown = await machine.exec(["sh", "-c", "hostname; cat /root/number; echo; cat /proc/sys/kernel/random/boot_id"])
        assert shown.success, shown
        return machine.name, shown.stdout
    finally:
        await machine.remove(force=True)


def test_front_24_twenty_machines_at_once_from_one_event_loop(nothing_left: None) -> None:
    async def all_of_them() -> list[tuple[str, bytes]]:
        return await asyncio.gather(*(_use(number) for number in range(MACHINES)))

    shown = asyncio.run(asyncio.wait_for(all_of_them(), 280))
    names = {name for name, _ in shown}
    lines = [output.decode().split() for _, output in shown]
    assert len(names) == MACHINES
    assert [number for _, number, _ in lines] == [str(number) for number in range(MACHINES)]
    assert {hostname for hostname, _, _ in lines} == names
    assert len({boot_id for _, _, boot_id in lines}) == MACHINES, "machines of one template share what was random"


@pytest.mark.parametrize(
    ("sandbox", "backend_of"), [(SmolSandbox, SmolSandboxBackend), (HoltSandbox, HoltSandboxBackend)]
)
def test_front_24_workspaces_at_once_from_one_event_loop(
    sandbox: Callable[[], Any], backend_of: Callable[[], Any], nothing_left: None
) -> None:
    async def use(number: int) -> tuple[str, str]:
        backend = backend_of()
        try:
            await Workspace(backend).write_text("number", str(number))
            shown = await backend.run(["sh", "-c", "hostname; cat number"])
            assert shown.exit_code == 0, shown
            assert shown.stdout.split() == [backend.ref.id, str(number)]
            return backend.ref.id, await Workspace(backend).read_text("number")
        finally:
            if backend.ref is not None:
                await sandbox().destroy(backend.ref)

    async def all_of_them() -> list[tuple[str, str]]:
        return await asyncio.gather(*(use(number) for number in range(WORKSPACES)))

    shown = asyncio.run(asyncio.wait_for(all_of_them(), 280))
    assert len({name for name, _ in shown}) == WORKSPACES
    assert [number for _, number in shown] == [str(number) for number in range(WORKSPACES)]


def test_what_is_named_after_a_machine_is_seen_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the tests here would miss a lock file that each machine leaves in the cache."""
    home, shared = tmp_path / "home", tmp_path / "cache"
    monkeypatch.setenv("HOLT_HOME", str(home))
    left = ["run/socket", "state/machines/a/disk", "state/smol-0123abcd.lock", "cache/locks/holt-0123abcd"]
    for path in ("cache/facts/0123abcd", "state/start-slots/0", *left):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).touch()
    (home / "cache").rename(shared)
    (home / "cache").symlink_to(shared)
    assert machine_folders() == {*left, "state/machines/a"}


def _sync_cycle() -> None:
    with holt.Machine.create(persistent=False, timeout=120) as machine:
        machine.write_file("/root/note", b"x" * 100_000)
        assert machine.exec(["wc", "-c", "/root/note"]).stdout.startswith(b"100000 ")
        machine.exec_stream(["sleep", "1000"])  # dropped: ends with its last reference


async def _async_life() -> None:
    async with await holt.AsyncMachine.create(persistent=False, timeout=120) as machine:
        await machine.write_file("/root/note", b"x" * 100_000)
        assert await machine.read_file("/root/note") == b"x" * 100_000
        endless = asyncio.create_task(machine.exec(["sleep", "1000"]))
        assert (await machine.exec(["true"])).success
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless


def _async_cycle() -> None:
    async def two() -> None:
        await asyncio.gather(_async_life(), _async_life())

    asyncio.run(two())


def _smol_cycle() -> None:
    machine = smol.Machine.create(smol.MachineConfig(persistent=True), LOCAL)
    machine.write_file("/root/note", "kept")
    assert machine.exec(["cat", "/root/note"]).stdout == "kept"
    stream = machine.exec_stream(["sleep", "1000"])
    machine.delete()
    assert next(stream)["kind"] == "error"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("cycle", "lives", "rounds"),
    [(_sync_cycle, 1, 80), (_async_cycle, 2, 40), (_smol_cycle, 1, 40)],
    ids=["holt", "holt-asyncio", "smol"],
)
def test_front_24_two_hundred_lives_of_machines_leave_nothing(
    cycle: Callable[[], None], lives: int, rounds: int
) -> None:
    """80 + 2 x 40 + 40 machines, each kind in a process of its own: heaps that earlier tests have left would change size."""
    process = multiprocessing.get_context("spawn").Process(target=_live_and_leave_nothing, args=(cycle, lives, rounds))
    process.start()
    process.join()
    assert process.exitcode == 0


def _live_and_leave_nothing(cycle: Callable[[], None], lives: int, rounds: int) -> None:
    for _ in range(5):
        cycle()
    before, growth = Footprint.now(), []
    for _ in range(2):
        memory = _memory_after(cycle)
        for _ in range(rounds // 2):
            cycle()
        growth.append(min(_memory_after(cycle)) - max(memory))
    grown = settled_growth(before)
    assert not grown, grown
    # A leaked connection, buffer or result would be many KiB a life, in both halves.
    assert min(growth) < 24 * rounds // 2 * lives, growth


def _memory_after(work: Callable[[], None]) -> list[int]:
    """A few looks at this process's memory: allocators take and give back whole MiB at moments of their own."""
    looks = []
    for _ in range(3):
        work()
        looks.append(anonymous_kib())
    return looks


def test_front_24_five_hundred_commands_leave_nothing_in_the_process(machine: holt.Machine) -> None:
    def some(count: int) -> None:
        for _ in range(count):
            machine.exec(["true"])
            machine.read_file("/etc/passwd")

    some(50)
    memory, before = _memory_after(lambda: some(5)), Footprint.now()
    some(500)
    assert settled_growth(before) == {}
    # 8 KiB a command; the allocators' own steps are smaller than this.
    assert min(_memory_after(lambda: some(5))) - max(memory) < 4096
