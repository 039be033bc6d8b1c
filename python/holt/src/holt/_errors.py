"""What holt raises: one class for each code of the engine, all below `Error`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, ClassVar


class Error(Exception):
    """Base of everything that holt raises beside `TypeError`.

    `str(error)` is one sentence: what was tried, on what, why it failed. It never holds a secret or the value of an
    environment variable.
    """

    #: The code of a subclass; what an instance has is `code`.
    default_code: ClassVar[str] = "INTERNAL"

    code: str
    """Stable word for the kind of failure, e.g. ``NOT_FOUND`` (docs/reference.md lists all)."""
    message: str
    """The sentence that `str()` gives."""
    subject: str | None
    """Name of the machine, image or file that the error concerns."""
    hint: str | None
    """What the user can do, one sentence."""
    retryable: bool
    """True when nothing was done and the same call may succeed later."""
    causes: list[str]
    """Sentences of the errors below this one, outermost first."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        subject: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        causes: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).default_code
        self.message = message
        self.subject = subject
        self.hint = hint
        self.retryable = retryable
        self.causes = list(causes)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, vars(self))


def _rebuild(kind: type[Error], message: str, values: dict[str, Any]) -> Error:
    error = kind(message)
    vars(error).update(values)
    return error


class UsageError(Error):
    """USAGE: called in a way that has no meaning."""

    default_code = "USAGE"


class NotFoundError(Error):
    """NOT_FOUND: no such machine, image, file, folder or user."""

    default_code = "NOT_FOUND"


class ConflictError(Error):
    """CONFLICT: the name is taken, or the machine is in use."""

    default_code = "CONFLICT"


class InvalidStateError(Error):
    """INVALID_STATE: not possible in this state, e.g. a command in a machine that does not run."""

    default_code = "INVALID_STATE"


class InvalidConfigError(Error, ValueError):
    """INVALID_CONFIG: a value outside what the call documents. Also a `ValueError`."""

    default_code = "INVALID_CONFIG"


class NotSupportedError(Error):
    """NOT_SUPPORTED: known, but not on this host or in this version."""

    default_code = "NOT_SUPPORTED"


class KvmUnavailableError(Error):
    """KVM_UNAVAILABLE: KVM was required and does not work here."""

    default_code = "KVM_UNAVAILABLE"


class HypervisorUnavailableError(Error):
    """HYPERVISOR_UNAVAILABLE: QEMU is missing or cannot be used."""

    default_code = "HYPERVISOR_UNAVAILABLE"


class UnsupportedPlatformError(Error):
    """UNSUPPORTED_PLATFORM: not an x86-64 Linux."""

    default_code = "UNSUPPORTED_PLATFORM"


class RuntimeNotInstalledError(Error):
    """RUNTIME_NOT_INSTALLED: kernel, guest program or monitor are missing; scripts/setup installs them."""

    default_code = "RUNTIME_NOT_INSTALLED"


class TimeoutError(Error, builtins.TimeoutError):
    """TIMEOUT: the call's deadline passed. Also a `TimeoutError`. A command's own `timeout` is a result instead."""

    default_code = "TIMEOUT"


class CancelledError(Error):
    """CANCELLED: the call was cancelled by something other than its own task (not asyncio's exception)."""

    default_code = "CANCELLED"


class StorageError(Error):
    """STORAGE_ERROR: the host's disk refused."""

    default_code = "STORAGE_ERROR"


class StorageFullError(StorageError):
    """STORAGE_FULL: no space left."""

    default_code = "STORAGE_FULL"


class PermissionDeniedError(Error, PermissionError):
    """PERMISSION_DENIED. Also a `PermissionError`."""

    default_code = "PERMISSION_DENIED"


class IsDirectoryError(Error, builtins.IsADirectoryError):
    """IS_DIRECTORY: a file was wanted. Also an `IsADirectoryError`."""

    default_code = "IS_DIRECTORY"


class NotADirectoryError(Error, builtins.NotADirectoryError):
    """NOT_A_DIRECTORY: a folder was wanted. Also a `NotADirectoryError`."""

    default_code = "NOT_A_DIRECTORY"


class NotRegularError(Error):
    """NOT_REGULAR: a FIFO, socket or device, where a regular file was wanted."""

    default_code = "NOT_REGULAR"


class TooLargeError(Error):
    """TOO_LARGE: more bytes than the call's limit."""

    default_code = "TOO_LARGE"


class ImageInvalidError(Error):
    """IMAGE_INVALID: the image breaks its format or its limits."""

    default_code = "IMAGE_INVALID"


class DigestMismatchError(Error):
    """DIGEST_MISMATCH: the bytes are not those that the digest names."""

    default_code = "DIGEST_MISMATCH"


class LimitExceededError(Error):
    """LIMIT_EXCEEDED: more than a published limit allows."""

    default_code = "LIMIT_EXCEEDED"


class OutputLimitError(LimitExceededError):
    """A command with ``over_limit="fail"`` wrote more than `output_limit` and was killed."""

    limit: int
    """Bytes of each output that it might write."""
    stdout_preview: bytes
    """What it wrote first, at most 64 KiB."""
    stderr_preview: bytes


class UnauthorizedError(Error):
    """UNAUTHORIZED: a registry or provider wants other credentials."""

    default_code = "UNAUTHORIZED"


class NetworkError(Error):
    """NETWORK_ERROR: a registry or provider could not be reached."""

    default_code = "NETWORK_ERROR"


class BlockedError(Error):
    """BLOCKED: refused by a rule."""

    default_code = "BLOCKED"


class GuestProtocolError(Error):
    """GUEST_PROTOCOL: the guest broke the protocol; the machine is failed."""

    default_code = "GUEST_PROTOCOL"


class GuestLostError(Error):
    """GUEST_LOST: machine or channel ended, nothing was done."""

    default_code = "GUEST_LOST"


class OutcomeUnknownError(Error):
    """OUTCOME_UNKNOWN: machine or channel ended after the request was sent."""

    default_code = "OUTCOME_UNKNOWN"


class InternalError(Error):
    """INTERNAL: a fault of holt itself."""

    default_code = "INTERNAL"


def _all_below(kind: type[Error]) -> dict[str, type[Error]]:
    classes: dict[str, type[Error]] = {}
    for below in kind.__subclasses__():
        # A class that says more of a code than its base is made by its own function.
        if "default_code" in vars(below):
            classes[below.default_code] = below
        classes.update(_all_below(below))
    return classes


_classes = _all_below(Error)


def from_native(code: str, message: str, subject: str, hint: str, retryable: bool, causes: list[str]) -> Error:
    """The exception of an error of the engine. Called by the extension module."""
    kind = _classes.get(code, Error)
    return kind(
        message, code=code, subject=subject or None, hint=hint or None, retryable=retryable, causes=causes
    )


def output_limit_error(
    message: str, hint: str, limit: int, stdout_preview: bytes, stderr_preview: bytes
) -> OutputLimitError:
    """Called by the extension module."""
    error = OutputLimitError(message, hint=hint)
    error.limit, error.stdout_preview, error.stderr_preview = limit, stdout_preview, stderr_preview
    return error
