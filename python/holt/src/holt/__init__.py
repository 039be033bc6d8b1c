"""Local microVM workspaces for AI agents.

::

    import holt

    with holt.Machine.create(persistent=False) as machine:
        print(machine.exec(["uname", "-a"]).text)
        machine.write_file("/tmp/note", b"hello")

`AsyncMachine` has the same calls for an event loop.
"""

from holt._async import AsyncMachine
from holt._async_streams import AsyncExecStream, AsyncFileReader, AsyncFileWriter, AsyncTreeWalk
from holt._errors import (
    BlockedError,
    CancelledError,
    ConflictError,
    DigestMismatchError,
    Error,
    GuestLostError,
    GuestProtocolError,
    HypervisorUnavailableError,
    ImageInvalidError,
    InternalError,
    InvalidConfigError,
    InvalidStateError,
    IsDirectoryError,
    KvmUnavailableError,
    LimitExceededError,
    NetworkError,
    NotADirectoryError,
    NotFoundError,
    NotRegularError,
    NotSupportedError,
    OutcomeUnknownError,
    OutputLimitError,
    PermissionDeniedError,
    RuntimeNotInstalledError,
    StorageError,
    StorageFullError,
    TimeoutError,
    TooLargeError,
    UnauthorizedError,
    UnsupportedPlatformError,
    UsageError,
)
from holt._host import HostOptions, local_availability, new_machine_name
from holt._images import ImageInfo, find_image, import_image, list_images, pull_image
from holt._machine import UNCHANGED, Machine
from holt._streams import ExecStream, FileReader, FileWriter, TreeWalk
from holt._types import (
    Availability,
    CommandInfo,
    CopyProblem,
    CopyResult,
    DirEntry,
    Event,
    ExecResult,
    FailureReason,
    FileStat,
    MachineEvent,
    MachineInfo,
    MachineStats,
    ResourceLimits,
    Resources,
    WalkEntry,
)

__version__: str
__engine__ = "holt"

__all__ = [
    "AsyncExecStream",
    "AsyncFileReader",
    "AsyncFileWriter",
    "AsyncMachine",
    "AsyncTreeWalk",
    "Availability",
    "BlockedError",
    "CancelledError",
    "CommandInfo",
    "ConflictError",
    "CopyProblem",
    "CopyResult",
    "DigestMismatchError",
    "DirEntry",
    "Error",
    "Event",
    "ExecResult",
    "ExecStream",
    "FailureReason",
    "FileReader",
    "FileStat",
    "FileWriter",
    "GuestLostError",
    "GuestProtocolError",
    "HostOptions",
    "HypervisorUnavailableError",
    "ImageInfo",
    "ImageInvalidError",
    "InternalError",
    "InvalidConfigError",
    "InvalidStateError",
    "IsDirectoryError",
    "KvmUnavailableError",
    "LimitExceededError",
    "Machine",
    "MachineEvent",
    "MachineInfo",
    "MachineStats",
    "NetworkError",
    "NotADirectoryError",
    "NotFoundError",
    "NotRegularError",
    "NotSupportedError",
    "OutcomeUnknownError",
    "OutputLimitError",
    "PermissionDeniedError",
    "ResourceLimits",
    "Resources",
    "RuntimeNotInstalledError",
    "StorageError",
    "StorageFullError",
    "TimeoutError",
    "TooLargeError",
    "TreeWalk",
    "UNCHANGED",
    "UnauthorizedError",
    "UnsupportedPlatformError",
    "UsageError",
    "WalkEntry",
    "__engine__",
    "__version__",
    "find_image",
    "import_image",
    "list_images",
    "local_availability",
    "new_machine_name",
    "pull_image",
]


def __getattr__(name: str) -> str:
    # Looked up when asked for: the reader of the package's metadata takes longer to load than holt itself.
    if name != "__version__":
        raise AttributeError(f"module 'holt' has no attribute {name!r}")
    from importlib.metadata import version

    globals()[name] = version("holt")
    return version("holt")
