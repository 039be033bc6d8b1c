"""One command of a workspace: what may be asked, and what its output and end come to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NoReturn

import anyio

from pydantic_ai.workspaces import (
    CommandResult,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceTimeoutError,
)

import holt

OUTPUT_LIMIT = 10 * 1024 * 1024
"""Bytes of both streams of a command together."""

_PREVIEW = 64 * 1024
# The guest's clock decides; the host's is for a guest that does not answer.
_HOST_GRACE = 5.0


def checked_command(command: WorkspaceCommand, shell: bool) -> str | list[str]:
    """The script or argv to run. Raises `TypeError` for another form, `ValueError` for a NUL or an empty argv."""
    if isinstance(command, str):
        if not shell:
            raise TypeError("a command that is a string needs shell=True; give an argv list without it")
        if "\0" in command:
            raise ValueError("embedded null byte in the command")
        return command
    if isinstance(command, (bytes, bytearray)) or not isinstance(command, Sequence):
        raise TypeError("a command is a string or a list of strings")
    if shell:
        raise TypeError("shell=True takes one string; leave it out for an argv list")
    for argument in command:
        if type(argument) is not str:
            raise TypeError("the elements of an argv list must be strings")
        if "\0" in argument:
            raise ValueError("embedded null byte in the argv list")
    if not command:
        raise ValueError("an argv list needs at least the program to run")
    return list(command)


class _Output:
    """What a command has written so far. Bounded."""

    def __init__(self) -> None:
        self._streams: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self._size = 0

    def add(self, event: holt.Event) -> None:
        self._streams[event.kind].append(event.data)
        self._size += len(event.data)
        if self._size > OUTPUT_LIMIT:
            raise WorkspaceOutputLimitError(
                "the command wrote more than 10 MiB; send its output to a file and read a part of that",
                limit=OUTPUT_LIMIT,
                stdout=self.text("stdout", _PREVIEW),
                stderr=self.text("stderr", _PREVIEW),
            )

    def text(self, stream: str, limit: int | None = None) -> str:
        return b"".join(self._streams[stream])[:limit].decode(errors="replace")

    def raise_timeout(self, timeout: float) -> NoReturn:
        raise WorkspaceTimeoutError(
            f"Command stopped at its timeout of {timeout:g} seconds",
            stdout=self.text("stdout"),
            stderr=self.text("stderr"),
        )


async def run(
    machine: holt.AsyncMachine,
    command: str | list[str],
    *,
    env: Mapping[str, str],
    working_dir: str,
    timeout: float | None,
) -> CommandResult:
    """Runs it to its end. Whoever is cancelled meanwhile takes the command along."""
    output = _Output()
    result: holt.ExecResult | None = None
    with anyio.move_on_after(None if timeout is None else timeout + _HOST_GRACE) as limit:
        async with machine.exec_stream(
            command, shell=isinstance(command, str), env=env, working_dir=working_dir, timeout=timeout
        ) as stream:
            result = await _collect(stream, output)
    if timeout is not None and (limit.cancelled_caught or (result is not None and result.timed_out)):
        output.raise_timeout(timeout)
    if result is None:
        raise WorkspaceError(f"machine {machine.name} sent no exit status of the command")
    return CommandResult(exit_code=result.returncode, stdout=output.text("stdout"), stderr=output.text("stderr"))


async def _collect(events: AsyncIterator[holt.Event], output: _Output) -> holt.ExecResult | None:
    async for event in events:
        if event.kind == "exit":
            return event.result
        output.add(event)
    return None
