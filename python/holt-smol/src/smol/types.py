"""Options and results: plain mutable dataclasses. The order of their fields is that of positional arguments.

Nothing here touches the engine. What can be seen to be wrong without knowing the host is refused by
:func:`smol.Machine.create`, all at once and before any work; two rules are older than that and hold in the
constructor of :class:`MachineConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import ExecutionError, InvalidTypeError, InvalidValueError

__all__ = [
    "CacheDiskInfo",
    "CacheDiskRef",
    "CacheDiskVersion",
    "ConnectOptions",
    "CredentialSpec",
    "EgressInterceptor",
    "ExecOptions",
    "ExecResult",
    "ImageInfo",
    "JobInfo",
    "JobOutput",
    "MachineConfig",
    "MachineResources",
    "MachineSizes",
    "MachineState",
    "MachineSummary",
    "MachineUsageReport",
    "MountSpec",
    "PortEndpoint",
    "PortSpec",
    "PortableCheckpointInfo",
    "PublishedCacheDisk",
    "PublishedPort",
    "ResourceSpec",
    "ShareLink",
]

#: ``stopped``, ``running`` or ``paused``. Only ``running`` takes commands.
MachineState = str


# --- What a machine shall be --------------------------------------------------------------------------------


@dataclass
class ResourceSpec:
    """Size and network of a machine. None takes the engine's default: 2 vCPUs, 1024 MiB, 20 GiB, no
    network."""

    cpus: int | None = None  #: 1 to 32
    memory_mb: int | None = None  #: MiB, from 64; the engine gives at least 128
    network: bool | None = None  #: True: unrestricted outbound; None, False: none
    allow_cidrs: list[str] | None = None
    allow_hosts: list[str] | None = None
    storage_gb: int | None = (
        None  #: GiB; the disk gets the larger of this and ``overlay_gb``, at least 20 GiB
    )
    overlay_gb: int | None = None
    gpu: bool | None = None
    gpu_vram_mib: int | None = None
    disk_durability: str | None = None  #: ``full`` or ``deferred``; the engine always keeps what was synced
    cuda: bool | None = None


@dataclass
class MountSpec:
    """A folder of the host in a machine. Not part of the engine yet."""

    source: str
    target: str
    read_only: bool = False
    readonly: bool | None = None  #: older name of ``read_only``; wins unless None
    staged: bool = False

    @property
    def effective_read_only(self) -> bool:
        return self.read_only if self.readonly is None else self.readonly


@dataclass
class PortSpec:
    """A port of the host, on 127.0.0.1, that leads to one of the machine. Not part of the engine yet."""

    host: int
    guest: int


@dataclass
class EgressInterceptor:
    """A proxy that sees what a machine sends. Not part of the engine yet."""

    address: str
    token: str = field(repr=False)


@dataclass
class CredentialSpec:
    """A secret that a machine uses without seeing it. Not part of the engine yet."""

    name: str
    env_var: str
    hosts: list[str]
    value: str | None = field(default=None, repr=False)
    methods: list[str] | None = None


@dataclass
class CacheDiskRef:
    """A cloud disk; every use of it locally is refused."""

    cache: str
    version: int | None = None
    mount_path: str | None = None
    slot: bool = False


@dataclass
class MachineConfig:
    """A new machine. ``name`` None: ``smol-`` and 8 hexadecimal digits. ``image`` None: holt's default
    image."""

    name: str | None = None
    egress_interceptor: EgressInterceptor | None = field(default=None, repr=False)
    image: str | None = None
    labels: dict[str, str] | None = None
    command: list[str] | None = None  #: runs in the machine from each start on
    mounts: list[MountSpec] | None = None
    ports: list[PortSpec] | None = None
    resources: ResourceSpec | None = None
    network: bool | None = None  #: counts where ``resources.network`` is None
    persistent: bool = False  #: keep machine and disk when this process has ended
    detach: bool = False  #: it goes on running when this process has ended; remembered
    auto_stop_seconds: int | None = None  #: stopped after so long without use
    ttl_seconds: int | None = None  #: deleted then, by a process that started it or the next that finds it
    ready_timeout_seconds: float = 120.0
    wait_for_ports: bool = True
    branchable: bool | None = None
    forkable: bool = False  #: older name of ``branchable``
    checkpoint: bool = False  #: older name of ``branchable``
    env: dict[str, str] | None = None
    credentials: list[CredentialSpec] | None = None
    cache_disk: CacheDiskRef | None = None
    workdir: str | None = None  #: of its commands; made where it is missing
    user: str | None = None

    def __post_init__(self) -> None:
        if self.command is not None:
            _check_workload(self.command)
        if not isinstance(self.ready_timeout_seconds, (int, float)):
            raise InvalidTypeError("ready_timeout_seconds must be a number of seconds")
        if not self.ready_timeout_seconds > 0:
            raise InvalidValueError(
                f"ready_timeout_seconds must be above 0, not {self.ready_timeout_seconds}"
            )
        self.forkable = self.branchable if self.branchable is not None else self.forkable or self.checkpoint


def _check_workload(command: Any) -> None:
    if not isinstance(command, (list, tuple)) or not command:
        raise InvalidValueError("command must be a list of at least one text, as in ['sleep', '60']")
    if not all(isinstance(word, str) and word for word in command):
        raise InvalidValueError("command must hold texts only, none of them empty")


# --- Commands -----------------------------------------------------------------------------------------------


@dataclass
class ExecOptions:
    """Options of one command."""

    env: dict[str, str] | None = None  #: over the machine's
    workdir: str | None = None  #: must be there; None: the machine's
    timeout: float | None = None  #: seconds above 0; the command is killed then, with exit code 124
    user: str | None = None  #: a name of the image or ``uid[:gid]``
    stdin: str | bytes | None = None  #: written, then closed; None: nothing to read
    output: Literal["text", "b64", "both"] | None = None  #: without effect: results have text and bytes
    background: bool = False  #: start it and return; see :meth:`Machine.exec`


@dataclass
class ExecResult:
    """How a command ended. The texts are UTF-8 with U+FFFD for bad bytes; the bytes are what was written."""

    exit_code: int
    stdout: str
    stderr: str
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    pid: int | None = None

    @property
    def success(self) -> bool:
        return self.exit_code == 0

    @property
    def output(self) -> str:
        """Standard output, and below it standard error where there is any."""
        return "\n".join(text for text in (self.stdout, self.stderr) if text)

    def assert_success(self, command: list[str] | str = "") -> ExecResult:
        """This result; raises :class:`ExecutionError`, which names ``command``, unless the code is 0."""
        if not self.success:
            raise ExecutionError(command, self.exit_code, self.stdout, self.stderr)
        return self


# --- Where, and what there is -------------------------------------------------------------------------------


@dataclass
class ConnectOptions:
    """Where a machine lives. Only the local target exists here; whatever selects the cloud is refused."""

    target: Literal["local", "cloud"] | None = None
    base_url: str | None = None
    api_key: str | None = None
    egress_interceptor: EgressInterceptor | None = field(default=None, repr=False)
    wait_for_ports: bool = True
    max_retries: int | None = None


@dataclass
class ImageInfo:
    reference: str
    digest: str
    size: int
    architecture: str
    os: str


@dataclass
class MachineSizes:
    cpus: int
    memory_mib: int
    storage_gib: int


@dataclass
class MachineResources:
    """None: still the default size."""

    cpus: int
    memory_mb: int
    storage_gb: int | None = None
    overlay_gb: int | None = None


@dataclass
class PublishedPort:
    guest: int
    host: int | None = None
    protocol: Literal["tcp", "udp"] = "tcp"


@dataclass
class MachineSummary:
    """One machine of :meth:`Machine.list`. ``created_at`` is ISO 8601 in UTC; ``id`` is the name."""

    id: str
    name: str
    state: str
    labels: dict[str, str]
    image: str | None = None
    persistent: bool = True
    detached: bool = False
    branchable: bool = False
    created_at: str | None = None
    pid: int | None = None
    resources: MachineSizes | None = None
    ports: list[PublishedPort] | None = None


@dataclass
class PortEndpoint:
    http_url: str
    ws_url: str
    headers: dict[str, str]


@dataclass
class PortableCheckpointInfo:
    id: str
    machine_id: str
    status: str
    size_bytes: int
    arch: str
    created_at: str
    download_url: str
    reused_bytes: int | None = None
    path: str | None = None
    source_pause_ms: float | None = None
    elapsed_ms: float | None = None


# --- Results of cloud calls: the names exist so that annotations resolve ------------------------------------


@dataclass
class MachineUsageReport:
    machine_id: str
    from_ts: str
    to_ts: str
    usage: dict[str, float]
    cost: dict[str, int]


@dataclass
class ShareLink:
    token: str
    url: str | None = None


@dataclass
class JobInfo:
    id: str
    machine_id: str
    command: list[str]
    state: str
    created_at: str
    exit_code: int | None = None
    finished_at: str | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


@dataclass
class JobOutput:
    stream: str
    offset: int
    next_offset: int
    data: bytes
    text: str
    eof: bool


@dataclass
class CacheDiskVersion:
    version: int
    size_bytes: int
    sha256: str
    created_at: str
    source_machine_id: str | None = None


@dataclass
class CacheDiskInfo:
    id: str
    name: str
    size_gb: int
    mount_path: str
    latest_version: int
    versions: list[CacheDiskVersion]
    created_at: str


@dataclass
class PublishedCacheDisk:
    cache_disk: CacheDiskInfo
    version: CacheDiskVersion
