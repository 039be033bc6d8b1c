"""Errors of the module: one class with a code, and three kinds of it.

    try:
        machine = smol.Machine.connect("dev")
    except smol.SmolError as error:
        if error.code == "NOT_FOUND": ...

``str(error)`` is the sentence without the code. The text form ``[CODE] sentence`` is that of the error events
of a stream; :func:`wrap_native_error` turns it back into an error.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["ExecutionError", "InvalidConfigError", "NotSupportedError", "SmolError", "wrap_native_error"]

_CODED_TEXT = re.compile(r"\[([A-Z_]+)\]\s*(.*)", re.DOTALL)


class SmolError(Exception):
    """What every call raises.

    ``code`` is one stable word. ``retryable`` is true when nothing was done and the same call may succeed
    later. ``problem_code`` is the engine's own word, which is finer than ``code``. ``status`` and
    ``retry_after_s`` belong to remote targets and are never set here.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        problem_code: str | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.problem_code = problem_code
        self.retryable = retryable
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructors take other arguments than Exception.args has: errors cross processes by state.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[SmolError], args: tuple[object, ...], state: dict[str, object]) -> SmolError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class NotSupportedError(SmolError):
    """The local engine has no such thing; the message names what to use instead."""

    def __init__(self, message: str) -> None:
        super().__init__("NOT_SUPPORTED", message)


class InvalidConfigError(SmolError):
    """An option that can never be right. Raised before anything starts; the message names the field."""

    def __init__(self, message: str) -> None:
        super().__init__("INVALID_CONFIG", message)


class InvalidValueError(InvalidConfigError, ValueError):
    """An :class:`InvalidConfigError` that code written for ``ValueError`` catches too."""


class InvalidTypeError(InvalidConfigError, TypeError):
    """An :class:`InvalidConfigError` that code written for ``TypeError`` catches too."""


class OutOfRangeError(InvalidConfigError, OverflowError):
    """An :class:`InvalidConfigError` that code written for ``OverflowError`` catches too."""


class ExecutionError(SmolError):
    """A command ended with a code other than 0, where :meth:`ExecResult.assert_success` wanted 0."""

    def __init__(self, command: list[str] | str, exit_code: int, stdout: str, stderr: str) -> None:
        shown = command if isinstance(command, str) else " ".join(command)
        super().__init__("COMMAND_FAILED", f"exit code {exit_code} from the command: {shown}")
        self.command = command
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


def wrap_native_error(err: BaseException) -> SmolError:
    """The error that a text of the form ``[CODE] sentence`` stands for; ``SMOLVM_ERROR`` for any other text.

    A :class:`SmolError` comes back as it is. Never raises, never gives a subclass of its own making.
    """
    if isinstance(err, SmolError):
        return err
    text = str(err)
    coded = _CODED_TEXT.match(text)
    return SmolError(coded[1], coded[2]) if coded else SmolError("SMOLVM_ERROR", text)
