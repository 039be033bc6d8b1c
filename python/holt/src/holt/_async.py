"""`AsyncMachine`: the same calls for an event loop, which watches their descriptors; no thread waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

from holt import _native, _requests
from holt._arguments import BytesLike, Command, Seconds, StrPath
from holt._async_streams import AsyncExecStream, AsyncFileReader, AsyncFileWriter, AsyncTreeWalk
from holt._errors import Error
from holt._host import HostOptions
from holt._loops import wait_readable, wait_readable_to_the_end
from holt._machine import (
    OUTPUT_LIMIT,
    READ_LIMIT,
    UNCHANGED,
    Machine,
    Network,
    Owner,
    Progress,
    Pull,
    Unchanged,
    changed,
)
from holt._requests import Request, Requests
from holt._types import (
    CommandInfo,
    CopyResult,
    DirEntry,
    ExecResult,
    FileStat,
    MachineEvent,
    MachineInfo,
    MachineState,
    MachineStats,
    ResourceLimits,
    Resources,
)

T = TypeVar("T")
# AsyncMachine.list hides the built-in name inside the class.
_Infos: TypeAlias = list[MachineInfo]
_Entries: TypeAlias = list[DirEntry]
_Commands: TypeAlias = list[CommandInfo]
_Events: TypeAlias = list[MachineEvent]


async def drive(request: Request[T]) -> T:
    """Awaits a call. Cancelling the awaiting task ends it."""
    call = request.call
    try:
        while True:
            done, result = call.poll()
            if done:
                return request.convert(result)
            await wait_readable(call.fileno())
    except Error:
        raise
    except BaseException as error:
        call.cancel()
        # A coroutine that is closed may not await any more: the call ends by itself then.
        if request.undo is not None and not isinstance(error, GeneratorExit):
            await _take_back(request, request.undo)
        raise


async def _take_back(request: Request[T], undo: Callable[[T], Request[Any]]) -> None:
    try:
        made = request.convert(await _to_the_end(request.call))
        await _to_the_end(undo(made).call)
    except Error:
        pass  # it was cancelled in time


async def _to_the_end(call: _native.Call) -> Any:
    while True:
        done, result = call.poll()
        if done:
            return result
        await wait_readable_to_the_end(call.fileno())


class AsyncMachine:
    """`Machine` for event loops (asyncio, Trio): the same names and arguments, as coroutines.

    Commands and file calls are driven by the event loop through a descriptor each; starts, ends and copies of trees run
    on a few threads, each kind on threads of its own, and any number of `wait` on four. Cancelling the task that awaits
    a command kills the command with everything it started. One object may be used by tasks of several loops.
    """

    _requests: Requests
    _ephemeral: bool

    def __init__(self, machine: Machine) -> None:
        """The same machine as `machine`, for an event loop."""
        if not isinstance(machine, Machine):
            raise TypeError(f"machine must be a holt.Machine, not {type(machine).__name__}")
        self._requests = machine._requests
        self._ephemeral = machine._ephemeral

    @classmethod
    def _of(cls, native: _native.Machine, *, ephemeral: bool = False) -> AsyncMachine:
        return cls(Machine._of(native, ephemeral=ephemeral))

    @property
    def sync(self) -> Machine:
        """The same machine, for code that waits."""
        return Machine._of(self._requests.native, ephemeral=self._ephemeral)

    @classmethod
    async def create(
        cls,
        name: str | None = None,
        *,
        image: str | None = None,
        pull: Pull = "missing",
        cpus: int = 2,
        memory_mb: int = 1024,
        disk_gb: int = 20,
        network: Network = "none",
        allow_hosts: Sequence[str] = (),
        allow_cidrs: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        make_dirs: Sequence[StrPath] = (),
        labels: Mapping[str, str] | None = None,
        persistent: bool = True,
        idle_stop: Seconds | None = None,
        idle_suspend: Seconds | None = None,
        owner_end: Owner = "keep",
        require_kvm: bool = False,
        on_progress: Progress | None = None,
        timeout: Seconds | None = None,
        host: HostOptions | None = None,
    ) -> AsyncMachine:
        """As `Machine.create`. Cancelled, it leaves nothing. `on_progress` is called on another thread."""
        config = _requests.config_of(
            name, image=image, pull=pull, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=persistent, idle_stop=idle_stop, idle_suspend=idle_suspend,
        )  # fmt: skip
        request = _requests.create(config, on_progress, timeout, owner_end, host, require_kvm)
        return cls._of(await drive(request), ephemeral=not persistent)

    @classmethod
    async def define(
        cls,
        name: str | None = None,
        *,
        image: str | None = None,
        pull: Pull = "missing",
        cpus: int = 2,
        memory_mb: int = 1024,
        disk_gb: int = 20,
        network: Network = "none",
        allow_hosts: Sequence[str] = (),
        allow_cidrs: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        make_dirs: Sequence[StrPath] = (),
        labels: Mapping[str, str] | None = None,
        idle_stop: Seconds | None = None,
        idle_suspend: Seconds | None = None,
        host: HostOptions | None = None,
    ) -> AsyncMachine:
        """As `Machine.define`."""
        config = _requests.config_of(
            name, image=image, pull=pull, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=True, idle_stop=idle_stop, idle_suspend=idle_suspend,
        )  # fmt: skip
        return cls._of(await drive(_requests.define(config, host)))

    @classmethod
    async def connect(
        cls,
        name: str,
        *,
        owner_end: Owner = "keep",
        on_progress: Progress | None = None,
        timeout: Seconds | None = None,
        host: HostOptions | None = None,
    ) -> AsyncMachine:
        """As `Machine.connect`."""
        return cls._of(await drive(_requests.connect(name, on_progress, timeout, owner_end, host)))

    @classmethod
    async def open(cls, name: str, *, host: HostOptions | None = None) -> AsyncMachine:
        """As `Machine.open`."""
        return cls._of(_requests.open_machine(name, host))

    @classmethod
    async def list(cls, labels: Mapping[str, str] | None = None, *, host: HostOptions | None = None) -> _Infos:
        """As `Machine.list`."""
        return await drive(_requests.list_machines(labels, host))

    @property
    def name(self) -> str:
        """The machine's name."""
        return self._requests.name

    def __repr__(self) -> str:
        return f"<holt.AsyncMachine {self.name}>"

    async def __aenter__(self) -> AsyncMachine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._ephemeral:
            return
        try:
            await self.remove(force=True)
        except Error as failure:
            if failure.code != "NOT_FOUND" and error is None:
                raise

    async def state(self) -> MachineState:
        """As `Machine.state`."""
        return await drive(self._requests.state())

    async def info(self) -> MachineInfo:
        """As `Machine.info`."""
        return await drive(self._requests.info())

    async def console_log(self) -> str:
        """As `Machine.console_log`."""
        return self._requests.console_log()

    async def start(
        self, *, owner_end: Owner = "keep", on_progress: Progress | None = None, timeout: Seconds | None = None
    ) -> None:
        """As `Machine.start`."""
        await drive(self._requests.start(on_progress, timeout, owner_end))

    async def stop(self, grace: Seconds = 10.0, *, timeout: Seconds | None = None) -> None:
        """As `Machine.stop`."""
        await drive(self._requests.stop(grace, timeout))

    async def remove(self, force: bool = False, *, timeout: Seconds | None = None) -> None:
        """As `Machine.remove`."""
        await drive(self._requests.remove(force, timeout))

    async def pause(self, *, timeout: Seconds | None = None) -> None:
        """As `Machine.pause`."""
        await drive(self._requests.pause(timeout))

    async def suspend(self, *, timeout: Seconds | None = None) -> None:
        """As `Machine.suspend`."""
        await drive(self._requests.suspend(timeout))

    async def resume(
        self, *, owner_end: Owner = "keep", on_progress: Progress | None = None, timeout: Seconds | None = None
    ) -> None:
        """As `Machine.resume`."""
        await drive(self._requests.resume(on_progress, timeout, owner_end))

    async def resize(
        self,
        *,
        cpus: int | None = None,
        memory_mb: int | None = None,
        disk_gb: int | None = None,
        timeout: Seconds | None = None,
    ) -> Resources:
        """As `Machine.resize`."""
        return await drive(self._requests.resize(cpus, memory_mb, disk_gb, timeout))

    async def update(
        self,
        *,
        labels: Mapping[str, str | None] | None = None,
        env: Mapping[str, str | None] | None = None,
        idle_stop: Seconds | None | Unchanged = UNCHANGED,
        idle_suspend: Seconds | None | Unchanged = UNCHANGED,
    ) -> None:
        """As `Machine.update`."""
        await drive(self._requests.update(labels, env, changed(idle_stop=idle_stop, idle_suspend=idle_suspend)))

    async def wait(self, what: Literal["ready", "ended"] = "ended", *, timeout: Seconds | None = None) -> MachineInfo:
        """As `Machine.wait`."""
        return await drive(self._requests.wait(what, timeout))

    async def stats(self, *, timeout: Seconds | None = None) -> MachineStats:
        """As `Machine.stats`."""
        return await drive(self._requests.stats(timeout))

    async def events(self) -> _Events:
        """As `Machine.events`."""
        return await drive(self._requests.events())

    async def exec(
        self,
        command: Command,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        stdin: BytesLike | str | None = None,
        timeout: Seconds | None = None,
        output_limit: int = OUTPUT_LIMIT,
        over_limit: Literal["cut", "fail"] = "cut",
        deadline: Seconds | None = None,
        limits: ResourceLimits | None = None,
        idempotency_key: str | None = None,
    ) -> ExecResult:
        """As `Machine.exec`. Cancelled, it kills the command with everything it started."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline, limits=limits,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return await drive(self._requests.exec(command, shell, stdin, output_limit, over_limit, options))

    def exec_stream(
        self,
        command: Command,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        stdin: BytesLike | Literal["pipe"] | None = None,
        terminal: tuple[int, int] | None = None,
        timeout: Seconds | None = None,
        deadline: Seconds | None = None,
        limits: ResourceLimits | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncExecStream:
        """As `Machine.exec_stream`. It starts at once; the stream may be awaited and need not be."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline, limits=limits,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return AsyncExecStream._of(self._requests.exec_stream(command, shell, stdin, terminal, options))

    async def start_command(
        self,
        command: Command,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        stdin: BytesLike | str | None = None,
        terminal: tuple[int, int] | None = None,
        timeout: Seconds | None = None,
        output_limit: int = OUTPUT_LIMIT,
        deadline: Seconds | None = None,
        limits: ResourceLimits | None = None,
        idempotency_key: str | None = None,
    ) -> CommandInfo:
        """As `Machine.start_command`."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline, limits=limits,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return await drive(self._requests.start_command(command, shell, stdin, terminal, output_limit, options))

    async def commands(self, *, timeout: Seconds | None = None) -> _Commands:
        """As `Machine.commands`."""
        return await drive(self._requests.commands(timeout))

    def attach_command(
        self, id: str, *, stdout_offset: int = 0, stderr_offset: int = 0, deadline: Seconds | None = None
    ) -> AsyncExecStream:
        """As `Machine.attach_command`."""
        return AsyncExecStream._of(self._requests.attach_command(id, stdout_offset, stderr_offset, deadline))

    async def wait_command(self, id: str, timeout: Seconds | None = None) -> CommandInfo:
        """As `Machine.wait_command`."""
        return await drive(self._requests.wait_command(id, timeout))

    async def signal_command(self, id: str, number: int, *, timeout: Seconds | None = None) -> None:
        """As `Machine.signal_command`."""
        await drive(self._requests.signal_command(id, number, timeout))

    async def kill_command(self, id: str, *, timeout: Seconds | None = None) -> CommandInfo:
        """As `Machine.kill_command`."""
        return await drive(self._requests.kill_command(id, timeout))

    async def read_file(
        self,
        path: StrPath,
        *,
        offset: int = 0,
        length: int | None = None,
        limit: int = READ_LIMIT,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> bytes:
        """As `Machine.read_file`."""
        return await drive(self._requests.read_file(path, offset, length, limit, user, timeout))

    async def open_read(
        self,
        path: StrPath,
        *,
        offset: int = 0,
        length: int | None = None,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> AsyncFileReader:
        """As `Machine.open_read`."""
        return AsyncFileReader._of(await drive(self._requests.open_read(path, offset, length, user, timeout)))

    async def write_file(
        self,
        path: StrPath,
        data: BytesLike | str,
        *,
        mode: int | None = None,
        parents: bool = False,
        exclusive: bool = False,
        expected_sha256: str | None = None,
        owner: str | None = None,
        mtime_ns: int | None = None,
        durable: bool = False,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """As `Machine.write_file`. Cancelled, it leaves the old file as it was."""
        options = _requests.write_options(
            mode=mode, parents=parents, exclusive=exclusive, expected_sha256=expected_sha256, owner=owner,
            mtime_ns=mtime_ns, durable=durable, user=user, timeout=timeout,
        )  # fmt: skip
        await drive(self._requests.write_file(path, data, options))

    async def open_write(
        self,
        path: StrPath,
        *,
        size: int | None = None,
        mode: int | None = None,
        parents: bool = False,
        exclusive: bool = False,
        expected_sha256: str | None = None,
        owner: str | None = None,
        mtime_ns: int | None = None,
        durable: bool = False,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> AsyncFileWriter:
        """As `Machine.open_write`."""
        options = _requests.write_options(
            mode=mode, parents=parents, exclusive=exclusive, expected_sha256=expected_sha256, owner=owner,
            mtime_ns=mtime_ns, durable=durable, user=user, timeout=timeout, size=size,
        )  # fmt: skip
        return AsyncFileWriter._of(self._requests.open_write(path, options))

    async def stat(self, path: StrPath, *, timeout: Seconds | None = None) -> FileStat:
        """As `Machine.stat`."""
        return await drive(self._requests.stat(path, timeout))

    async def lstat(self, path: StrPath, *, timeout: Seconds | None = None) -> FileStat:
        """As `Machine.lstat`."""
        return await drive(self._requests.lstat(path, timeout))

    async def exists(self, path: StrPath, *, timeout: Seconds | None = None) -> bool:
        """As `Machine.exists`."""
        return await drive(self._requests.exists(path, timeout))

    async def realpath(self, path: StrPath, *, timeout: Seconds | None = None) -> str:
        """As `Machine.realpath`."""
        return await drive(self._requests.realpath(path, timeout))

    async def list_dir(self, path: StrPath, *, timeout: Seconds | None = None) -> _Entries:
        """As `Machine.list_dir`."""
        return await drive(self._requests.list_dir(path, timeout))

    def walk(
        self,
        path: StrPath,
        *,
        max_depth: int | None = None,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> AsyncTreeWalk:
        """As `Machine.walk`."""
        return AsyncTreeWalk._of(self._requests.walk(path, max_depth, user, timeout))

    async def set_attributes(
        self,
        path: StrPath,
        *,
        mode: int | None = None,
        owner: str | None = None,
        mtime_ns: int | None = None,
        follow_links: bool = True,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """As `Machine.set_attributes`."""
        await drive(self._requests.set_attributes(path, mode, owner, mtime_ns, follow_links, user, timeout))

    async def make_dir(self, path: StrPath, *, timeout: Seconds | None = None) -> None:
        """As `Machine.make_dir`."""
        await drive(self._requests.make_dir(path, timeout))

    async def remove_path(self, path: StrPath, recursive: bool = False, *, timeout: Seconds | None = None) -> None:
        """As `Machine.remove_path`."""
        await drive(self._requests.remove_path(path, recursive, timeout))

    async def rename(self, source: StrPath, target: StrPath, *, timeout: Seconds | None = None) -> None:
        """As `Machine.rename`."""
        await drive(self._requests.rename(source, target, timeout))

    async def copy_in(
        self,
        source: StrPath,
        target: StrPath,
        *,
        follow_links: bool = False,
        keep_owners: bool = False,
        owner: str | None = None,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> CopyResult:
        """As `Machine.copy_in`."""
        options = _requests.copy_options(
            follow_links=follow_links, keep_owners=keep_owners, owner=owner, user=user, timeout=timeout
        )
        return await drive(self._requests.copy_in(source, target, options))

    async def copy_out(
        self,
        source: StrPath,
        target: StrPath,
        *,
        keep_owners: bool = False,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> CopyResult:
        """As `Machine.copy_out`."""
        options = _requests.copy_options(
            follow_links=False, keep_owners=keep_owners, owner=None, user=user, timeout=timeout
        )
        return await drive(self._requests.copy_out(source, target, options))

    async def ping(self, timeout: Seconds | None = None) -> None:
        """As `Machine.ping`."""
        await drive(self._requests.ping(timeout))
