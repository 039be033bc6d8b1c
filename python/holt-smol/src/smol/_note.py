"""What this module has to remember of a machine beyond what the engine does, kept as a label of the machine.

The engine's records outlive this process and are read by every other one, so the note lives there. It is
taken out of the labels that users see.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

#: The label that holds the note. Users cannot set it.
LABEL = "holt.smol"


@dataclass
class Note:
    ephemeral: bool = False  #: record and disk end with the process ``owner``
    detach: bool = False  #: no life of the machine is bound to a process
    owner: str = ""  #: the process that made an ephemeral machine
    command: list[str] | None = None  #: runs from each start on
    storage_gb: int | None = None
    overlay_gb: int | None = None
    expires_at: float | None = None  #: seconds since 1970

    def encode(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def of(labels: dict[str, str]) -> Note:
        """The note among a machine's labels; an empty one for machines that others made, or where it is
        damaged."""
        try:
            values: Any = json.loads(labels.get(LABEL, "{}"))
            known = {field.name: values[field.name] for field in fields(Note) if field.name in values}
            return Note(**known)
        except (ValueError, TypeError, KeyError):
            return Note()

    def is_abandoned(self) -> bool:
        """Nobody can want the stopped machine any more."""
        return (self.ephemeral and not process_lives(self.owner)) or self.is_expired()

    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= time.time()


def user_labels(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != LABEL}


def this_process() -> str:
    """A name for this process that no later one has: its id and when it started (proc(5), stat field 22)."""
    return f"{os.getpid()}:{_start_time(os.getpid())}"


def process_lives(process: str) -> bool:
    pid, _, started = process.partition(":")
    return pid.isdecimal() and _start_time(int(pid)) == started != ""


def _start_time(pid: int) -> str:
    try:
        # The program's name, field 2, may hold blanks and parentheses.
        after_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2]
        return after_name.split()[19]
    except (OSError, IndexError):
        return ""
