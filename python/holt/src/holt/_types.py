"""Values that holt's calls return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

MachineState = Literal["created", "starting", "running", "paused", "suspended", "stopping", "stopped", "failed"]
FileType = Literal["file", "directory", "symlink", "fifo", "socket", "block device", "character device", "unknown"]


def time_of(seconds: float | None) -> datetime | None:
    """A point of time from seconds since 1970."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


@dataclass(frozen=True)
class ExecResult:
    """How a command ended and what it wrote."""

    exit_code: int | None
    """0 to 255 when the command exited, else None."""
    signal: int | None
    """Number of the signal that ended it, else None."""
    timed_out: bool = False
    """The option `timeout` ended it."""
    oom: bool = False
    """The guest's kernel ended it for want of memory."""
    stdout: bytes = field(default=b"", repr=False)
    """Standard output, at most `output_limit` bytes."""
    stderr: bytes = field(default=b"", repr=False)
    """Standard error, at most `output_limit` bytes."""
    stdout_truncated: bool = False
    """There was more standard output than was kept."""
    stderr_truncated: bool = False
    """There was more standard error than was kept."""
    duration: float = 0.0
    """Seconds on the guest's clock."""

    @property
    def success(self) -> bool:
        """True when it exited with 0."""
        return self.exit_code == 0 and not self.timed_out

    @property
    def returncode(self) -> int:
        """What a shell would show: the exit code, 124 when timed out, 128 + signal."""
        if self.timed_out:
            return 124
        return 128 + (self.signal or 0) if self.exit_code is None else self.exit_code

    @property
    def text(self) -> str:
        """Standard output as UTF-8, with U+FFFD for what is none."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def stderr_text(self) -> str:
        """Standard error as UTF-8, with U+FFFD for what is none."""
        return self.stderr.decode("utf-8", "replace")


@dataclass(frozen=True)
class Event:
    """One event of a running command."""

    kind: Literal["stdout", "stderr", "exit"]
    data: bytes = b""
    """Bytes of stdout or stderr, at most 256 KiB."""
    result: ExecResult | None = None
    """How it ended, of `exit`; without output."""


@dataclass(frozen=True)
class FailureReason:
    """Why a machine failed or is paused."""

    code: str
    message: str
    at: datetime | None
    signal: int | None
    """The signal that ended the VMM, if one did."""


@dataclass(frozen=True)
class Resources:
    """Size of a machine."""

    cpus: int
    memory_mb: int
    disk_gb: int


@dataclass(frozen=True)
class ResourceLimits:
    """What a command may use at most; None: what the machine has."""

    cpu_seconds: int | None = None
    """Processor time of each process. It gets SIGXCPU then, and SIGKILL a second later."""
    file_size: int | None = None
    """Bytes of a file that it writes."""
    open_files: int | None = None
    """Descriptors of each process."""
    processes: int | None = None
    """And threads, of everything it starts."""
    memory: int | None = None
    """Bytes of everything it starts; more ends it, marked `oom`."""
    core_size: int | None = None
    """Bytes of a core dump."""


@dataclass(frozen=True)
class CommandInfo:
    """A command in the background of a machine: ends by itself, when it is killed, or with this life of the machine."""

    id: str
    """Never given again, in no life of the machine."""
    pid: int
    """Inside the machine."""
    argv: tuple[str, ...]
    """Cut with "..." when long; untrusted text."""
    terminal: bool
    running: bool
    result: ExecResult | None
    """Once it has ended; without output."""
    started_at: datetime
    """On the guest's clock."""
    stdout_bytes: int
    """Written so far, also what the log has lost."""
    stderr_bytes: int
    log_truncated: bool
    """The log has lost its beginning."""


@dataclass(frozen=True)
class MachineEvent:
    """Something that happened to a machine."""

    at: datetime
    kind: str
    """A word: ``started``, ``stopped``, ``failed``, ... (docs/reference.md)."""
    message: str
    code: str | None
    """Of what went wrong."""


@dataclass(frozen=True)
class MachineStats:
    """What a machine uses. Bytes and times count from the start of its VMM."""

    at: datetime
    cpu_time: float
    """Seconds of the VMM on the host's processors."""
    host_memory: int
    """Resident memory of the VMM."""
    memory_limit: int
    """That the guest's kernel has."""
    memory_used: int
    """Of it, what programs could not get."""
    disk_read: int
    disk_written: int
    processes: int
    """Of commands and what they left behind."""
    uptime: float
    """Seconds of the guest."""
    guest_answered: bool
    """False: the guest's own figures are 0."""


@dataclass(frozen=True)
class MachineInfo:
    """Everything known of a machine without asking its guest."""

    name: str
    state: MachineState
    reason: FailureReason | None
    image: str
    digest: str
    created_at: datetime
    started_at: datetime | None
    pid: int | None
    """Of the VMM, while there is one."""
    accelerator: Literal["kvm", "tcg"] | None
    """What runs or ran its processors."""
    isolation: Literal["hardware", "none"] | None
    """Only KVM isolates: QEMU gives no security promise for software emulation."""
    cpus: int
    memory_mb: int
    disk_gb: int
    network: Literal["none", "open", "allow_list"]
    env_names: tuple[str, ...]
    """Names of its environment variables, never the values."""
    working_dir: str
    user: str
    labels: Mapping[str, str]
    persistent: bool
    idle_stop: float | None
    """Seconds without client and user process after which it is stopped; None: never."""
    idle_suspend: float | None
    """Seconds without a client after which it is suspended; None: never."""
    next_resources: Resources | None
    """From the next start on, where they differ."""
    suspended_bytes: int
    """Of the saved memory of a suspended one, on the host."""
    boot_kind: Literal["restore", "cold", "resume"] | None
    """How its present life began."""
    disk_bytes: int
    """Blocks of its own disk on the host."""
    memory_bytes: int
    """Resident memory of the VMM."""
    boot_time: float | None
    """Seconds from the start of the VMM to readiness."""
    responsive: bool
    """False when its monitor did not answer in time."""


@dataclass(frozen=True)
class FileStat:
    """Facts of a file in a machine."""

    type: FileType
    size: int
    mode: int
    """Permission bits, 0o7777."""
    uid: int
    gid: int
    mtime_ns: int
    """Nanoseconds since 1970 on the guest's clock."""
    links: int
    allocated: int
    """Bytes on the disk."""
    target: str
    """Of a symbolic link, where it itself was looked at; else empty."""

    @property
    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self.type == "directory"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.type == "file"


@dataclass(frozen=True)
class DirEntry:
    """One name of a folder in a machine."""

    name: str
    """Bytes that are no UTF-8 appear as surrogates; `os.fsencode` gives them back."""
    type: FileType
    """Of the name itself."""
    target_type: FileType
    """With links followed; a dangling link stays `symlink`."""
    size: int | None
    """Bytes of the target, where that is a regular file."""
    mode: int
    """Permission bits of the target."""
    mtime_ns: int


@dataclass(frozen=True)
class WalkEntry:
    """One entry of a tree in a machine. Links are not followed."""

    path: str
    """Below the folder; bytes that are no UTF-8 appear as surrogates."""
    type: FileType
    size: int
    """Of a regular file."""
    mode: int
    """Permission bits, 0o7777."""
    uid: int
    gid: int
    mtime_ns: int
    target: str
    """Of a symbolic link; else empty."""
    problem: str
    """Why this entry could not be looked at or into; else empty."""


@dataclass(frozen=True)
class CopyProblem:
    """An entry of a tree that was not copied."""

    kind: Literal["skipped", "failed"]
    """`skipped` by rule (FIFOs, sockets, devices), or `failed`."""
    path: str
    """Below the source, fit to be shown."""
    message: str


@dataclass(frozen=True)
class CopyResult:
    """What a copy of a tree did."""

    files: int
    """Files, folders and links."""
    bytes: int
    """File content."""
    skipped: int
    failed: int
    problems: tuple[CopyProblem, ...]
    """The first 100 of both."""


@dataclass(frozen=True)
class Availability:
    """Whether this host can run machines; true when it can."""

    available: bool
    code: str | None = None
    """UNSUPPORTED_PLATFORM, RUNTIME_NOT_INSTALLED, KVM_UNAVAILABLE or HYPERVISOR_UNAVAILABLE when it cannot."""
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.available


def exec_result(values: dict[str, Any]) -> ExecResult:
    return ExecResult(**values)


def event(values: dict[str, Any]) -> Event:
    result = values.get("result")
    return Event(values["kind"], values.get("data", b""), None if result is None else ExecResult(**result))


def command_info(values: dict[str, Any]) -> CommandInfo:
    result = values["result"]
    values["result"] = None if result is None else ExecResult(**result)
    values["argv"] = tuple(values["argv"])
    values["started_at"] = time_of(values["started_at"])
    return CommandInfo(**values)


def command_infos(values: list[dict[str, Any]]) -> list[CommandInfo]:
    return [command_info(one) for one in values]


def machine_info(values: dict[str, Any]) -> MachineInfo:
    reason, sizes = values["reason"], values["next_resources"]
    if reason is not None:
        values["reason"] = FailureReason(reason["code"], reason["message"], time_of(reason["at"]), reason["signal"])
    values["next_resources"] = None if sizes is None else Resources(**sizes)
    values["created_at"] = time_of(values["created_at"])
    values["started_at"] = time_of(values["started_at"])
    values["env_names"] = tuple(values["env_names"])
    return MachineInfo(**values)


def machine_infos(values: list[dict[str, Any]]) -> list[MachineInfo]:
    return [machine_info(one) for one in values]


def machine_events(values: list[dict[str, Any]]) -> list[MachineEvent]:
    return [MachineEvent(**{**one, "at": time_of(one["at"])}) for one in values]


def machine_stats(values: dict[str, Any]) -> MachineStats:
    return MachineStats(**{**values, "at": time_of(values["at"])})


def resources(values: dict[str, Any]) -> Resources:
    return Resources(**values)


def file_stat(values: dict[str, Any]) -> FileStat:
    return FileStat(**values)


def dir_entries(values: list[dict[str, Any]]) -> list[DirEntry]:
    return [DirEntry(**one) for one in values]


def walk_entries(values: list[dict[str, Any]]) -> list[WalkEntry]:
    return [WalkEntry(**one) for one in values]


def copy_result(values: dict[str, Any]) -> CopyResult:
    values["problems"] = tuple(CopyProblem(**one) for one in values["problems"])
    return CopyResult(**values)
