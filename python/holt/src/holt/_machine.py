"""`Machine`: the calls that wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

from holt import _native, _requests
from holt._arguments import BytesLike, Command, Seconds, StrPath
from holt._errors import Error
from holt._host import HostOptions
from holt._requests import Request, Requests
from holt._streams import ExecStream
from holt._types import CopyResult, DirEntry, ExecResult, FileStat, MachineInfo, MachineState

T = TypeVar("T")
Progress: TypeAlias = Callable[[str, str], object]
# Machine.list hides the built-in name inside the class.
_Infos: TypeAlias = list[MachineInfo]
_Entries: TypeAlias = list[DirEntry]

MIB = 1 << 20
OUTPUT_LIMIT = 8 * MIB
READ_LIMIT = 64 * MIB


def wait(request: Request[T]) -> T:
    """Waits for a call, without the interpreter's lock. What a signal handler raises, KeyboardInterrupt first of all,
    ends it."""
    try:
        return request.convert(request.call.wait())
    except Error:
        raise
    except BaseException:
        request.call.cancel()
        if request.undo is not None:
            _take_back(request, request.undo)
        raise


def _take_back(request: Request[T], undo: Callable[[T], Request[Any]]) -> None:
    try:
        undo(request.convert(request.call.wait())).call.wait()
    except Error:
        pass  # it was cancelled in time


class Machine:
    """A microVM with a disk of its own. Made by `create`, `define`, `connect` or `open`.

    Any number of threads may use one object at once. A `with` block removes an ephemeral machine at its end and leaves
    a persistent one as it is::

        with holt.Machine.create(persistent=False) as machine:
            print(machine.exec(["uname", "-a"]).text)

    Errors that every call of a running machine can raise: `InvalidStateError` (it does not run), `NotFoundError` (it
    has been removed), `GuestLostError` (it ended, nothing was done), `OutcomeUnknownError` (it ended after the request
    was sent), `GuestProtocolError`, `TimeoutError`.

    Paths in the machine are absolute; str with surrogate escapes, bytes, or os.PathLike. Times are seconds or timedelta.
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
    ) -> Machine:
        """Defines a machine and boots it. On failure nothing is left."""
        config = _requests.config_of(
            name, image=image, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=persistent, idle_stop=idle_stop,
        )  # fmt: skip
        request = _requests.create(config, on_progress, timeout, owner_end, host, require_kvm)
        return cls._of(wait(request), ephemeral=not persistent)

    @classmethod
    def define(
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
    ) -> Machine:
        """Makes a persistent machine and its disk, boots nothing."""
        config = _requests.config_of(
            name, image=image, cpus=cpus, memory_mb=memory_mb, disk_gb=disk_gb, network=network,
            allow_hosts=allow_hosts, allow_cidrs=allow_cidrs, env=env, working_dir=working_dir, user=user,
            make_dirs=make_dirs, labels=labels, persistent=True, idle_stop=idle_stop,
        )  # fmt: skip
        return cls._of(wait(_requests.define(config, host)))

    @classmethod
    def connect(
        cls,
        name: str,
        *,
        owner_end: Literal["keep", "stop"] = "keep",
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
        self,
        *,
        owner_end: Literal["keep", "stop"] = "keep",
        on_progress: Progress | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """Boots it; quiet when it runs."""
        wait(self._requests.start(on_progress, timeout, owner_end))

    def stop(self, grace: Seconds = 10.0, *, timeout: Seconds | None = None) -> None:
        """Flushes its file systems and ends it; quiet when it does not run. Commands under way end with `GuestLostError`
        or `OutcomeUnknownError`. `grace`: how long the guest may flush; then it is ended without."""
        wait(self._requests.stop(grace, timeout))

    def remove(self, force: bool = False, *, timeout: Seconds | None = None) -> None:
        """Removes machine and disk, without a boot. `force` kills it first where it runs; else `ConflictError`."""
        wait(self._requests.remove(force, timeout))

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
        deadline: Seconds | None = None,
    ) -> ExecResult:
        """Runs a command and collects what it writes.

        A command that fails is a result, not an error; 127 is "not found", 126 "not executable". A working folder that
        is missing is `NotFoundError`.

        :param command: a list or tuple (argv), or with ``shell=True`` a script of /bin/sh.
        :param env: added to the machine's environment.
        :param user: name of the image's /etc/passwd or uid[:gid].
        :param stdin: standard input, at most 64 MiB; none is end of file at once.
        :param timeout: on the guest's clock, from the command's start; then everything it started is killed.
        :param output_limit: bytes kept of each output.
        :param deadline: on the host, of the whole call: `TimeoutError`. Default: 5 s behind `timeout`, none without.
        """
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline
        )
        return wait(self._requests.exec(command, shell, stdin, output_limit, options))

    def exec_stream(
        self,
        command: Command,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        working_dir: StrPath | None = None,
        user: str | None = None,
        stdin: BytesLike | Literal["pipe"] | None = None,
        timeout: Seconds | None = None,
        deadline: Seconds | None = None,
    ) -> ExecStream:
        """Starts a command and gives its stream. ``stdin="pipe"``: what `ExecStream.write` sends."""
        options = _requests.exec_options(
            env=env, working_dir=working_dir, user=user, timeout=timeout, deadline=deadline
        )
        return ExecStream._of(self._requests.exec_stream(command, shell, stdin, options))

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

    def write_file(
        self,
        path: StrPath,
        data: BytesLike | str,
        *,
        mode: int | None = None,
        parents: bool = False,
        user: str | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """Replaces a file whole (temporary file and rename in the guest), through symbolic links. `mode`: else that of
        the replaced file, else 0o644."""
        wait(self._requests.write_file(path, data, mode, parents, user, timeout))

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
        self, source: str | os.PathLike[str], target: StrPath, *, timeout: Seconds | None = None
    ) -> CopyResult:
        """Copies a file or tree of the host to the guest path `target` (which then is the file or tree)."""
        return wait(self._requests.copy_in(source, target, timeout))

    def copy_out(
        self, source: StrPath, target: str | os.PathLike[str], *, timeout: Seconds | None = None
    ) -> CopyResult:
        """Copies a guest file or tree to the host path `target`. Nothing outside `target` is touched, no link followed."""
        return wait(self._requests.copy_out(source, target, timeout))

    def ping(self, timeout: Seconds | None = None) -> None:
        """Asks the guest program for a sign of life, for at most 5 s by default."""
        wait(self._requests.ping(timeout))
