"""Names that belong to cloud, GPU and training targets. They can be imported and annotated with; every use is
refused."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import NotSupportedError
from .types import (
    CacheDiskInfo,
    ConnectOptions,
    JobInfo,
    MachineUsageReport,
    PortableCheckpointInfo,
    PortSpec,
    PublishedCacheDisk,
    ShareLink,
)


def unsupported(what: str, instead: str) -> NoReturn:
    raise NotSupportedError(f"{what} is not part of holt: {instead}")


class _Refused:
    """A class nobody can make an object of."""

    _instead = "it belongs to the cloud target"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unsupported(type(self).__name__, self._instead)


class Episode(_Refused):
    _instead = "create a machine for each episode and delete it"


class AsyncEpisode(Episode):
    pass


class Job(_Refused):
    _instead = "use Machine.exec with ExecOptions(background=True)"


class AsyncJob(Job):
    pass


_DISK = "build an image with the data and name it in MachineConfig.image"


class CacheDisk:
    """Disks of the cloud."""

    @staticmethod
    def create(
        name: str,
        size_gb: int | None = None,
        mount_path: str | None = None,
        conn: ConnectOptions | None = None,
    ) -> CacheDiskInfo:
        unsupported("CacheDisk.create", _DISK)

    @staticmethod
    def list(conn: ConnectOptions | None = None) -> list[CacheDiskInfo]:
        unsupported("CacheDisk.list", _DISK)

    @staticmethod
    def get(id_or_name: str, conn: ConnectOptions | None = None) -> CacheDiskInfo:
        unsupported("CacheDisk.get", _DISK)

    @staticmethod
    def delete(id_or_name: str, conn: ConnectOptions | None = None) -> None:
        unsupported("CacheDisk.delete", _DISK)


_LINK = "machines have no address outside this host"
_JOB = "use exec with ExecOptions(background=True), and files for its output"


class CloudCalls:
    """The calls of a machine that only the cloud answers."""

    def checkpoints(self) -> list[PortableCheckpointInfo]:
        unsupported(
            "checkpoints", "keep the machine with persistent=True; stop and start bring its disk back"
        )

    def export_artifact(self) -> dict[str, Any]:
        unsupported("export_artifact", "read files with read_file, or trees with holt.Machine.copy_out")

    def start_job(
        self,
        command: list[str] | str,
        *,
        workdir: str | None = None,
        env: dict[str, str] | None = None,
        timeout: int | None = None,
        user: str | None = None,
    ) -> Job:
        unsupported("start_job", _JOB)

    def jobs(self) -> list[JobInfo]:
        unsupported("jobs", _JOB)

    def job(self, job_id: str) -> Job:
        unsupported("job", _JOB)

    def usage(self) -> MachineUsageReport:
        unsupported("usage", "nothing is billed on this host; info() has disk and memory")

    def share(self) -> ShareLink:
        unsupported("share", _LINK)

    def unshare(self) -> None:
        unsupported("unshare", _LINK)

    def port_links(self) -> dict[int, str]:
        unsupported("port_links", _LINK)

    def revoke_port_links(self) -> None:
        unsupported("revoke_port_links", _LINK)

    def publish_cache_disk(self) -> PublishedCacheDisk:
        unsupported("publish_cache_disk", _DISK)

    def assign(
        self,
        lease_id: str,
        *,
        task: object = None,
        files: dict[str, bytes] | None = None,
        secrets: dict[str, str] | None = None,
        ports: list[PortSpec] | None = None,
        ttl_secs: int | None = None,
        heartbeat_secs: int | None = None,
    ) -> Episode:
        unsupported("assign", "create a machine for each task and delete it")


class AsyncCloudCalls:
    """:class:`CloudCalls`, awaitable except ``job``."""

    async def checkpoints(self) -> list[PortableCheckpointInfo]:
        return CloudCalls().checkpoints()

    async def export_artifact(self) -> dict[str, Any]:
        return CloudCalls().export_artifact()

    async def start_job(
        self,
        command: list[str] | str,
        *,
        workdir: str | None = None,
        env: dict[str, str] | None = None,
        timeout: int | None = None,
        user: str | None = None,
    ) -> AsyncJob:
        unsupported("start_job", _JOB)

    async def jobs(self) -> list[JobInfo]:
        return CloudCalls().jobs()

    def job(self, job_id: str) -> AsyncJob:
        unsupported("job", _JOB)

    async def usage(self) -> MachineUsageReport:
        return CloudCalls().usage()

    async def share(self) -> ShareLink:
        return CloudCalls().share()

    async def unshare(self) -> None:
        return CloudCalls().unshare()

    async def port_links(self) -> dict[int, str]:
        return CloudCalls().port_links()

    async def revoke_port_links(self) -> None:
        return CloudCalls().revoke_port_links()

    async def publish_cache_disk(self) -> PublishedCacheDisk:
        return CloudCalls().publish_cache_disk()

    async def assign(
        self,
        lease_id: str,
        *,
        task: object = None,
        files: dict[str, bytes] | None = None,
        secrets: dict[str, str] | None = None,
        ports: list[PortSpec] | None = None,
        ttl_secs: int | None = None,
        heartbeat_secs: int | None = None,
    ) -> AsyncEpisode:
        unsupported("assign", "create a machine for each task and delete it")
