"""What a process holds and what its machines leave on the host, as numbers that can be compared."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

SETTLE_SECONDS = 60

# As holt, smol and the two capabilities choose them.
NAME_OF_A_MACHINE = re.compile(r"(holt|smol)-[0-9a-f]{8}|pydantic-ai-[0-9a-f]{32}")


def home() -> Path:
    """The home of these tests' machines."""
    return Path(os.environ["HOLT_HOME"])


def processes_of(folder: Path) -> set[int]:
    """Processes, other than this one, whose command line or environment names `folder`: monitors and VMMs."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue  # it has ended, or is a zombie
        if os.fsencode(folder) in text:
            found.add(int(entry.name))
    return found


def children() -> set[int]:
    """Processes that this one started and that it has not waited for, zombies too."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in listed.split()}


def machine_folders() -> set[str]:
    """Everything below the folders of machines and of sockets, and whatever else in the home is named after a machine:
    folders, sockets, locks, disks."""
    found = set()
    for folder, folders, files in os.walk(home(), followlinks=True):
        where = Path(folder).relative_to(home())
        own = where.parts[:1] == ("run",) or where.parts[:2] == ("state", "machines")
        found |= {str(where / name) for name in folders + files if own or NAME_OF_A_MACHINE.search(name)}
    return found


def anonymous_kib() -> int:
    """Resident memory of this process that is not a file's, without what the allocator keeps for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise AssertionError("the kernel does not say RssAnon")


@dataclass(frozen=True)
class Footprint:
    threads: int
    descriptors: int
    children: int
    processes: int
    folders: int

    @classmethod
    def now(cls) -> Footprint:
        gc.collect()
        return cls(
            threads=len(os.listdir("/proc/self/task")),
            descriptors=len(os.listdir("/proc/self/fd")),
            children=len(children()),
            processes=len(processes_of(home())),
            folders=len(machine_folders()),
        )

    def growth_to(self, later: Footprint) -> dict[str, int]:
        """The counts that have grown, and by how much."""
        grown = {one.name: getattr(later, one.name) - getattr(self, one.name) for one in fields(self)}
        return {name: count for name, count in grown.items() if count > 0}


def polls(seconds: float) -> Iterator[None]:
    """Turns of a loop that waits for something outside this process, until the time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)


def settled_growth(before: Footprint, *, besides: Sequence[str] = ()) -> dict[str, int]:
    """The growth since `before`. Processes end a moment after the call that ended them: waits, within bounds."""

    def growth() -> dict[str, int]:
        grown = before.growth_to(Footprint.now())
        return {name: count for name, count in grown.items() if name not in besides}

    for _ in polls(SETTLE_SECONDS):
        if not growth():
            break
    return growth()
