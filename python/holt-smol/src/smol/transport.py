"""Streams of running commands, and whether this host can run machines at all."""

from __future__ import annotations

import codecs
import contextlib
import platform
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._engine import as_smol_error, engine
from ._lifetime import Origin
from .errors import SmolError

if TYPE_CHECKING:
    import holt

__all__ = ["ExecStream", "local_availability"]

_PIECE = 64 * 1024  # bytes; longer output is handed on in several events
_SUPPORTED = {("darwin", "arm64"), ("linux", "x86_64"), ("linux", "aarch64")}
_LEAST_GLIBC = (2, 34)


class ExecStream:
    """The events of a running command, each a dict:

    - ``{"kind": "stdout" | "stderr", "data": str}`` as output arrives, decoded as UTF-8 across pieces;
    - ``{"kind": "exit", "exit_code": int}``, the last one;
    - ``{"kind": "error", "message": "[CODE] sentence"}`` in place of an exception; nothing follows it.

    An iterator, for one thread at a time. :meth:`kill` may be called from any thread, ends the command with
    everything it started, and frees a thread that waits for the next event; nothing is yielded after it.
    Leaving a ``with`` block, :meth:`close` and losing the object kill as well. A command whose stream nobody
    reads waits once about 1 MiB are on their way. In a forked child it gives one ``[INVALID_STATE]`` event,
    and killing it does nothing.
    """

    def __init__(self, events: Iterable[dict[str, Any]], kill: Callable[[], None]) -> None:
        self._events = iter(events)
        self._end = kill
        self._turn = threading.Lock()  # of next()
        self._state = threading.Lock()  # of the two below; never held while waiting
        self._killed = False
        self._finished = False
        self._origin = Origin()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        if not self._origin.is_here():
            return self._refused()
        with self._turn:
            if self._killed or self._finished:
                raise StopIteration
            try:
                event = next(self._events)
            except StopIteration:
                self._finished = True
                raise
            except Exception:
                if self._killed:  # the connection that kill() tore down
                    raise StopIteration from None
                raise
            return self._checked(event)

    def _refused(self) -> dict[str, Any]:
        if self._killed or self._finished:
            raise StopIteration
        self._finished = True
        return error_event(self._origin.refusal("This stream"))

    def _checked(self, event: dict[str, Any]) -> dict[str, Any]:
        with self._state:
            if self._killed:
                raise StopIteration
            self._finished = event["kind"] in ("exit", "error")
        return event

    def kill(self) -> None:
        """Kills the command. Idempotent, and nothing happens once it has ended."""
        if not self._origin.is_here():
            return
        with self._state:
            if self._killed or self._finished:
                return
            self._killed = True
        try:
            self._end()
        except Exception as error:
            if as_smol_error(error) is None:
                raise

    def close(self) -> None:
        self.kill()

    def __enter__(self) -> ExecStream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # half-made, or the interpreter is going
            self.kill()


def error_event(error: SmolError) -> dict[str, Any]:
    return {"kind": "error", "message": f"[{error.code}] {error}"}


class Decoder:
    """Turns the engine's events into ours. A character split over two pieces of output comes out whole."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {kind: make("replace") for kind in ("stdout", "stderr")}

    def events(self, event: holt.Event) -> Iterator[dict[str, Any]]:
        """None, one or more of our events."""
        if event.kind == "exit":
            yield from self.rest()
            assert event.result is not None
            yield {"kind": "exit", "exit_code": int(event.result.returncode)}
            return
        for start in range(0, len(event.data), _PIECE):
            text = self._decoders[event.kind].decode(event.data[start : start + _PIECE])
            if text:
                yield {"kind": event.kind, "data": text}

    def failure(self, error: SmolError) -> Iterator[dict[str, Any]]:
        yield from self.rest()
        yield error_event(error)

    def rest(self) -> Iterator[dict[str, Any]]:
        """What is left of characters that were never completed."""
        for kind, decoder in self._decoders.items():
            text = decoder.decode(b"", final=True)
            if text:
                yield {"kind": kind, "data": text}


class EngineEvents:
    """The events of a stream of the engine, as an iterator that another thread may end by killing that
    stream."""

    def __init__(self, stream: holt.ExecStream, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._decoder = Decoder()
        self._ready: deque[dict[str, Any]] = deque()
        self._over = False
        self._ended = ended

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while not self._ready:
            if self._over:
                raise StopIteration
            self._ready.extend(self._receive())
        return self._ready.popleft()

    def _receive(self) -> list[dict[str, Any]]:
        try:
            event = self._stream.next()
        except Exception as error:
            translated = as_smol_error(error)
            self._finish()
            if translated is None:
                raise
            return list(self._decoder.failure(translated))
        if event is None:
            self._finish()
            return list(self._decoder.rest())
        if event.kind == "exit":
            self._finish()
        return list(self._decoder.events(event))

    def _finish(self) -> None:
        self._over = True
        self._ended()

    def kill(self) -> None:
        try:
            self._stream.kill()
        finally:
            self._ended()


def failed_stream(error: SmolError) -> ExecStream:
    """The stream of a command that could not be started."""
    return ExecStream([error_event(error)], lambda: None)


def local_availability() -> tuple[bool, str | None, str | None]:
    """Whether machines run on this host: ``(available, code, reason)``.

    ``(True, None, None)``, or the first obstacle: ``UNSUPPORTED_PLATFORM``, ``RUNTIME_NOT_INSTALLED``,
    ``KVM_UNAVAILABLE`` or ``HYPERVISOR_UNAVAILABLE``. Never raises and never boots: it reads the remembered
    verdict of the engine's last real boot. Without KVM machines are emulated, which is available but slower
    and no isolation boundary; ``HOLT_ACCELERATOR=kvm`` makes it an obstacle.
    """
    try:
        obstacle = _platform_obstacle()
        if obstacle is not None:
            return False, "UNSUPPORTED_PLATFORM", obstacle
        answer = engine().local_availability()
        if answer.available:
            return True, None, None
        return False, answer.code or "HYPERVISOR_UNAVAILABLE", answer.reason
    except SmolError as error:
        return False, error.code, str(error)
    except Exception as error:  # the promise is not to raise, whatever the engine's state
        known = _quietly(error)
        return False, known or "RUNTIME_NOT_INSTALLED", str(error)


def _quietly(error: Exception) -> str | None:
    code = getattr(error, "code", None)
    hosts = ("UNSUPPORTED_PLATFORM", "RUNTIME_NOT_INSTALLED", "KVM_UNAVAILABLE", "HYPERVISOR_UNAVAILABLE")
    return code if code in hosts else None


def _platform_obstacle() -> str | None:
    system, machine = sys.platform, platform.machine().lower()
    if (system, machine) not in _SUPPORTED:
        return f"Machines run on Linux and not on {system} {machine}"
    if system != "linux":
        return None
    name, version = platform.libc_ver()
    if name != "glibc":
        return f"The C library {name or 'of this host'} is not glibc"
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < _LEAST_GLIBC:
        return f"glibc {version} is older than {_LEAST_GLIBC[0]}.{_LEAST_GLIBC[1]}"
    return None
