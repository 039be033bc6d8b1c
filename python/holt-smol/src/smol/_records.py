"""The engine's facts about a machine in this module's shapes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._local import shown_state
from ._note import Note, user_labels
from .types import MachineSizes, MachineSummary

if TYPE_CHECKING:
    import holt


def summary(info: holt.MachineInfo) -> MachineSummary:
    labels = dict(info.labels)
    note = Note.of(labels)
    return MachineSummary(
        id=info.name,
        name=info.name,
        state=shown_state(info.state),
        labels=user_labels(labels),
        image=info.image or None,
        persistent=info.persistent and not note.ephemeral,
        detached=note.detach,
        created_at=_iso(info.created_at),
        pid=info.pid,
        resources=MachineSizes(info.cpus, info.memory_mb, info.disk_gb),
        ports=[],
    )


def facts(info: holt.MachineInfo) -> dict[str, Any]:
    """Everything, as plain values. ``engine_state`` is finer than ``state``; ``reason`` says why a machine
    failed."""
    reason = info.reason
    labels = dict(info.labels)
    note = Note.of(labels)
    return {
        "id": info.name,
        "name": info.name,
        "state": shown_state(info.state),
        "engine_state": info.state,
        "reason": None
        if reason is None
        else {"code": reason.code, "message": reason.message, "at": _iso(reason.at)},
        "image": info.image,
        "digest": info.digest,
        "labels": user_labels(labels),
        "created_at": _iso(info.created_at),
        "started_at": _iso(info.started_at),
        "pid": info.pid,
        "accelerator": info.accelerator,
        "isolation": info.isolation,
        "cpus": info.cpus,
        "memory_mb": info.memory_mb,
        "storage_gb": info.disk_gb,
        "network": info.network,
        "mounts": [],
        "ports": [],
        "env": list(info.env_names),
        "workdir": info.working_dir,
        "user": info.user,
        "persistent": info.persistent and not note.ephemeral,
        "detached": note.detach,
        "auto_stop_seconds": info.idle_stop,
        "expires_at": note.expires_at,
        "disk_bytes": info.disk_bytes,
        "memory_bytes": info.memory_bytes,
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
