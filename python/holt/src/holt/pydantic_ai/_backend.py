"""A machine behind Pydantic AI's workspace protocols."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    SupportsCommands,
    SupportsFilesystem,
    SupportsRealpath,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceRef,
)

import holt
from holt.pydantic_ai import _command, _errors
from holt.pydantic_ai._sandbox import Ready, Sandbox
from holt.pydantic_ai._settings import IDLE_STOP, Settings, check_env, check_provider, check_timeout

T = TypeVar("T")

_READ_LIMIT = 1 << 30
_NAME_MAX = 255
_PATH_MAX = 4095


class HoltSandboxBackend(WorkspaceBackend, SupportsCommands, SupportsFilesystem, SupportsRealpath):
    """Commands and files of a microVM of this host.

    Building one does nothing. The first operation makes a machine, or attaches to the one that `sandbox` is or `ref`
    names; the machine outlives the backend and is removed with `HoltSandbox().destroy(ref)`. One that has stopped,
    for want of use, is started again by the next operation.

    Any number of tasks, event loops (asyncio or Trio) and threads may use one backend.

    Args:
        sandbox: Use this machine. Who made it removes it.
        ref: Attach to the machine that this names, whatever its name.
        image: Image of a new machine; the engine's default image when None.
        cpus: Virtual CPUs of a new machine, from 1.
        memory_mb: Memory of a new machine in MiB.
        disk_gb: Disk of a new machine in GiB.
        user: User of a new machine's commands and file operations: a name of its image, or `uid[:gid]`.
        allow_internet_access: Whether a new machine gets a network that reaches every host.
        allow_hosts: Hosts that a new machine may reach; no others.
        working_dir: Absolute directory in which commands start and from which relative paths count, made when it is
            missing. None: the machine's own.
        env: Variables of every command, also in a machine attached to.
        labels: Labels of a new machine, which `holt ls --label` finds.
        idle_stop: Seconds without client and user process after which a new machine stops, flushed. None: never.
        require_kvm: Refuse to boot where hardware virtualization does not work.
        host: Folders and programs of the engine; None: as the environment says.

    Raises:
        TypeError, ValueError: for options that are of the wrong type or out of range, for a ref of another provider,
            and for both `sandbox` and `ref`.
    """

    def __init__(
        self,
        *,
        sandbox: holt.Machine | holt.AsyncMachine | None = None,
        ref: WorkspaceRef | None = None,
        image: str | None = None,
        cpus: int | None = None,
        memory_mb: int | None = None,
        disk_gb: int | None = None,
        user: str | None = None,
        allow_internet_access: bool = False,
        allow_hosts: Sequence[str] = (),
        working_dir: str | None = "/workspace",
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_stop: float | None = IDLE_STOP,
        require_kvm: bool = False,
        host: holt.HostOptions | None = None,
    ) -> None:
        settings = Settings(
            image=image,
            cpus=cpus,
            memory_mb=memory_mb,
            disk_gb=disk_gb,
            user=user,
            allow_internet_access=allow_internet_access,
            allow_hosts=allow_hosts,
            working_dir=working_dir,
            env=env,
            labels=labels,
            idle_stop=idle_stop,
            require_kvm=require_kvm,
            host=host,
        )
        if ref is not None:
            check_provider(ref)
        if sandbox is not None and ref is not None:
            raise ValueError("give either `sandbox` or `ref`, not both")
        self._sandbox = Sandbox(settings, machine=_machine_of(sandbox), ref=ref)
        self._env = dict(env or {})

    @property
    def ref(self) -> WorkspaceRef | None:
        """Of a new machine: set before its boot starts, gone again when that fails."""
        return self._sandbox.ref

    async def get_sandbox(self) -> holt.AsyncMachine:
        """The machine, made or attached first where that is still to be done."""
        return (await self._sandbox.acquire()).machine

    async def working_dir(self) -> str:
        """The directory in which commands start: absolute, links resolved."""
        return (await self._sandbox.acquire()).working_dir

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command; at most 10 MiB of output, both streams together. See `SupportsCommands.run`."""
        asked = _command.checked_command(command, shell)
        check_timeout(timeout)
        check_env(env)
        env = {**self._env, **(env or {})}

        async def work(ready: Ready) -> CommandResult:
            try:
                return await _command.run(
                    ready.machine, asked, env=env, working_dir=ready.working_dir, timeout=timeout
                )
            except holt.Error as error:
                if error.code != "NOT_FOUND" or not _errors.is_about_a_path(error):
                    raise
                raise WorkspaceError(
                    f"The directory {ready.working_dir} or /bin/sh is missing in smol VM {ready.machine.name}: {error}"
                ) from error

        return await self._sandbox.use(work)

    async def read_bytes(self, path: str) -> bytes:
        """The content of a regular file of at most 1 GiB."""
        return await self._file(path, lambda machine: machine.read_file(path, limit=_READ_LIMIT))

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Replace a file whole, making missing parents; through links, keeping the mode."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        await self._file(path, lambda machine: machine.write_file(path, data, parents=True))

    async def stat(self, path: str) -> FileEntry:
        """Facts of a file or directory; links are followed."""
        facts = await self._file(path, lambda machine: machine.stat(path))
        return _entry(path, is_dir=facts.type == "directory", size=facts.size)

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """The entries of a directory by path. Links are followed; one that leads nowhere is a file without size."""
        found = await self._file(path, lambda machine: machine.list_dir(path))
        entries = [
            _entry(posixpath.join(path, entry.name), is_dir=entry.target_type == "directory", size=entry.size)
            for entry in found
        ]
        return sorted(entries, key=lambda entry: entry.path)

    async def make_dir(self, path: str) -> None:
        """Make a directory with its parents; quiet when it is there."""
        await self._file(path, lambda machine: machine.make_dir(path))

    async def remove(self, path: str) -> None:
        """Remove a file, a tree, or a link itself. Never the working directory and what is above it."""
        _check_path(path)
        parent, name = posixpath.split(path.rstrip("/") or "/")
        real_parent = await self._file(path, lambda machine: machine.realpath(parent))
        ready = await self._sandbox.acquire()
        if _holds(posixpath.normpath(posixpath.join(real_parent, name)), ready.working_dir) or _holds(
            posixpath.normpath(path), self._sandbox.settings.working_dir
        ):
            raise ValueError("the working directory and what is above it cannot be removed")
        await self._file(path, lambda machine: machine.remove_path(path, recursive=True))

    async def exists(self, path: str) -> bool:
        """Whether a file or directory is there; links are followed."""
        return await self._file(path, lambda machine: machine.exists(path))

    async def realpath(self, path: str) -> str:
        """The path with every link resolved; missing components stay as they are."""
        try:
            return await self._file(path, lambda machine: machine.realpath(path))
        except holt.Error as error:
            # The guest's word for a loop of links.
            if error.code != "STORAGE_ERROR" or not _errors.is_about_a_path(error):
                raise
            raise _errors.os_error(errno.ELOOP, path) from error

    async def _file(self, path: str, operation: Callable[[holt.AsyncMachine], Awaitable[T]]) -> T:
        """An operation whose failures at a path of the machine are Python's own errors at `path`."""
        _check_path(path)

        async def work(ready: Ready) -> T:
            try:
                return await operation(ready.machine)
            except holt.Error as error:
                translated = _errors.path_error(error, path)
                if translated is error:
                    raise
                raise translated from error

        return await self._sandbox.use(work)


def _machine_of(sandbox: holt.Machine | holt.AsyncMachine | None) -> holt.Machine | None:
    if sandbox is None or isinstance(sandbox, holt.Machine):
        return sandbox
    if isinstance(sandbox, holt.AsyncMachine):
        return sandbox.sync
    raise TypeError(f"sandbox must be a holt.Machine or holt.AsyncMachine, not {type(sandbox).__name__}")


def _check_path(path: str) -> None:
    if type(path) is not str:
        raise TypeError(f"a path must be a string, not {type(path).__name__}")
    if "\0" in path:
        raise ValueError("embedded null byte")
    if not path.startswith("/"):
        raise ValueError(f"a path must be absolute, not {path!r:.200}")
    encoded = path.encode(errors="surrogateescape")
    if len(encoded) > _PATH_MAX or max(map(len, encoded.split(b"/"))) > _NAME_MAX:
        raise _errors.os_error(errno.ENAMETOOLONG, path)


def _entry(path: str, *, is_dir: bool, size: int | None) -> FileEntry:
    name = posixpath.basename(posixpath.normpath(path))
    return FileEntry(name=name, path=path, is_dir=is_dir, size=None if is_dir else size)


def _holds(path: str, directory: str | None) -> bool:
    """Whether `directory` is `path` or below it."""
    if directory is None:
        return False
    return directory == path or directory.startswith(path.rstrip("/") + "/")
