"""Waiting from any event loop for what goes on without it. asyncio and Trio."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

import anyio

T = TypeVar("T")

_THREADS = 16


def on_trio() -> bool:
    """Whether the caller runs in a task of Trio."""
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def _waker(event: anyio.Event) -> Callable[[Future[T]], None]:
    """Sets the event from another thread. Quiet when its loop has ended."""
    if on_trio():
        trio = sys.modules["trio"]
        soon = trio.lowlevel.current_trio_token().run_sync_soon
        ended: type[Exception] = trio.RunFinishedError
    else:
        soon = asyncio.get_running_loop().call_soon_threadsafe
        ended = RuntimeError

    def wake(_: Future[T]) -> None:
        with suppress(ended):
            soon(event.set)

    return wake


async def result_of(future: Future[T]) -> T:
    """The future's result. A caller that is cancelled leaves; what the future stands for goes on."""
    if not future.done():
        event = anyio.Event()
        future.add_done_callback(_waker(event))
        await event.wait()
    return future.result()


class Turns:
    """Runs what makes, opens and removes machines: of one name, one after the other, in order of asking.

    On threads of its own, so that no cancelled caller and no closed event loop ends a boot or a removal half-way.
    One object serves a process; thread-safe.
    """

    def __init__(self) -> None:
        self._reset()
        # The threads of a pool are not in a forked child; the engine refuses its calls there.
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[str, Future[object]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="holt-sandbox")

    def start(self, name: str, work: Callable[[], T]) -> Future[T]:
        """Begins `work` once what was begun earlier for the machine of this name has ended."""
        with self._lock:
            previous = self._latest.get(name)

            def run() -> T:
                if previous is not None:
                    # Begun earlier, so it has its thread already: this cannot wait for ever.
                    wait([previous])
                return work()

            future = self._threads.submit(run)
            self._latest[name] = future  # type: ignore[assignment]
        future.add_done_callback(lambda done: self._forget(name, done))
        return future

    def _forget(self, name: str, done: Future[T]) -> None:
        with self._lock:
            if self._latest.get(name) is done:
                del self._latest[name]


turns = Turns()
