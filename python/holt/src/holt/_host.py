"""What of the host the engine uses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from holt import _arguments as check
from holt import _engine_programs, _native
from holt._types import Availability


@dataclass(frozen=True)
class HostOptions:
    """Folders, programs and accelerator of the host. None: what the environment says (docs/reference.md)."""

    home: str | os.PathLike[str] | None = None
    """Folder of engine files, images and machines; else HOLT_HOME, else the XDG folders."""
    accelerator: Literal["auto", "kvm", "tcg"] | None = None
    """`kvm` refuses where KVM does not work; else HOLT_ACCELERATOR, else `auto`."""
    jail: Literal["auto", "require", "off"] | None = None
    """Around QEMU: all that the host allows, `require` refuses where a part is missing; else HOLT_JAIL, else `auto`."""
    qemu: str | os.PathLike[str] | None = None
    """Path of qemu-system-x86_64; else HOLT_QEMU, else found on PATH."""
    kernel: str | os.PathLike[str] | None = None
    """Path of a kernel; else HOLT_KERNEL, else that of scripts/setup."""
    initramfs: str | os.PathLike[str] | None = None
    """Path of the initramfs with the guest program; else HOLT_INITRAMFS, else that of scripts/setup."""
    insecure: bool | None = None
    """Talk to registries without checking their certificates, or by plain http; else HOLT_INSECURE, else False."""
    ca_file: str | os.PathLike[str] | None = None
    """More certificates to trust, PEM; else HOLT_CA_FILE."""
    auth_file: str | os.PathLike[str] | None = None
    """Credentials of registries; else HOLT_AUTH_FILE, else where docker and podman keep theirs."""


def native_host(host: object, *, require_kvm: object = False) -> dict[str, Any]:
    """The options for the extension module."""
    if host is not None and not isinstance(host, HostOptions):
        raise check.wrong_type("host", "a HostOptions or None", host)
    values: dict[str, Any] = {}
    if host is not None:
        for name in ("home", "qemu", "kernel", "initramfs", "ca_file", "auth_file"):
            values[name] = check.optional_path(name, getattr(host, name))
        if host.insecure is not None:
            values["insecure"] = check.flag("insecure", host.insecure)
        if host.accelerator is not None:
            values["accelerator"] = check.choice("accelerator", host.accelerator, ("auto", "kvm", "tcg"))
        if host.jail is not None:
            values["jail"] = check.choice("jail", host.jail, ("auto", "require", "off"))
    if check.flag("require_kvm", require_kvm):
        values["accelerator"] = "kvm"
    for name, file in (("monitor", "holt-monitor"), ("shim", "holt-memro.so")):
        found = _engine_programs.program(file)
        if found is not None:
            values[name] = os.fsencode(found)
    return values


def local_availability(host: HostOptions | None = None) -> Availability:
    """The first obstacle to running machines on this host, if any.

    Boots nothing and takes milliseconds: it reads the remembered verdict of the last real boot.
    """
    return Availability(*_native.local_availability(native_host(host)))


def new_machine_name() -> str:
    """`holt-` and 8 random hexadecimal digits."""
    return _native.new_machine_name()
