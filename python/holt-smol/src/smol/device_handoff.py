"""Sharing of GPU memory, which holt has not: the names can be imported, every use is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._cloud import _Refused, unsupported

__all__ = ["DeviceAdapterBundle", "DeviceAdapterServer", "DeviceTensor", "publish_device_adapter"]


@dataclass(frozen=True)
class DeviceTensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int
    size: int


class DeviceAdapterBundle(_Refused):
    _instead = "training adapters need a GPU target"


class DeviceAdapterServer(_Refused):
    _instead = "training adapters need a GPU target"


def publish_device_adapter(tensors: Any, adapter_config: Any, **options: Any) -> bytes:
    unsupported("publish_device_adapter", "training adapters need a GPU target")
