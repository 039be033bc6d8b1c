"""Streams of commands in a machine (spec section 5)."""

import asyncio
import gc
import re
import threading
import time
from pathlib import Path

import pytest
import smol
from conftest import find_processes

PROMPT = 60.0  # seconds; emulated guests on a busy host are slow, a blocked reader would wait for ever


def stream(machine, script, **options):
    return machine.exec_stream(["sh", "-c", script], smol.ExecOptions(**options))


def text(events, kind="stdout"):
    return "".join(event["data"] for event in events if event["kind"] == kind)


def has_process(machine, marker):
    return machine.exec(find_processes(marker)).stdout != ""


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition holds within its time"
        time.sleep(0.05)


def test_EventsAreDictsAndTheExitIsTheLast(machine):
    events = list(stream(machine, "echo out; echo err >&2; exit 7"))
    assert events[-1] == {"kind": "exit", "exit_code": 7} and type(events[-1]["exit_code"]) is int
    assert text(events) == "out\n" and text(events, "stderr") == "err\n"
    assert [event["kind"] for event in events].count("exit") == 1


def test_OutputArrivesWhileTheCommandRuns(machine):
    with stream(machine, "echo first; exec sleep 300") as events:
        assert next(events) == {"kind": "stdout", "data": "first\n"}


def test_ASplitCharacterComesOutWhole(machine):
    events = list(stream(machine, r"printf '\342'; sleep 0.3; printf '\202\254'; printf 'x\377'"))
    assert text(events) == "€x\ufffd"


def test_InputIsAtItsEndUnlessGiven(machine):
    assert text(stream(machine, "cat; echo end")) == "end\n"
    assert text(stream(machine, "cat", stdin="given")) == "given"


def test_ATimeoutEndsTheStreamWith124(machine):
    assert list(stream(machine, "sleep 300", timeout=0.3))[-1] == {"kind": "exit", "exit_code": 124}


def test_AMissingProgramIs127(machine):
    assert list(machine.exec_stream(["no-such-program"]))[-1] == {"kind": "exit", "exit_code": 127}


def test_AMissingFolderIsAnErrorEvent(machine):
    [event] = stream(machine, "true", workdir="/no/such")
    assert event["kind"] == "error" and event["message"].startswith("[")
    assert "No such file or directory" in event["message"]


def test_AMachineThatIsNotThereIsAnErrorEvent(machine, home):
    gone = smol.Machine.create()
    running = smol.Machine.open(gone.name)
    gone.delete()
    for handle in (gone, running):
        [event] = handle.exec_stream(["true"])
        assert event["message"].startswith("[NOT_FOUND] ")


def test_BadOptionsRaise(machine):
    with pytest.raises(smol.InvalidConfigError):
        stream(machine, "true", timeout=-1)


def test_KillFromAnotherThreadFreesAReaderAndEndsTheWholeCommand(machine):
    running = stream(machine, "echo up; sleep 271 & sleep 271")
    next(running)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(next(running, None)))
    reader.start()
    began = time.monotonic()
    running.kill()
    reader.join(PROMPT)
    assert seen == [None] and time.monotonic() - began < PROMPT
    running.kill()
    assert next(running, None) is None
    wait_until(lambda: not has_process(machine, "271"))


@pytest.mark.parametrize("leave", ["close", "with", "del", "break"])
def test_LeavingAStreamKillsTheCommand(machine, leave):
    marker = {"close": "261", "with": "262", "del": "263", "break": "264"}[leave]
    running = stream(machine, f"echo up; exec sleep {marker}")
    next(running)
    if leave == "close":
        running.close()
    elif leave == "with":
        with running:
            pass
    else:
        del running
        gc.collect()
    wait_until(lambda: not has_process(machine, marker))


def test_ASlowReaderGetsEverythingAndOthersDoNotWaitForIt(machine):
    slow = stream(machine, "head -c 6000000 /dev/zero | tr '\\0' y; echo; echo done >&2")
    assert machine.exec(["echo", "other"]).stdout == "other\n"
    events = list(slow)
    assert len(text(events)) == 6_000_001 and text(events, "stderr") == "done\n"
    assert events[-1] == {"kind": "exit", "exit_code": 0}
    assert max(len(event.get("data", "")) for event in events) <= 65536


# Counts in a file what the reader has not kept from being written, in pieces of 64 KiB.
ENDLESS = "n=0; while head -c 65536 /dev/zero; do n=$((n + 1)); echo $n > /tmp/pieces.new; "
ENDLESS += "mv /tmp/pieces.new /tmp/pieces; done"
MEBIBYTE = 16  # pieces


def memory():
    """Bytes of this process that are no file's."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)[1]) << 10


def pieces_when_it_stands_still(machine):
    seen = [-1]
    deadline = time.monotonic() + 120
    while seen[-1] < MEBIBYTE // 8 or len(set(seen[-5:])) > 1:
        assert time.monotonic() < deadline, f"a command that nobody reads waits; after {seen[-1]} pieces"
        time.sleep(0.2)
        seen.append(int(machine.exec(["cat", "/tmp/pieces"]).stdout or 0))
    return seen[-1]


@pytest.mark.parametrize("kind", ["thread", "event loop"])
def test_OutputThatNobodyReadsFillsNoMemory(machine, kind):
    machine.exec(["sh", "-c", "echo 0 > /tmp/pieces"])
    twin = smol.AsyncMachine(machine)

    async def begin_to_read():
        events = twin.exec_stream(["sh", "-c", ENDLESS])
        await anext(events)
        await asyncio.to_thread(measure)
        await events.aclose()

    def measure():
        pieces.append(pieces_when_it_stands_still(machine))
        grown.append(memory() - before)

    pieces, grown = [], []
    before = memory()
    if kind == "thread":
        with stream(machine, ENDLESS) as events:
            next(events)
            measure()
    else:
        asyncio.run(begin_to_read())
    assert pieces[0] <= 8 * MEBIBYTE, "what is on its way is about 1 MiB"
    assert grown[0] < 8 << 20


def test_ManyStreamsRunAtOnceFromManyThreads(machine):
    answers = {}

    def run(number):
        answers[number] = text(stream(machine, f"sleep 0.1; echo {number}"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {number: f"{number}\n" for number in range(12)}


def test_AChildThatKeepsTheOutputOpenDoesNotHoldUpTheExit(machine):
    began = time.monotonic()
    events = list(stream(machine, "sleep 251 & echo done"))
    assert events[-1] == {"kind": "exit", "exit_code": 0} and text(events) == "done\n"
    assert time.monotonic() - began < 60
    machine.exec(["pkill", "-f", "[s]leep 251"])


def test_DeletingTheMachineDuringACommandIsAnErrorEventAndNoExit(home):
    made = smol.Machine.create(smol.MachineConfig(persistent=True))
    running = stream(made, "echo up; exec sleep 300")
    next(running)
    smol.Machine.open(made.name).delete()
    rest = list(running)
    assert [event["kind"] for event in rest] == ["error"]
    assert made.state() != "running"
    made.delete()


def test_StoppingTheMachineDuringACommandInterruptsIt(home):
    with smol.Machine.create(smol.MachineConfig(persistent=True)) as made:
        running = stream(made, "echo up; exec sleep 300")
        next(running)
        made.stop()
        [event] = running
        assert event["kind"] == "error" and event["message"].startswith("[INTERRUPTED] ")
        [event] = made.exec_stream(["true"])
        assert event["message"].startswith("[INVALID_STATE] ")
