"""Streams of commands, files and trees, for code that waits."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TypeVar

from holt import _arguments as check
from holt import _native, _requests, _types
from holt._arguments import BytesLike, Seconds
from holt._errors import InvalidStateError
from holt._types import Event, FileStat, WalkEntry

T = TypeVar("T")


def require(native: T | None, what: str) -> T:
    """The native object of a stream in use, in the process that made it."""
    _requests.check_process()
    if native is None:
        raise InvalidStateError(f"The {what} is closed")
    return native


class ExecStream:
    """A running command: an iterator of `Event`, the exit event last.

    The command ends, with everything it started, when the stream is killed, closed or dropped (a background command
    goes on). `next` belongs to one thread; the other methods may be called from others meanwhile. Once killed it
    yields nothing more, and what would reach the command is `InvalidStateError`.
    """

    _stream: _native.Stream
    _killed: bool

    def __init__(self) -> None:
        raise TypeError("use Machine.exec_stream")

    @classmethod
    def _of(cls, stream: _native.Stream) -> ExecStream:
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

    def __iter__(self) -> ExecStream:
        return self

    def __next__(self) -> Event:
        _requests.check_process()  # in a forked child nothing may be touched
        try:
            event = self.next()
        except BaseException:
            # An error has ended the command already; KeyboardInterrupt takes it along.
            self.kill()
            raise
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: Seconds | None = None) -> Event | None:
        """The next event; None after the exit event and once killed.

        `timeout`: then `TimeoutError`, and the stream stays usable. Raises `OutcomeUnknownError` when the machine ended
        before the command did, `TimeoutError` at the command's deadline, and refusals to start.
        """
        values = self._native.next(check.seconds("timeout", timeout, zero="allowed"))
        return None if values is None else _types.event(values)

    def try_next(self) -> tuple[bool, Event | None]:
        """``(False, None)`` when there is nothing yet, else ``(True, event)`` with None at the end. Does not wait."""
        there, values = self._native.poll()
        return there, None if values is None else _types.event(values)

    def write(self, data: BytesLike) -> None:
        """Hands bytes to the standard input; waits while the command does not take them. Quiet when it has ended."""
        whole = check.data("data", data)
        self._open.write(whole)

    def close_stdin(self) -> None:
        """End of file for the command."""
        self._open.close_stdin()

    def signal(self, number: int) -> None:
        """Sends a signal to the command's processes. Quiet when it has ended."""
        self._open.signal(_requests.signal_number(number))

    def resize(self, rows: int, columns: int) -> None:
        """Gives the command's terminal a new size. Quiet without one."""
        self._open.resize(*_requests.terminal_size(rows, columns))

    def kill(self) -> None:
        """Kills the command with everything it started, and ends a `next` that waits. May be repeated."""
        stream = self._native
        self._killed = True
        stream.kill()

    close = kill

    def fileno(self) -> int:
        """A descriptor that polls readable when `try_next` has something."""
        return self._native.fileno()

    def __enter__(self) -> ExecStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()


class FileReader:
    """A file of a machine being read: an iterator of bytes, each at most 256 KiB."""

    _reader: _native.Reader | None

    def __init__(self) -> None:
        raise TypeError("use Machine.open_read")

    @classmethod
    def _of(cls, reader: _native.Reader) -> FileReader:
        self = object.__new__(cls)
        self._reader = reader
        return self

    def stat(self) -> FileStat:
        """Facts of the file, as it was opened."""
        return _types.file_stat(require(self._reader, "reader").stat())

    def __iter__(self) -> FileReader:
        return self

    def __next__(self) -> bytes:
        piece = require(self._reader, "reader").next()
        if piece is None:
            raise StopIteration
        return piece

    def read(self) -> bytes:
        """All that is left."""
        return b"".join(self)

    def close(self) -> None:
        """Ends the reading. May be repeated."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()

    def __enter__(self) -> FileReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class FileWriter:
    """A file of a machine being written. Without `finish` the old file stays as it was.

    At the end of a `with` block it is finished, or aborted when an exception leaves the block.
    """

    _writer: _native.Writer | None

    def __init__(self) -> None:
        raise TypeError("use Machine.open_write")

    @classmethod
    def _of(cls, writer: _native.Writer) -> FileWriter:
        self = object.__new__(cls)
        self._writer = writer
        return self

    def write(self, data: BytesLike) -> None:
        """Writes bytes; waits while the guest is busy. Interrupted by an exception, it aborts the file."""
        writer, whole = require(self._writer, "writer"), check.data("data", data)
        try:
            writer.write(whole)
        except BaseException:
            self.abort()
            raise

    def finish(self) -> None:
        """Puts the file in its place. `OutcomeUnknownError` when the answer got lost."""
        writer = require(self._writer, "writer")
        writer.finish()
        self._writer = None

    def abort(self) -> None:
        """Drops what was written. Quiet after `finish`."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.cancel()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        try:
            if kind is None:
                self.finish()
        finally:
            self.abort()


class TreeWalk:
    """The entries of a tree as the guest finds them: an iterator of `WalkEntry`, a folder before what is in it."""

    _walk: _native.Walk | None
    _entries: deque[WalkEntry]

    def __init__(self) -> None:
        raise TypeError("use Machine.walk")

    @classmethod
    def _of(cls, walk: _native.Walk) -> TreeWalk:
        self = object.__new__(cls)
        self._walk = walk
        self._entries = deque()
        return self

    def __iter__(self) -> TreeWalk:
        return self

    def __next__(self) -> WalkEntry:
        while not self._entries:
            page = require(self._walk, "walk").next()
            if page is None:
                raise StopIteration
            self._entries.extend(_types.walk_entries(page))
        return self._entries.popleft()

    def close(self) -> None:
        """Ends the walk. May be repeated."""
        walk, self._walk = self._walk, None
        self._entries.clear()
        if walk is not None:
            walk.cancel()

    def __enter__(self) -> TreeWalk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
