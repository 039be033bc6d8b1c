"""Machine.exec in a machine (spec section 3, ExecOptions and ExecResult)."""

import pytest
import smol
from conftest import find_processes
from smol import machine as machine_module


def sh(machine, script, **options):
    return machine.exec(["sh", "-c", script], smol.ExecOptions(**options))


def test_ACommandsOutputAndCodeAreTheResult(machine):
    result = sh(machine, "echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert type(result.exit_code) is int
    assert not result.success and result.output == "out\n\nerr\n"


def test_BinaryOutputIsKeptExactlyBesideItsText(machine):
    result = sh(machine, r"printf 'a\377\000b'; printf '\200' >&2")
    assert (result.stdout_bytes, result.stderr_bytes) == (b"a\xff\0b", b"\x80")
    assert (result.stdout, result.stderr) == ("a\ufffd\0b", "\ufffd")


def test_ArgumentsAreLiteral(machine):
    words = ["printf", "%s|", "a b", "$HOME", "'", "*", "-x", "", "ü"]
    assert machine.exec(words).stdout == "a b|$HOME|'|*|-x||ü|"


@pytest.mark.parametrize(
    ("program", "code"), [("no-such-program", 127), ("/no/such", 127), ("/etc/passwd", 126)]
)
def test_WhatCannotBeRunHasTheCodesOfAShell(machine, program, code):
    assert machine.exec([program]).exit_code == code


def test_ACommandEndedByASignalHas128AndItsNumber(machine):
    assert sh(machine, "kill -9 $$").exit_code == 137


def test_StandardInputIsAtItsEndUnlessGiven(machine):
    assert machine.exec(["cat"]).stdout == ""
    assert machine.exec(["cat"], smol.ExecOptions(stdin="tëxt")).stdout == "tëxt"
    assert machine.exec(["wc", "-c"], smol.ExecOptions(stdin=b"x" * 300_000)).stdout.strip() == "300000"


def test_VariablesGoOnTopOfTheMachines(machine):
    result = sh(machine, "echo $A $PATH", env={"A": "b c"})
    assert result.stdout.startswith("b c /")


def test_ACommandStartsInItsFolder(machine):
    assert machine.exec(["pwd"], smol.ExecOptions(workdir="/usr/lib")).stdout == "/usr/lib\n"


def test_AMissingFolderIsNoSuchFileOrDirectory(machine):
    with pytest.raises(smol.SmolError) as caught:
        machine.exec(["pwd"], smol.ExecOptions(workdir="/no/such/folder"))
    assert "No such file or directory" in str(caught.value)
    assert caught.value.code == "NOT_FOUND"
    assert machine.state() == "running"


@pytest.mark.parametrize(
    ("user", "ids"), [("daemon", "1:1"), ("1000:1001", "1000:1001"), ("0", "0:0"), (None, "0:0")]
)
def test_ACommandRunsAsItsUser(machine, user, ids):
    assert sh(machine, "echo $(id -u):$(id -g)", user=user).stdout.strip() == ids


def test_AnUnknownUserIsAnErrorAndNeverRoot(machine):
    with pytest.raises(smol.SmolError) as caught:
        machine.exec(["id"], smol.ExecOptions(user="nobody-knows"))
    assert "nobody-knows" in str(caught.value)


def test_ATimeoutKillsTheWholeCommandWithCode124(machine):
    result = sh(machine, "echo begun; sleep 2991 & sleep 2991", timeout=0.5)
    assert (result.exit_code, result.stdout) == (124, "begun\n")
    assert machine.exec(find_processes("2991")).stdout == ""


def test_OutputBeyondTheLimitIsCutAndFlagged(machine, monkeypatch):
    monkeypatch.setattr(machine_module, "EXEC_OUTPUT_LIMIT", 1000)
    result = sh(machine, "head -c 5000 /dev/zero; echo short >&2")
    assert len(result.stdout_bytes) == 1000 and result.stdout_truncated
    assert result.stderr == "short\n" and not result.stderr_truncated


def test_LargeOutputIsComplete(machine):
    result = sh(machine, "head -c 13000000 /dev/zero | tr '\\0' x")
    assert len(result.stdout) == 13_000_000 and set(result.stdout) == {"x"}
    assert not result.stdout_truncated


def test_ABackgroundCommandGoesOnAndIsKnownByItsPid(machine):
    result = machine.exec(["sleep", "300"], smol.ExecOptions(background=True))
    assert result.exit_code == 0 and result.stdout == f"pid={result.pid}\n"
    assert sh(machine, f"kill -0 {result.pid} && kill {result.pid}").success


def test_AChildThatKeepsTheOutputOpenDoesNotHoldUpTheResult(machine):
    assert sh(machine, "sleep 60 & echo done", timeout=30).exit_code == 0


@pytest.mark.parametrize("command", ["ls", b"ls", [], [1], ["a\0"], None])
def test_front_25_ACommandOfTheWrongTypeIsRefusedBeforeAnythingRuns(machine, command):
    with pytest.raises((TypeError, ValueError)) as caught:
        machine.exec(command)
    assert caught.value.code == "INVALID_CONFIG"
    with pytest.raises(smol.InvalidConfigError):
        machine.exec_stream(command)


def test_TheEnginesOwnMachineServesWhatTheInterfaceLacks(machine):
    with machine.engine.exec_stream(["cat"], stdin="pipe") as stream:
        stream.write(b"live\n")
        assert next(stream).data == b"live\n"


def test_OptionsOfTheWrongTypeAreRefused(machine):
    for call in (machine.exec, machine.exec_stream):
        with pytest.raises(smol.InvalidConfigError):
            call(["true"], {"timeout": 1})
