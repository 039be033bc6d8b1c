"""A machine, used by blocking calls.

    with smol.Machine.create(smol.MachineConfig(image="python:3.12-alpine")) as machine:
        machine.write_file("/tmp/a.py", "print(2**10)")
        print(machine.exec(["python3", "/tmp/a.py"]).stdout)

Any number of threads may use one handle, and any number of handles one machine; calls wait only for what they
ask.
"""

from __future__ import annotations

import time
from builtins import list as list_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _checks as check
from . import _images
from ._calls import (
    EXEC_OUTPUT_LIMIT,
    FILE_USER,
    READ_LIMIT,
    drain_seconds,
    exec_options,
    file_content,
    file_mode,
    known_name,
    require_protocol,
    resize,
    result_of,
    started,
)
from ._cloud import CacheDisk, CloudCalls, Episode, Job, unsupported
from ._engine import as_smol_error, engine, engine_errors
from ._local import STOP_GRACE, LocalMachine, sweep
from ._plan import exec_arguments, plan_machine, require_local
from ._records import facts, summary
from .errors import InvalidConfigError, InvalidValueError, SmolError
from .transport import EngineEvents, ExecStream, failed_stream
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

__all__ = ["CacheDisk", "Episode", "Job", "Machine"]

_CHECKPOINT = "keep the machine with persistent=True; stop and start bring its disk back"
_PORT = "talk to a server in the machine with exec, as in ['curl', URL]"
_BRANCH = "create machines of their own; one from a template starts in a fraction of a second"


class Machine(CloudCalls):
    """One machine of this host. Made by the class methods only."""

    def __init__(self, transport: LocalMachine) -> None:
        self._t = transport

    # --- making and finding ---------------------------------------------------------------------------------

    @classmethod
    def create(cls, config: MachineConfig | None = None, conn: ConnectOptions | None = None) -> Machine:
        """Makes a machine and boots it. Every option is checked first; on failure nothing is left.

        Raises InvalidConfigError, NotSupportedError, or SmolError: CONFIG_ERROR (the name), CONFLICT (it is
        taken), NOT_FOUND (the image), TIMEOUT, STORAGE_ERROR, and the codes of
        :func:`smol.local_availability`.
        """
        return cls(LocalMachine.create(plan_machine(config, conn)))

    @classmethod
    def connect(cls, machine_id: str, conn: ConnectOptions | None = None) -> Machine:
        """The machine of a name, for use: one that does not run is booted (120 s), a paused one stays so.

        Raises SmolError NOT_FOUND, and those of a boot: TIMEOUT and the codes of
        :func:`smol.local_availability`. To look at a machine or delete it, :meth:`open` is enough.
        """
        require_local(conn)
        return cls(LocalMachine.connect(known_name(machine_id)))

    @classmethod
    def open(cls, machine_id: str, conn: ConnectOptions | None = None) -> Machine:
        """The machine of a name as it is. Raises SmolError NOT_FOUND."""
        require_local(conn)
        return cls(LocalMachine.open(known_name(machine_id)))

    @staticmethod
    def delete_by_name(
        machine_id: str, conn: ConnectOptions | None = None, drain_secs: float | None = None
    ) -> None:
        """Deletes without a boot. One that is not there is deleted already."""
        drain = drain_seconds(drain_secs)
        try:
            machine = Machine.open(machine_id, conn)
        except SmolError as error:
            if error.code != "NOT_FOUND":
                raise
        else:
            machine._t.delete(drain)

    @staticmethod
    def list(
        conn: ConnectOptions | None = None, labels: dict[str, str] | None = None
    ) -> list_[MachineSummary]:
        """All machines of this user that have these labels. Starts nothing; without ``conn`` it means this
        host."""
        if conn is not None:
            require_local(conn)
        wanted = check.pairs("labels", labels or {})
        with engine_errors():
            infos = sweep(engine().Machine.list())
        return [summary(info) for info in infos if wanted.items() <= dict(info.labels).items()]

    @staticmethod
    def probe(conn: ConnectOptions | None = None) -> None:
        """Of the cloud; see :func:`smol.local_availability`."""
        unsupported("probe", "use local_availability()")

    # --- checkpoints ----------------------------------------------------------------------------------------

    @classmethod
    def restore_checkpoint(
        cls,
        checkpoint_id: str,
        name: str,
        conn: ConnectOptions | None = None,
        network: bool | None = None,
        cache_disk: CacheDiskRef | None = None,
    ) -> Machine:
        """Refused; what is wrong with the arguments is said first."""
        require_local(conn)
        check.nonblank("checkpoint_id", checkpoint_id)
        check.nonblank("name", name)
        if cache_disk is not None:
            raise InvalidConfigError("cache_disk belongs to the cloud: leave it out")
        if not Path(checkpoint_id).exists():
            raise SmolError("CONFIG_ERROR", f"No checkpoint at {checkpoint_id}")
        unsupported("restore_checkpoint", _CHECKPOINT)

    @classmethod
    def restore(cls, checkpoint_id: str, name: str, conn: ConnectOptions | None = None) -> Machine:
        return cls.restore_checkpoint(checkpoint_id, name, conn)

    @staticmethod
    def delete_checkpoint(checkpoint_id: str, conn: ConnectOptions | None = None) -> None:
        require_local(conn)
        if not Path(check.nonblank("checkpoint_id", checkpoint_id)).exists():
            raise SmolError("NOT_FOUND", f"No checkpoint at {checkpoint_id}")
        unsupported("delete_checkpoint", _CHECKPOINT)

    @staticmethod
    def export_checkpoint(source: str, output: str) -> int:
        unsupported("export_checkpoint", _CHECKPOINT)

    @staticmethod
    def prune_checkpoint_store(store: str) -> int:
        unsupported("prune_checkpoint_store", _CHECKPOINT)

    @staticmethod
    def upload_checkpoint(
        path: str, conn: ConnectOptions | None = None, on_progress: Any = None
    ) -> dict[str, Any]:
        unsupported("upload_checkpoint", _CHECKPOINT)

    def checkpoint(self, output: str | None = None, *, store: str | None = None) -> PortableCheckpointInfo:
        if not output:
            raise InvalidConfigError("output must be the path of the checkpoint")
        unsupported("checkpoint", _CHECKPOINT)

    def pack(self, path: str) -> str:
        unsupported("pack", "build an image and import it with `holt image import`")

    # --- what it is -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._t.name

    @property
    def id(self) -> str:
        """The name: the only identity of a local machine."""
        return self._t.name

    def state(self) -> str:
        """``running``, ``paused`` or ``stopped``. Only a running machine takes commands; a deleted one is
        stopped."""
        return self._t.state()

    @property
    def engine(self) -> holt.Machine:
        """The same machine as the package ``holt`` has it, for whatever this interface lacks: terminals, live
        input, signals, background commands to come back to, trees of files.
        """
        return self._t.use()

    def info(self) -> dict[str, Any]:
        """Everything known of the machine, ``reason`` why it failed among it. Raises SmolError NOT_FOUND once
        deleted."""
        with engine_errors():
            return facts(self._t.machine.info())

    def logs(self, tail: int = 100) -> str:
        """The last lines of the machine's console."""
        count = check.whole_number("tail", tail, 0, 1_000_000)
        with engine_errors():
            lines = self._t.machine.console_log().splitlines(keepends=True)
        return "".join(lines[len(lines) - min(count, len(lines)) :])

    # --- commands -------------------------------------------------------------------------------------------

    def exec(self, command: list_[str], opts: ExecOptions | None = None) -> ExecResult:
        """Runs a command to its end; a code other than 0 is a result. 127: not found, 126: not executable,
        124: timeout.

        At most 64 MiB of each output are kept, the flags say when there was more. With ``opts.background`` it
        is only started: the result has ``pid``, code 0 and ``pid=N`` as output.
        """
        argv, arguments = check.command(command), exec_arguments(exec_options(opts))
        with self._t.using() as machine:
            if opts is not None and opts.background:
                return started(machine.start_command(argv, **arguments).pid)
            return result_of(machine.exec(argv, output_limit=EXEC_OUTPUT_LIMIT, **arguments))

    def exec_stream(self, command: list_[str], opts: ExecOptions | None = None) -> ExecStream:
        """Starts a command and gives its events. Bad options raise; whatever else is wrong is the first
        event."""
        argv, arguments = check.command(command), exec_arguments(exec_options(opts))
        if opts is not None and opts.background:
            raise InvalidConfigError("background: a streamed command is in the background already")
        try:
            return self._stream(argv, arguments)
        except Exception as error:
            translated = as_smol_error(error)
            if translated is None:
                raise
            if isinstance(translated, InvalidConfigError):
                raise translated from error
            return failed_stream(translated)

    def _stream(self, argv: list_[str], arguments: dict[str, Any]) -> ExecStream:
        self._t.enter()
        leave = _Once(self._t.leave)
        try:
            events = EngineEvents(self._t.use().exec_stream(argv, **arguments), leave)
        except BaseException:
            leave()
            raise
        return ExecStream(events, events.kill)

    def run(self, image: str, command: list_[str], opts: ExecOptions | None = None) -> ExecResult:
        unsupported("run", "create a machine of that image with MachineConfig(image=...)")

    # --- files ----------------------------------------------------------------------------------------------

    def read_file(self, path: str) -> bytes:
        """The bytes of a regular file, at most 1 GiB."""
        where = check.path("path", path)
        with self._t.using() as machine:
            return bytes(machine.read_file(where, limit=READ_LIMIT, user=FILE_USER))

    def write_file(self, path: str, data: bytes | str, mode: int | None = None) -> None:
        """Replaces a file whole, makes the folders above it, follows links. Text is written as UTF-8."""
        where, content, bits = check.path("path", path), file_content(data), file_mode(mode)
        with self._t.using() as machine:
            machine.write_file(where, content, mode=bits, parents=True, user=FILE_USER)

    def sync(self) -> None:
        """Copies staged mounts back; there are none."""

    # --- its life -------------------------------------------------------------------------------------------

    def start(
        self, egress_interceptor: EgressInterceptor | None = None, wait_until_ready: bool = True
    ) -> None:
        """Boots it from its disk; nothing happens when it runs. It then ends with this process unless
        detached."""
        require_local(ConnectOptions("local", egress_interceptor=egress_interceptor))
        self._t.start()

    def stop(self, drain_secs: float | None = None, timeout_secs: float | None = None) -> None:
        """Flushes its disk and ends it; nothing happens when it does not run.

        Commands and transfers under way end with INTERRUPTED; those of this process get ``drain_secs``
        seconds to end by themselves, new ones are refused meanwhile. ``timeout_secs`` is how long what runs
        in it, ``MachineConfig.command`` first of all, may take to end on its signal (10 s; 0: it is killed
        at once).
        """
        drain = drain_seconds(drain_secs)
        grace = STOP_GRACE if timeout_secs is None else check.seconds("timeout_secs", timeout_secs, zero=True)
        self._t.stop(drain, grace)

    def delete(
        self, include_usage: bool = False, drain_secs: float | None = None
    ) -> MachineUsageReport | None:
        """Ends and removes it, with its disk and without a boot. Deleting again is quiet."""
        if include_usage:
            unsupported("include_usage", "nothing is billed on this host; leave it out")
        self._t.delete(drain_seconds(drain_secs))
        return None

    def pause(self) -> None:
        """Saves memory and disk and ends it until :meth:`resume`. Raises SmolError CONFLICT unless it
        runs."""
        self._t.pause()

    def resume(self, wait_until_ready: bool = True) -> None:
        """Goes on where :meth:`pause` was. Raises SmolError CONFLICT unless it is paused."""
        self._t.resume()

    def ready(self) -> bool:
        return self.state() == "running"

    def ready_at(self) -> str | None:
        return None

    def wait_until_ready(self, timeout_s: float = 120.0, interval_s: float = 1.0) -> None:
        """Waits until it runs, looking every ``interval_s``. Raises SmolError TIMEOUT."""
        deadline = time.monotonic() + check.seconds("timeout_s", timeout_s, zero=True)
        interval = check.seconds("interval_s", interval_s)
        while not self.ready():
            left = deadline - time.monotonic()
            if left <= 0:
                raise SmolError("TIMEOUT", f"The machine {self.name} was not running within {timeout_s} s")
            time.sleep(min(interval, left))

    def resize(
        self,
        *,
        cpus: int | None = None,
        memory_mb: int | None = None,
        storage_gb: int | None = None,
        overlay_gb: int | None = None,
    ) -> MachineResources:
        """Grows a running machine to these totals: its one disk, the larger of both sizes, at once;
        processors and memory with the next start.
        """
        return resize(self._t, cpus, memory_mb, storage_gb, overlay_gb)

    # --- ports and branches: refused ------------------------------------------------------------------------

    def endpoint(self, port: int, path: str | None = None) -> PortEndpoint:
        number = check.whole_number("port", port, 1, 65535)
        raise InvalidConfigError(f"port {number} is not published, and holt publishes none yet: {_PORT}")

    def request(
        self,
        port: int,
        path: str | None = None,
        method: str = "GET",
        data: bytes | None = None,
        timeout_s: float = 30.0,
    ) -> bytes:
        unsupported("request", _PORT)

    def url(self) -> str | None:
        return None

    def ports(self) -> list_[PublishedPort]:
        return []

    def publish(self, guest: int, host: int | None = None, protocol: str = "tcp") -> PublishedPort:
        require_protocol(protocol)
        unsupported("publish", _PORT)

    def unpublish(self, guest: int | None = None, host: int | None = None, protocol: str = "tcp") -> None:
        require_protocol(protocol)
        if guest is None and host is None:
            raise InvalidConfigError("unpublish needs guest or host")
        unsupported("unpublish", _PORT)

    def branch(
        self,
        name: str,
        ports: list_[PortSpec] | None = None,
        *,
        branchable: bool = False,
        checkpointable: bool | None = None,
        freeze_source: bool = False,
    ) -> Machine:
        unsupported("branch", _BRANCH)

    def branch_batch(
        self,
        count: int | None = None,
        *,
        names: list_[str] | None = None,
        name_prefix: str | None = None,
        ports: list_[PortSpec] | None = None,
        freeze_source: bool = False,
    ) -> list_[Machine]:
        if count is None and names is None:
            raise InvalidValueError("branch_batch needs count or names")
        unsupported("branch_batch", _BRANCH)

    def fork(
        self, name: str, ports: list_[PortSpec] | None = None, *, checkpointable: bool = False
    ) -> Machine:
        return self.branch(name, ports, checkpointable=checkpointable)

    def fork_batch(
        self,
        count: int | None = None,
        *,
        names: list_[str] | None = None,
        name_prefix: str | None = None,
        ports: list_[PortSpec] | None = None,
    ) -> list_[Machine]:
        return self.branch_batch(count, names=names, name_prefix=name_prefix, ports=ports)

    def reward_fork(
        self, command: list_[str], opts: ExecOptions | None = None, name: str | None = None
    ) -> ExecResult:
        unsupported("reward_fork", _BRANCH)

    # --- images ---------------------------------------------------------------------------------------------

    def pull_image(self, image: str) -> ImageInfo:
        """Fetches an image into this host's store, which all machines share."""
        return _images.pull(check.nonblank("image", image))

    def list_images(self) -> list_[ImageInfo]:
        """The images of this host's store."""
        return _images.all_images()

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.delete()

    def __repr__(self) -> str:
        return f"<smol.Machine {self.name}>"


class _Once:
    """Calls a function the first time only."""

    def __init__(self, function: Any) -> None:
        self._pending = [function]

    def __call__(self) -> None:
        try:
            function = self._pending.pop()
        except IndexError:
            return
        function()
