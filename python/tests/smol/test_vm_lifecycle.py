"""The life of a machine (spec sections 4, 6, 7 and 9)."""

import threading
import time

import holt
import pytest
import smol

KEPT = {"persistent": True}


def test_WhatWasWrittenIsThereAfterAStopAndAStart(home, name):
    with smol.Machine.create(smol.MachineConfig(name=name, **KEPT)) as made:
        made.write_file("/root/kept", b"k")
        made.stop()
        assert made.state() == "stopped"
        made.start()
        assert made.state() == "running"
        assert made.read_file("/root/kept") == b"k"


def test_AnEphemeralMachineToo(home, name):
    with smol.Machine.create(smol.MachineConfig(name=name)) as made:
        made.write_file("/root/kept", b"k")
        made.stop()
        made.start()
        assert made.read_file("/root/kept") == b"k"


def test_AStoppedMachineIsFoundByNameAndBooted(home, name):
    smol.Machine.create(smol.MachineConfig(name=name, **KEPT)).stop()
    again = smol.Machine.connect(name, smol.ConnectOptions(target="local"))
    assert again.info()["state"] == "running"
    assert again.exec(["echo", "up"]).stdout == "up\n"
    assert again.state() == "running"
    again.delete()


def test_ASecondHandleUsesTheSameMachine(machine):
    other = smol.Machine.connect(machine.id)
    other.write_file("/tmp/shared", b"s")
    assert machine.read_file("/tmp/shared") == b"s"


def test_ATakenNameIsAConflict(machine):
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.create(smol.MachineConfig(name=machine.name))
    assert caught.value.code == "CONFLICT"
    assert machine.state() == "running"


def test_AnUnknownImageIsNotFoundAndLeavesNothing(home, name):
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.create(smol.MachineConfig(name=name, image="sha256:" + 64 * "0"))
    assert caught.value.code == "NOT_FOUND"
    assert name not in [machine.name for machine in smol.Machine.list()]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    ("wrong", "code"),
    [({"ready_timeout_seconds": 0.001}, "TIMEOUT"), ({"command": ["true"], "user": "no-such"}, "NOT_FOUND")],
    ids=["too-little-time", "workload-that-cannot-start"],
)
def test_ACreateThatFailsOnTheWayLeavesNothing(home, name, persistent, wrong, code):
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.create(smol.MachineConfig(name=name, persistent=persistent, **wrong))
    assert caught.value.code == code
    assert name not in [machine.name for machine in smol.Machine.list()]
    assert not (home / "state/machines" / name).exists()


@pytest.mark.parametrize(
    "resources",
    [smol.ResourceSpec(cpus=0), smol.ResourceSpec(memory_mb=1 << 20), smol.ResourceSpec(storage_gb=1 << 20)],
)
def test_ImpossibleSizesAreRefusedAtOnce(home, name, resources):
    began = time.monotonic()
    with pytest.raises(smol.InvalidConfigError):
        smol.Machine.create(smol.MachineConfig(name=name, resources=resources))
    assert time.monotonic() - began < 15
    assert name not in [machine.name for machine in smol.Machine.list()]


def test_AHostWithoutTheEngineSaysSoAtOnce(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLT_HOME", str(tmp_path))
    assert smol.local_availability()[:2] == (False, "RUNTIME_NOT_INSTALLED")
    began = time.monotonic()
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.create()
    assert caught.value.code == "RUNTIME_NOT_INSTALLED"
    assert time.monotonic() - began < 15
    assert smol.Machine.list() == []


def test_AHostWithoutKvmIsRefusedAtOnceWhereKvmIsWanted(home, name, monkeypatch):
    with smol.Machine.create(smol.MachineConfig(name=name, **KEPT)) as made:
        if made.info()["accelerator"] == "kvm":
            pytest.skip("KVM works on this host")
        made.stop()
        monkeypatch.setenv("HOLT_ACCELERATOR", "kvm")
        available, code, reason = smol.local_availability()
        assert (available, code) == (False, "KVM_UNAVAILABLE") and reason
        for use in (smol.Machine.create, lambda: smol.Machine.connect(name)):
            began = time.monotonic()
            with pytest.raises(smol.SmolError) as caught:
                use()
            assert caught.value.code == "KVM_UNAVAILABLE"
            assert time.monotonic() - began < 15
        assert made.state() == "stopped"


def test_SizesVariablesFolderAndLabelsAreThoseAsked(home, name):
    config = smol.MachineConfig(
        name=name,
        resources=smol.ResourceSpec(cpus=1, memory_mb=512, storage_gb=25),
        env={"FROM": "config"},
        workdir="/srv/made",
        labels={"task": "t 1"},
    )
    with smol.Machine.create(config) as made:
        result = made.exec(["sh", "-c", "echo $FROM $PWD $(nproc)"])
        assert result.stdout == "config /srv/made 1\n"
        [summary] = smol.Machine.list(labels={"task": "t 1"})
        assert (summary.name, summary.state, summary.labels) == (name, "running", {"task": "t 1"})
        assert summary.resources == smol.MachineSizes(1, 512, 25)
        assert not summary.persistent and summary.created_at.endswith("+00:00") and summary.pid
        facts = made.info()
        assert facts["env"] == ["FROM"] and facts["workdir"] == "/srv/made" and "config" not in str(facts)


def test_DeleteDuringACommandIsPromptAndTheMachineIsGone(home, name):
    made = smol.Machine.create(smol.MachineConfig(name=name, **KEPT))
    events = made.exec_stream(["sh", "-c", "echo up; exec sleep 300"])
    next(events)
    began = time.monotonic()
    made.delete()
    [error] = events
    assert error["kind"] == "error" and time.monotonic() - began < 60
    assert made.state() == "stopped"
    with pytest.raises(smol.SmolError) as caught:
        made.exec(["true"])
    assert caught.value.code == "NOT_FOUND"
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.connect(name)
    assert caught.value.code == "NOT_FOUND"


def test_AStopInterruptsACommandAndADrainWaitsForIt(home, name):
    with smol.Machine.create(smol.MachineConfig(name=name, **KEPT)) as made:
        assert stop_during(made, "sleep 300") == "INTERRUPTED"
        made.start()
        assert stop_during(made, "sleep 1; echo whole", drain_secs=30) == "whole\n"


def stop_during(machine, script, **how):
    """What a command gives whose machine is stopped while it runs."""
    answer = []

    def run():
        try:
            answer.append(machine.exec(["sh", "-c", f"touch /tmp/up; {script}"]).stdout)
        except smol.SmolError as error:
            answer.append(error.code)

    machine.exec(["rm", "-f", "/tmp/up"])
    runner = threading.Thread(target=run)
    runner.start()
    while not machine.exec(["test", "-e", "/tmp/up"]).success:
        time.sleep(0.05)
    machine.stop(**how)
    runner.join(60)
    return answer[0]


def test_PauseKeepsMemoryAndDisk(home, name):
    with smol.Machine.create(smol.MachineConfig(name=name, **KEPT)) as made:
        background = made.exec(["sleep", "300"], smol.ExecOptions(background=True))
        made.pause()
        assert made.state() == "paused"
        with pytest.raises(smol.SmolError):
            made.exec(["true"])
        made.resume()
        assert made.state() == "running"
        assert made.exec(["test", "-d", f"/proc/{background.pid}"]).success


def test_ResizeGrowsAndReports(home, name):
    with smol.Machine.create(smol.MachineConfig(name=name, **KEPT)) as made:
        assert made.resize(storage_gb=30).storage_gb == 30
        assert made.info()["storage_gb"] == 30
        for bad in ({"storage_gb": 5}, {"cpus": 0}, {"cpus": 1}, {"memory_mb": 512}):
            with pytest.raises(smol.SmolError):
                made.resize(**bad)
        made.stop()
        with pytest.raises(smol.SmolError) as caught:
            made.resize(storage_gb=40)
        assert caught.value.code == "CONFLICT"


def test_TheWorkloadRunsFromEachStartOn(home, name):
    config = smol.MachineConfig(
        name=name, command=["sh", "-c", "echo started >> /root/log; exec sleep 300"], **KEPT
    )
    with smol.Machine.create(config) as made:
        wait_for_lines(made, 1)
        made.stop()
        made.start()
        wait_for_lines(made, 2)


@pytest.mark.parametrize(("timeout_secs", "ended"), [(60, "in peace\n"), (0, "")])
def test_AStopAsksTheWorkloadToEndAndGivesItsTime(home, name, timeout_secs, ended):
    """Its answer takes longer than a kill at once leaves it."""
    script = (
        "trap 'sleep 3; echo in peace > /root/end; exit' TERM; : > /root/end; echo started >> /root/log; "
        "while :; do sleep 0.1; done"
    )
    config = smol.MachineConfig(name=name, command=["sh", "-c", script], **KEPT)
    with smol.Machine.create(config) as made:
        wait_for_lines(made, 1)
        made.stop(timeout_secs=timeout_secs)
        # From here on it needs no workload of its own.
        with holt.Machine.connect(name) as again:
            assert again.read_file("/root/end").decode() == ended


def wait_for_lines(machine, count):
    deadline = time.monotonic() + 60
    while machine.exec(["sh", "-c", "wc -l < /root/log"]).stdout.strip() != str(count):
        assert time.monotonic() < deadline, "the workload has run"
        time.sleep(0.1)


def test_AMachineIsStoppedWhenIdle(home, name):
    with smol.Machine.create(smol.MachineConfig(name=name, auto_stop_seconds=1, **KEPT)):
        wait_until(lambda: states()[name] == "stopped", "it is stopped when idle")


def test_AMachineIsDeletedWhenItsTimeIsUp(home, name):
    """The engine is asked: looking for a machine through this module deletes it as well."""
    made = smol.Machine.create(smol.MachineConfig(name=name, ttl_seconds=3, **KEPT))
    wait_until(lambda: name not in states(), "it is deleted when its time is up")
    made.delete()


def states():
    return {info.name: info.state for info in holt.Machine.list()}


def wait_until(condition, promise):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, promise
        time.sleep(0.1)


def test_LogsAreTheLastLinesOfTheConsole(machine):
    machine.exec(["sh", "-c", "for n in 1 2 3; do echo line $n > /dev/console; done"]).assert_success()
    wait_until(lambda: "line 3" in machine.logs(), "what is written to the console is in the logs")
    assert machine.logs(tail=0) == ""
    assert len(machine.logs(tail=2).splitlines()) == 2
    assert machine.logs(tail=2) != machine.logs()


def test_ImagesAreThoseOfTheHostsStore(machine):
    images = machine.list_images()
    default = next(image for image in images if image.reference.startswith("holt/default"))
    assert (default.os, default.architecture) == ("linux", "amd64") and default.size > 0
    assert machine.pull_image(default.reference) == default
    with pytest.raises(smol.SmolError) as caught:
        machine.pull_image("sha256:" + 64 * "0")
    assert caught.value.code == "NOT_FOUND"


def test_ReadyIsRunning(machine):
    assert machine.ready()
    machine.wait_until_ready(timeout_s=1)


def test_TwoMachinesStartAndRunAtOnce(home):
    names = []

    def run():
        with smol.Machine.create() as made:
            names.append(made.exec(["hostname"]).stdout.strip())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(set(names)) == 2 and all(name.startswith("smol-") for name in names)
