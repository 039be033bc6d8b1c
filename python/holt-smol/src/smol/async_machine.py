"""A machine, used from asyncio.

    async with await smol.AsyncMachine.create() as machine:
        async for event in machine.exec_stream(["make"]):
            ...

Commands and files are driven by the event loop; starting, stopping and looking machines up take a thread of
its default executor. Cancelling a task that runs a command kills the command, at whatever moment the
cancellation comes.
"""

from __future__ import annotations

import asyncio
import threading
from builtins import list as list_
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from . import _checks as check
from ._calls import EXEC_OUTPUT_LIMIT, FILE_USER, READ_LIMIT, exec_options, file_content, file_mode, result_of
from ._cloud import AsyncCloudCalls, AsyncEpisode, AsyncJob
from ._engine import as_smol_error, engine, engine_errors
from ._plan import exec_arguments
from .errors import InvalidConfigError
from .machine import Machine
from .transport import Decoder
from .tunnel import TunnelEndpoint, open_tunnel
from .types import (
    CacheDiskRef,
    ConnectOptions,
    EgressInterceptor,
    ExecOptions,
    ExecResult,
    ImageInfo,
    MachineConfig,
    MachineResources,
    MachineSummary,
    MachineUsageReport,
    PortableCheckpointInfo,
    PortEndpoint,
    PortSpec,
    PublishedPort,
)

if TYPE_CHECKING:
    import holt

__all__ = ["AsyncEpisode", "AsyncJob", "AsyncMachine"]

P = ParamSpec("P")
T = TypeVar("T")


async def _in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.to_thread(call, *args, **kwargs)


class _Making:
    """A creation on another thread, which its caller may abandon; then the machine is deleted."""

    def __init__(self, make: Callable[[], Machine]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._abandoned = False
        self._made: Machine | None = None

    def run(self) -> Machine:
        machine = self._make()
        with self._lock:
            self._made = machine
            abandoned = self._abandoned
        # Here, because the loop may have no threads left to do it on.
        if abandoned:
            machine.delete()
        return machine

    def abandon(self) -> Machine | None:
        """The machine when it has been made already, for the caller to delete."""
        with self._lock:
            self._abandoned = True
            return self._made


async def _made(make: Callable[[], Machine]) -> Machine:
    making = _Making(make)
    try:
        return await asyncio.to_thread(making.run)
    except asyncio.CancelledError:
        machine = making.abandon()
        if machine is not None:
            await asyncio.shield(asyncio.to_thread(machine.delete))
        raise


class AsyncMachine(AsyncCloudCalls):
    """:class:`Machine` for asyncio: the same names and arguments, as coroutines."""

    def __init__(self, machine: Machine) -> None:
        """The same machine as ``machine``."""
        self._m = machine

    # --- making and finding ---------------------------------------------------------------------------------

    @classmethod
    async def create(
        cls, config: MachineConfig | None = None, conn: ConnectOptions | None = None
    ) -> AsyncMachine:
        """As :meth:`Machine.create`. Cancelled, it leaves nothing."""
        return cls(await _made(lambda: Machine.create(config, conn)))

    @classmethod
    async def connect(cls, machine_id: str, conn: ConnectOptions | None = None) -> AsyncMachine:
        return cls(await _in_thread(Machine.connect, machine_id, conn))

    @classmethod
    async def open(cls, machine_id: str, conn: ConnectOptions | None = None) -> AsyncMachine:
        return cls(await _in_thread(Machine.open, machine_id, conn))

    @staticmethod
    async def delete_by_name(
        machine_id: str, conn: ConnectOptions | None = None, drain_secs: float | None = None
    ) -> None:
        await _in_thread(Machine.delete_by_name, machine_id, conn, drain_secs)

    @staticmethod
    async def list(
        conn: ConnectOptions | None = None, labels: dict[str, str] | None = None
    ) -> list_[MachineSummary]:
        return await _in_thread(Machine.list, conn, labels)

    @staticmethod
    async def probe(conn: ConnectOptions | None = None) -> None:
        Machine.probe(conn)

    # --- checkpoints: refused -------------------------------------------------------------------------------

    @classmethod
    async def restore_checkpoint(
        cls,
        checkpoint_id: str,
        name: str,
        conn: ConnectOptions | None = None,
        network: bool | None = None,
        cache_disk: CacheDiskRef | None = None,
    ) -> AsyncMachine:
        return cls(Machine.restore_checkpoint(checkpoint_id, name, conn, network, cache_disk))

    @classmethod
    async def restore(cls, checkpoint_id: str, name: str, conn: ConnectOptions | None = None) -> AsyncMachine:
        return cls(Machine.restore(checkpoint_id, name, conn))

    @staticmethod
    async def delete_checkpoint(checkpoint_id: str, conn: ConnectOptions | None = None) -> None:
        Machine.delete_checkpoint(checkpoint_id, conn)

    @staticmethod
    async def export_checkpoint(source: str, output: str) -> int:
        return Machine.export_checkpoint(source, output)

    @staticmethod
    async def prune_checkpoint_store(store: str) -> int:
        return Machine.prune_checkpoint_store(store)

    @staticmethod
    async def upload_checkpoint(path: str, conn: ConnectOptions | None = None) -> dict[str, Any]:
        return Machine.upload_checkpoint(path, conn)

    async def checkpoint(
        self, output: str | None = None, *, store: str | None = None
    ) -> PortableCheckpointInfo:
        return self._m.checkpoint(output, store=store)

    async def pack(self, path: str) -> str:
        return self._m.pack(path)

    # --- what it is -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._m.name

    @property
    def id(self) -> str:
        return self._m.id

    async def state(self) -> str:
        return await _in_thread(self._m.state)

    async def info(self) -> dict[str, Any]:
        return await _in_thread(self._m.info)

    async def logs(self, tail: int = 100) -> str:
        return await _in_thread(self._m.logs, tail)

    # --- commands and files ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[holt.AsyncMachine]:
        """The running machine for one call; see :meth:`LocalMachine.using`."""
        local = self._m._t
        local.enter()
        try:
            with engine_errors():
                yield engine().AsyncMachine(local.use())
        finally:
            local.leave()

    async def exec(self, command: list_[str], opts: ExecOptions | None = None) -> ExecResult:
        """As :meth:`Machine.exec`. Cancelling the task kills the command with everything it started."""
        argv, arguments = check.command(command), exec_arguments(exec_options(opts))
        if opts is not None and opts.background:
            return await _in_thread(self._m.exec, command, opts)
        async with self._using() as machine:
            return result_of(await machine.exec(argv, output_limit=EXEC_OUTPUT_LIMIT, **arguments))

    async def exec_stream(
        self, command: list_[str], opts: ExecOptions | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """An asynchronous generator of the events of :class:`ExecStream`. Leaving it early kills the
        command."""
        argv, arguments = check.command(command), exec_arguments(exec_options(opts))
        if opts is not None and opts.background:
            raise InvalidConfigError("background: a streamed command is in the background already")
        decoder = Decoder()
        try:
            async with self._using() as machine:
                stream = machine.exec_stream(argv, **arguments)
                try:
                    async for event in stream:
                        for piece in decoder.events(event):
                            yield piece
                finally:
                    stream.kill()
        except Exception as error:
            translated = as_smol_error(error)
            if translated is None:
                raise
            for piece in decoder.failure(translated):
                yield piece

    async def run(self, image: str, command: list_[str], opts: ExecOptions | None = None) -> ExecResult:
        return self._m.run(image, command, opts)

    async def read_file(self, path: str) -> bytes:
        where = check.path("path", path)
        async with self._using() as machine:
            return bytes(await machine.read_file(where, limit=READ_LIMIT, user=FILE_USER))

    async def write_file(self, path: str, data: bytes | str, mode: int | None = None) -> None:
        where, checked, bits = check.path("path", path), file_content(data), file_mode(mode)
        async with self._using() as machine:
            await machine.write_file(where, checked, mode=bits, parents=True, user=FILE_USER)

    async def sync(self) -> None:
        self._m.sync()

    # --- its life -------------------------------------------------------------------------------------------

    async def start(
        self, egress_interceptor: EgressInterceptor | None = None, wait_until_ready: bool = True
    ) -> None:
        await _in_thread(self._m.start, egress_interceptor, wait_until_ready)

    async def stop(self, drain_secs: float | None = None, timeout_secs: float | None = None) -> None:
        await _in_thread(self._m.stop, drain_secs, timeout_secs)

    async def delete(
        self, include_usage: bool = False, drain_secs: float | None = None
    ) -> MachineUsageReport | None:
        return await _in_thread(self._m.delete, include_usage, drain_secs)

    async def pause(self) -> None:
        await _in_thread(self._m.pause)

    async def resume(self, wait_until_ready: bool = True) -> None:
        await _in_thread(self._m.resume, wait_until_ready)

    async def ready(self) -> bool:
        return await self.state() == "running"

    async def ready_at(self) -> str | None:
        return self._m.ready_at()

    async def wait_until_ready(self, timeout_s: float = 120.0, interval_s: float = 1.0) -> None:
        await _in_thread(self._m.wait_until_ready, timeout_s, interval_s)

    async def resize(
        self,
        *,
        cpus: int | None = None,
        memory_mb: int | None = None,
        storage_gb: int | None = None,
        overlay_gb: int | None = None,
    ) -> MachineResources:
        return await _in_thread(
            self._m.resize, cpus=cpus, memory_mb=memory_mb, storage_gb=storage_gb, overlay_gb=overlay_gb
        )

    # --- ports and branches: refused ------------------------------------------------------------------------

    def endpoint(self, port: int, path: str | None = None) -> PortEndpoint:
        return self._m.endpoint(port, path)

    async def request(
        self,
        port: int,
        path: str | None = None,
        method: str = "GET",
        data: bytes | None = None,
        timeout_s: float = 30.0,
    ) -> bytes:
        return self._m.request(port, path, method, data, timeout_s)

    def tunnel(self, port: int) -> AbstractAsyncContextManager[TunnelEndpoint]:
        return open_tunnel(self, port)

    async def url(self) -> str | None:
        return self._m.url()

    async def ports(self) -> list_[PublishedPort]:
        return self._m.ports()

    async def publish(self, guest: int, host: int | None = None, protocol: str = "tcp") -> PublishedPort:
        return self._m.publish(guest, host, protocol)

    async def unpublish(
        self, guest: int | None = None, host: int | None = None, protocol: str = "tcp"
    ) -> None:
        self._m.unpublish(guest, host, protocol)

    async def branch(
        self,
        name: str,
        ports: list_[PortSpec] | None = None,
        *,
        branchable: bool = False,
        checkpointable: bool | None = None,
        freeze_source: bool = False,
    ) -> AsyncMachine:
        return AsyncMachine(self._m.branch(name, ports, branchable=branchable))

    async def branch_batch(
        self,
        count: int | None = None,
        *,
        names: list_[str] | None = None,
        name_prefix: str | None = None,
        ports: list_[PortSpec] | None = None,
        freeze_source: bool = False,
    ) -> list_[AsyncMachine]:
        return [AsyncMachine(branch) for branch in self._m.branch_batch(count, names=names)]

    async def fork(
        self, name: str, ports: list_[PortSpec] | None = None, *, checkpointable: bool = False
    ) -> AsyncMachine:
        return AsyncMachine(self._m.fork(name, ports))

    async def fork_batch(
        self,
        count: int | None = None,
        *,
        names: list_[str] | None = None,
        name_prefix: str | None = None,
        ports: list_[PortSpec] | None = None,
    ) -> list_[AsyncMachine]:
        return [AsyncMachine(branch) for branch in self._m.fork_batch(count, names=names)]

    async def reward_fork(
        self, command: list_[str], opts: ExecOptions | None = None, name: str | None = None
    ) -> ExecResult:
        return self._m.reward_fork(command, opts, name)

    # --- images ---------------------------------------------------------------------------------------------

    async def pull_image(self, image: str) -> ImageInfo:
        return await _in_thread(self._m.pull_image, image)

    async def list_images(self) -> list_[ImageInfo]:
        return await _in_thread(self._m.list_images)

    async def __aenter__(self) -> AsyncMachine:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.delete()

    def __repr__(self) -> str:
        return f"<smol.AsyncMachine {self.name}>"
