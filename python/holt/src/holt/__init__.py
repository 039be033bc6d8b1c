"""Local microVM workspaces for AI agents.

::

    import holt

    with holt.Machine.create(persistent=False) as machine:
        print(machine.exec(["uname", "-a"]).text)
        machine.write_file("/tmp/note", b"hello")

`AsyncMachine` has the same calls for an event loop.
"""

from importlib.metadata import version as _version

from holt._async import AsyncMachine
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
from holt._images import ImageInfo, find_image, list_images
from holt._machine import Machine
from holt._streams import ExecStream
from holt._types import (
    Availability,
    CopyProblem,
    CopyResult,
    DirEntry,
    Event,
    ExecResult,
    FailureReason,
    FileStat,
    MachineInfo,
)

__version__: str = _version("holt")
__engine__ = "holt"

__all__ = [
    "AsyncMachine",
    "Availability",
    "BlockedError",
    "CancelledError",
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
    "FileStat",
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
    "MachineInfo",
    "NetworkError",
    "NotADirectoryError",
    "NotFoundError",
    "NotRegularError",
    "NotSupportedError",
    "OutcomeUnknownError",
    "PermissionDeniedError",
    "RuntimeNotInstalledError",
    "StorageError",
    "StorageFullError",
    "TimeoutError",
    "TooLargeError",
    "UnauthorizedError",
    "UnsupportedPlatformError",
    "UsageError",
    "__engine__",
    "__version__",
    "find_image",
    "list_images",
    "local_availability",
    "new_machine_name",
]
