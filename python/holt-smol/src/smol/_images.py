"""The host's image store, which all machines share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._engine import engine, engine_errors
from .types import ImageInfo

if TYPE_CHECKING:
    import holt


def all_images() -> list[ImageInfo]:
    with engine_errors():
        return [_image_info(image) for image in engine().list_images()]


def pull(reference: str) -> ImageInfo:
    """The image of a reference, fetched where it is not in the store."""
    with engine_errors():
        return _image_info(engine().pull_image(reference, pull="missing"))


def _image_info(image: holt.ImageInfo) -> ImageInfo:
    system, _, architecture = image.platform.partition("/")
    return ImageInfo(image.reference, image.digest, image.size, architecture, system)
