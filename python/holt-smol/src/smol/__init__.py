"""The interface of the ``smol`` SDK over holt's engine, for machines of this host.

    import smol

    with smol.Machine.create() as machine:
        print(machine.exec(["uname", "-sr"]).stdout)

Programs written for smolmachines 1.32 run unchanged; ``smol.__engine__`` tells the two apart. Cloud, GPU and
training calls can be imported and raise :class:`NotSupportedError`. docs/python.md of holt has the
differences.
"""

from __future__ import annotations

from . import _alone  # noqa: F401  (first: it may refuse)
from ._cloud import AsyncEpisode, AsyncJob, CacheDisk, Episode, Job
from .async_machine import AsyncMachine
from .device_handoff import DeviceAdapterBundle, DeviceAdapterServer, DeviceTensor, publish_device_adapter
from .errors import ExecutionError, InvalidConfigError, NotSupportedError, SmolError, wrap_native_error
from .machine import Machine
from .rollout import RolloutClient, RolloutError, adapter_sha256
from .transport import ExecStream, local_availability
from .types import (
    CacheDiskInfo,
    CacheDiskRef,
    CacheDiskVersion,
    ConnectOptions,
    CredentialSpec,
    EgressInterceptor,
    ExecOptions,
    ExecResult,
    ImageInfo,
    JobInfo,
    JobOutput,
    MachineConfig,
    MachineResources,
    MachineSizes,
    MachineSummary,
    MachineUsageReport,
    MountSpec,
    PortableCheckpointInfo,
    PortEndpoint,
    PortSpec,
    PublishedCacheDisk,
    PublishedPort,
    ResourceSpec,
    ShareLink,
)

#: The release of smolmachines whose interface this is.
__version__ = "1.32.2"
#: What runs the machines; smolmachines has no such name.
__engine__ = "holt"

__all__ = [
    "AsyncEpisode",
    "AsyncJob",
    "AsyncMachine",
    "CacheDisk",
    "CacheDiskInfo",
    "CacheDiskRef",
    "CacheDiskVersion",
    "ConnectOptions",
    "CredentialSpec",
    "DeviceAdapterBundle",
    "DeviceAdapterServer",
    "DeviceTensor",
    "EgressInterceptor",
    "Episode",
    "ExecOptions",
    "ExecResult",
    "ExecStream",
    "ExecutionError",
    "ImageInfo",
    "InvalidConfigError",
    "Job",
    "JobInfo",
    "JobOutput",
    "Machine",
    "MachineConfig",
    "MachineResources",
    "MachineSizes",
    "MachineSummary",
    "MachineUsageReport",
    "MountSpec",
    "NotSupportedError",
    "PortEndpoint",
    "PortSpec",
    "PortableCheckpointInfo",
    "PublishedCacheDisk",
    "PublishedPort",
    "ResourceSpec",
    "RolloutClient",
    "RolloutError",
    "ShareLink",
    "SmolError",
    "adapter_sha256",
    "local_availability",
    "publish_device_adapter",
    "wrap_native_error",
]
