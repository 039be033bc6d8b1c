"""Streams of commands, files and trees, for event loops. One task at a time takes from a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from time import monotonic
from types import TracebackType
from typing import Any

from holt import _arguments as check
from holt import _native, _requests, _types
from holt._arguments import BytesLike, Seconds
from holt._errors import TimeoutError
from holt._loops import wait_readable
from holt._streams import require
from holt._types import Event, FileStat, WalkEntry


class AsyncExecStream:
    """A running command: an asynchronous iterator of `Event`, the exit event last.

    The command ends, with everything it started, when the stream is killed, closed or dropped, and when a task that
    iterates over it is cancelled (a background command goes on)::

        async with machine.exec_stream(["make"]) as stream:
            async for event in stream:
                print(event)

    Once killed it yields nothing more, and what would reach the command is `InvalidStateError`.
    """

    _stream: _native.Stream
    _killed: bool

    def __init__(self) -> None:
        raise TypeError("use AsyncMachine.exec_stream")

    @classmethod
    def _of(cls, stream: _native.Stream) -> AsyncExecStream:
        self = object.__new__(cls)
        self._stream = stream
        self._killed = False
        return self

    @property
    def _open(self) -> _native.Stream:
        return require(None if self._killed else self._stream, "stream")

    @property
    def _native(self) -> _native.Stream:
        _requests.check_process()
        return self._stream

    def __await__(self) -> Generator[Any, Any, AsyncExecStream]:
        """The stream itself: it may be awaited, and need not be."""
        return self
        yield

    def __aiter__(self) -> AsyncExecStream:
        return self

    async def __anext__(self) -> Event:
        try:
            event = await self.next()
        except BaseException:
            # An error has ended the command already; a cancelled task takes it along.
            self.kill()
            raise
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self, timeout: Seconds | None = None) -> Event | None:
        """The next event; None after the exit event and once killed.

        `timeout`: then `TimeoutError`, and the stream stays usable. A task that is cancelled here leaves the command
        running.
        """
        left = check.seconds("timeout", timeout, zero="allowed")
        end = None if left is None else monotonic() + left
        while True:
            there, values = self._native.poll()
            if there:
                return None if values is None else _types.event(values)
            if end is not None and monotonic() >= end:
                raise TimeoutError("The command wrote nothing in time")
            await wait_readable(self._native.fileno(), None if end is None else max(0.0, end - monotonic()))

    async def write(self, data: BytesLike) -> None:
        """Hands bytes to the standard input; waits while the command does not take them. Quiet when it has ended."""
        rest, stream, offset = check.data("data", data), self._open, 0
        while offset < len(rest):
            taken = stream.try_write(rest, offset)
            offset += taken
            if taken == 0:
                await wait_readable(stream.input_fileno())

    async def close_stdin(self) -> None:
        """End of file for the command."""
        self._open.close_stdin()

    async def signal(self, number: int) -> None:
        """Sends a signal to the command's processes. Quiet when it has ended."""
        self._open.signal(_requests.signal_number(number))

    async def resize(self, rows: int, columns: int) -> None:
        """Gives the command's terminal a new size. Quiet without one."""
        self._open.resize(*_requests.terminal_size(rows, columns))

    def kill(self) -> None:
        """Kills the command with everything it started, and ends a `next` that waits. May be repeated."""
        stream = self._native
        self._killed = True
        stream.kill()

    async def aclose(self) -> None:
        """As `kill`."""
        self.kill()

    async def __aenter__(self) -> AsyncExecStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()


class AsyncFileReader:
    """A file of a machine being read: an asynchronous iterator of bytes, each at most 256 KiB."""

    _reader: _native.Reader | None

    def __init__(self) -> None:
        raise TypeError("use AsyncMachine.open_read")

    @classmethod
    def _of(cls, reader: _native.Reader) -> AsyncFileReader:
        self = object.__new__(cls)
        self._reader = reader
        return self

    def stat(self) -> FileStat:
        """Facts of the file, as it was opened."""
        return _types.file_stat(require(self._reader, "reader").stat())

    def __aiter__(self) -> AsyncFileReader:
        return self

    async def __anext__(self) -> bytes:
        while True:
            reader = require(self._reader, "reader")
            there, piece = reader.poll()
            if not there:
                await wait_readable(reader.fileno())
            elif piece is None:
                raise StopAsyncIteration
            else:
                return piece

    async def read(self) -> bytes:
        """All that is left."""
        return b"".join([piece async for piece in self])

    async def aclose(self) -> None:
        """Ends the reading. May be repeated."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()

    async def __aenter__(self) -> AsyncFileReader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class AsyncFileWriter:
    """A file of a machine being written. Without `finish` the old file stays as it was.

    At the end of an `async with` block it is finished, or aborted when an exception leaves the block. A task that is
    cancelled while it writes aborts it.
    """

    _writer: _native.Writer | None

    def __init__(self) -> None:
        raise TypeError("use AsyncMachine.open_write")

    @classmethod
    def _of(cls, writer: _native.Writer) -> AsyncFileWriter:
        self = object.__new__(cls)
        self._writer = writer
        return self

    async def write(self, data: BytesLike) -> None:
        """Writes bytes; waits while the guest is busy."""
        writer, rest, offset = require(self._writer, "writer"), check.data("data", data), 0
        try:
            while offset < len(rest):
                taken = writer.try_write(rest, offset)
                offset += taken
                if taken == 0:
                    await wait_readable(writer.write_fileno())
        except BaseException:
            await self.abort()
            raise

    async def finish(self) -> None:
        """Puts the file in its place. `OutcomeUnknownError` when the answer got lost."""
        writer = require(self._writer, "writer")
        try:
            while not writer.try_finish():
                await wait_readable(writer.finish_fileno())
        finally:
            self._writer = None
            writer.cancel()

    async def abort(self) -> None:
        """Drops what was written. Quiet after `finish`."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.cancel()

    async def __aenter__(self) -> AsyncFileWriter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None and kind is None:
            await self.finish()
        else:
            await self.abort()


class AsyncTreeWalk:
    """The entries of a tree as the guest finds them, a folder before what is in it."""

    _walk: _native.Walk | None
    _entries: deque[WalkEntry]

    def __init__(self) -> None:
        raise TypeError("use AsyncMachine.walk")

    @classmethod
    def _of(cls, walk: _native.Walk) -> AsyncTreeWalk:
        self = object.__new__(cls)
        self._walk = walk
        self._entries = deque()
        return self

    def __await__(self) -> Generator[Any, Any, AsyncTreeWalk]:
        """The walk itself: it may be awaited, and need not be."""
        return self
        yield

    def __aiter__(self) -> AsyncTreeWalk:
        return self

    async def __anext__(self) -> WalkEntry:
        while not self._entries:
            walk = require(self._walk, "walk")
            there, page = walk.poll()
            if not there:
                await wait_readable(walk.fileno())
            elif page is None:
                raise StopAsyncIteration
            else:
                self._entries.extend(_types.walk_entries(page))
        return self._entries.popleft()

    async def aclose(self) -> None:
        """Ends the walk. May be repeated."""
        walk, self._walk = self._walk, None
        self._entries.clear()
        if walk is not None:
            walk.cancel()

    async def __aenter__(self) -> AsyncTreeWalk:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
