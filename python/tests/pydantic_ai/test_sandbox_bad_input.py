"""Hostile and mistaken use: typed errors at once, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import anyio
import holt
import pytest
from pydantic_ai.exceptions import UserError
from pydantic_ai.workspaces import Workspace, WorkspaceRef, WorkspaceUnavailableError

from sandboxes import PROVIDERS, Provider

pytestmark = pytest.mark.anyio

AT_ONCE = 5.0
WAIT = 60
HOLT = PROVIDERS["holt"]


def names() -> set[str]:
    return {machine.name for machine in holt.Machine.list()}


@pytest.mark.parametrize(
    "options",
    [
        {"cpus": 1000},
        {"memory_mb": 1},
        {"memory_mb": 1 << 21},
        {"memory_mb": 1 << 40},
        {"image": "UPPER/case:bad tag"},
        {"image": f"sha256:{0:064}"},
    ],
    ids=str,
)
async def test_what_the_engine_cannot_make_is_refused_at_once(
    provider: Provider, options: dict[str, Any], creations: list[str]
) -> None:
    backend = provider.backend(**options)
    started = time.monotonic()
    with pytest.raises(Exception) as caught:
        await backend.working_dir()
    assert time.monotonic() - started < AT_ONCE
    assert getattr(caught.value, "code", None) in {
        "INVALID_CONFIG",
        "CONFIG_ERROR",
        "NOT_FOUND",
        "NOT_SUPPORTED",
        "USAGE",
    }
    assert backend.ref is None and len(creations) == 1 and not names() & set(creations)


@pytest.mark.parametrize(
    "options",
    [
        {"disk_gb": 1 << 20},
        {"user": "nobody-here"},
        {"user": "a:b:c"},
        {"allow_hosts": ["a b"]},
    ],
    ids=str,
)
async def test_what_holt_cannot_make_is_refused_with_a_code(options: dict[str, Any], creations: list[str]) -> None:
    backend = HOLT.backend(**options)
    started = time.monotonic()
    with pytest.raises((holt.Error, WorkspaceUnavailableError)):
        await backend.run(["true"])
    assert time.monotonic() - started < AT_ONCE
    if backend.ref is not None:
        await HOLT.sandbox().destroy(backend.ref)
    assert len(creations) == 1 and not names() & set(creations)


async def test_internet_is_refused_or_given_but_never_ignored(provider: Provider) -> None:
    """Machines without a network must not pass for machines with one."""
    backend = provider.backend(allow_internet_access=True)
    try:
        await backend.working_dir()
    except Exception as error:
        assert getattr(error, "code", None) == "NOT_SUPPORTED"
        assert backend.ref is None
        return
    try:
        assert holt.Machine.open(backend.ref.id).info().network == "open"
    finally:
        await provider.sandbox().destroy(backend.ref)


async def test_require_kvm_refuses_where_only_emulation_works() -> None:
    if holt.local_availability(holt.HostOptions(accelerator="kvm")).available:
        pytest.skip("KVM works on this host")
    backend = HOLT.backend(require_kvm=True)
    with pytest.raises(WorkspaceUnavailableError, match="KVM_UNAVAILABLE"):
        await backend.working_dir()
    assert backend.ref is None


async def test_require_kvm_refuses_an_emulated_machine_that_runs_already(shared: Any) -> None:
    if holt.Machine.open(shared.ref.id).info().accelerator == "kvm":
        pytest.skip("KVM works on this host")
    with pytest.raises(WorkspaceUnavailableError, match="KVM_UNAVAILABLE"):
        await HOLT.sandbox(require_kvm=True).backend(shared.ref).working_dir()


@pytest.mark.parametrize("path", ["relative", "", "./a"])
async def test_relative_path_given_to_the_backend_is_a_value_error(shared: Any, path: str) -> None:
    backend = HOLT.backend(ref=shared.ref)
    for operation in (backend.read_bytes, backend.stat, backend.list_dir, backend.make_dir, backend.remove):
        with pytest.raises(ValueError, match="absolute"):
            await operation(path)


async def test_odd_paths_are_refused_with_pythons_own_errors(shared: Any) -> None:
    backend = HOLT.backend(ref=shared.ref)
    with pytest.raises(ValueError, match="embedded null byte"):
        await backend.read_bytes("/tmp/a\0b")
    with pytest.raises(OSError, match="File name too long"):
        await backend.read_bytes("/tmp/" + "x" * 256)
    with pytest.raises(OSError, match="File name too long"):
        await backend.read_bytes("/x" * 2048)
    with pytest.raises(TypeError):
        await backend.read_bytes(b"/tmp/a")
    with pytest.raises(TypeError):
        await backend.write_bytes("/tmp/a", "text")
    await Workspace(backend).run(["mkfifo", "-m", "600", "/tmp/pipe"])
    with pytest.raises(OSError, match="^not a regular file"):
        await backend.read_bytes("/tmp/pipe")
    with pytest.raises(OSError, match="^not a regular file"):
        await backend.write_bytes("/tmp/pipe", b"")
    with pytest.raises(OSError, match="^not a regular file"):
        await backend.read_bytes("/dev/zero")


async def test_names_of_any_bytes_round_trip(shared: Any) -> None:
    """Native: the reference cannot put a name that is no UTF-8 into a command."""
    backend = HOLT.backend(ref=shared.ref)
    await backend.run(["rm", "-rf", "/tmp/odd-names"])
    odd = ["\udcff\udcfe", "new\nline", " ", "-rf", "\u202e", "quote'\"", "ä"]
    for name in odd:
        await backend.write_bytes(f"/tmp/odd-names/{name}", name.encode(errors="surrogateescape"))
    entries = await backend.list_dir("/tmp/odd-names")
    assert {entry.name for entry in entries} == set(odd)
    for entry in entries:
        assert await backend.read_bytes(entry.path) == entry.name.encode(errors="surrogateescape")
        assert await backend.realpath(entry.path) == entry.path
        await backend.remove(entry.path)
    assert list(await backend.list_dir("/tmp/odd-names")) == []


async def test_use_after_destroy_is_unavailable_at_once(provider: Provider) -> None:
    backend = provider.backend()
    await backend.working_dir()
    await provider.sandbox().destroy(backend.ref)
    workspace = Workspace(backend)
    started = time.monotonic()
    for operation in (
        lambda: backend.run(["true"]),
        lambda: workspace.read_bytes("/etc/passwd"),
        lambda: workspace.write_bytes("/tmp/a", b""),
        lambda: workspace.list_dir("/"),
        lambda: workspace.exists("/"),
        lambda: workspace.realpath("/tmp/a"),
    ):
        with pytest.raises(WorkspaceUnavailableError):
            await operation()
    assert time.monotonic() - started < AT_ONCE


def run_script(script: str, *arguments: str, timeout: float = WAIT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=os.path.dirname(__file__),
    )


FORKING = """
import asyncio, os, sys
from sandboxes import PROVIDERS
provider = PROVIDERS[sys.argv[1]]
backend = provider.backend()
asyncio.run(backend.working_dir())
print(backend.ref.id, flush=True)
child = os.fork()
if child == 0:
    code = 1
    try:
        asyncio.run(backend.run(['true']))
    except BaseException as error:
        print(type(error).__name__, getattr(error, 'code', ''), error, file=sys.stderr, flush=True)
        code = 7 if 'fork' in str(error) else 8
    os._exit(code)
_, status = os.waitpid(child, 0)
assert asyncio.run(backend.run(['echo', 'parent'])).stdout == 'parent\\n'
asyncio.run(provider.sandbox().destroy(backend.ref))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_use_after_fork_is_refused_and_the_parent_goes_on(provider: Provider) -> None:
    ended = run_script(FORKING, provider.name)
    assert ended.returncode == 7, ended.stderr


FORKING_DURING_A_BOOT = """
import asyncio, os, signal, sys, threading
from holt.pydantic_ai import HoltSandbox, HoltSandboxBackend
backend = HoltSandboxBackend()
booting = threading.Thread(target=lambda: asyncio.run(backend.working_dir()))
booting.start()
while backend.ref is None:
    pass
child = os.fork()
if child == 0:
    signal.alarm(30)
    try:
        asyncio.run(backend.run(['true']))
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(7 if 'fork' in str(error) else 8)
    os._exit(1)
status = os.waitpid(child, 0)[1]
booting.join()
assert asyncio.run(backend.run(['echo', 'parent'])).stdout == 'parent\\n'
asyncio.run(HoltSandbox().destroy(backend.ref))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_use_after_a_fork_during_a_boot_is_refused_and_the_parent_goes_on() -> None:
    """The child's copy of the boot never ends."""
    ended = run_script(FORKING_DURING_A_BOOT)
    assert ended.returncode == 7, ended.stderr


CLOSING = """
import asyncio, sys, threading
from sandboxes import PROVIDERS
from pydantic_ai.workspaces import WorkspaceRef
ref = WorkspaceRef(provider='smol', id=sys.argv[2])
backend = PROVIDERS[sys.argv[1]].backend(ref=ref)
loop = asyncio.new_event_loop()
async def begin():
    script = 'echo $$ > /tmp/closing.new; mv /tmp/closing.new /tmp/closing; exec sleep 3600'
    task = loop.create_task(backend.run(script, shell=True))
    while (await backend.run(['test', '-e', '/tmp/closing'])).exit_code:
        await asyncio.sleep(0.02)
    return task
task = loop.run_until_complete(begin())
if sys.argv[3] == 'cancelled':
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
loop.close()
del task
print(threading.active_count())
"""


async def closed_loop_takes_its_command_along(shared: Any, provider: str, how: str) -> None:
    await shared.backend().run(["rm", "-f", "/tmp/closing"])
    ended = await anyio.to_thread.run_sync(lambda: run_script(CLOSING, provider, shared.ref.id, how))
    assert ended.returncode == 0, ended.stderr
    pid = (await shared.workspace().read_text("/tmp/closing")).strip()
    with anyio.fail_after(WAIT):
        while (await shared.backend().run(["sh", "-c", 'kill -0 "$1"', "sh", pid])).exit_code == 0:
            await anyio.sleep(0.05)


async def test_event_loop_closed_after_its_command_was_cancelled(shared: Any) -> None:
    await closed_loop_takes_its_command_along(shared, shared.provider.name, "cancelled")


async def test_event_loop_closed_under_a_command_of_holt_sandbox(shared: Any) -> None:
    """No thread waits for such a command, so the process ends; a thread of SmolSandbox would wait for ever."""
    await closed_loop_takes_its_command_along(shared, "holt", "abandoned")


EXITING = """
import asyncio, sys
from sandboxes import PROVIDERS
backend = PROVIDERS[sys.argv[1]].backend()
async def main():
    task = asyncio.create_task(backend.working_dir())
    while backend.ref is None:
        await asyncio.sleep(0)
    print(backend.ref.id, flush=True)
    sys.exit(5)
asyncio.run(main())
"""


async def test_interpreter_exit_during_a_boot_leaves_a_whole_machine_or_none(provider: Provider) -> None:
    ended = await anyio.to_thread.run_sync(lambda: run_script(EXITING, provider.name))
    assert ended.returncode == 5, ended.stderr
    ref = WorkspaceRef(provider="smol", id=ended.stdout.strip())
    if ref.id in names():
        assert (await provider.backend(ref=ref).run(["echo", "whole"])).stdout == "whole\n"
        await provider.sandbox().destroy(ref)


def test_unusable_options_are_user_errors(provider: Provider) -> None:
    for options in ({"cpus": 0}, {"memory_mb": -5}, {"cpus": True}, {"working_dir": "here"}):
        with pytest.raises(UserError):
            provider.sandbox(**options)
