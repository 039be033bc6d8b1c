"""Machines from Python: made, found, changed, ended."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers import until

import holt


def test_info_says_what_was_asked_for_and_no_values_of_the_environment(machine: holt.Machine) -> None:
    info = machine.info()
    assert (info.name, info.state, info.persistent) == (machine.name, "running", False)
    assert (info.cpus, info.memory_mb, info.disk_gb, info.network) == (2, 1024, 20, "none")
    assert info.labels == {"suite": "holt"}
    assert info.env_names == ("FROM_MACHINE",) and "yes" not in repr(info)
    assert info.image.startswith("holt/default") and info.digest.startswith("sha256:")
    assert info.accelerator in ("kvm", "tcg") and info.isolation == ("hardware" if info.accelerator == "kvm" else "none")
    assert info.created_at <= (info.started_at or info.created_at) <= datetime.now(UTC)
    assert info.boot_kind in ("restore", "cold") and info.boot_time and info.boot_time > 0
    assert machine.exec(["printenv", "FROM_MACHINE"]).text == "yes\n"


def test_list_finds_by_labels(machine: holt.Machine) -> None:
    def found(labels: dict[str, str] | None) -> bool:
        return machine.name in [info.name for info in holt.Machine.list(labels)]

    assert found(None) and found({"suite": "holt"}) and found({})
    assert not found({"suite": "other"}) and not found({"suite": "holt", "more": ""})


def test_a_machine_keeps_its_files_over_stop_and_start(own: holt.Machine) -> None:
    own.write_file("/root/kept", b"kept")
    own.stop()
    assert own.state() == "stopped"
    with pytest.raises(holt.InvalidStateError) as refused:
        own.exec(["true"])
    assert refused.value.retryable
    same = holt.Machine.connect(own.name)
    assert same.read_file("/root/kept") == b"kept"
    assert [event.kind for event in own.events()].count("started") == 2


def test_use_after_remove_says_not_found(own: holt.Machine) -> None:
    stream = own.exec_stream(["sleep", "300"])
    with pytest.raises(holt.ConflictError):
        own.remove()
    own.remove(force=True)
    with pytest.raises(holt.Error) as lost:
        list(stream)
    assert lost.value.code in ("OUTCOME_UNKNOWN", "GUEST_LOST")
    for call in (own.state, own.info, own.start, own.stop, own.remove, own.ping, lambda: own.exec(["true"]),
                 lambda: own.read_file("/x"), lambda: holt.Machine.open(own.name)):  # fmt: skip
        with pytest.raises(holt.NotFoundError):
            call()


def test_define_boots_nothing_and_start_boots_it(home: Path) -> None:
    made = holt.Machine.define(labels={"made": "by define"}, make_dirs=["/srv/made"])
    try:
        assert made.state() == "created"
        with pytest.raises(holt.ConflictError):
            holt.Machine.define(made.name)
        steps: list[tuple[str, str]] = []
        made.start(on_progress=lambda word, text: steps.append((word, text)))
        assert made.exec(["test", "-d", "/srv/made"]).success
        assert "booting" in [word for word, _ in steps]
    finally:
        made.remove(force=True)


def test_a_machine_pauses_suspends_resumes_and_changes(own: holt.Machine) -> None:
    beside = own.start_command("while :; do date +%s%N > /root/tick; sleep 0.05; done", shell=True)
    own.pause()
    assert own.state() == "paused"
    own.resume()
    assert own.state() == "running"
    own.suspend()
    assert own.state() == "suspended" and own.info().suspended_bytes > 0
    own.resume()
    assert [command.id for command in own.commands() if command.running] == [beside.id]
    assert own.resize(disk_gb=21, cpus=1) == holt.Resources(cpus=1, memory_mb=1024, disk_gb=21)
    with pytest.raises(holt.NotSupportedError):
        own.resize(disk_gb=5)
    own.update(labels={"a": "1", "b": "2"})
    own.update(labels={"a": None}, idle_stop=3600)
    assert own.info().labels == {"b": "2"}
    assert own.wait("ready", timeout=10).state == "running"
    stats = own.stats()
    assert stats.guest_answered and stats.processes >= 1 and stats.memory_used > 0
    own.stop()
    assert own.wait(timeout=10).state == "stopped"
    with pytest.raises(holt.InvalidStateError):
        own.stats()
    with pytest.raises(holt.InvalidStateError):
        own.suspend()


def test_waiting_ends_at_its_timeout(machine: holt.Machine) -> None:
    with pytest.raises(holt.TimeoutError):
        machine.wait("ended", timeout=0.2)


def test_an_unknown_image_leaves_nothing(home: Path) -> None:
    with pytest.raises(holt.NotFoundError):
        holt.Machine.create("no-image", image="localhost/no/such:image", pull="never")
    with pytest.raises(holt.NotFoundError):
        holt.Machine.open("no-image")


def test_kvm_is_refused_where_it_is_not_proved(home: Path, machine: holt.Machine) -> None:
    if machine.info().accelerator == "kvm":
        pytest.skip("KVM works here")
    with pytest.raises(holt.KvmUnavailableError):
        holt.Machine.create(require_kvm=True)
    with pytest.raises(holt.KvmUnavailableError):
        holt.Machine.create(host=holt.HostOptions(accelerator="kvm"))


def test_console_log_has_what_was_written_to_the_console(machine: holt.Machine) -> None:
    assert machine.exec("echo seen on the console > /dev/console", shell=True).success
    until(lambda: "seen on the console" in machine.console_log())


def test_context_leaves_a_persistent_machine_alone(own: holt.Machine) -> None:
    with own as same:
        assert same is own
    assert own.state() == "running"


def test_one_object_serves_many_threads(machine: holt.Machine) -> None:
    answers: dict[int, str] = {}

    def ask(number: int) -> None:
        answers[number] = machine.exec(["echo", str(number)]).text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {number: f"{number}\n" for number in range(12)}
