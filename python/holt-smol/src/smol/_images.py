"""The host's image store, which all machines share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._engine import engine, engine_errors
from .errors import NotSupportedError
from .types import ImageInfo

if TYPE_CHECKING:
    import holt


def all_images() -> list[ImageInfo]:
    with engine_errors():
        return [_image_info(image) for image in engine().list_images()]


def find(reference: str) -> ImageInfo:
    """The image of a reference. Raises NotSupportedError where it would have to be fetched."""
    with engine_errors():
        try:
            return _image_info(engine().find_image(reference))
        except engine().NotFoundError as error:
            raise NotSupportedError(
                f"{reference!r} is not in this host's image store, and pulling is not part of holt yet: "
                f"`holt image import FILE {reference}` brings in a tar of its root file system"
            ) from error


def _image_info(image: holt.ImageInfo) -> ImageInfo:
    system, _, architecture = image.platform.partition("/")
    return ImageInfo(image.reference, image.digest, image.size, architecture, system)
