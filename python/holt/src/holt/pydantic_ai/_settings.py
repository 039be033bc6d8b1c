"""What a ref may name, and what a new machine may be asked to be. Pure checks, no I/O."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.workspaces import WorkspaceRef

import holt

PROVIDER = "smol"
"""The provider of refs. It is that of `SmolSandbox`, whose machines are the same."""

IDLE_STOP = 15 * 60.0
"""Seconds after which a machine that nobody uses stops, unless told otherwise."""

_PREFIX = "pydantic-ai-"
_NAME = re.compile(rf"{_PREFIX}[0-9a-f]{{32}}")


def new_name() -> str:
    """`pydantic-ai-` and 32 random hexadecimal digits."""
    return f"{_PREFIX}{uuid.uuid4().hex}"


def check_provider(ref: WorkspaceRef) -> None:
    """Raise `ValueError` unless the ref is of our provider."""
    if ref.provider != PROVIDER:
        raise ValueError(f"workspace provider {ref.provider!r:.200} is not {PROVIDER!r}")


def check_ref(ref: WorkspaceRef) -> None:
    """Raise `ValueError` unless the ref has a name that a sandbox capability gives.

    A ref may come from a history. Without this, whoever writes the history reaches every machine of this user.
    """
    check_provider(ref)
    if _NAME.fullmatch(ref.id) is None:
        raise ValueError(
            f"{ref.id!r:.200} is no machine of HoltSandbox: those are named {_PREFIX!r} and 32 hexadecimal digits. "
            "For another machine pass `workspace=HoltSandboxBackend(sandbox=machine)` to the run; "
            "`workspace='new'` makes a fresh one."
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked options of a backend. Raises `TypeError` or `ValueError` with the option's name."""

    image: str | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    disk_gb: int | None = None
    user: str | None = None
    allow_internet_access: bool = False
    allow_hosts: Sequence[str] = ()
    working_dir: str | None = "/workspace"
    env: Mapping[str, str] | None = field(default=None, repr=False)
    labels: Mapping[str, str] | None = None
    idle_stop: float | None = IDLE_STOP
    require_kvm: bool = False
    host: holt.HostOptions | None = None

    def __post_init__(self) -> None:
        for name in ("image", "user"):
            _check_text(name, getattr(self, name))
        for name in ("cpus", "memory_mb", "disk_gb"):
            _check_count(name, getattr(self, name))
        for name in ("allow_internet_access", "require_kvm"):
            if type(value := getattr(self, name)) is not bool:
                raise TypeError(f"{name} must be True or False, not {value!r:.200}.")
        _check_hosts(self.allow_hosts)
        if self.allow_internet_access and self.allow_hosts:
            raise ValueError("allow_internet_access opens every host, allow_hosts only some: give one of the two.")
        _check_working_dir(self.working_dir)
        check_env(self.env)
        _check_labels(self.labels)
        _check_idle_stop(self.idle_stop)

    @property
    def host_options(self) -> holt.HostOptions | None:
        """The host's options with the accelerator that is required."""
        if not self.require_kvm:
            return self.host
        return replace(self.host or holt.HostOptions(), accelerator="kvm")

    def of_new_machine(self) -> dict[str, Any]:
        """What `holt.Machine.create` is told beside the name. What is not set is left to the engine."""
        chosen: dict[str, Any] = {
            "image": self.image,
            "cpus": self.cpus,
            "memory_mb": self.memory_mb,
            "disk_gb": self.disk_gb,
            "user": self.user,
            "labels": dict(self.labels) if self.labels else None,
        }
        if self.allow_internet_access:
            chosen["network"] = "open"
        elif self.allow_hosts:
            chosen |= {"network": "allow_list", "allow_hosts": list(self.allow_hosts)}
        options = {name: value for name, value in chosen.items() if value is not None}
        return options | {"idle_stop": self.idle_stop, "persistent": True}


def check_env(env: Mapping[str, str] | None) -> None:
    """Raise unless no process can be given such an environment. Values are never part of the message."""
    if env is None:
        return
    for name, value in env.items():
        if type(name) is not str or type(value) is not str:
            raise TypeError("env must map strings to strings")
        if not name or "=" in name or "\0" in name:
            raise ValueError(f'env has a name that is empty or holds "=" or NUL: {name!r:.200}')
        if "\0" in value:
            raise ValueError(f"env has a NUL in the value of {name!r:.200}")


def check_timeout(timeout: float | None) -> None:
    """Raise `ValueError` unless it is None or a finite number of seconds above 0."""
    if timeout is not None and not _is_duration(timeout):
        raise ValueError(f"timeout must be None or a finite number of seconds above 0, not {timeout!r:.200}.")


def _is_duration(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0


def _check_text(name: str, value: object) -> None:
    if value is None:
        return
    if type(value) is not str:
        raise TypeError(f"{name} must be None or a string, not {value!r:.200}.")
    if not value or "\0" in value:
        raise ValueError(f"{name} must not be empty or hold NUL.")


def _check_count(name: str, value: object) -> None:
    # A bool is an int to Python, and never a count that somebody meant.
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"{name} must be None or a whole number above 0, not {value!r:.200}.")


def _check_hosts(hosts: object) -> None:
    if isinstance(hosts, (str, bytes)) or not isinstance(hosts, Sequence):
        raise TypeError("allow_hosts must be a list of host names")
    for host in hosts:
        if type(host) is not str:
            raise TypeError(f"allow_hosts must hold strings, not {host!r:.200}.")
        if not host or "\0" in host:
            raise ValueError("allow_hosts has a name that is empty or holds NUL")


def _check_working_dir(value: object) -> None:
    if value is None:
        return
    if type(value) is not str:
        raise TypeError(f"working_dir must be None or a string, not {value!r:.200}.")
    if not value.startswith("/"):
        raise ValueError(f"working_dir must be None or an absolute path, not {value!r:.200}.")
    if "\0" in value:
        raise ValueError("working_dir: embedded null byte")


def _check_labels(labels: Mapping[str, str] | None) -> None:
    for name, value in (labels or {}).items():
        if type(name) is not str or type(value) is not str:
            raise TypeError("labels must map strings to strings")


def _check_idle_stop(value: object) -> None:
    if value is not None and (isinstance(value, bool) or not _is_duration(value)):
        raise ValueError(f"idle_stop must be None or a finite number of seconds above 0, not {value!r:.200}.")
