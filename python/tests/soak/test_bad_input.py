"""Arguments that can never be right: typed errors at once, nothing started, nothing left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holt
from footprint import machine_folders

# No boot is waited for, and no deadline. A busy host pauses a process for seconds all the same.
AT_ONCE_SECONDS = 15


def refused(call: Callable[[], object]) -> Exception:
    """The exception of `call`, which must come at once and leave no machine."""
    before, begin = machine_folders(), time.monotonic()
    with pytest.raises(Exception) as caught:
        call()
    assert time.monotonic() - begin < AT_ONCE_SECONDS
    assert machine_folders() == before
    return caught.value


class Number:
    """An integer of a library, such as numpy's."""

    def __index__(self) -> int:
        return 0


WRONG_TYPES: list[dict[str, Any]] = [
    {"name": 7},
    {"name": b"bytes"},
    {"image": Path("/image")},
    {"cpus": "2"},
    {"cpus": 2.0},
    {"cpus": True},
    {"memory_mb": None},
    {"memory_mb": "1G"},
    {"disk_gb": 20.5},
    {"allow_hosts": "example.com"},
    {"env": ["A=1"]},
    {"env": {"A": 1}},
    {"env": {1: "A"}},
    {"working_dir": 3},
    {"user": 1000},
    {"make_dirs": "/workspace"},
    {"labels": {"a": 1}},
    {"persistent": "no"},
    {"persistent": 1},
    {"idle_stop": "15m"},
    {"idle_stop": True},
    {"timeout": "10"},
    {"on_progress": "yes"},
    {"host": "/home"},
    {"require_kvm": 1},
]
WRONG_VALUES: list[dict[str, Any]] = [
    {"cpus": 0},
    {"cpus": -1},
    {"cpus": 256},
    {"cpus": Number()},
    {"cpus": 2**70},
    {"memory_mb": 0},
    {"memory_mb": 1},
    {"memory_mb": 2**40},  # 1 EiB
    {"disk_gb": 0},
    {"disk_gb": 2**50},
    {"name": ""},
    {"name": "a/b"},
    {"name": ".."},
    {"name": "a b"},
    {"name": "a\0b"},
    {"name": "-a"},
    {"name": "ü"},
    {"name": "\udcff"},
    {"name": "a" * 300},
    {"env": {"A=B": "1"}},
    {"env": {"": "1"}},
    {"env": {"A": "1\0"}},
    {"working_dir": "a\0b"},
    {"working_dir": ""},
    {"labels": {"a": "\0"}},
    {"idle_stop": -1},
    {"idle_stop": float("nan")},
    {"timeout": 0},
    {"timeout": float("inf")},
    {"network": "public"},
    {"owner_end": "perhaps"},
]


def shown(arguments: dict[str, Any]) -> str:
    return ascii(arguments)[:60]


@pytest.mark.parametrize("arguments", WRONG_TYPES, ids=shown)
def test_front_25_wrong_types_at_create_are_type_errors(arguments: dict[str, Any]) -> None:
    refusal = refused(lambda: holt.Machine.create(**{"persistent": False} | arguments))
    assert type(refusal) is TypeError
    assert next(iter(arguments)) in str(refusal)


@pytest.mark.parametrize("arguments", WRONG_VALUES, ids=shown)
def test_front_25_impossible_values_at_create_are_invalid_config(arguments: dict[str, Any]) -> None:
    refusal = refused(lambda: holt.Machine.create(**{"persistent": False} | arguments))
    assert isinstance(refusal, holt.InvalidConfigError)
    assert isinstance(refusal, ValueError)
    assert next(iter(arguments)) in str(refusal)


def test_front_25_a_tebibyte_of_memory_is_refused_by_code_and_leaves_nothing() -> None:
    """Within what the type allows, and more than this host has: no boot may be tried in hope."""
    before = machine_folders()
    with pytest.raises(holt.Error) as caught:
        holt.Machine.create(persistent=False, memory_mb=2**20, timeout=60)
    assert caught.value.code in {"INVALID_CONFIG", "LIMIT_EXCEEDED", "NOT_SUPPORTED", "STORAGE_FULL"}, caught.value
    assert "memory" in str(caught.value).lower()
    assert machine_folders() == before


BAD_COMMANDS: list[tuple[Any, dict[str, Any], type[Exception]]] = [
    ("true", {}, TypeError),
    (b"true", {}, TypeError),
    (["true"], {"shell": True}, TypeError),
    (["true", 1], {}, TypeError),
    (["true", None], {}, TypeError),
    (None, {}, TypeError),
    ({"true"}, {}, TypeError),
    (["true"], {"shell": "yes"}, TypeError),
    (["true"], {"env": "A=1"}, TypeError),
    (["true"], {"stdin": 7}, TypeError),
    (["true"], {"timeout": "1"}, TypeError),
    (["true"], {"user": 0}, TypeError),
    (["true"], {"output_limit": 1.5}, TypeError),
    ([], {}, holt.InvalidConfigError),
    ([""], {}, holt.InvalidConfigError),
    (["echo", "a\0b"], {}, holt.InvalidConfigError),
    ([b"echo", b"\0"], {}, holt.InvalidConfigError),
    (["echo", "\ud800"], {}, holt.InvalidConfigError),
    ("echo \0", {"shell": True}, holt.InvalidConfigError),
    ("", {"shell": True}, holt.InvalidConfigError),
    (["true"], {"timeout": 0}, holt.InvalidConfigError),
    (["true"], {"timeout": -1}, holt.InvalidConfigError),
    (["true"], {"timeout": float("nan")}, holt.InvalidConfigError),
    (["true"], {"env": {"A": "\0"}}, holt.InvalidConfigError),
    (["true"], {"env": {"A=": ""}}, holt.InvalidConfigError),
    (["true"], {"working_dir": ""}, holt.InvalidConfigError),
    (["true"], {"output_limit": -1}, holt.InvalidConfigError),
]


@pytest.mark.parametrize(("command", "options", "wanted"), BAD_COMMANDS, ids=lambda value: ascii(value)[:40])
def test_front_25_bad_commands_are_refused_before_anything_starts(
    machine: holt.Machine, command: Any, options: dict[str, Any], wanted: type[Exception]
) -> None:
    assert isinstance(refused(lambda: machine.exec(command, **options)), wanted)
    assert isinstance(refused(lambda: asyncio.run(holt.AsyncMachine(machine).exec(command, **options))), wanted)
    options = {name: value for name, value in options.items() if name != "output_limit"}
    if options or not isinstance(command, list) or command != ["true"]:
        assert isinstance(refused(lambda: machine.exec_stream(command, **options)), wanted)


def test_front_25_unknown_users_and_folders_are_typed_errors(machine: holt.Machine) -> None:
    with pytest.raises(holt.Error) as caught:
        machine.exec(["true"], user="nobody-of-that-name")
    assert caught.value.code in {"NOT_FOUND", "INVALID_CONFIG"}
    assert "nobody-of-that-name" in str(caught.value)
    with pytest.raises(holt.NotFoundError):
        machine.exec(["true"], working_dir="/no/such/folder")
    with pytest.raises(holt.NotFoundError):
        machine.read_file("/no/such/file")
    assert machine.exec(["no-such-program"]).returncode == 127
    assert machine.exec(["/etc/passwd"]).returncode == 126


@pytest.mark.parametrize("close", ["kill", "close", "with"])
def test_front_25_closed_streams_yield_nothing_and_take_nothing(machine: holt.Machine, close: str) -> None:
    stream = machine.exec_stream(["cat"], stdin="pipe")
    if close == "with":
        with stream:
            pass
    else:
        getattr(stream, close)()
        getattr(stream, close)()
    assert next(stream, None) is None
    assert list(stream) == []
    for use in (
        lambda: stream.write(b"late"),
        stream.close_stdin,
        lambda: stream.signal(15),
        lambda: stream.resize(24, 80),
    ):
        refusal = refused(use)
        assert isinstance(refusal, holt.InvalidStateError) and "closed" in str(refusal)
    with pytest.raises(TypeError):
        stream.write("text")  # type: ignore[arg-type]


def test_front_25_closed_streams_of_event_loops_do_so_too(machine: holt.Machine) -> None:
    async def use() -> None:
        stream = holt.AsyncMachine(machine).exec_stream(["cat"], stdin="pipe")
        await stream.aclose()
        assert await stream.next() is None
        for late in (stream.write(b"late"), stream.close_stdin(), stream.signal(15), stream.resize(24, 80)):
            with pytest.raises(holt.InvalidStateError, match="closed"):
                await late

    asyncio.run(asyncio.wait_for(use(), 60))


def test_front_25_streams_of_ended_commands_take_input_quietly(machine: holt.Machine) -> None:
    """Nobody can know that a command ends before its input comes."""
    stream = machine.exec_stream(["true"], stdin="pipe")
    assert [event.kind for event in stream] == ["exit"]
    stream.write(b"late")
    stream.close_stdin()
    stream.signal(15)
    stream.kill()
    assert list(stream) == []


def test_use_after_delete_is_not_found(nothing_left: None) -> None:
    machine = holt.Machine.create(persistent=False)
    stream = machine.exec_stream(["sleep", "1000"])
    machine.remove(force=True)
    uses: list[Callable[[], object]] = [
        lambda: machine.exec(["true"]),
        lambda: machine.exec_stream(["true"]).next(),
        lambda: machine.read_file("/etc/passwd"),
        lambda: machine.write_file("/root/x", b""),
        lambda: machine.list_dir("/"),
        machine.info,
        machine.state,
        machine.stop,
        machine.start,
        machine.ping,
        machine.remove,
        lambda: asyncio.run(holt.AsyncMachine(machine).exec(["true"])),
    ]
    for number, use in enumerate(uses):
        begin = time.monotonic()
        with pytest.raises(holt.NotFoundError):
            use()
            raise AssertionError(f"use {number} worked")
        assert time.monotonic() - begin < 15
    with pytest.raises(holt.Error) as caught:
        stream.next(timeout=10)
    assert caught.value.code in {"OUTCOME_UNKNOWN", "GUEST_LOST", "NOT_FOUND"}
