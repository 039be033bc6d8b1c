"""Waiting for a call on a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from holt._errors import Error
from holt._requests import Request

T = TypeVar("T")


def wait(request: Request[T]) -> T:
    """Waits for a call, without the interpreter's lock. What a signal handler raises, KeyboardInterrupt first of all,
    ends it."""
    try:
        return request.convert(request.call.wait())
    except Error:
        raise
    except BaseException:
        request.call.cancel()
        if request.undo is not None:
            _take_back(request, request.undo)
        raise


def _take_back(request: Request[T], undo: Callable[[T], Request[Any]]) -> None:
    try:
        undo(request.convert(request.call.wait())).call.wait()
    except Error:
        pass  # it was cancelled in time
