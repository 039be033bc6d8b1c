"""The package ``holt``, loaded at the first use, and its errors in this module's words.

Loading late keeps ``import smol`` working where the native engine cannot be loaded, so that
:func:`smol.local_availability` can say so.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from .errors import InvalidConfigError, NotSupportedError, SmolError

if TYPE_CHECKING:
    import holt

# The engine's code to ours. What is missing here is SMOLVM_ERROR.
_CODES = {
    "NOT_FOUND": "NOT_FOUND",
    "CONFLICT": "CONFLICT",
    "INVALID_STATE": "INVALID_STATE",
    "PERMISSION_DENIED": "FORBIDDEN",
    "UNSUPPORTED_PLATFORM": "UNSUPPORTED_PLATFORM",
    "RUNTIME_NOT_INSTALLED": "RUNTIME_NOT_INSTALLED",
    "KVM_UNAVAILABLE": "KVM_UNAVAILABLE",
    "HYPERVISOR_UNAVAILABLE": "HYPERVISOR_UNAVAILABLE",
    "TIMEOUT": "TIMEOUT",
    "CANCELLED": "CANCELLED",
    "STORAGE_FULL": "STORAGE_ERROR",
    "STORAGE_ERROR": "STORAGE_ERROR",
    "NETWORK_ERROR": "NETWORK_ERROR",
    "UNAUTHORIZED": "NETWORK_ERROR",
    "BLOCKED": "NETWORK_ERROR",
}
_ENDED = ("GUEST_LOST", "OUTCOME_UNKNOWN")


def engine() -> Any:
    """The package ``holt``. Raises SmolError RUNTIME_NOT_INSTALLED where it cannot be loaded."""
    try:
        return importlib.import_module("holt")
    except Exception as error:  # a native module fails to load in many ways
        raise SmolError("RUNTIME_NOT_INSTALLED", f"The package holt cannot be loaded: {error}") from error


def from_engine(error: holt.Error) -> SmolError:
    """An error of ``holt`` in this module's codes; the hint goes behind the sentence."""
    message = _sentence(error)
    if error.code == "NOT_SUPPORTED":
        return _with_details(NotSupportedError(message), error)
    if error.code in ("INVALID_CONFIG", "USAGE"):
        return _with_details(InvalidConfigError(message), error)
    if error.code in _ENDED and _was_stopped(error):
        return _with_details(SmolError("INTERRUPTED", message), error)
    return _with_details(SmolError(_CODES.get(error.code, "SMOLVM_ERROR"), message), error)


def _sentence(error: holt.Error) -> str:
    parts = [error.message, *error.causes]
    sentence = ": ".join(part for index, part in enumerate(parts) if part and part not in parts[:index])
    return f"{sentence.rstrip('.')}. {error.hint}" if error.hint else sentence


def _was_stopped(error: holt.Error) -> bool:
    texts = (error.message, *error.causes)
    return any(word in text for text in texts for word in ("was stopped", "was removed"))


def _with_details(translated: SmolError, error: holt.Error) -> SmolError:
    translated.problem_code = error.code
    translated.retryable = error.retryable
    return translated


def as_smol_error(error: BaseException) -> SmolError | None:
    """``error`` in this module's codes when the engine raised it; None for anything else."""
    if isinstance(error, SmolError):
        return error
    if isinstance(error, engine().Error):
        return from_engine(cast("holt.Error", error))
    return None


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turns what ``holt`` raises inside into :class:`SmolError`."""
    try:
        yield
    except SmolError:
        raise
    except Exception as error:
        translated = as_smol_error(error)
        if translated is None:
            raise
        raise translated from error
