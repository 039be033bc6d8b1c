"""`AsyncMachine`: the same calls for an event loop, which watches their descriptors; no thread waits."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

from holt import _native, _requests
from holt._arguments import BytesLike, Command, Seconds, StrPath
from holt._errors import Error
from holt._host import HostOptions
from holt._machine import OUTPUT_LIMIT, READ_LIMIT, Machine, Progress
from holt._requests import Request, Requests
from holt._types import CopyResult, DirEntry, ExecResult, FileStat, MachineInfo, MachineState

T = TypeVar("T")
_Infos: TypeAlias = list[MachineInfo]
_Entries: TypeAlias = list[DirEntry]


async def wait_readable(fd: int) -> None:
    """Waits until a descriptor polls readable, in asyncio's loop or Trio's."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        trio = sys.modules.get("trio")
        if trio is None:
            raise
        await trio.lowlevel.wait_readable(fd)
        return
    readable = loop.create_future()
    loop.add_reader(fd, _wake, readable)
    try:
        await readable
    finally:
        loop.remove_reader(fd)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def drive(request: Request[T]) -> T:
    """Awaits a call. Cancelling the awaiting task ends it."""
    try:
        return request.convert(await _result(request.call))
    except Error:
        raise
    except BaseException as error:
        request.call.cancel()
        if request.undo is not None and not isinstance(error, GeneratorExit):
            await _take_back(request, request.undo)
        raise


async def _result(call: _native.Call) -> Any:
    while True:
        done, result = call.poll()
        if done:
            return result
        await wait_readable(call.fileno())


async def _take_back(request: Request[T], undo: Callable[[T], Request[Any]]) -> None:
    try:
        made = request.convert(await _uncancelled(request.call))
        await _uncancelled(undo(made).call)
    except Error:
        pass  # it was cancelled in time


async def _uncancelled(call: _native.Call) -> Any:
    """The result of a call that ends soon, whatever happens to the task meanwhile."""
    while True:
        try:
            return await _result(call)
        except asyncio.CancelledError:
            continue


class AsyncMachine:
    """`Machine` for asyncio: the same names and arguments, as coroutines.

    Commands and file calls are driven by the event loop through a descriptor each. Cancelling the task that awaits a
    command kills the command with everything it started. One object may be used by tasks of several loops.
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
        cpus: int = 2,
        memory_mb: int = 1024,
        disk_gb: int = 20,
        network: Literal["none", "open", "allow_list"] = "none",
        allow_hosts: Sequence[str] = (),
        allow_cidrs: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        make_dirs: Sequence[StrPath] = (),
        labels: Mapping[str, str] | None = None,
        persistent: bool = True,
        idle_stop: Seconds | None = None,
        owner_end: Literal["keep", "stop"] = "keep",
        require_kvm: bool = False,
        on_progress: Progress | None = None,
        timeout: Seconds | None = None,
        host: HostOptions | None = None,
    ) -> AsyncMachine:
        """As `Machine.create`. Cancelled, it leaves nothing. `on_progress` is called on another thread."""
        config = _requests.config_of(
            name, image=image, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=persistent, idle_stop=idle_stop,
        )  # fmt: skip
        request = _requests.create(config, on_progress, timeout, owner_end, host, require_kvm)
        return cls._of(await drive(request), ephemeral=not persistent)

    @classmethod
    async def define(
        cls,
        name: str | None = None,
        *,
        image: str | None = None,
        cpus: int = 2,
        memory_mb: int = 1024,
        disk_gb: int = 20,
        network: Literal["none", "open", "allow_list"] = "none",
        allow_hosts: Sequence[str] = (),
        allow_cidrs: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        make_dirs: Sequence[StrPath] = (),
        labels: Mapping[str, str] | None = None,
        idle_stop: Seconds | None = None,
        host: HostOptions | None = None,
    ) -> AsyncMachine:
        """As `Machine.define`."""
        config = _requests.config_of(
            name, image=image, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=True, idle_stop=idle_stop,
        )  # fmt: skip
        return cls._of(await drive(_requests.define(config, host)))

    @classmethod
    async def connect(
        cls,
        name: str,
        *,
        owner_end: Literal["keep", "stop"] = "keep",
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
        self,
        *,
        owner_end: Literal["keep", "stop"] = "keep",
        on_progress: Progress | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """As `Machine.start`."""
        await drive(self._requests.start(on_progress, timeout, owner_end))

    async def stop(self, grace: Seconds = 10.0, *, timeout: Seconds | None = None) -> None:
        """As `Machine.stop`."""
        await drive(self._requests.stop(grace, timeout))

    async def remove(self, force: bool = False, *, timeout: Seconds | None = None) -> None:
        """As `Machine.remove`."""
        await drive(self._requests.remove(force, timeout))

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
        deadline: Seconds | None = None,
    ) -> ExecResult:
        """As `Machine.exec`. Cancelled, it kills the command with everything it started."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline
        )
        return await drive(self._requests.exec(command, shell, stdin, output_limit, options))

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

    async def write_file(
        self,
        path: StrPath,
        data: BytesLike | str,
        *,
        mode: int | None = None,
        parents: bool = False,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """As `Machine.write_file`. Cancelled, it leaves the old file as it was."""
        await drive(self._requests.write_file(path, data, mode, parents, user, timeout))

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
        self, source: str | os.PathLike[str], target: StrPath, *, timeout: Seconds | None = None
    ) -> CopyResult:
        """As `Machine.copy_in`."""
        return await drive(self._requests.copy_in(source, target, timeout))

    async def copy_out(
        self, source: StrPath, target: str | os.PathLike[str], *, timeout: Seconds | None = None
    ) -> CopyResult:
        """As `Machine.copy_out`."""
        return await drive(self._requests.copy_out(source, target, timeout))

    async def ping(self, timeout: Seconds | None = None) -> None:
        """As `Machine.ping`."""
        await drive(self._requests.ping(timeout))
