"""Streams of commands, for code that waits."""

from __future__ import annotations

from types import TracebackType

from holt import _arguments as check
from holt import _native, _types
from holt._arguments import BytesLike, Seconds
from holt._requests import check_process
from holt._types import Event


class ExecStream:
    """A running command: an iterator of `Event`, the exit event last.

    The command ends, with everything it started, when the stream is killed, closed or dropped. `next` belongs to one
    thread; the other methods may be called from others meanwhile.
    """

    _stream: _native.Stream

    def __init__(self) -> None:
        raise TypeError("use Machine.exec_stream")

    @classmethod
    def _of(cls, stream: _native.Stream) -> ExecStream:
        self = object.__new__(cls)
        self._stream = stream
        return self

    @property
    def _native(self) -> _native.Stream:
        check_process()
        return self._stream

    def __iter__(self) -> ExecStream:
        return self

    def __next__(self) -> Event:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: Seconds | None = None) -> Event | None:
        """The next event; None after the exit event and once killed. `timeout`: then `TimeoutError`, and the stream
        stays usable. Raises `OutcomeUnknownError` when the machine ended before the command did, and refusals to start."""
        values = self._native.next(check.seconds("timeout", timeout))
        return None if values is None else _types.event(values)

    def write(self, data: BytesLike) -> None:
        """Hands bytes to the standard input; waits while the command does not take them. Quiet when it has ended."""
        self._native.write(check.data("data", data))

    def close_stdin(self) -> None:
        """End of file for the command."""
        self._native.close_stdin()

    def signal(self, number: int) -> None:
        """Sends a signal to the command's processes. Quiet when it has ended."""
        self._native.signal(check.integer("number", number, 1, 64))

    def kill(self) -> None:
        """Kills the command with everything it started, and ends a `next` that waits. May be repeated."""
        self._native.kill()

    close = kill

    def fileno(self) -> int:
        """A descriptor that polls readable when `next` may have something."""
        return self._native.fileno()

    def __enter__(self) -> ExecStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
