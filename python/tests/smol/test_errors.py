"""Codes and classes of errors (spec section 6)."""

import copy
import pickle

import pytest
import smol
from smol._engine import from_engine


def test_TheTextOfAnErrorIsItsSentence():
    error = smol.SmolError(
        "CONFLICT", "taken", status=409, problem_code="p", retryable=True, retry_after_s=2.0
    )
    assert str(error) == error.message == "taken"
    assert (error.code, error.status, error.problem_code, error.retryable, error.retry_after_s) == (
        "CONFLICT",
        409,
        "p",
        True,
        2.0,
    )


def test_KindsOfErrorsHaveTheirCodes():
    assert smol.NotSupportedError("x").code == "NOT_SUPPORTED"
    assert smol.InvalidConfigError("x").code == "INVALID_CONFIG"
    assert smol.ExecutionError(["a"], 1, "", "").code == "COMMAND_FAILED"


def test_CodedTextsBecomeErrorsOfThatCode(behaviour):
    for text, code, message in behaviour["wrap_native_error"]:
        error = smol.wrap_native_error(RuntimeError(text))
        assert type(error) is smol.SmolError
        assert (error.code, str(error)) == (code, message), text


def test_AnErrorOfTheModuleIsWrappedAsItself():
    error = smol.NotSupportedError("x")
    assert smol.wrap_native_error(error) is error


@pytest.mark.parametrize(
    "error",
    [
        smol.SmolError("A", "b", retryable=True),
        smol.NotSupportedError("q"),
        smol.InvalidConfigError("w"),
        smol.ExecutionError(["a"], 1, "o", "e"),
    ],
)
def test_ErrorsCrossProcesses(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


class EngineError(Exception):
    """An error as the package holt raises it."""

    def __init__(self, code, message, hint=None, causes=(), retryable=False):
        super().__init__(message)
        self.code, self.message, self.hint, self.causes, self.retryable = (
            code,
            message,
            hint,
            list(causes),
            retryable,
        )


@pytest.mark.parametrize(
    ("engine_code", "code"),
    [
        ("NOT_FOUND", "NOT_FOUND"),
        ("CONFLICT", "CONFLICT"),
        ("INVALID_STATE", "INVALID_STATE"),
        ("INVALID_CONFIG", "INVALID_CONFIG"),
        ("USAGE", "INVALID_CONFIG"),
        ("NOT_SUPPORTED", "NOT_SUPPORTED"),
        ("PERMISSION_DENIED", "FORBIDDEN"),
        ("UNSUPPORTED_PLATFORM", "UNSUPPORTED_PLATFORM"),
        ("RUNTIME_NOT_INSTALLED", "RUNTIME_NOT_INSTALLED"),
        ("KVM_UNAVAILABLE", "KVM_UNAVAILABLE"),
        ("HYPERVISOR_UNAVAILABLE", "HYPERVISOR_UNAVAILABLE"),
        ("STORAGE_FULL", "STORAGE_ERROR"),
        ("STORAGE_ERROR", "STORAGE_ERROR"),
        ("TIMEOUT", "TIMEOUT"),
        ("CANCELLED", "CANCELLED"),
        ("NETWORK_ERROR", "NETWORK_ERROR"),
        ("GUEST_LOST", "SMOLVM_ERROR"),
        ("OUTCOME_UNKNOWN", "SMOLVM_ERROR"),
        ("GUEST_PROTOCOL", "SMOLVM_ERROR"),
        ("IS_DIRECTORY", "SMOLVM_ERROR"),
        ("TOO_LARGE", "SMOLVM_ERROR"),
        ("INTERNAL", "SMOLVM_ERROR"),
        ("A_LATER_CODE", "SMOLVM_ERROR"),
    ],
)
def test_EngineCodesBecomeThoseThatCallersKnow(engine_code, code):
    error = from_engine(EngineError(engine_code, "tried x", retryable=True))
    assert error.code == code
    assert error.problem_code == engine_code
    assert error.retryable
    expected = {"NOT_SUPPORTED": smol.NotSupportedError, "INVALID_CONFIG": smol.InvalidConfigError}
    assert type(error) is expected.get(code, smol.SmolError)


def test_ACommandThatAStopEndedWasInterrupted():
    lost = EngineError("OUTCOME_UNKNOWN", "exec in m has no answer", causes=["The machine m was stopped"])
    assert from_engine(lost).code == "INTERRUPTED"


def test_TheSentenceKeepsCausesAndHint():
    error = from_engine(EngineError("NOT_FOUND", "No image x.", hint="Import it.", causes=["no such file"]))
    assert str(error) == "No image x.: no such file. Import it."
