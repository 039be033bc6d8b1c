"""AsyncMachine in a machine (spec section 4)."""

import asyncio
import os
import time

import pytest
import smol
from conftest import find_processes


@pytest.fixture
def twin(machine):
    return smol.AsyncMachine(machine)


def in_loop(body):
    return asyncio.run(asyncio.wait_for(body, 120))


async def process_is_there(machine, marker):
    return (await machine.exec(find_processes(marker))).stdout != ""


async def wait_until_gone(machine, marker):
    deadline = time.monotonic() + 60
    while await process_is_there(machine, marker):
        assert time.monotonic() < deadline, "the command is killed"
        await asyncio.sleep(0.05)


async def wait_until_there(machine, marker):
    deadline = time.monotonic() + 60
    while not await process_is_there(machine, marker):
        assert time.monotonic() < deadline, "the command has started"
        await asyncio.sleep(0.05)


def test_ItIsTheSameMachine(twin, machine):
    assert (twin.id, twin.name, twin._m) == (machine.id, machine.name, machine)
    assert in_loop(twin.state()) == "running"


def test_CommandsAndFilesAreCoroutines(twin):
    async def body():
        await twin.write_file("/tmp/a", "async")
        assert await twin.read_file("/tmp/a") == b"async"
        result = await twin.exec(["sh", "-c", "cat /tmp/a; exit 4"], smol.ExecOptions(timeout=60))
        assert (result.exit_code, result.stdout) == (4, "async")
        background = await twin.exec(["true"], smol.ExecOptions(background=True))
        assert background.pid

    in_loop(body())


def test_AStreamIsAnAsynchronousGeneratorOfTheSameEvents(twin):
    async def body():
        return [event async for event in twin.exec_stream(["sh", "-c", "echo o; echo e >&2; exit 2"])]

    events = in_loop(body())
    assert events[-1] == {"kind": "exit", "exit_code": 2}
    assert {"kind": "stdout", "data": "o\n"} in events and {"kind": "stderr", "data": "e\n"} in events


def test_ErrorsAreEventsOfAStreamAndExceptionsOfACall(twin):
    async def body():
        options = smol.ExecOptions(workdir="/no/such")
        events = [event async for event in twin.exec_stream(["true"], options)]
        with pytest.raises(smol.SmolError) as caught:
            await twin.exec(["true"], options)
        with pytest.raises(smol.InvalidConfigError):
            await twin.exec(["true"], smol.ExecOptions(timeout=0))
        return events, caught.value

    [event], error = in_loop(body())
    assert event["message"] == f"[{error.code}] {error}"


@pytest.mark.parametrize("delay", [0, 0.001, 0.01, 0.05, 0.3])
def test_front_24_CancellingTheTaskKillsTheCommandAtWhateverMoment(twin, delay):
    marker = f"28{int(delay * 1000)}"

    async def body():
        task = asyncio.create_task(twin.exec(["sleep", marker]))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_until_gone(twin, marker)

    in_loop(body())


@pytest.mark.parametrize("delay", [0, 0.001, 0.01, 0.3])
def test_front_24_CancellingAReaderOfAStreamKillsTheCommand(twin, delay):
    marker = f"29{int(delay * 1000)}"

    async def read():
        async for _ in twin.exec_stream(["sleep", marker]):
            pass

    async def body():
        task = asyncio.create_task(read())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_until_gone(twin, marker)

    in_loop(body())


def test_LeavingAStreamEarlyKillsTheCommand(twin):
    async def body():
        events = twin.exec_stream(["sh", "-c", "echo up; exec sleep 2771"])
        async for _ in events:
            break
        await events.aclose()
        await wait_until_gone(twin, "2771")

    in_loop(body())


def test_AnEventLoopThatClosesKillsItsCommands(twin):
    async def body():
        task = asyncio.create_task(twin.exec(["sleep", "2772"]))
        await wait_until_there(twin, "2772")
        return task

    in_loop(body())
    in_loop(wait_until_gone(twin, "2772"))


def test_ACancelledCreateLeavesNothing(home, name):
    async def body():
        task = asyncio.create_task(smol.AsyncMachine.create(smol.MachineConfig(name=name, persistent=True)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        deadline = time.monotonic() + 60
        while any(machine.name == name for machine in await smol.AsyncMachine.list()):
            assert time.monotonic() < deadline, "the machine is removed"
            await asyncio.sleep(0.1)

    in_loop(body())


def test_ALifeFromCreateToDelete(home, name):
    async def body():
        async with await smol.AsyncMachine.create(smol.MachineConfig(name=name, persistent=True)) as made:
            assert isinstance(made, smol.AsyncMachine)
            await made.stop()
            assert await made.state() == "stopped"
            await made.start()
            assert await made.ready()
            connected = await smol.AsyncMachine.connect(name)
            assert (await connected.exec(["echo", "x"])).stdout == "x\n"
            assert (await smol.AsyncMachine.open(name)).id == name
        assert await made.state() == "stopped"
        await smol.AsyncMachine.delete_by_name(name)

    in_loop(body())


def test_AStoppedMachineIsBootedByConnect(home, name):
    async def body():
        made = await smol.AsyncMachine.create(smol.MachineConfig(name=name, persistent=True))
        await made.stop()
        connected = await smol.AsyncMachine.connect(name)
        assert (await connected.exec(["echo", "x"])).stdout == "x\n"
        await connected.delete()

    in_loop(body())


def test_FortyCommandsRunAtOnceWithoutAThreadEach(twin):
    script = "touch /tmp/forty/$0; until [ -e /tmp/forty/go ]; do sleep 0.1; done; echo $0"

    async def body():
        await twin.exec(["sh", "-c", "rm -rf /tmp/forty; mkdir /tmp/forty"])
        before = len(os.listdir("/proc/self/task"))
        commands = [asyncio.create_task(twin.exec(["sh", "-c", script, str(n)])) for n in range(40)]
        while (await twin.exec(["sh", "-c", "ls /tmp/forty | wc -l"])).stdout.strip() != "40":
            await asyncio.sleep(0.1)
        grown = len(os.listdir("/proc/self/task")) - before
        await twin.write_file("/tmp/forty/go", b"")
        return grown, [result.stdout for result in await asyncio.gather(*commands)]

    grown, outputs = in_loop(body())
    assert outputs == [f"{n}\n" for n in range(40)]
    assert grown < 8, "they share the threads of the engine"


def test_OneObjectServesSeveralLoops(twin):
    for _ in range(3):
        assert in_loop(twin.exec(["echo", "x"])).stdout == "x\n"
