"""AsyncMachine: driven by event loops, cancelled with its tasks."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from helpers import gone, processes, until

import holt

T = TypeVar("T")


def run(machine: holt.Machine, main: Callable[[holt.AsyncMachine], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(asyncio.wait_for(main(holt.AsyncMachine(machine)), 120))


async def running(machine: holt.AsyncMachine, mark: str) -> None:
    """Waits until a command with `mark` runs."""
    while not processes(machine.sync, mark):
        await asyncio.sleep(0.05)


def test_every_call_works_in_an_event_loop(machine: holt.Machine, folder: str, tmp_path: Path) -> None:
    async def main(m: holt.AsyncMachine) -> None:
        assert (await m.exec(["echo", "hi"])).text == "hi\n"
        assert (await m.exec("cat", shell=True, stdin=b"x" * 3_000_000)).stdout == b"x" * 3_000_000
        await m.write_file(f"{folder}/x", b"y" * 3_000_000)
        assert await m.read_file(f"{folder}/x") == b"y" * 3_000_000
        assert (await m.stat(f"{folder}/x")).size == 3_000_000 == (await m.lstat(f"{folder}/x")).size
        assert await m.exists(folder) and await m.realpath(f"{folder}/.") == folder
        await m.make_dir(f"{folder}/a/b")
        await m.rename(f"{folder}/x", f"{folder}/a/b/y")
        assert [entry.path async for entry in m.walk(folder)] == ["a", "a/b", "a/b/y"]
        assert [entry.name for entry in await m.list_dir(f"{folder}/a/b")] == ["y"]
        await m.set_attributes(f"{folder}/a", mode=0o700)
        assert (await m.copy_out(f"{folder}/a", tmp_path / "a")).failed == 0
        assert (await m.copy_in(tmp_path / "a", f"{folder}/c")).files == 3
        await m.remove_path(f"{folder}/a", recursive=True)
        async with await m.open_write(f"{folder}/big") as writer:
            for _ in range(5):
                await writer.write(b"z" * 1_000_000)
        async with await m.open_read(f"{folder}/big") as reader:
            assert sum([len(piece) async for piece in reader]) == 5_000_000 == reader.stat().size
        info = await m.start_command(["sh", "-c", "echo in; exit 6"])
        ended = await m.wait_command(info.id, timeout=60)
        assert ended.result and ended.result.exit_code == 6
        assert [event.kind async for event in m.attach_command(info.id)] == ["stdout", "exit"]
        assert info.id in [command.id for command in await m.commands()]
        await m.signal_command(info.id, 15)
        await m.kill_command(info.id)
        await m.ping()
        assert await m.state() == "running" and (await m.info()).name == m.name
        assert (await m.stats()).guest_answered and await m.events() == m.sync.events()
        with pytest.raises(holt.NotFoundError):
            await m.read_file(f"{folder}/no")

    run(machine, main)


def test_life_of_a_machine_in_an_event_loop(home: Path) -> None:
    async def main() -> None:
        async with await holt.AsyncMachine.create(persistent=False) as made:
            name = made.name
            assert name in [info.name for info in await holt.AsyncMachine.list()]
        with pytest.raises(holt.NotFoundError):
            await holt.AsyncMachine.open(name)
        made = await holt.AsyncMachine.define()
        try:
            assert await made.state() == "created"
            await made.start()
            await made.suspend()
            await made.resume()
            await made.pause()
            await made.resume()
            await made.stop()
            same = await holt.AsyncMachine.connect(made.name)
            assert await same.state() == "running"
        finally:
            await made.remove(force=True)

    asyncio.run(main())


def test_stream_reads_and_writes_at_once(machine: holt.Machine) -> None:
    data = os.urandom(1 << 20) * 8

    async def main(m: holt.AsyncMachine) -> None:
        async with m.exec_stream(["cat"], stdin="pipe") as stream:

            async def feed() -> None:
                await stream.write(data)
                await stream.close_stdin()

            feeder = asyncio.create_task(feed())
            got = bytearray()
            async for event in stream:
                got += event.data
            await feeder
        assert got == data
        stream = await m.exec_stream(["cat"], stdin="pipe")
        with pytest.raises(holt.TimeoutError):
            await stream.next(timeout=0.05)
        await stream.write(b"on")
        answer = await stream.next(timeout=60)
        assert answer and answer.data == b"on"
        await stream.aclose()
        assert await stream.next() is None

    run(machine, main)


def test_terminal_and_signals_in_an_event_loop(machine: holt.Machine) -> None:
    async def main(m: holt.AsyncMachine) -> None:
        stream = m.exec_stream(["cat"], terminal=(5, 6), stdin="pipe")
        await stream.resize(7, 8)
        await stream.signal(15)
        events = [event async for event in stream]
        assert events[-1].result and events[-1].result.signal == 15

    run(machine, main)


@pytest.mark.parametrize("how", ["exec", "stream", "input"])
def test_front_24_cancelling_a_task_kills_its_command(machine: holt.Machine, how: str) -> None:
    mark = f"sleep 43{len(how)}1"

    async def main(m: holt.AsyncMachine) -> None:
        async def stream() -> None:
            async for _ in m.exec_stream(f"{mark} & setsid {mark} & echo; {mark}", shell=True):
                pass

        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "exec": lambda: m.exec(f"{mark} & setsid {mark} & {mark}", shell=True),
            "stream": stream,
            "input": lambda: m.exec(mark, shell=True, stdin=b"x" * (8 << 20)),
        }
        task = asyncio.ensure_future(calls[how]())
        await running(m, mark)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(machine, main)
    assert gone(machine, mark)


def test_front_24_a_task_cancelled_before_its_command_is_open_runs_nothing(machine: holt.Machine) -> None:
    mark = "sleep 4411"

    async def main(m: holt.AsyncMachine) -> None:
        for turns in range(4):
            task = asyncio.ensure_future(m.exec(mark.split()))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(machine, main)
    assert gone(machine, mark)


def test_front_24_cancelled_creation_leaves_nothing(home: Path) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(holt.AsyncMachine.create("cancelled-one"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(holt.NotFoundError):
            await holt.AsyncMachine.open("cancelled-one")

    asyncio.run(main())


def test_front_24_event_loop_closed_while_a_command_runs_kills_it(machine: holt.Machine) -> None:
    mark = "sleep 4412"
    loop = asyncio.new_event_loop()
    task = loop.create_task(holt.AsyncMachine(machine).exec(mark.split()))
    loop.run_until_complete(running(holt.AsyncMachine(machine), mark))
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task
    gc.collect()
    assert gone(machine, mark)


def test_cancelled_write_leaves_the_old_file(machine: holt.Machine, folder: str) -> None:
    machine.write_file(f"{folder}/x", b"old")

    async def main(m: holt.AsyncMachine) -> None:
        task = asyncio.ensure_future(m.write_file(f"{folder}/x", b"n" * (32 << 20)))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        writer = await m.open_write(f"{folder}/x")
        await writer.write(b"n" * (2 << 20))
        await writer.abort()

    run(machine, main)
    assert machine.read_file(f"{folder}/x") == b"old"
    until(lambda: len(machine.list_dir(folder)) == 1)


def test_no_thread_waits_for_a_command(machine: holt.Machine) -> None:
    async def main(m: holt.AsyncMachine) -> None:
        before = threading.active_count()
        native = len(os.listdir("/proc/self/task"))
        tasks = [asyncio.ensure_future(m.exec(["sleep", "4413"])) for _ in range(30)]
        await running(m, "sleep 4413")
        assert threading.active_count() <= before
        assert len(os.listdir("/proc/self/task")) <= native  # those of earlier calls end meanwhile
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(machine, main)
    assert gone(machine, "sleep 4413")


def test_waiting_for_the_machine_ends_when_it_is_removed(own: holt.Machine) -> None:
    async def main(m: holt.AsyncMachine) -> None:
        tasks = [asyncio.ensure_future(m.exec(["sleep", "300"])) for _ in range(3)]
        await running(m, "sleep 300")
        await m.remove(force=True)
        for task in tasks:
            with pytest.raises(holt.Error) as lost:
                await task
            assert lost.value.code in ("OUTCOME_UNKNOWN", "GUEST_LOST")

    run(own, main)


def test_many_waits_hold_up_no_other_call(own: holt.Machine) -> None:
    async def main(m: holt.AsyncMachine) -> None:
        waits = [asyncio.ensure_future(m.wait("ended")) for _ in range(30)]
        given_up = asyncio.ensure_future(m.wait("ended"))
        await asyncio.sleep(0)
        assert await m.state() == "running"
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        with pytest.raises(holt.TimeoutError):
            await m.wait("ended", timeout=0.2)
        await m.stop()
        assert [info.state for info in await asyncio.gather(*waits)] == ["stopped"] * 30

    run(own, main)


def test_many_slow_pulls_hold_up_no_other_call(own: holt.Machine) -> None:
    # A pull is given up after half a minute without an answer.
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        image = f"127.0.0.1:{silent.getsockname()[1]}/never/comes:1"

        async def main(m: holt.AsyncMachine) -> None:
            pulls = [asyncio.ensure_future(holt.AsyncMachine.create(image=image)) for _ in range(30)]
            await asyncio.sleep(0)
            assert await m.state() == "running"
            assert not any(pull.done() for pull in pulls), "the state was only told after pulls had been given up"
            await m.stop()
            await m.start()
            for pull in pulls:
                pull.cancel()
            await asyncio.gather(*pulls, return_exceptions=True)

        run(own, main)


def test_trio_drives_machines_too(machine: holt.Machine) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        m = holt.AsyncMachine(machine)
        assert (await m.exec(["echo", "trio"])).text == "trio\n"
        with trio.move_on_after(0.5) as limit:
            await m.exec(["sleep", "4414"])
        assert limit.cancelled_caught
        assert [event.kind async for event in m.exec_stream(["echo"])] == ["stdout", "exit"]
        stream = m.exec_stream(["cat"], stdin="pipe")
        with pytest.raises(holt.TimeoutError):
            await stream.next(timeout=0.05)
        stream.kill()
        assert await m.state() == "running"
        with trio.move_on_after(0.05):
            await holt.AsyncMachine.create("cancelled-in-trio")

    trio.run(main)
    assert gone(machine, "sleep 4414")
    with pytest.raises(holt.NotFoundError):
        holt.Machine.open("cancelled-in-trio")
