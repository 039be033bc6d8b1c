"""From the options of a new machine to the engine's arguments, with every check, before any work is done."""

from __future__ import annotations

import math
import os
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

from . import _checks as check
from ._note import LABEL, Note, this_process
from .errors import InvalidConfigError, InvalidTypeError, InvalidValueError, NotSupportedError, SmolError
from .types import ConnectOptions, MachineConfig, ResourceSpec

DEFAULT_CPUS = 2
DEFAULT_MEMORY_MB = 1024
DEFAULT_DISK_GB = 20

_LEAST_MEMORY_MB = 64  # accepted
_ENGINE_LEAST_MEMORY_MB = 128  # given
_MOST_MEMORY_MB = 1 << 20
_MOST_DISK_GB = 4096
_MOST_CPUS = 32
_LONGEST_TTL = 10 * 365 * 86400

_NAME = re.compile(r"(?=.{1,128}\Z)[A-Za-z0-9](?:[A-Za-z0-9_]|-(?!-|\Z))*\Z")
_CLOUD_TOKEN = "SMOL_CLOUD_TOKEN"


@dataclass(frozen=True)
class Plan:
    """A machine that may be made: its name, the arguments of ``holt.Machine.create``, what to remember of
    it."""

    name: str
    arguments: dict[str, Any]
    note: Note = field(default_factory=Note)


def plan_machine(config: MachineConfig | None, conn: ConnectOptions | None) -> Plan:
    """Checks everything. Raises InvalidConfigError, NotSupportedError, or SmolError CONFIG_ERROR for the
    name."""
    require_local(conn)
    config = MachineConfig() if config is None else config
    if not isinstance(config, MachineConfig):
        raise InvalidTypeError(f"config must be a MachineConfig, not {config!r}")
    resources = ResourceSpec() if config.resources is None else config.resources
    if not isinstance(resources, ResourceSpec):
        raise InvalidTypeError(f"resources must be a ResourceSpec, not {resources!r}")

    name = machine_name(config.name)
    _refuse_later_features(config, conn)
    arguments = {
        **_sizes(resources),
        **_network(config, resources),
        **_workload(config),
        "image": _image(config.image),
        "idle_stop": _idle_stop(config.auto_stop_seconds),
        "timeout": min(float(config.ready_timeout_seconds), check.LONGEST_SECONDS),
    }
    note = _note(config, resources)
    arguments["labels"] = {**_labels(config.labels), LABEL: note.encode()}
    return Plan(name, arguments, note)


def machine_name(name: Any) -> str:
    """The name that is meant; ``smol-`` and 8 hexadecimal digits for None. Raises SmolError CONFIG_ERROR."""
    if name is None:
        return f"smol-{secrets.token_hex(4)}"
    if not isinstance(name, str):
        raise InvalidTypeError(f"name must be a text, not {name!r}")
    if not is_machine_name(name):
        raise SmolError(
            "CONFIG_ERROR",
            f"{name!r} is no machine name: 1 to 128 of A-Z a-z 0-9 _ -, "
            "a letter or digit first, no '--', no '-' last",
        )
    return name


def is_machine_name(name: str) -> bool:
    return _NAME.match(name) is not None


def require_local(conn: ConnectOptions | None) -> None:
    """Raises NotSupportedError for options that select the cloud, or that only a later engine can honour."""
    target = None if conn is None else conn.target
    api_key = None if conn is None else conn.api_key
    if target not in (None, "local", "cloud"):
        raise InvalidValueError(f"target must be 'local' or 'cloud', not {target!r}")
    if target == "cloud" or (target is None and (api_key or os.environ.get(_CLOUD_TOKEN))):
        raise NotSupportedError(
            "holt has no cloud target: pass ConnectOptions(target='local'), "
            f"or leave out api_key and {_CLOUD_TOKEN} to use this host"
        )
    if conn is not None and conn.egress_interceptor is not None:
        _refuse("egress_interceptor")


_LATER = {
    "egress_interceptor": "leave it out; a machine without network sends nothing",
    "credentials": "pass short-lived values in env",
    "cache_disk": "build an image with the data and name it in image",
    "mounts": "copy files with read_file and write_file, or trees with holt.Machine.copy_in",
    "ports": "talk to a server in the machine with exec, as in ['curl', URL]",
    "branchable": "create machines of their own, and leave out forkable and checkpoint "
    "(Harbor: --ek auto_checkpoint=false)",
}


def _refuse_later_features(config: MachineConfig, conn: ConnectOptions | None) -> None:
    wanted = {
        "egress_interceptor": config.egress_interceptor is not None,
        "credentials": bool(config.credentials),
        "cache_disk": config.cache_disk is not None,
        "mounts": bool(config.mounts),
        "ports": bool(config.ports),
        "branchable": bool(config.branchable)
        or (config.branchable is None and (config.forkable or config.checkpoint)),
    }
    for feature, is_wanted in wanted.items():
        if is_wanted:
            _refuse(feature)


def _refuse(feature: str) -> NoReturn:
    raise NotSupportedError(f"{feature} is not part of holt yet: {_LATER[feature]}")


def _sizes(resources: ResourceSpec) -> dict[str, int]:
    for name in ("gpu", "cuda", "gpu_vram_mib"):
        if getattr(resources, name):
            raise NotSupportedError(f"resources.{name}: holt has no GPU; leave it out and compute on the CPU")
    if resources.disk_durability not in (None, "full", "deferred"):
        raise InvalidValueError(
            f"resources.disk_durability must be 'full' or 'deferred', not {resources.disk_durability!r}"
        )
    cpus = _size("cpus", resources.cpus, DEFAULT_CPUS, 1, _MOST_CPUS)
    memory = _size(
        "memory_mb", resources.memory_mb, DEFAULT_MEMORY_MB, _LEAST_MEMORY_MB, _MOST_MEMORY_MB, " MiB"
    )
    return {
        "cpus": cpus,
        "memory_mb": max(memory, _ENGINE_LEAST_MEMORY_MB),
        "disk_gb": disk_size(resources.storage_gb, resources.overlay_gb),
    }


def disk_size(storage_gb: Any, overlay_gb: Any) -> int:
    """One disk serves for both: it has room for the larger, and always the default."""
    storage = _size("storage_gb", storage_gb, DEFAULT_DISK_GB, 1, _MOST_DISK_GB, " GiB")
    overlay = _size("overlay_gb", overlay_gb, DEFAULT_DISK_GB, 1, _MOST_DISK_GB, " GiB")
    return max(storage, overlay, DEFAULT_DISK_GB)


def _size(name: str, value: Any, default: int, low: int, high: int, unit: str = "") -> int:
    return default if value is None else check.whole_number(f"resources.{name}", value, low, high, unit)


def _network(config: MachineConfig, resources: ResourceSpec) -> dict[str, Any]:
    wanted = check.flag("resources.network", resources.network)
    if wanted is None:
        wanted = check.flag("network", config.network)
    limited = resources.allow_hosts is not None or resources.allow_cidrs is not None
    hosts = check.hosts("resources.allow_hosts", resources.allow_hosts or [])
    cidrs = check.networks("resources.allow_cidrs", resources.allow_cidrs or [])
    if wanted is False or (not wanted and not limited):
        return {"network": "none"}
    if not limited:
        return {"network": "open"}
    return {"network": "allow_list", "allow_hosts": hosts, "allow_cidrs": cidrs}


def _workload(config: MachineConfig) -> dict[str, Any]:
    workdir = None if config.workdir is None else check.text("workdir", config.workdir)
    if workdir is not None and not workdir.startswith("/"):
        raise InvalidValueError(f"workdir must be an absolute path, not {workdir!r}")
    return {
        "env": check.variables("env", config.env or {}),
        "working_dir": workdir,
        "make_dirs": () if workdir is None else (workdir,),
        "user": None if config.user is None else check.nonblank("user", config.user),
    }


def _image(image: Any) -> str | None:
    if image is None:
        return None
    name = check.nonblank("image", image)
    if name.endswith(".smolmachine"):
        raise NotSupportedError(f"image {name!r}: packs are not part of holt; name an image of `holt images`")
    return name


def _idle_stop(value: Any) -> float | None:
    return (
        None
        if value is None
        else float(check.whole_number("auto_stop_seconds", value, 1, _LONGEST_TTL, " seconds"))
    )


def _labels(labels: Any) -> dict[str, str]:
    checked = check.pairs("labels", labels or {})
    if LABEL in checked:
        raise InvalidConfigError(f"labels: {LABEL!r} is the module's own")
    return checked


def _note(config: MachineConfig, resources: ResourceSpec) -> Note:
    ttl = config.ttl_seconds
    if ttl is not None:
        ttl = check.whole_number("ttl_seconds", ttl, 1, _LONGEST_TTL, " seconds")
    ephemeral = not check.flag("persistent", config.persistent) and not check.flag("detach", config.detach)
    return Note(
        ephemeral=ephemeral,
        detach=bool(config.detach),
        owner=this_process() if ephemeral else "",
        command=None if config.command is None else check.texts("command", config.command),
        storage_gb=resources.storage_gb,
        overlay_gb=resources.overlay_gb,
        expires_at=None if ttl is None else time.time() + ttl,
    )


# --- Commands -----------------------------------------------------------------------------------------------


def exec_arguments(opts: Any) -> dict[str, Any]:
    """The keyword arguments of the engine's exec calls. Raises InvalidConfigError."""
    if opts is None:
        return {}
    arguments = {
        "env": None if opts.env is None else check.variables("env", opts.env),
        "working_dir": None if opts.workdir is None else check.text("workdir", opts.workdir) or None,
        "user": None if opts.user is None else check.nonblank("user", opts.user),
        "stdin": None if opts.stdin is None else _stdin(opts.stdin),
        "timeout": None if opts.timeout is None else whole_milliseconds(opts.timeout),
    }
    if opts.background and (opts.timeout is not None or opts.stdin is not None):
        raise InvalidConfigError("background commands have neither timeout nor stdin: leave both out")
    return {name: value for name, value in arguments.items() if value is not None}


def whole_milliseconds(timeout: Any) -> float:
    """A timeout in seconds, rounded up to whole milliseconds."""
    exact = check.seconds("timeout", timeout) * 1000
    # A product such as 2.3 * 1000 must not become one more by its last bit.
    return max(1, math.ceil(round(exact, 6))) / 1000


def _stdin(stdin: Any) -> bytes:
    if isinstance(stdin, str):
        return check.encoded("stdin", stdin)
    if not isinstance(stdin, (bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"stdin must be text or bytes, not {type(stdin).__name__}")
    data = bytes(stdin)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InvalidConfigError(
            "stdin must be UTF-8: send other bytes with write_file and redirect them"
        ) from error
    return data
