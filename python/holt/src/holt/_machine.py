"""`Machine`: the calls that wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Literal, TypeAlias

from holt import _native, _requests
from holt._arguments import BytesLike, Command, Seconds, StrPath
from holt._errors import Error
from holt._host import HostOptions
from holt._requests import Requests
from holt._streams import ExecStream, FileReader, FileWriter, TreeWalk
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
from holt._waiting import wait

Progress: TypeAlias = Callable[[str, str], object]
Owner: TypeAlias = Literal["keep", "stop", "remove"]
Pull: TypeAlias = Literal["missing", "always", "never"]
Network: TypeAlias = Literal["none", "open", "allow_list"]
# Machine.list hides the built-in name inside the class.
_Infos: TypeAlias = list[MachineInfo]
_Entries: TypeAlias = list[DirEntry]
_Commands: TypeAlias = list[CommandInfo]
_Events: TypeAlias = list[MachineEvent]


class Unchanged:
    """The default of `Machine.update`: leave it as it is."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()

MIB = 1 << 20
OUTPUT_LIMIT = 8 * MIB
READ_LIMIT = 64 * MIB


class Machine:
    """A microVM with a disk of its own. Made by `create`, `define`, `connect` or `open`.

    Any number of threads may use one object at once. A `with` block removes an ephemeral machine at its end and leaves
    a persistent one as it is::

        with holt.Machine.create(persistent=False) as machine:
            print(machine.exec(["uname", "-a"]).text)

    Errors that every call of a running machine can raise: `InvalidStateError` (it does not run), `NotFoundError` (it
    has been removed), `GuestLostError` (it ended, nothing was done), `OutcomeUnknownError` (it ended after the request
    was sent), `GuestProtocolError`, `TimeoutError`.

    Paths in the machine are str (with surrogate escapes), bytes or os.PathLike; a relative one counts from ``/``.
    Times are seconds or timedelta.
    """

    _requests: Requests
    _ephemeral: bool

    def __init__(self) -> None:
        raise TypeError("use Machine.create, Machine.define, Machine.connect or Machine.open")

    @classmethod
    def _of(cls, native: _native.Machine, *, ephemeral: bool = False) -> Machine:
        machine = object.__new__(cls)
        machine._requests = Requests(native)
        machine._ephemeral = ephemeral
        return machine

    @classmethod
    def create(
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
    ) -> Machine:
        """Defines a machine and boots it. On failure nothing is left.

        :param name: 1 to 128 of letters, digits, ``-`` and ``_``; else a new one.
        :param image: name of an image, which is pulled where it is not here, or a file or folder (``./app.tar``);
            else the default image. :param pull: when a registry is asked: ``missing``, ``always`` or ``never``.
        :param cpus: 1 to 32. :param memory_mb: MiB, 128 to 1,048,576. :param disk_gb: GiB, 1 to 4,096.
        :param network: ``none`` means that no packet can leave. `allow_hosts` and `allow_cidrs` make it an allow list.
        :param env: of all its commands. :param working_dir: of its commands. :param user: of its commands.
        :param make_dirs: absolute folders that shall be there after each start.
        :param persistent: False: it ends, disk and all, with the objects that share this creation, or with this
            process, however that ends.
        :param idle_stop: seconds without client and user process after which it is stopped.
        :param idle_suspend: seconds without a client after which it is suspended, whatever runs inside.
        :param owner_end: what a persistent machine does when the objects of this start are gone or this process ends,
            by whatever death: ``keep`` running, be flushed and ``stop``, or ``remove`` itself.
        :param require_kvm: `KvmUnavailableError` where KVM is not proved to work.
        :param on_progress: called with a word and a sentence for each step, perhaps on another thread.
        :param timeout: of the boot. Default 30 s, and more where templates are to be built.
        """
        config = _requests.config_of(
            name, image=image, pull=pull, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=persistent, idle_stop=idle_stop, idle_suspend=idle_suspend,
        )  # fmt: skip
        request = _requests.create(config, on_progress, timeout, owner_end, host, require_kvm)
        return cls._of(wait(request), ephemeral=not persistent)

    @classmethod
    def define(
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
    ) -> Machine:
        """Makes a persistent machine and its disk, boots nothing."""
        config = _requests.config_of(
            name, image=image, pull=pull, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=True, idle_stop=idle_stop, idle_suspend=idle_suspend,
        )  # fmt: skip
        return cls._of(wait(_requests.define(config, host)))

    @classmethod
    def connect(
        cls,
        name: str,
        *,
        owner_end: Owner = "keep",
        on_progress: Progress | None = None,
        timeout: Seconds | None = None,
        host: HostOptions | None = None,
    ) -> Machine:
        """The machine of a name, started when it was not running. Raises `NotFoundError`, and as `start`."""
        return cls._of(wait(_requests.connect(name, on_progress, timeout, owner_end, host)))

    @classmethod
    def open(cls, name: str, *, host: HostOptions | None = None) -> Machine:
        """The machine of a name as it is. Raises `NotFoundError`."""
        return cls._of(_requests.open_machine(name, host))

    @classmethod
    def list(cls, labels: Mapping[str, str] | None = None, *, host: HostOptions | None = None) -> _Infos:
        """All machines that have these labels, by name. Starts nothing."""
        return wait(_requests.list_machines(labels, host))

    @property
    def name(self) -> str:
        """The machine's name."""
        return self._requests.name

    def __repr__(self) -> str:
        return f"<holt.Machine {self.name}>"

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._ephemeral:
            return
        try:
            self.remove(force=True)
        except Error as failure:
            if failure.code != "NOT_FOUND" and error is None:
                raise

    def state(self) -> MachineState:
        """Where it is in its life. Raises `NotFoundError` when it has been removed."""
        return wait(self._requests.state())

    def info(self) -> MachineInfo:
        """Everything known of it without asking its guest."""
        return wait(self._requests.info())

    def console_log(self) -> str:
        """What its kernel and guest program wrote to the console; at most 10 MiB, untrusted text."""
        return self._requests.console_log()

    def start(
        self, *, owner_end: Owner = "keep", on_progress: Progress | None = None, timeout: Seconds | None = None
    ) -> None:
        """Boots it, or brings it back when it is suspended or paused; quiet when it runs."""
        wait(self._requests.start(on_progress, timeout, owner_end))

    def stop(self, grace: Seconds = 10.0, *, timeout: Seconds | None = None) -> None:
        """Flushes its file systems and ends it; quiet when it does not run. Commands under way end with
        `GuestLostError` or `OutcomeUnknownError`. `grace`: how long the guest may flush; then it is ended without."""
        wait(self._requests.stop(grace, timeout))

    def remove(self, force: bool = False, *, timeout: Seconds | None = None) -> None:
        """Removes machine and disk, without a boot. `force` kills it first where it runs; else `ConflictError`."""
        wait(self._requests.remove(force, timeout))

    def pause(self, *, timeout: Seconds | None = None) -> None:
        """Freezes its processors; memory stays, commands stand still. New calls meanwhile are `InvalidStateError`."""
        wait(self._requests.pause(timeout))

    def suspend(self, *, timeout: Seconds | None = None) -> None:
        """Writes its memory to disk and ends its process; `start` or `resume` bring everything back as it was.
        `NotSupportedError` for an ephemeral machine."""
        wait(self._requests.suspend(timeout))

    def resume(
        self, *, owner_end: Owner = "keep", on_progress: Progress | None = None, timeout: Seconds | None = None
    ) -> None:
        """Lets a paused machine go on or brings a suspended one back; quiet when it runs."""
        wait(self._requests.resume(on_progress, timeout, owner_end))

    def resize(
        self,
        *,
        cpus: int | None = None,
        memory_mb: int | None = None,
        disk_gb: int | None = None,
        timeout: Seconds | None = None,
    ) -> Resources:
        """Changes its size. The disk grows at once where it runs, else with the next start; processors and memory
        change with the next start. Returns the sizes that count from then on."""
        return wait(self._requests.resize(cpus, memory_mb, disk_gb, timeout))

    def update(
        self,
        *,
        labels: Mapping[str, str | None] | None = None,
        env: Mapping[str, str | None] | None = None,
        idle_stop: Seconds | None | Unchanged = UNCHANGED,
        idle_suspend: Seconds | None | Unchanged = UNCHANGED,
    ) -> None:
        """Changes labels (None: the label goes) and, from the next start on, the environment of commands (None: the
        variable goes) and idle times (None: never). `InvalidConfigError` also for the environment of an ephemeral
        machine, which has no next start."""
        wait(self._requests.update(labels, env, changed(idle_stop=idle_stop, idle_suspend=idle_suspend)))

    def wait(self, what: Literal["ready", "ended"] = "ended", *, timeout: Seconds | None = None) -> MachineInfo:
        """Waits until it accepts commands (``ready``) or has no process (``ended``)."""
        return wait(self._requests.wait(what, timeout))

    def stats(self, *, timeout: Seconds | None = None) -> MachineStats:
        """What it uses. `InvalidStateError` when it does not run."""
        return wait(self._requests.stats(timeout))

    def events(self) -> _Events:
        """What happened to it, oldest first; at least the last 500, also of earlier lives."""
        return wait(self._requests.events())

    def exec(
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
        """Runs a command and collects what it writes.

        A command that fails is a result, not an error; 127 is "not found", 126 "not executable". A working folder that
        is missing is `NotFoundError`.

        :param command: a list or tuple (argv), or with ``shell=True`` a script of /bin/sh.
        :param env: added to the machine's environment.
        :param user: name of the image's /etc/passwd or uid, with ``:group`` where wanted.
        :param stdin: standard input, at most 64 MiB; None is end of file at once.
        :param timeout: on the guest's clock, from the command's start; then everything it started is killed.
        :param output_limit: bytes kept of each output.
        :param over_limit: ``cut``: the rest is dropped and the result says so; ``fail``: the command is killed and
            `OutputLimitError` raised.
        :param deadline: on the host, of the whole call: `TimeoutError`. Default: 5 s behind `timeout`, none without.
        :param limits: what it may use at most.
        :param idempotency_key: a repeat of the call with the same key starts nothing and returns what the first did;
            another command with it is `ConflictError`.
        """
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline, limits=limits,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return wait(self._requests.exec(command, shell, stdin, output_limit, over_limit, options))

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
    ) -> ExecStream:
        """Starts a command and gives its stream. ``stdin="pipe"``: what `ExecStream.write` sends. `terminal`: rows and
        columns; all output then arrives as ``stdout``."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline, limits=limits,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return ExecStream._of(self._requests.exec_stream(command, shell, stdin, terminal, options))

    def start_command(
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
        """Starts a command that goes on without a caller and outlives this process. The last `output_limit` bytes of
        each output are kept in the machine. `stdin`: at most 2 MiB. A repeat with the same `idempotency_key` gives
        the command of the first."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline, limits=limits,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return wait(self._requests.start_command(command, shell, stdin, terminal, output_limit, options))

    def commands(self, *, timeout: Seconds | None = None) -> _Commands:
        """The background commands of this life of the machine, oldest first."""
        return wait(self._requests.commands(timeout))

    def attach_command(
        self, id: str, *, stdout_offset: int = 0, stderr_offset: int = 0, deadline: Seconds | None = None
    ) -> ExecStream:
        """What a background command has written, then what it goes on to write, then its exit. It goes on when the
        stream is killed or dropped."""
        return ExecStream._of(self._requests.attach_command(id, stdout_offset, stderr_offset, deadline))

    def wait_command(self, id: str, timeout: Seconds | None = None) -> CommandInfo:
        """Waits until a background command has ended."""
        return wait(self._requests.wait_command(id, timeout))

    def signal_command(self, id: str, number: int, *, timeout: Seconds | None = None) -> None:
        """Sends a signal to the processes of a background command. Quiet when it has ended."""
        wait(self._requests.signal_command(id, number, timeout))

    def kill_command(self, id: str, *, timeout: Seconds | None = None) -> CommandInfo:
        """Kills a background command with everything it started. Quiet when it had ended."""
        return wait(self._requests.kill_command(id, timeout))

    def read_file(
        self,
        path: StrPath,
        *,
        offset: int = 0,
        length: int | None = None,
        limit: int = READ_LIMIT,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> bytes:
        """The bytes of a regular file. Raises `NotFoundError`, `IsDirectoryError`, `NotRegularError`,
        `PermissionDeniedError`, and `TooLargeError` above `limit`."""
        return wait(self._requests.read_file(path, offset, length, limit, user, timeout))

    def open_read(
        self,
        path: StrPath,
        *,
        offset: int = 0,
        length: int | None = None,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> FileReader:
        """Reads a regular file piece by piece. Errors as `read_file`."""
        return FileReader._of(wait(self._requests.open_read(path, offset, length, user, timeout)))

    def write_file(
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
        """Replaces a file whole (temporary file and rename in the guest), through symbolic links.

        :param data: bytes; a str is written as UTF-8.
        :param mode: permission bits; else those of the replaced file, else 0o644.
        :param parents: make missing folders.
        :param exclusive: `ConflictError` when something is there.
        :param expected_sha256: `ConflictError` unless the file there has this content: 64 lower-case hex digits.
        :param owner: ``user`` or ``user:group``, names of the machine or numbers.
        :param mtime_ns: nanoseconds since 1970; else now.
        :param durable: on the machine's disk before the call returns.
        :param user: whose rights count.
        :param timeout: default: 30 s without progress.
        """
        options = _requests.write_options(
            mode=mode, parents=parents, exclusive=exclusive, expected_sha256=expected_sha256, owner=owner,
            mtime_ns=mtime_ns, durable=durable, user=user, timeout=timeout,
        )  # fmt: skip
        wait(self._requests.write_file(path, data, options))

    def open_write(
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
    ) -> FileWriter:
        """Writes a file piece by piece; it stands under its name, whole, once `FileWriter.finish` has returned. `size`,
        where known, lets the guest write faster. The rest as `write_file`."""
        options = _requests.write_options(
            mode=mode, parents=parents, exclusive=exclusive, expected_sha256=expected_sha256, owner=owner,
            mtime_ns=mtime_ns, durable=durable, user=user, timeout=timeout, size=size,
        )  # fmt: skip
        return FileWriter._of(self._requests.open_write(path, options))

    def stat(self, path: StrPath, *, timeout: Seconds | None = None) -> FileStat:
        """Facts of a file; follows links."""
        return wait(self._requests.stat(path, timeout))

    def lstat(self, path: StrPath, *, timeout: Seconds | None = None) -> FileStat:
        """Facts of a file or of a link itself."""
        return wait(self._requests.lstat(path, timeout))

    def exists(self, path: StrPath, *, timeout: Seconds | None = None) -> bool:
        """Whether there is such a file; follows links."""
        return wait(self._requests.exists(path, timeout))

    def realpath(self, path: StrPath, *, timeout: Seconds | None = None) -> str:
        """The path without links. Every component must be there."""
        return wait(self._requests.realpath(path, timeout))

    def list_dir(self, path: StrPath, *, timeout: Seconds | None = None) -> _Entries:
        """The names of a folder in byte order; at most 1,000,000 (`LimitExceededError`)."""
        return wait(self._requests.list_dir(path, timeout))

    def walk(
        self,
        path: StrPath,
        *,
        max_depth: int | None = None,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> TreeWalk:
        """The entries of a folder and of all below it, one after the other. `max_depth`: 1 is the folder's own."""
        return TreeWalk._of(self._requests.walk(path, max_depth, user, timeout))

    def set_attributes(
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
        """Changes permission bits, owner (``user`` or ``user:group``) and time of modification; None: stays."""
        wait(self._requests.set_attributes(path, mode, owner, mtime_ns, follow_links, user, timeout))

    def make_dir(self, path: StrPath, *, timeout: Seconds | None = None) -> None:
        """Makes a folder with its parents; quiet when it is there."""
        wait(self._requests.make_dir(path, timeout))

    def remove_path(self, path: StrPath, recursive: bool = False, *, timeout: Seconds | None = None) -> None:
        """Removes a file or empty folder, or with `recursive` a whole tree."""
        wait(self._requests.remove_path(path, recursive, timeout))

    def rename(self, source: StrPath, target: StrPath, *, timeout: Seconds | None = None) -> None:
        """Renames within a file system, replacing a file of that name."""
        wait(self._requests.rename(source, target, timeout))

    def copy_in(
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
        """Copies a file or tree of the host to the guest path `target` (which then is the file or tree).

        :param follow_links: of links below the source. :param keep_owners: user and group ids travel.
        :param owner: of everything: ``user`` or ``user:group``. :param timeout: default: 30 s without progress.
        """
        options = _requests.copy_options(
            follow_links=follow_links, keep_owners=keep_owners, owner=owner, user=user, timeout=timeout
        )
        return wait(self._requests.copy_in(source, target, options))

    def copy_out(
        self,
        source: StrPath,
        target: StrPath,
        *,
        keep_owners: bool = False,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> CopyResult:
        """Copies a guest file or tree to the host path `target`. Nothing outside it is touched, no link followed."""
        options = _requests.copy_options(
            follow_links=False, keep_owners=keep_owners, owner=None, user=user, timeout=timeout
        )
        return wait(self._requests.copy_out(source, target, options))

    def ping(self, timeout: Seconds | None = None) -> None:
        """Asks the guest program for a sign of life, for at most 5 s by default."""
        wait(self._requests.ping(timeout))


def changed(**values: object) -> dict[str, object]:
    """Those that are not `UNCHANGED`."""
    return {name: value for name, value in values.items() if value is not UNCHANGED}
