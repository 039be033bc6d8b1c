"""Options of one command, checked before anything runs (spec section 3, ExecOptions)."""

from datetime import timedelta

import pytest
import smol
from smol import _checks
from smol._plan import exec_arguments, whole_milliseconds


def arguments(**options):
    return exec_arguments(smol.ExecOptions(**options))


def test_NoOptionsAreNoArguments():
    assert exec_arguments(None) == arguments() == {}


def test_TimeoutsAreRoundedUpToMilliseconds(behaviour):
    for seconds, milliseconds in behaviour["timeout_ms"]:
        assert round(whole_milliseconds(seconds) * 1000) == milliseconds, seconds


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 1e300, True, "1", timedelta(1)])
def test_ATimeoutThatIsNoTimeIsRefused(timeout):
    with pytest.raises(smol.InvalidConfigError) as caught:
        arguments(timeout=timeout)
    assert "timeout" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user", ""),
        ("user", " "),
        ("user", 5),
        ("stdin", b"\xff"),
        ("stdin", "\ud800"),
        ("workdir", "/\ud800"),
        ("env", {"a": "\ud800"}),
        ("stdin", 5),
        ("workdir", "a\0"),
        ("workdir", 5),
        ("env", {"": "x"}),
        ("env", {"a=b": "x"}),
        ("env", {"a": 1}),
        ("env", [("a", "b")]),
    ],
)
def test_BadOptionsAreRefusedByFieldName(field, value):
    with pytest.raises(smol.InvalidConfigError) as caught:
        arguments(**{field: value})
    assert field in str(caught.value)


@pytest.mark.parametrize("options", [{"timeout": 1}, {"stdin": "x"}])
def test_BackgroundTakesNeitherTimeoutNorStdin(options):
    with pytest.raises(smol.InvalidConfigError):
        arguments(background=True, **options)


def test_GoodOptionsBecomeArguments():
    assert arguments(env={"A": "b"}, workdir="/w", timeout=1.5, user="0:0", stdin="ä") == {
        "env": {"A": "b"},
        "working_dir": "/w",
        "timeout": 1.5,
        "user": "0:0",
        "stdin": b"\xc3\xa4",
    }
    assert arguments(workdir="", stdin="") == {"stdin": b""}
    assert arguments(stdin="\udcff") == {"stdin": b"\xff"}


@pytest.mark.parametrize("command", ["ls", b"ls", [], [1], [b"ls"], None, 5, ["a\0b"], ["\ud800"]])
def test_ACommandIsAListOfTexts(command):
    with pytest.raises(smol.InvalidConfigError):
        _checks.command(command)


def test_ATupleIsACommandToo():
    assert _checks.command(("ls", "")) == ["ls", ""]
