"""Machines that end with this process.

A machine belongs to the process that booted it. The engine enforces that however the process ends; the exit
hook here makes an orderly end wait until every machine is flushed. Handles are kept for the life of the
process, since a machine does not end because a variable did.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import heapq
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias
from weakref import WeakValueDictionary

from .errors import SmolError

#: Ends one machine.
Ending: TypeAlias = Callable[[], Awaitable[None]]

_lock = threading.Lock()
_owned: dict[str, Ending] = {}  # by name
_kept: dict[str, object] = {}  # handles of machines that the engine alone ends, by name
_inherited: list[object] = []  # a forked child's copies of its parent's handles: never dropped, never ended


def own(name: str, end: Ending) -> None:
    """``end`` is called once when this process ends, unless the machine is disowned before."""
    with _lock:
        _owned[name] = end


def keep(name: str, handle: object) -> None:
    """Keeps the handle of a machine that the engine, and no exit hook, ends with this process."""
    with _lock:
        _kept[name] = handle


def disown(name: str) -> None:
    with _lock:
        _owned.pop(name, None)
        _kept.pop(name, None)


def owned() -> list[str]:
    with _lock:
        return list(_owned)


async def _end(ends: Iterable[Ending]) -> None:
    # An interpreter on its way out has nobody to tell of failures; the engine ends what is left.
    await asyncio.gather(*(end() for end in ends), return_exceptions=True)


def _end_all() -> None:
    with _lock:
        ends = list(_owned.values())
        _owned.clear()
    if ends:
        # At once, and without threads, of which an interpreter starts none any more at its end.
        asyncio.run(_end(ends))


def _in_forked_child() -> None:
    global _lock, _owned, _kept, _activities
    _inherited.extend((_owned, _kept))
    _lock = threading.Lock()
    _owned, _kept = {}, {}
    _activities = WeakValueDictionary()
    _expiry.reset()


class Origin:
    """The process that an object belongs to. In a child forked off from it, locks may be held for ever by
    threads that are not there: ask this before taking any."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def is_here(self) -> bool:
        return os.getpid() == self._process

    def refusal(self, what: str) -> SmolError:
        return SmolError(
            "INVALID_STATE",
            f"{what} belongs to the process that this one was forked from. Start processes with "
            "multiprocessing's 'spawn' method, and open machines there by name.",
        )


class _Expiry:
    """Ends machines whose time is up: one sleeping thread, from the first machine with a time on."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._thread: threading.Thread | None = None

    def add(self, at: float, end: Callable[[], None]) -> None:
        with self._changed:
            heapq.heappush(self._queue, (at, id(end), end))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="smol-expiry", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            end = self._next()
            # The machine may be gone already, or cannot be ended; others still have their times.
            with contextlib.suppress(Exception):
                end()

    def _next(self) -> Callable[[], None]:
        with self._changed:
            while not self._queue or self._queue[0][0] > time.time():
                self._changed.wait(self._queue[0][0] - time.time() if self._queue else None)
            return heapq.heappop(self._queue)[2]


_expiry = _Expiry()


def expire(at: float, end: Callable[[], None]) -> None:
    """Calls ``end`` at a time, in seconds since 1970, as long as this process lives."""
    _expiry.add(at, end)


class Activity:
    """The commands and transfers of this process in one machine, so that a stop can wait for them."""

    def __init__(self) -> None:
        self.booting = threading.Lock()  #: held while this process boots it, so that its workload runs once
        self._changed = threading.Condition()
        self._running = 0
        self._closed = 0

    def enter(self) -> bool:
        """False, and nothing entered, while the machine is being stopped."""
        with self._changed:
            if self._closed:
                return False
            self._running += 1
            return True

    def leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def close(self, drain: float) -> None:
        """Lets nothing more in, and waits up to ``drain`` seconds for what is."""
        with self._changed:
            self._closed += 1
            self._changed.wait_for(lambda: self._running == 0, drain)

    def reopen(self) -> None:
        with self._changed:
            self._closed -= 1


_activities: WeakValueDictionary[str, Activity] = WeakValueDictionary()


def activity_of(name: str) -> Activity:
    """The one Activity of a machine in this process."""
    with _lock:
        return _activities.setdefault(name, Activity())


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
