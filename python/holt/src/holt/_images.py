"""The images of this host, which all machines of the user share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holt import _arguments as check
from holt import _native, _requests
from holt._arguments import Seconds, StrPath
from holt._host import HostOptions, native_host
from holt._machine import Pull
from holt._waiting import wait


@dataclass(frozen=True)
class ImageInfo:
    """An image of the store."""

    reference: str
    """As `Machine.create` takes it; the digest where no name is left."""
    digest: str
    size: int
    """Bytes on the host's disk."""
    disk_bytes: int
    """Size of its file system; the least disk of a machine."""
    created_at: datetime
    """When it was built here."""
    platform: str
    """``linux/amd64``"""


def list_images(host: HostOptions | None = None) -> list[ImageInfo]:
    """All images, by name."""
    return [_image_info(values) for values in _native.list_images(native_host(host))]


def find_image(reference: str, host: HostOptions | None = None) -> ImageInfo:
    """The image of a reference or digest. Raises `NotFoundError`, `UsageError` for what is no reference."""
    return _image_info(_native.find_image(check.text("reference", reference), native_host(host)))


def pull_image(
    reference: str, *, pull: Pull = "always", timeout: Seconds | None = None, host: HostOptions | None = None
) -> ImageInfo:
    """Fetches an image from its registry: what is not here of it, unless `pull` says otherwise.

    What has come stays after an error or an interrupt, and the next call goes on from there. A file or folder of this
    machine, as `Machine.create` takes it, is imported. Raises `NotFoundError`, `UnauthorizedError`, `NetworkError`,
    `TimeoutError` and others of `Error`.
    """
    options = {"pull": _requests.pull_policy(pull), "timeout": check.seconds("timeout", timeout)}
    _requests.check_process()
    call = _native.obtain_image(check.text("reference", reference), options, native_host(host))
    return wait(_requests.Request(call, _image_info))


def import_image(
    source: StrPath, reference: str | None = None, *, select: str | None = None, host: HostOptions | None = None
) -> ImageInfo:
    """Makes an image of a file or folder: OCI layout, archive of ``docker save``, root file system.

    :param reference: its name; else what the source calls it. :param select: which one of several in the source.
    """
    options = {
        "reference": check.optional_text("reference", reference),
        "select": check.optional_text("select", select),
    }
    _requests.check_process()
    call = _native.import_image(check.path("source", source), options, native_host(host))
    return wait(_requests.Request(call, _image_info))


def _image_info(values: dict[str, Any]) -> ImageInfo:
    return ImageInfo(**{**values, "created_at": datetime.fromisoformat(values["created_at"])})
