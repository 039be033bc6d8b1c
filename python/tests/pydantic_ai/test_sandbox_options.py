"""What HoltSandbox has beyond SmolSandbox: options of the engine, native files, machines that stop by themselves."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import holt
import pytest
from holt.pydantic_ai import HoltSandbox, HoltSandboxBackend
from pydantic_ai.workspaces import (
    SupportsCommands,
    SupportsFilesystem,
    SupportsRealpath,
    Workspace,
    WorkspaceError,
    WorkspaceRef,
)

pytestmark = pytest.mark.anyio

WAIT = 60
MIB = 1 << 20


@pytest.fixture
async def backends() -> AsyncIterator[list[HoltSandboxBackend]]:
    """Whose machines are removed after the test."""
    made: list[HoltSandboxBackend] = []
    yield made
    for backend in made:
        if backend.ref is not None:
            await HoltSandbox().destroy(backend.ref)


def info_of(backend: HoltSandboxBackend) -> holt.MachineInfo:
    assert backend.ref is not None
    return holt.Machine.open(backend.ref.id).info()


def state_of(backend: HoltSandboxBackend) -> str:
    assert backend.ref is not None
    return holt.Machine.open(backend.ref.id).state()


def test_every_interface_is_native() -> None:
    backend = HoltSandboxBackend()
    for interface in (SupportsCommands, SupportsFilesystem, SupportsRealpath):
        assert isinstance(backend, interface)


async def test_options_reach_the_new_machine(backends: list[HoltSandboxBackend]) -> None:
    sandbox = HoltSandbox(
        cpus=1,
        memory_mb=512,
        disk_gb=24,
        user="1000",
        working_dir="/tmp/mine",
        env={"A": "b"},
        labels={"made-by": "test", "run": "7"},
        idle_stop=1234.5,
    )
    backend = sandbox.get_workspace(None, ref=None)
    assert isinstance(backend, HoltSandboxBackend)
    backends.append(backend)
    result = await backend.run("id -u; echo $A; pwd; df -BG --output=size / | tail -1", shell=True)
    user, variable, directory, size = result.stdout.split()
    assert (user, variable, directory) == ("1000", "b", "/tmp/mine")
    assert int(size.rstrip("G")) > 21
    info = info_of(backend)
    assert (info.cpus, info.memory_mb, info.disk_gb, info.user, info.idle_stop) == (1, 512, 24, "1000", 1234.5)
    assert dict(info.labels) == {"made-by": "test", "run": "7"}
    assert [machine.name for machine in holt.Machine.list({"run": "7"})] == [info.name]
    # The variables are those of the commands; the machine's record does not hold them.
    assert info.env_names == ()


async def test_defaults_are_the_engines(backends: list[HoltSandboxBackend]) -> None:
    backend = HoltSandboxBackend()
    backends.append(backend)
    await backend.working_dir()
    info = info_of(backend)
    assert (info.cpus, info.memory_mb, info.disk_gb, info.idle_stop) == (2, 1024, 20, 900)
    assert (info.network, dict(info.labels), info.persistent) == ("none", {}, True)


async def test_idle_machine_stops_and_the_next_uses_start_it_again(backends: list[HoltSandboxBackend]) -> None:
    backend = HoltSandboxBackend(idle_stop=1.0)
    backends.append(backend)
    await backend.write_bytes("/workspace/kept", b"kept")
    for _ in range(2):
        with anyio.fail_after(WAIT):
            while state_of(backend) != "stopped":
                await anyio.sleep(0.05)
        # Several at once, of which only one finds it stopped.
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(backend.run, ["true"])
        assert await backend.read_bytes("/workspace/kept") == b"kept"


async def test_host_options_choose_the_engines_folders(
    backends: list[HoltSandboxBackend], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    home = os.environ["HOLT_HOME"]
    monkeypatch.setenv("HOLT_HOME", str(tmp_path))
    sandbox = HoltSandbox(host=holt.HostOptions(home=home))
    backend = sandbox.get_workspace(None, ref=None)
    assert isinstance(backend, HoltSandboxBackend)
    assert (await backend.run(["echo", "there"])).stdout == "there\n"
    assert backend.ref is not None
    attached = sandbox.backend(backend.ref)
    assert (await attached.run(["echo", "again"])).stdout == "again\n"
    await sandbox.destroy(backend.ref)
    assert not holt.Machine.list(host=holt.HostOptions(home=home)) or backend.ref.id not in {
        machine.name for machine in holt.Machine.list(host=holt.HostOptions(home=home))
    }
    assert not (tmp_path / "state").exists() or not list((tmp_path / "state").rglob("machine.json"))


async def test_backend_serves_several_event_loops(backends: list[HoltSandboxBackend]) -> None:
    """Also their first operations at once: one machine."""
    backend = HoltSandboxBackend()
    backends.append(backend)
    answers: list[str] = []

    async def ask() -> None:
        answers.append((await backend.run(["hostname"])).stdout)

    def loop(kind: str) -> None:
        anyio.run(ask, backend=kind)

    async with anyio.create_task_group() as group:
        for kind in ("asyncio", "trio", "asyncio", "trio"):
            group.start_soon(anyio.to_thread.run_sync, loop, kind)
    assert len(answers) == 4 and len(set(answers)) == 1


async def test_files_need_no_program_of_the_machine(backends: list[HoltSandboxBackend]) -> None:
    """Where `sh`, `base64` and the like are missing, files still work; commands say 127."""
    backend = HoltSandboxBackend()
    backends.append(backend)
    workspace = Workspace(backend)
    await workspace.write_text("a/b.txt", "before")
    assert (await workspace.run("rm -rf /usr/bin /bin /usr/sbin /sbin", shell=True)).exit_code in (0, 1)
    await workspace.write_text("a/b.txt", "after")
    assert await workspace.read_text("a/b.txt") == "after"
    assert [entry.name for entry in await workspace.list_dir("a")] == ["b.txt"]
    assert await workspace.realpath("a/../a/b.txt") == "/workspace/a/b.txt"
    await workspace.make_dir("c")
    await workspace.remove("a")
    assert not await workspace.exists("a") and await workspace.exists("c")
    assert (await workspace.run(["ls"])).exit_code == 127


async def test_large_files_move_at_the_speed_of_the_channel(backends: list[HoltSandboxBackend]) -> None:
    backend = HoltSandboxBackend()
    backends.append(backend)
    data = os.urandom(32 * MIB)
    await backend.working_dir()
    started = time.monotonic()
    await backend.write_bytes("/workspace/large", data)
    assert await backend.read_bytes("/workspace/large") == data
    # The shell path of SmolSandbox takes seconds for each MiB.
    assert time.monotonic() - started < 20
    assert (await backend.stat("/workspace/large")).size == len(data)


async def test_cancelled_write_leaves_the_old_file(backends: list[HoltSandboxBackend]) -> None:
    backend = HoltSandboxBackend()
    backends.append(backend)
    await backend.write_bytes("/workspace/file", b"old")
    with anyio.move_on_after(0.02) as scope:
        await backend.write_bytes("/workspace/file", bytes(64 * MIB))
    content = await backend.read_bytes("/workspace/file")
    assert content == (b"old" if scope.cancelled_caught else bytes(64 * MIB))
    names = [entry.name for entry in await backend.list_dir("/workspace")]
    assert names == ["file"]


async def test_e12_command_without_an_exit_status_is_a_workspace_error(
    backends: list[HoltSandboxBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = HoltSandboxBackend()
    backends.append(backend)
    machine = await backend.get_sandbox()

    class Cut:
        """A stream that ends as no engine should let it end."""

        async def __aenter__(self) -> AsyncIterator[holt.Event]:
            return self._events()

        async def __aexit__(self, *_: object) -> None:
            pass

        async def _events(self) -> AsyncIterator[holt.Event]:
            yield holt.Event("stdout", b"partly")

    monkeypatch.setattr(type(machine), "exec_stream", lambda *_, **__: Cut())
    with pytest.raises(WorkspaceError, match="no exit status"):
        await backend.run(["true"])


async def test_secrets_reach_neither_log_nor_error_nor_state(
    backends: list[HoltSandboxBackend], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    backend = HoltSandboxBackend(env={"TOKEN": "s3cr3t-of-the-backend"})
    backends.append(backend)
    with pytest.raises(WorkspaceError) as caught:
        await backend.run(["sleep", "60"], env={"CALL": "s3cr3t-of-the-call"}, timeout=0.3)
    folder = next(os.walk(os.environ["HOLT_HOME"]))[0]
    assert "s3cr3t" not in caplog.text and "s3cr3t" not in str(caught.value)
    assert backend.ref is not None
    for root, _, files in os.walk(folder):
        for name in files:
            if backend.ref.id in root and name.endswith((".json", ".log")):
                with open(os.path.join(root, name), errors="replace") as file:
                    assert "s3cr3t" not in file.read(), name


async def test_refs_of_both_capabilities_are_alike(backends: list[HoltSandboxBackend]) -> None:
    backend = HoltSandboxBackend()
    backends.append(backend)
    await backend.working_dir()
    assert isinstance(backend.ref, WorkspaceRef) and backend.ref.provider == "smol"
