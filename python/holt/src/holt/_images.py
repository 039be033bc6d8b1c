"""The images of this host, which all machines of the user share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holt import _arguments as check
from holt import _native
from holt._host import HostOptions, native_host


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


def _image_info(values: dict[str, Any]) -> ImageInfo:
    return ImageInfo(**{**values, "created_at": datetime.fromisoformat(values["created_at"])})
