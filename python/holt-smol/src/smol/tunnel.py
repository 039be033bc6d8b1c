"""Tunnels to ports of a machine. They need published ports, which the engine has not yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._cloud import unsupported
from .errors import InvalidValueError

if TYPE_CHECKING:
    from .async_machine import AsyncMachine

__all__ = ["TunnelEndpoint", "open_tunnel"]


@dataclass(frozen=True)
class TunnelEndpoint:
    host: str
    port: int


@asynccontextmanager
async def open_tunnel(machine: AsyncMachine, port: int) -> AsyncIterator[TunnelEndpoint]:
    """Refused: :class:`InvalidConfigError` for what is no port, else :class:`NotSupportedError`."""
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise InvalidValueError(f"port must be 1 to 65535, not {port!r}")
    unsupported("tunnel", "talk to a server in the machine with exec, as in ['curl', URL]")
    yield TunnelEndpoint("127.0.0.1", port)
