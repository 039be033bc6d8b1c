"""What a handle does by itself over the engine: states, first uses, endings (spec sections 4 and 7)."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest
import smol
from fake_engine import Engine, Error
from smol import _engine, _lifetime, _local
from smol import machine as machine_module
from smol._note import LABEL, Note, this_process

LOCAL = smol.ConnectOptions(target="local")


@pytest.fixture
def engine(monkeypatch):
    fake = Engine()
    for module in (_engine, _local, machine_module):
        monkeypatch.setattr(module, "engine", lambda: fake)
    monkeypatch.setattr(_lifetime, "_owned", {})
    monkeypatch.setattr(_lifetime, "_kept", {})
    monkeypatch.delenv("SMOL_CLOUD_TOKEN", raising=False)
    return fake


def create(**config):
    return smol.Machine.create(smol.MachineConfig(**config), LOCAL)


@pytest.mark.parametrize(
    ("engine_state", "shown"),
    [
        ("created", "stopped"),
        ("starting", "stopped"),
        ("running", "running"),
        ("paused", "paused"),
        ("suspended", "paused"),
        ("stopping", "stopped"),
        ("stopped", "stopped"),
        ("failed", "stopped"),
    ],
)
def test_EngineStatesAreShownAsTheOnesOfTheModule(engine, engine_state, shown):
    engine.add("m", engine_state)
    assert smol.Machine.open("m", LOCAL).state() == shown


def test_CreateBootsAndIdIsTheName(engine):
    machine = create(name="m")
    assert (machine.id, machine.name, machine.state()) == ("m", "m", "running")
    assert machine.ready()


def test_ATakenNameIsAConflictAndTheOtherMachineStays(engine):
    engine.add("m", "running")
    with pytest.raises(smol.SmolError) as caught:
        create(name="m")
    assert caught.value.code == "CONFLICT"
    assert engine.machines["m"].state == "running"


@pytest.mark.parametrize("find", [smol.Machine.connect, smol.Machine.open])
@pytest.mark.parametrize("name", ["unknown", "../x", "", "a b"])
def test_AnUnknownNameIsNotFound(engine, find, name):
    with pytest.raises(smol.SmolError) as caught:
        find(name, LOCAL)
    assert caught.value.code == "NOT_FOUND"


def test_OpenNeitherBootsNorWaits(engine):
    engine.add("m")
    machine = smol.Machine.open("m", LOCAL)
    assert machine.state() == "stopped"
    assert engine.boots == []


def test_DeletingAStoppedMachineNeedsNoBoot(engine):
    engine.add("m")
    smol.Machine.open("m", LOCAL).delete()
    assert engine.boots == []
    assert engine.machines == {}


def test_ConnectBootsSoThatNoCommandsTimeIsUsedUp(engine):
    engine.add("m")
    machine = smol.Machine.connect("m", LOCAL)
    assert engine.boots == [("m", "stop")]
    assert machine.state() == "running"
    machine.exec_stream(["true"])
    assert len(engine.boots) == 1


def test_AConnectedMachineThatSomebodyStopsIsNotBootedAgain(engine):
    engine.add("m", "running")
    machine = smol.Machine.connect("m", LOCAL)
    engine.machines["m"].state = "stopped"
    assert machine.state() == "stopped"
    assert list(machine.exec_stream(["true"]))[0]["message"].startswith("[INVALID_STATE] ")
    assert engine.boots == []


@pytest.mark.parametrize("state", ["running", "paused", "suspended"])
def test_ConnectLeavesRunningAndPausedMachinesAsTheyAre(engine, state):
    engine.add("m", state)
    machine = smol.Machine.connect("m", LOCAL)
    machine.state()
    assert engine.boots == []


@pytest.mark.parametrize("code", ["KVM_UNAVAILABLE", "HYPERVISOR_UNAVAILABLE", "TIMEOUT"])
def test_ABootThatFailsIsToldByConnectInItsCode(engine, code):
    engine.add("m")
    engine.refuse_boots = Error(code, "no VMM")
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.connect("m", LOCAL)
    assert (caught.value.code, str(caught.value)) == (code, "no VMM")
    engine.refuse_boots = None
    assert smol.Machine.connect("m", LOCAL).state() == "running"


def behind(barrier, find):
    """``find``, whose callers go on together."""

    def found(name):
        answer = find(name)
        barrier.wait(60)
        return answer

    return found


def test_ManyConnectsShareOneBootAndOneWorkload(engine, monkeypatch):
    engine.add("m", labels={LABEL: Note(command=["serve"]).encode()})
    engine.boot_goes_on.clear()
    looked = threading.Barrier(11)
    monkeypatch.setattr(_local.LocalMachine, "_find", behind(looked, _local.LocalMachine._find))
    threads = [threading.Thread(target=smol.Machine.connect, args=("m", LOCAL)) for _ in range(10)]
    for thread in threads:
        thread.start()
    looked.wait(60)  # all have seen it stopped
    assert engine.boot_begun.wait(60)
    assert not engine.boots_overlap.wait(0.2)
    engine.boot_goes_on.set()
    for thread in threads:
        thread.join(60)
    assert len(engine.boots) == 1
    assert engine.workloads == [["serve"]]


def test_TwoProcessesThatBootOneMachineStartOneWorkload(engine, monkeypatch):
    """What a process has for itself, its Activity, stands for it."""
    engine.add("m", labels={LABEL: Note(command=["serve"]).encode()})
    monkeypatch.setattr(_lifetime, "activity_of", lambda _: _lifetime.Activity())
    engine.boot_goes_on.clear()
    threads = [threading.Thread(target=smol.Machine.connect, args=("m", LOCAL)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert engine.boots_overlap.wait(60)  # both have seen it stopped
    engine.boot_goes_on.set()
    for thread in threads:
        thread.join(60)
    assert engine.workloads == [["serve"]]


def test_AMachineIsDeletedWhileItBoots(engine):
    """The boot holds up neither deleting nor asking for the state."""
    engine.add("m")
    engine.boot_goes_on.clear()
    failures = []

    def connect():
        try:
            smol.Machine.connect("m", LOCAL)
        except smol.SmolError as error:
            failures.append(error.code)

    connecting = threading.Thread(target=connect)
    connecting.start()
    assert engine.boot_begun.wait(60)
    other = smol.Machine.open("m", LOCAL)
    assert other.state() == "stopped"
    other.delete()
    engine.boot_goes_on.set()
    connecting.join(60)
    assert failures == ["NOT_FOUND"] and engine.machines == {}


def test_ADeletedMachineIsStoppedForItsOldHandleAndDeletingAgainIsQuiet(engine):
    machine, other = create(name="m"), smol.Machine.open("m", LOCAL)
    machine.delete()
    machine.delete()
    other.delete()
    assert machine.state() == other.state() == "stopped"
    with pytest.raises(smol.SmolError) as caught:
        machine.exec(["true"])
    assert caught.value.code == "NOT_FOUND"


def test_AnOldHandleLeavesALaterMachineOfTheSameNameAlone(engine):
    old = create(name="m")
    old.delete()
    create(name="m")
    old.delete()
    assert old.state() == "stopped"
    assert engine.machines["m"].state == "running"


def test_DeleteByNameIsQuietWhenThereIsNone(engine):
    engine.add("m")
    smol.Machine.delete_by_name("m", LOCAL)
    smol.Machine.delete_by_name("m", LOCAL)
    assert engine.boots == [] and engine.machines == {}


def test_StoppingAStoppedMachineIsANoOp(engine):
    machine = create(name="m", persistent=True)
    machine.stop()
    machine.stop()
    machine.start()
    assert machine.state() == "running"


@pytest.mark.parametrize(("asked", "given"), [(None, 10.0), (0, 0.001), (2.5, 2.5), (90, 90)])
def test_AStopGivesWhatRunsTheTimeThatWasAsked(engine, asked, given):
    create(name="m", persistent=True, command=["serve"]).stop(timeout_secs=asked)
    assert engine.graces == [given]


def test_LeavingAWithBlockDeletes(engine):
    with create(name="m", persistent=True):
        pass
    assert engine.machines == {}


def test_PauseAndResumeWantTheRightState(engine):
    machine = create(name="m", persistent=True)
    with pytest.raises(smol.SmolError) as caught:
        machine.resume()
    assert caught.value.code == "CONFLICT"
    machine.pause()
    assert machine.state() == "paused"
    with pytest.raises(smol.SmolError) as caught:
        machine.pause()
    assert caught.value.code == "CONFLICT"
    machine.resume()
    assert machine.state() == "running"


def test_WaitingForAMachineThatDoesNotRunTimesOut(engine):
    engine.add("m")
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.open("m", LOCAL).wait_until_ready(timeout_s=0.02, interval_s=0.01)
    assert caught.value.code == "TIMEOUT"


def test_MachinesOfThisProcessEndWithIt(engine):
    create(name="kept", persistent=True)
    create(name="gone")
    create(name="detached", detach=True)
    create(name="stopped", persistent=True).stop()
    create(name="gone-too").stop()
    assert sorted(_lifetime.owned()) == ["gone", "gone-too", "kept"]
    _lifetime._end_all()
    assert {name: machine.state for name, machine in engine.machines.items()} == {
        "detached": "running",
        "kept": "stopped",
        "stopped": "stopped",
    }


def test_OneMachineThatCannotBeStoppedDoesNotKeepTheOthers(engine):
    create(name="a", persistent=True)
    create(name="b", persistent=True)
    del engine.machines["a"]
    _lifetime._end_all()
    assert engine.machines["b"].state == "stopped"


def test_TheEndOfAProcessLeavesALaterMachineOfTheSameNameAlone(engine):
    create(name="m")
    engine.machines.clear()
    engine.add("m", "running")
    _lifetime._end_all()
    assert engine.machines["m"].state == "running"


def test_TheExitHookLeavesAConnectedMachineToTheEngine(engine):
    engine.add("m")
    smol.Machine.connect("m", LOCAL)
    assert _lifetime.owned() == []
    assert list(_lifetime._kept) == ["m"]
    smol.Machine.open("m", LOCAL).delete()
    assert _lifetime._kept == {}


def test_DetachIsRememberedForLaterStarts(engine):
    create(name="m", detach=True).stop()
    engine.boots.clear()
    smol.Machine.open("m", LOCAL).start()
    assert engine.boots == [("m", "keep")]


def test_TheListShowsLabelsStatesAndSizes(engine):
    create(name="m", labels={"team": "a", "x": "1"}, persistent=True)
    engine.add("other", labels={"team": "b"})
    [one] = smol.Machine.list(labels={"team": "a"})
    assert one == smol.MachineSummary(
        id="m",
        name="m",
        state="running",
        labels={"team": "a", "x": "1"},
        image="holt/default:latest",
        created_at="2026-01-02T03:04:01+00:00",
        resources=smol.MachineSizes(2, 1024, 20),
        ports=[],
    )
    assert [machine.name for machine in smol.Machine.list()] == ["m", "other"]


def test_TheListIsLocalEvenWithACloudToken(engine, monkeypatch):
    monkeypatch.setenv("SMOL_CLOUD_TOKEN", "x")
    assert smol.Machine.list() == []


def test_MachinesThatNobodyCanWantAreSweptByTheList(engine):
    dead = Note(ephemeral=True, owner="1:0")
    alive = Note(ephemeral=True, owner=this_process())
    old = Note(expires_at=time.time() - 1)
    for name, note in (("dead", dead), ("alive", alive), ("old", old)):
        engine.add(name, labels={LABEL: note.encode()})
    engine.add("dead-but-running", "running", {LABEL: dead.encode()})
    assert [machine.name for machine in smol.Machine.list()] == ["alive", "dead-but-running"]


def test_AMachineThatAnotherProcessSweptFirstIsQuietlyLeftOut(engine):
    engine.add("old", labels={LABEL: Note(expires_at=time.time() - 1).encode()})
    infos = engine.Machine.list()
    del engine.machines["old"]
    assert _local.sweep(infos) == []


def test_AMachineIsDeletedWhenItsTimeIsUp(engine):
    gone = threading.Event()
    _lifetime.expire(time.time() + 0.02, gone.set)
    assert gone.wait(10)


def test_AStopLetsNothingNewInAndWaitsForWhatIsUnderWay():
    activity = _lifetime.Activity()
    assert activity.enter()
    closed = threading.Thread(target=activity.close, args=(10.0,))
    closed.start()
    while activity.enter():
        activity.leave()
    assert closed.is_alive()
    activity.leave()
    closed.join(10)
    assert not closed.is_alive()
    activity.reopen()
    assert activity.enter()


def test_TheWorkloadRunsOnceInEachLife(engine):
    machine = create(name="m", persistent=True, command=["serve"])
    machine.pause()
    machine.start()
    assert engine.workloads == [["serve"]]
    machine.stop()
    smol.Machine.connect("m", LOCAL)
    assert engine.workloads == [["serve"], ["serve"]]


@pytest.mark.parametrize("detach", [False, True])
def test_AMachineWhoseTimeIsUpIsDeletedUnlessItHasBeenReplaced(engine, monkeypatch, detach):
    timers = []
    monkeypatch.setattr(_lifetime, "expire", lambda _, end: timers.append(end))
    for name in ("kept", "gone"):
        create(name=name, detach=detach, ttl_seconds=5)
    del engine.machines["kept"]
    engine.add("kept", "running")
    for end in timers:
        end()
    assert list(engine.machines) == ["kept"]


def in_forked_child(use):
    """What ``use`` gives, or the code of its error, in a forked child, which must answer within its time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            answer = str(use())
        except smol.SmolError as error:
            answer = error.code
        except BaseException as error:
            answer = repr(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        answer = answers.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a use in a forked child hangs"
    return answer


@pytest.mark.parametrize("find", [smol.Machine.connect, smol.Machine.open])
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_AMachineWhoseTimeIsUpIsDeletedByWhoFindsIt(engine, find, state):
    engine.add("m", state, {LABEL: Note(expires_at=time.time() - 1).encode()})
    with pytest.raises(smol.SmolError) as caught:
        find("m", LOCAL)
    assert (caught.value.code, engine.boots, engine.machines) == ("NOT_FOUND", [], {})
    smol.Machine.delete_by_name("m", LOCAL)


def test_EachProcessThatStartsAMachineDeletesItWhenItsTimeIsUp(engine, monkeypatch):
    timers = []
    monkeypatch.setattr(_lifetime, "expire", lambda at, end: timers.append((at, end)))
    at = time.time() + 1000
    for name in ("connected", "started", "replaced"):
        engine.add(name, labels={LABEL: Note(expires_at=at).encode()})
    assert smol.Machine.open("connected", LOCAL).state() == "stopped"
    assert timers == [], "one that only looks has no part in it"
    smol.Machine.connect("connected", LOCAL)
    smol.Machine.connect("replaced", LOCAL)
    smol.Machine.connect("replaced", LOCAL)
    machine = smol.Machine.open("started", LOCAL)
    for _ in range(2):
        machine.start()
        machine.stop()
    assert [when for when, _ in timers] == [at] * 3, "once for each machine that this process has started"
    del engine.machines["replaced"]
    engine.add("replaced", "running")
    for _, end in timers:
        end()
    assert list(engine.machines) == ["replaced"]


@contextmanager
def held_by_another_thread(lock):
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    try:
        yield
    finally:
        done.set()
        holder.join(60)


@pytest.mark.parametrize("lock", ["booting", "_changed"])
def test_front_24_AForkedChildIsRefusedWhateverItsParentsThreadsWereDoing(engine, lock):
    machine = create(name="m", command=["serve"])
    stream = smol.ExecStream(iter([{"kind": "exit", "exit_code": 0}]), lambda: None)
    uses = [
        machine.state,
        machine.start,
        machine.stop,
        machine.pause,
        machine.delete,
        lambda: machine.exec(["true"]),
        lambda: machine.read_file("/x"),
        lambda: machine.engine,
    ]
    with held_by_another_thread(getattr(machine._t._activity, lock)), held_by_another_thread(stream._turn):
        assert [in_forked_child(use) for use in uses] == ["INVALID_STATE"] * len(uses)
        message = in_forked_child(lambda: next(machine.exec_stream(["true"]))["message"])
        assert message.startswith("[INVALID_STATE] ") and "fork" in message
        events = in_forked_child(lambda: [event["message"][:15] for event in stream])
        assert events == "['[INVALID_STATE]']"
        assert in_forked_child(machine._t.leave) == "None"
    with held_by_another_thread(stream._state):
        assert in_forked_child(stream.kill) == "None"
    assert list(stream) == [{"kind": "exit", "exit_code": 0}]
    assert machine.state() == "running"


def test_front_24_AForkDuringABootLeavesTheChildAClearRefusalAndTheParentItsBoot(engine):
    engine.add("m")
    machine = smol.Machine.open("m", LOCAL)
    engine.boot_goes_on.clear()
    booting = threading.Thread(target=machine.start)
    booting.start()
    assert engine.boot_begun.wait(60)
    assert [in_forked_child(use) for use in (machine.start, machine.state)] == ["INVALID_STATE"] * 2
    engine.boot_goes_on.set()
    booting.join(60)
    assert machine.state() == "running"


def test_ADrainEndsAfterItsTime():
    activity = _lifetime.Activity()
    activity.enter()
    began = time.monotonic()
    activity.close(0.05)
    assert 0.04 < time.monotonic() - began < 60
