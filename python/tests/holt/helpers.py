"""What several tests ask of machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import holt

T = TypeVar("T")
PATIENCE = 60.0


def until(look: Callable[[], T], patience: float = PATIENCE) -> T:
    """The first true answer of `look`."""
    end = time.monotonic() + patience
    while True:
        answer = look()
        if answer:
            return answer
        assert time.monotonic() < end, f"not so within {patience} s"
        time.sleep(0.05)


def processes(machine: holt.Machine, mark: str) -> list[str]:
    """The command lines in the machine that hold `mark`, but not that of this look."""
    script = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done 2>/dev/null"
    return [line for line in machine.exec(script, shell=True).text.splitlines() if mark in line]


def gone(machine: holt.Machine, mark: str) -> bool:
    return until(lambda: not processes(machine, mark))


def line_of(stream: holt.ExecStream) -> bytes:
    """A line of a command's output, which may come in pieces."""
    line = b""
    while not line.endswith(b"\n"):
        event = stream.next(timeout=PATIENCE)
        assert event and event.kind == "stdout", f"{event} after {line!r}"
        line += event.data
    return line
