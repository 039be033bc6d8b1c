"""What both kinds of machine do with arguments and answers of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _checks as check
from ._engine import engine_errors
from ._local import LocalMachine
from ._plan import disk_size, is_machine_name
from .errors import InvalidConfigError, InvalidTypeError, SmolError
from .types import ExecOptions, ExecResult, MachineResources

if TYPE_CHECKING:
    import holt

EXEC_OUTPUT_LIMIT = 64 << 20  # bytes kept of each output of exec(); what was cut is flagged
FILE_USER = "0"  # whose rights count for files, whoever the machine's commands run as; needs no /etc/passwd
READ_LIMIT = 1 << 30  # bytes of read_file(); a hostile guest must not fill the host's memory


def known_name(machine_id: Any) -> str:
    """A name under which there may be a machine. Raises SmolError NOT_FOUND for one that no machine can
    have."""
    if not isinstance(machine_id, str):
        raise InvalidTypeError(f"machine_id must be a text, not {machine_id!r}")
    if not is_machine_name(machine_id):
        raise SmolError("NOT_FOUND", f"There is no machine {machine_id!r}")
    return machine_id


def exec_options(opts: Any) -> ExecOptions | None:
    if opts is not None and not isinstance(opts, ExecOptions):
        raise InvalidTypeError(f"opts must be ExecOptions, not {opts!r}")
    return opts


def result_of(result: holt.ExecResult) -> ExecResult:
    return ExecResult(
        exit_code=int(result.returncode),
        stdout=result.stdout.decode("utf-8", "replace"),
        stderr=result.stderr.decode("utf-8", "replace"),
        stdout_truncated=result.stdout_truncated,
        stderr_truncated=result.stderr_truncated,
        stdout_bytes=result.stdout,
        stderr_bytes=result.stderr,
    )


def started(pid: int) -> ExecResult:
    """The result of a command that goes on in the background."""
    text = f"pid={pid}\n"
    return ExecResult(0, text, "", stdout_bytes=text.encode(), pid=pid)


def file_content(data: Any) -> bytes:
    if isinstance(data, str):
        return check.encoded("data", data)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"data must be bytes or text, not {type(data).__name__}")
    return bytes(data)


def file_mode(mode: Any) -> int | None:
    """Permission bits; a whole ``st_mode`` will do."""
    return None if mode is None else check.whole_number("mode", mode, 0, 0xFFFF_FFFF) & 0o7777


def drain_seconds(drain_secs: Any) -> float:
    return 0.0 if drain_secs is None else check.seconds("drain_secs", drain_secs, zero=True)


def require_protocol(protocol: Any) -> None:
    if protocol not in ("tcp", "udp"):
        raise InvalidConfigError(f"protocol must be 'tcp' or 'udp', not {protocol!r}")


def resize(
    local: LocalMachine, cpus: Any, memory_mb: Any, storage_gb: Any, overlay_gb: Any
) -> MachineResources:
    """Checks all sizes, then hands the ones that grow to the engine, which has one disk for both."""
    if all(size is None for size in (cpus, memory_mb, storage_gb, overlay_gb)):
        raise SmolError(
            "SMOLVM_ERROR", "resize needs at least one of cpus, memory_mb, storage_gb and overlay_gb"
        )
    wanted: dict[str, int] = {}
    if cpus is not None:
        wanted["cpus"] = check.whole_number("cpus", cpus, 1, 32)
    if memory_mb is not None:
        wanted["memory_mb"] = check.whole_number("memory_mb", memory_mb, 64, 1 << 20, " MiB")
    if storage_gb is not None or overlay_gb is not None:
        wanted["disk_gb"] = disk_size(storage_gb, overlay_gb)
    machine = local.use()
    with engine_errors():
        now = machine.info()
        if now.state != "running":
            raise SmolError("CONFLICT", f"The machine {local.name} is not running, so it cannot be resized")
        for name, size in wanted.items():
            if size < getattr(now, name):
                raise InvalidConfigError(f"{name} is {getattr(now, name)} and cannot shrink to {size}")
        after = machine.resize(**wanted)
    return MachineResources(
        cpus=after.cpus,
        memory_mb=after.memory_mb,
        storage_gb=storage_gb if storage_gb is not None else local.note.storage_gb,
        overlay_gb=overlay_gb if overlay_gb is not None else local.note.overlay_gb,
    )
