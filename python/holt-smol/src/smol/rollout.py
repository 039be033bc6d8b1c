"""Rollout services, which holt has not: the names can be imported, every use is refused."""

from __future__ import annotations

import os
from typing import Any

from ._cloud import unsupported

__all__ = ["RolloutClient", "RolloutError", "adapter_sha256"]


class RolloutError(RuntimeError):
    """An error answer of a rollout service."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class RolloutClient:
    def __init__(self, api_url: str | None = None, executor: str | None = None, **options: Any) -> None:
        unsupported("RolloutClient", "talk to the inference server with a client of its own")


def adapter_sha256(directory: str | os.PathLike[str]) -> str:
    unsupported("adapter_sha256", "training adapters need a GPU target")
