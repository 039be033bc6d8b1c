"""Calls as values: arguments checked, work begun, result to come. `Machine` waits for them, `AsyncMachine` awaits."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from holt import _arguments as check
from holt import _native, _types
from holt._errors import InvalidConfigError, InvalidStateError
from holt._host import native_host

T = TypeVar("T")

_MOST_BYTES = 2**63 - 1
_process = os.getpid()

# A forked child lets go of what it cannot use; the end of the interpreter ends what is under way.
os.register_at_fork(after_in_child=_native.abandon_all)
atexit.register(_native.end_all)


def check_process() -> None:
    """Refuses in a forked child: the threads that do the work have stayed with the parent."""
    if os.getpid() != _process:
        raise InvalidStateError(
            "holt was imported before this process was forked and cannot be used in the forked child",
            hint="Start the child with multiprocessing's 'spawn' method, or import holt in the child only.",
        )


@dataclass(frozen=True)
class Request(Generic[T]):
    """A call under way."""

    call: _native.Call
    convert: Callable[[Any], T]
    undo: Callable[[T], Request[Any]] | None = None
    """What takes the result back when its caller has been interrupted."""


def nothing(_: Any) -> None:
    """Converts the result of a call without one."""


def same(value: Any) -> Any:
    return value


def remove_again(machine: _native.Machine) -> Request[None]:
    return Request(machine.remove({"force": True}), nothing)


def config_of(
    name: object,
    *,
    image: object,
    pull: object,
    cpus: object,
    memory_mb: object,
    disk_gb: object,
    network: object,
    allow_hosts: object,
    allow_cidrs: object,
    env: object,
    working_dir: object,
    user: object,
    make_dirs: object,
    labels: object,
    persistent: object,
    idle_stop: object,
    idle_suspend: object,
) -> dict[str, Any]:
    if name is not None:
        machine_name(name)
    config: dict[str, Any] = {
        "name": name,
        "image": check.optional_text("image", image),
        "pull": pull_policy(pull),
        "cpus": check.integer("cpus", cpus, 1, 32),
        "memory_mb": check.integer("memory_mb", memory_mb, 128, 1_048_576),
        "disk_gb": check.integer("disk_gb", disk_gb, 1, 4_096),
        "network": check.choice("network", network, ("none", "open", "allow_list")),
        "allow_hosts": check.texts("allow_hosts", allow_hosts),
        "allow_cidrs": check.texts("allow_cidrs", allow_cidrs),
        "env": check.environment("env", env),
        "working_dir": check.optional_path("working_dir", working_dir),
        "user": check.optional_text("user", user),
        "make_dirs": check.paths("make_dirs", make_dirs),
        "labels": check.labels("labels", labels),
        "persistent": check.flag("persistent", persistent),
        "idle_stop": check.seconds("idle_stop", idle_stop),
        "idle_suspend": check.seconds("idle_suspend", idle_suspend),
    }
    return config


def pull_policy(pull: object) -> str:
    return check.choice("pull", pull, ("missing", "always", "never"))


def machine_name(name: object) -> str:
    text = check.text("name", name)
    _native.check_machine_name(text)
    return text


def _progress(function: object) -> object:
    if function is not None and not callable(function):
        raise check.wrong_type("on_progress", "a callable or None", function)
    return function


def _start_options(on_progress: object, timeout: object, owner_end: object) -> dict[str, Any]:
    return {
        "on_progress": _progress(on_progress),
        "timeout": check.seconds("timeout", timeout),
        "owner_end": check.choice("owner_end", owner_end, ("keep", "stop", "remove")),
    }


def create(
    config: dict[str, Any], on_progress: object, timeout: object, owner_end: object, host: object, require_kvm: object
) -> Request[_native.Machine]:
    check_process()
    start = _start_options(on_progress, timeout, owner_end)
    return Request(_native.create(config, start, native_host(host, require_kvm=require_kvm)), same, remove_again)


def define(config: dict[str, Any], host: object) -> Request[_native.Machine]:
    check_process()
    return Request(_native.define(config, native_host(host)), same, remove_again)


def connect(
    name: object, on_progress: object, timeout: object, owner_end: object, host: object
) -> Request[_native.Machine]:
    check_process()
    start = _start_options(on_progress, timeout, owner_end)
    return Request(_native.connect(machine_name(name), start, native_host(host)), same)


def open_machine(name: object, host: object) -> _native.Machine:
    check_process()
    return _native.open(machine_name(name), native_host(host))


def list_machines(labels: object, host: object) -> Request[list[_types.MachineInfo]]:
    check_process()
    wanted = check.labels("labels", labels)

    def chosen(values: list[dict[str, Any]]) -> list[_types.MachineInfo]:
        return [info for info in _types.machine_infos(values) if wanted.items() <= info.labels.items()]

    return Request(_native.list_all(native_host(host)), chosen)


def exec_options(
    *,
    env: object,
    working_dir: object,
    user: object,
    timeout: object,
    deadline: object,
    limits: object,
    idempotency_key: object,
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "env": check.environment("env", env),
        "working_dir": check.optional_path("working_dir", working_dir),
        "user": check.optional_text("user", user),
        "timeout": check.seconds("timeout", timeout),
        "deadline": check.seconds("deadline", deadline),
        "idempotency_key": check.optional_text("idempotency_key", idempotency_key),
    }
    if limits is not None:
        if not isinstance(limits, _types.ResourceLimits):
            raise check.wrong_type("limits", "a ResourceLimits or None", limits)
        for name, value in vars(limits).items():
            options[f"limit_{name}"] = check.optional_integer(f"limits.{name}", value, 0, _MOST_BYTES)
    return options


def _terminal(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise check.wrong_type("terminal", "a pair (rows, columns) or None", value)
    return {"rows": _side("rows", value[0]), "columns": _side("columns", value[1])}


def _side(what: str, value: object) -> int:
    return check.integer(what, value, 0, 65_535)


def terminal_size(rows: object, columns: object) -> tuple[int, int]:
    return _side("rows", rows), _side("columns", columns)


def signal_number(value: object) -> int:
    return check.integer("number", value, 1, 64)


class Requests:
    """The calls of one machine."""

    __slots__ = ("_native",)

    def __init__(self, native: _native.Machine) -> None:
        self._native = native

    @property
    def native(self) -> _native.Machine:
        check_process()
        return self._native

    @property
    def name(self) -> str:
        return self._native.name

    def info(self) -> Request[_types.MachineInfo]:
        return Request(self.native.info(), _types.machine_info)

    def state(self) -> Request[_types.MachineState]:
        return Request(self.native.state(), same)

    def start(self, on_progress: object, timeout: object, owner_end: object) -> Request[None]:
        return Request(self.native.start(_start_options(on_progress, timeout, owner_end)), nothing)

    def stop(self, grace: object, timeout: object) -> Request[None]:
        options = {
            "grace": check.seconds("grace", grace, zero="allowed"),
            "timeout": check.seconds("timeout", timeout),
        }
        return Request(self.native.stop(options), nothing)

    def remove(self, force: object, timeout: object) -> Request[None]:
        options = {"force": check.flag("force", force), "timeout": check.seconds("timeout", timeout)}
        return Request(self.native.remove(options), nothing)

    def pause(self, timeout: object) -> Request[None]:
        return Request(self.native.pause(_waiting(timeout)), nothing)

    def suspend(self, timeout: object) -> Request[None]:
        return Request(self.native.suspend(_waiting(timeout)), nothing)

    def resume(self, on_progress: object, timeout: object, owner_end: object) -> Request[None]:
        return Request(self.native.resume(_start_options(on_progress, timeout, owner_end)), nothing)

    def resize(self, cpus: object, memory_mb: object, disk_gb: object, timeout: object) -> Request[_types.Resources]:
        options = {
            "cpus": check.optional_integer("cpus", cpus, 1, 32),
            "memory_mb": check.optional_integer("memory_mb", memory_mb, 128, 1_048_576),
            "disk_gb": check.optional_integer("disk_gb", disk_gb, 1, 4_096),
            "timeout": check.seconds("timeout", timeout),
        }
        return Request(self.native.resize(options), _types.resources)

    def update(self, labels: object, env: object, changes: dict[str, object]) -> Request[None]:
        options: dict[str, Any] = {name: check.seconds(name, value) for name, value in changes.items()}
        options["labels"] = check.label_changes("labels", labels)
        options["env"] = check.environment_changes("env", env)
        return Request(self.native.update(options), nothing)

    def wait(self, what: object, timeout: object) -> Request[_types.MachineInfo]:
        word = check.choice("what", what, ("ready", "ended"))
        return Request(self.native.wait(word, _waiting(timeout)), _types.machine_info)

    def stats(self, timeout: object) -> Request[_types.MachineStats]:
        return Request(self.native.stats(_waiting(timeout)), _types.machine_stats)

    def events(self) -> Request[list[_types.MachineEvent]]:
        return Request(self.native.events(), _types.machine_events)

    def exec(
        self,
        command: object,
        shell: object,
        stdin: object,
        output_limit: object,
        over_limit: object,
        options: dict[str, Any],
    ) -> Request[_types.ExecResult]:
        what = check.command(command, shell)
        options["over_limit"] = check.choice("over_limit", over_limit, ("cut", "fail"))
        if stdin is not None:
            options["stdin"] = check.data_or_text("stdin", stdin)
        options["output_limit"] = check.integer("output_limit", output_limit, 0, _MOST_BYTES)
        return Request(self.native.exec(what, options), _types.exec_result)

    def exec_stream(
        self, command: object, shell: object, stdin: object, terminal: object, options: dict[str, Any]
    ) -> _native.Stream:
        what = check.command(command, shell)
        options.update(_terminal(terminal))
        if isinstance(stdin, str):
            if stdin != "pipe":
                raise InvalidConfigError("stdin is a str other than 'pipe'; give input as bytes")
            options["stdin_pipe"] = True
        elif stdin is not None:
            options["stdin"] = check.data("stdin", stdin)
        return self.native.exec_stream(what, options)

    def start_command(
        self,
        command: object,
        shell: object,
        stdin: object,
        terminal: object,
        output_limit: object,
        options: dict[str, Any],
    ) -> Request[_types.CommandInfo]:
        what = check.command(command, shell)
        options.update(_terminal(terminal))
        if stdin is not None:
            options["stdin"] = check.data_or_text("stdin", stdin)
        options["output_limit"] = check.integer("output_limit", output_limit, 0, _MOST_BYTES)
        return Request(self.native.start_command(what, options), _types.command_info)

    def commands(self, timeout: object) -> Request[list[_types.CommandInfo]]:
        return Request(self.native.commands(_waiting(timeout)), _types.command_infos)

    def attach_command(
        self, command_id: object, stdout_offset: object, stderr_offset: object, deadline: object
    ) -> _native.Stream:
        options = {
            "stdout_offset": check.integer("stdout_offset", stdout_offset, 0, _MOST_BYTES),
            "stderr_offset": check.integer("stderr_offset", stderr_offset, 0, _MOST_BYTES),
            "deadline": check.seconds("deadline", deadline),
        }
        return self.native.attach_command(check.text("id", command_id), options)

    def wait_command(self, command_id: object, timeout: object) -> Request[_types.CommandInfo]:
        return Request(
            self.native.wait_command(check.text("id", command_id), _waiting(timeout)), _types.command_info
        )

    def signal_command(self, command_id: object, number: object, timeout: object) -> Request[None]:
        return Request(
            self.native.signal_command(check.text("id", command_id), signal_number(number), _waiting(timeout)),
            nothing,
        )

    def kill_command(self, command_id: object, timeout: object) -> Request[_types.CommandInfo]:
        return Request(
            self.native.kill_command(check.text("id", command_id), _waiting(timeout)), _types.command_info
        )

    def read_file(
        self, path: object, offset: object, length: object, limit: object, user: object, timeout: object
    ) -> Request[bytes]:
        options = _reading(offset, length, user, timeout)
        options["limit"] = check.integer("limit", limit, 0, _MOST_BYTES)
        return Request(self.native.read_file(check.path("path", path), options), same)

    def open_read(
        self, path: object, offset: object, length: object, user: object, timeout: object
    ) -> Request[_native.Reader]:
        options = _reading(offset, length, user, timeout)
        return Request(self.native.open_read(check.path("path", path), options), same)

    def write_file(self, path: object, data: object, options: dict[str, Any]) -> Request[None]:
        return Request(
            self.native.write_file(check.path("path", path), check.data_or_text("data", data), options), nothing
        )

    def open_write(self, path: object, options: dict[str, Any]) -> _native.Writer:
        return self.native.open_write(check.path("path", path), options)

    def walk(self, path: object, max_depth: object, user: object, timeout: object) -> _native.Walk:
        options = {
            "max_depth": check.optional_integer("max_depth", max_depth, 1, 512),
            "user": check.optional_text("user", user),
            "timeout": check.seconds("timeout", timeout),
        }
        return self.native.walk(check.path("path", path), options)

    def set_attributes(
        self,
        path: object,
        mode: object,
        owner: object,
        mtime_ns: object,
        follow_links: object,
        user: object,
        timeout: object,
    ) -> Request[None]:
        options = {
            "mode": check.optional_integer("mode", mode, 0, 0o7777),
            "owner": check.optional_text("owner", owner),
            "mtime_ns": check.optional_integer("mtime_ns", mtime_ns, -_MOST_BYTES, _MOST_BYTES),
            "follow_links": check.flag("follow_links", follow_links),
            "user": check.optional_text("user", user),
            "timeout": check.seconds("timeout", timeout),
        }
        return Request(self.native.set_attributes(check.path("path", path), options), nothing)

    def stat(self, path: object, timeout: object) -> Request[_types.FileStat]:
        return Request(self.native.stat(check.path("path", path), _waiting(timeout)), _types.file_stat)

    def lstat(self, path: object, timeout: object) -> Request[_types.FileStat]:
        return Request(self.native.lstat(check.path("path", path), _waiting(timeout)), _types.file_stat)

    def exists(self, path: object, timeout: object) -> Request[bool]:
        return Request(self.native.exists(check.path("path", path), _waiting(timeout)), same)

    def realpath(self, path: object, timeout: object) -> Request[str]:
        return Request(self.native.realpath(check.path("path", path), _waiting(timeout)), same)

    def list_dir(self, path: object, timeout: object) -> Request[list[_types.DirEntry]]:
        return Request(self.native.list_dir(check.path("path", path), _waiting(timeout)), _types.dir_entries)

    def make_dir(self, path: object, timeout: object) -> Request[None]:
        return Request(self.native.make_dir(check.path("path", path), _waiting(timeout)), nothing)

    def remove_path(self, path: object, recursive: object, timeout: object) -> Request[None]:
        options = {"recursive": check.flag("recursive", recursive), "timeout": check.seconds("timeout", timeout)}
        return Request(self.native.remove_path(check.path("path", path), options), nothing)

    def rename(self, source: object, target: object, timeout: object) -> Request[None]:
        return Request(
            self.native.rename(check.path("source", source), check.path("target", target), _waiting(timeout)), nothing
        )

    def ping(self, timeout: object) -> Request[None]:
        return Request(self.native.ping(_waiting(timeout)), nothing)

    def copy_in(self, source: object, target: object, options: dict[str, Any]) -> Request[_types.CopyResult]:
        return Request(
            self.native.copy_in(check.path("source", source), check.path("target", target), options),
            _types.copy_result,
        )

    def copy_out(self, source: object, target: object, options: dict[str, Any]) -> Request[_types.CopyResult]:
        return Request(
            self.native.copy_out(check.path("source", source), check.path("target", target), options),
            _types.copy_result,
        )

    def console_log(self) -> str:
        path = self.native.console_log()
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""


def _waiting(timeout: object) -> dict[str, Any]:
    return {"timeout": check.seconds("timeout", timeout)}


def _reading(offset: object, length: object, user: object, timeout: object) -> dict[str, Any]:
    return {
        "offset": check.integer("offset", offset, 0, _MOST_BYTES),
        "length": check.optional_integer("length", length, 0, _MOST_BYTES),
        "user": check.optional_text("user", user),
        "timeout": check.seconds("timeout", timeout),
    }


def write_options(
    *,
    mode: object,
    parents: object,
    exclusive: object,
    expected_sha256: object,
    owner: object,
    mtime_ns: object,
    durable: object,
    user: object,
    timeout: object,
    size: object = None,
) -> dict[str, Any]:
    return {
        "mode": check.optional_integer("mode", mode, 0, 0o7777),
        "parents": check.flag("parents", parents),
        "exclusive": check.flag("exclusive", exclusive),
        "expected_sha256": check.optional_text("expected_sha256", expected_sha256),
        "owner": check.optional_text("owner", owner),
        "mtime_ns": check.optional_integer("mtime_ns", mtime_ns, -_MOST_BYTES, _MOST_BYTES),
        "durable": check.flag("durable", durable),
        "user": check.optional_text("user", user),
        "timeout": check.seconds("timeout", timeout),
        "size": check.optional_integer("size", size, 0, _MOST_BYTES),
    }


def copy_options(
    *, follow_links: object, keep_owners: object, owner: object, user: object, timeout: object
) -> dict[str, Any]:
    return {
        "follow_links": check.flag("follow_links", follow_links),
        "keep_owners": check.flag("keep_owners", keep_owners),
        "owner": check.optional_text("owner", owner),
        "user": check.optional_text("user", user),
        "timeout": check.seconds("timeout", timeout),
    }
