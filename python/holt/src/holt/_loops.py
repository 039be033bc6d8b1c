"""Waiting in an event loop: asyncio's, or Trio's where the program runs on it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

# A loop that runs has been imported: neither library is here, which saves programs that only wait the time.


def _trio() -> Any:
    trio = sys.modules.get("trio")
    if trio is None:
        raise RuntimeError("no running event loop")
    return trio


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    if "asyncio" not in sys.modules:
        return None
    try:
        loop: asyncio.AbstractEventLoop = sys.modules["asyncio"].get_running_loop()
    except RuntimeError:
        return None
    return loop


async def wait_readable(fd: int, timeout: float | None = None) -> None:
    """Waits until a descriptor polls readable, or so many seconds."""
    loop = _asyncio_loop()
    if loop is None:
        trio = _trio()
        with trio.move_on_after(float("inf") if timeout is None else timeout):
            await trio.lowlevel.wait_readable(fd)
        return
    readable = loop.create_future()
    timer = None if timeout is None else loop.call_later(timeout, _wake, readable)
    loop.add_reader(fd, _wake, readable)
    try:
        await readable
    finally:
        loop.remove_reader(fd)
        if timer is not None:
            timer.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def wait_readable_to_the_end(fd: int) -> None:
    """As `wait_readable`, whatever happens to the task meanwhile: for what ends soon and must not be left halfway."""
    if _asyncio_loop() is None:
        with _trio().CancelScope(shield=True):
            await wait_readable(fd)
        return
    cancelled: type[BaseException] = sys.modules["asyncio"].CancelledError
    while True:
        try:
            return await wait_readable(fd)
        except cancelled:
            continue
