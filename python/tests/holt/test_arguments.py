"""What is refused before anything starts, and what is taken; no machine is needed."""

from __future__ import annotations

import inspect
import os
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import holt
from holt import _arguments as check
from holt import _errors


class Whole:
    """An integer of a library, such as numpy's."""

    def __index__(self) -> int:
        return 4


def test_front_25_integers_of_libraries_are_integers_and_bools_are_none() -> None:
    assert check.integer("cpus", Whole(), 1, 32) == 4
    for wrong in (True, "2", 2.0, None, b"2"):
        with pytest.raises(TypeError, match="cpus must be an int"):
            check.integer("cpus", wrong, 1, 32)


@pytest.mark.parametrize("value, seconds", [(1, 1.0), (0.25, 0.25), (timedelta(minutes=2), 120.0), (None, None)])
def test_front_25_times_are_numbers_or_timedeltas(value: Any, seconds: float | None) -> None:
    assert check.seconds("timeout", value) == seconds


@pytest.mark.parametrize("value", [True, "1", b"1", [1], 1j])
def test_front_25_other_times_are_type_errors(value: Any) -> None:
    with pytest.raises(TypeError, match="timeout"):
        check.seconds("timeout", value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), timedelta(seconds=-1)])
def test_front_25_times_are_finite_and_above_zero(value: Any) -> None:
    with pytest.raises(holt.InvalidConfigError, match="timeout"):
        check.seconds("timeout", value)


def test_front_25_paths_are_text_bytes_or_pathlike() -> None:
    assert check.path("path", "/a/ü") == "/a/ü".encode()
    assert check.path("path", b"/a/\xff") == b"/a/\xff"
    assert check.path("path", Path("/a/b")) == b"/a/b"
    assert check.path("path", os.fsdecode(b"/a/\xff")) == b"/a/\xff"
    for wrong in (None, 7, ["/a"]):
        with pytest.raises(TypeError, match="path must be"):
            check.path("path", wrong)
    for bad in ("", "/a\0b", "/a/\ud800"):
        with pytest.raises(holt.InvalidConfigError, match="path"):
            check.path("path", bad)


def test_front_25_a_command_is_an_argv_or_a_script_and_never_guessed() -> None:
    assert check.command(["echo", b"\xff", "ü"], False) == [b"echo", b"\xff", "ü".encode()]
    assert check.command(("echo",), False) == [b"echo"]
    assert check.command("echo $HOME", True) == b"echo $HOME"
    for wrong, shell in (("echo", False), (["echo"], True), (["echo", 1], False), ({"echo"}, False), (None, False)):
        with pytest.raises(TypeError):
            check.command(wrong, shell)
    with pytest.raises(TypeError):
        check.command("true", 1)
    for bad, shell in (([], False), ([""], False), (["a\0b"], False), ("a\0b", True), ("", True), (["\udfff"], False)):
        with pytest.raises(holt.InvalidConfigError):
            check.command(bad, shell)


def test_values_of_an_environment_are_in_no_error() -> None:
    with pytest.raises(holt.InvalidConfigError) as caught:
        check.environment("env", {"TOKEN": "secret\0"})
    assert "TOKEN" in str(caught.value) and "secret" not in str(caught.value)
    for bad in ({"": "x"}, {"A=B": "x"}):
        with pytest.raises(holt.InvalidConfigError):
            check.environment("env", bad)
    for wrong in ([("A", "1")], {"A": 1}, {1: "A"}):
        with pytest.raises(TypeError):
            check.environment("env", wrong)


def test_changes_of_an_environment_take_none_and_name_no_value() -> None:
    changes = check.environment_changes("env", {"KEEP": "ü", b"RAW": b"\xff", "GONE": None})
    assert changes == {b"KEEP": "ü".encode(), b"RAW": b"\xff", b"GONE": None}
    assert check.environment_changes("env", None) == {}
    with pytest.raises(holt.InvalidConfigError) as caught:
        check.environment_changes("env", {"TOKEN": "secret\0"})
    assert "TOKEN" in str(caught.value) and "secret" not in str(caught.value)
    for bad in ({"": "x"}, {"A=B": None}):
        with pytest.raises(holt.InvalidConfigError):
            check.environment_changes("env", bad)
    for wrong in ([("A", None)], {"A": 1}, {None: "A"}):
        with pytest.raises(TypeError):
            check.environment_changes("env", wrong)
    with pytest.raises(TypeError):
        check.environment("env", {"A": None})


def test_each_code_has_a_class_below_error() -> None:
    classes = {kind.default_code: kind for kind in vars(holt).values() if isinstance(kind, type)
               and issubclass(kind, holt.Error) and "default_code" in vars(kind) and kind is not holt.Error}  # fmt: skip
    assert len(classes) == 29
    assert issubclass(holt.InvalidConfigError, ValueError)
    assert issubclass(holt.TimeoutError, TimeoutError)
    assert issubclass(holt.PermissionDeniedError, PermissionError)
    assert issubclass(holt.StorageFullError, holt.StorageError)


def test_errors_travel_between_processes_whole() -> None:
    error = holt.NotFoundError("No such thing", subject="x", hint="Make it.", retryable=True, causes=["because"])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is holt.NotFoundError
    assert (str(copy), copy.code, copy.subject, copy.hint, copy.retryable, copy.causes) == (
        "No such thing", "NOT_FOUND", "x", "Make it.", True, ["because"],
    )  # fmt: skip
    limit = _errors.output_limit_error("Too much", "Less.", 7, b"out", b"err")
    other = pickle.loads(pickle.dumps(limit))
    assert (other.code, other.limit, other.stdout_preview) == ("LIMIT_EXCEEDED", 7, b"out")


def test_front_27_availability_boots_nothing_and_never_raises(tmp_path: Path) -> None:
    nowhere = holt.local_availability(holt.HostOptions(home=tmp_path))
    assert not nowhere
    assert nowhere.code == "RUNTIME_NOT_INSTALLED"
    assert nowhere.reason
    with pytest.raises(TypeError):
        holt.local_availability("home")  # type: ignore[arg-type]
    with pytest.raises(holt.InvalidConfigError):
        holt.local_availability(holt.HostOptions(accelerator="fast"))  # type: ignore[arg-type]


def test_classes_of_the_package_are_made_by_their_own_calls_only() -> None:
    for kind in (holt.Machine, holt.ExecStream, holt.FileReader, holt.FileWriter, holt.TreeWalk,
                 holt.AsyncExecStream, holt.AsyncFileReader, holt.AsyncFileWriter, holt.AsyncTreeWalk):  # fmt: skip
        with pytest.raises(TypeError, match="use "):
            kind()
    with pytest.raises(TypeError, match="holt.Machine"):
        holt.AsyncMachine("dev")  # type: ignore[arg-type]


def test_new_names_pass_the_name_rule() -> None:
    names = {holt.new_machine_name() for _ in range(50)}
    assert len(names) == 50
    for bad in ("", "a/b", "..", "-a", "a--b", "x" * 129):
        with pytest.raises(holt.InvalidConfigError):
            holt.Machine.open(bad)


def test_everything_public_has_a_docstring() -> None:
    missing = []
    for name in holt.__all__:
        thing = getattr(holt, name)
        if isinstance(thing, type):
            missing += [] if thing.__doc__ else [name]
            for member, value in vars(thing).items():
                documented = callable(value) or isinstance(value, (property, classmethod))
                if documented and not member.startswith("_") and not getattr(value, "__doc__", None):
                    missing.append(f"{name}.{member}")
        elif callable(thing) and not thing.__doc__:
            missing.append(name)
    assert not missing


def test_asynchronous_calls_take_the_same_arguments() -> None:
    differ = []
    for name, member in vars(holt.Machine).items():
        if name.startswith("_") or not (callable(member) or isinstance(member, classmethod)):
            continue
        here = inspect.signature(getattr(holt.Machine, name))
        there = inspect.signature(getattr(holt.AsyncMachine, name))
        if list(here.parameters.values()) != list(there.parameters.values()):
            differ.append(name)
    assert not differ
