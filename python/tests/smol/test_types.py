"""Options and results without an engine (spec section 3)."""

import pytest
import smol


def test_ReprsShowFieldsInOrderAndNoSecrets(behaviour):
    for expression, text in behaviour["reprs"].items():
        assert repr(eval(expression, vars(smol))) == text


def test_OptionsAreMutable():
    options = smol.ExecOptions()
    options.timeout = 3
    assert options == smol.ExecOptions(timeout=3)


@pytest.mark.parametrize("command", [[], [""], ["a", ""], ["a", 1], "ls"])
def test_AWorkloadThatIsNoListOfTextsIsAValueErrorInTheConstructor(command):
    with pytest.raises(ValueError) as caught:
        smol.MachineConfig(command=command)
    assert caught.value.code == "INVALID_CONFIG"


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_AReadyTimeoutMustBeAboveZero(timeout):
    with pytest.raises(ValueError):
        smol.MachineConfig(ready_timeout_seconds=timeout)


def test_BranchableDecidesForkableAndCheckpointImpliesIt(behaviour):
    for arguments, branchable, forkable, checkpoint in behaviour["forkable"]:
        config = smol.MachineConfig(**arguments)
        assert (config.branchable, config.forkable, config.checkpoint) == (branchable, forkable, checkpoint)


def test_TheOlderNameOfReadOnlyWins(behaviour):
    for read_only, readonly, effective in behaviour["read_only"]:
        assert smol.MountSpec("s", "t", read_only, readonly).effective_read_only is effective


def test_OutputJoinsBothStreams(behaviour):
    for stdout, stderr, output in behaviour["exec_result_output"]:
        assert smol.ExecResult(0, stdout, stderr).output == output


def test_SuccessIsCodeZero():
    assert smol.ExecResult(0, "", "").success
    assert not smol.ExecResult(124, "", "").success


def test_AssertSuccessGivesTheResultOrNamesCommandAndCode():
    good = smol.ExecResult(0, "", "")
    assert good.assert_success() is good
    with pytest.raises(smol.ExecutionError) as caught:
        smol.ExecResult(3, "out", "err").assert_success(["make", "all"])
    error = caught.value
    assert (error.code, error.command, error.exit_code, error.stdout, error.stderr) == (
        "COMMAND_FAILED",
        ["make", "all"],
        3,
        "out",
        "err",
    )
    assert "3" in str(error) and "make all" in str(error)
