"""Making, attaching and destroying: B-*, A-* and D-*."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import holt
import pytest
import smol
import trio
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.workspaces import Workspace, WorkspaceError, WorkspaceRef, WorkspaceUnavailableError
from pydantic_ai_harness.coder import Coder

from sandboxes import GONE, PATTERN, Provider, Script, Turn

pytestmark = pytest.mark.anyio

WAIT = 60


def state_of(ref: WorkspaceRef) -> str:
    return holt.Machine.open(ref.id).state()


def is_there(ref: WorkspaceRef) -> bool:
    return any(machine.name == ref.id for machine in holt.Machine.list())


async def ref_of(backend: Any) -> WorkspaceRef:
    """Of a backend whose first operation is under way."""
    with anyio.fail_after(WAIT):
        while backend.ref is None:
            await anyio.sleep(0.001)
    return backend.ref


async def test_b1_nothing_happens_before_the_first_operation(
    provider: Provider, doomed: list[Any], creations: list[str]
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    assert backend.ref is None and creations == []
    assert Workspace(backend).ref is None
    await backend.run(["true"])
    assert creations == [backend.ref.id]


async def test_b1_coder_without_repo_context_makes_nothing_until_a_tool_needs_it(
    provider: Provider, doomed: list[Any], creations: list[str]
) -> None:
    idle = Script([Turn(text="Nothing to do.")])
    agent = Agent(idle.model(), capabilities=[provider.sandbox(), Coder(repo_context=False)])
    result = await agent.run("Hello")
    assert result.workspace.ref is None and creations == []
    working = Script([Turn(calls=[("shell", {"command": "echo here"})]), Turn(sees="here", text="Done.")])
    agent = Agent(working.model(), capabilities=[provider.sandbox(), Coder(repo_context=False)])
    result = await agent.run("Hello")
    doomed.append(result.workspace)
    assert creations == [result.workspace.ref.id]


async def test_b2_b3_name_is_recorded_and_logged_before_the_boot(
    provider: Provider, doomed: list[Any], creations: list[str]
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    async with anyio.create_task_group() as group:
        group.start_soon(backend.working_dir)
        ref = await ref_of(backend)
        # The boot takes far longer than the way here, so the machine is not running yet.
        assert not is_there(ref) or state_of(ref) != "running"
        assert creations == [ref.id]
    assert re.fullmatch(PATTERN, ref.id) and ref.provider == "smol"
    assert backend.ref == ref
    info = holt.Machine.open(ref.id).info()
    assert (info.state, info.persistent, info.network) == ("running", True, "none")


async def test_b4_failed_boot_clears_the_ref_and_leaves_nothing(provider: Provider, creations: list[str]) -> None:
    backend = provider.backend(image=f"sha256:{0:064}")
    for attempt in (1, 2):
        with pytest.raises(Exception) as caught:
            await backend.working_dir()
        assert not isinstance(caught.value, (WorkspaceUnavailableError, AttributeError))
        assert backend.ref is None
        assert len(set(creations)) == attempt
    assert not [name for name in creations if is_there(WorkspaceRef(provider="smol", id=name))]


async def test_b4_caller_cancelled_during_the_boot_loses_neither_machine_nor_ref(
    provider: Provider, doomed: list[Any], creations: list[str]
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    async with anyio.create_task_group() as group:
        group.start_soon(backend.working_dir)
        ref = await ref_of(backend)
        group.cancel_scope.cancel()
    assert backend.ref == ref
    assert await backend.working_dir() == "/workspace"
    assert creations == [ref.id] and backend.ref == ref


async def test_b5_concurrent_first_operations_share_one_boot(
    provider: Provider, doomed: list[Any], creations: list[str]
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    answers: list[str] = []

    async def ask() -> None:
        answers.append((await backend.run(["hostname"])).stdout)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ask)
    assert len(answers) == 8 and len(set(answers)) == 1
    assert creations == [backend.ref.id]


async def test_b5_destroy_waits_for_a_boot_under_way(provider: Provider) -> None:
    backend = provider.backend()
    failures: list[BaseException] = []

    async def boot() -> None:
        try:
            await backend.working_dir()
        except WorkspaceUnavailableError as error:
            failures.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(boot)
        ref = await ref_of(backend)
        await provider.sandbox().destroy(ref)
        assert not is_there(ref)
    assert not is_there(ref)


async def test_b6_working_dir_that_cannot_be_made_keeps_machine_and_ref(provider: Provider, doomed: list[Any]) -> None:
    backend = provider.backend(working_dir="/tmp/taken/work")
    other = provider.backend(working_dir=None)
    await other.run("touch /tmp/taken", shell=True)
    doomed.append(other)
    backend = provider.backend(ref=other.ref, working_dir="/tmp/taken/work")
    for _ in range(2):
        with pytest.raises(WorkspaceError, match="/tmp/taken/work") as caught:
            await backend.working_dir()
        assert not isinstance(caught.value, WorkspaceUnavailableError)
        assert other.ref.id in str(caught.value)
    assert backend.ref == other.ref and state_of(other.ref) == "running"
    await other.run("rm /tmp/taken", shell=True)
    assert await backend.working_dir() == "/tmp/taken/work"


async def test_b6_new_machine_is_kept_when_its_working_dir_cannot_be_made(
    provider: Provider, doomed: list[Any], creations: list[str]
) -> None:
    backend = provider.backend(working_dir="/etc/passwd/work")
    with pytest.raises(WorkspaceError, match="/etc/passwd/work"):
        await backend.run(["true"])
    doomed.append(backend)
    assert creations == [backend.ref.id] and state_of(backend.ref) == "running"


async def test_b7_boot_is_not_bounded_by_the_timeout_of_a_command(
    provider: Provider, doomed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = smol.Machine if provider.name == "smol" else holt.Machine
    create = kind.create

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(2.5)
        return create(*arguments, **options)

    monkeypatch.setattr(kind, "create", slow)
    backend = provider.backend()
    doomed.append(backend)
    assert (await backend.run(["echo", "done"], timeout=2)).stdout == "done\n"


async def test_b7_attach_is_not_bounded_by_the_timeout_of_a_command(
    provider: Provider, doomed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    await (await backend.get_sandbox()).stop()
    boot = "start" if provider.name == "smol" else "connect"
    at_once, timeout = getattr(holt.Machine, boot), 8

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(timeout + 0.5)
        return at_once(*arguments, **options)

    monkeypatch.setattr(holt.Machine, boot, slow)
    attached = provider.backend(ref=backend.ref, working_dir=None)
    assert (await attached.run(["echo", "done"], timeout=timeout)).stdout == "done\n"


async def test_b8_run_ends_or_fails_and_its_machine_stays(provider: Provider, doomed: list[Any]) -> None:
    script = Script([Turn(calls=[("write_file", {"path": "a", "content": "a"})]), Turn(sees="never seen", text="x")])
    backend = provider.backend()
    doomed.append(backend)
    agent = Agent(script.model(), capabilities=[Coder()])
    with pytest.raises(AssertionError):
        await agent.run("Write.", workspace=backend)
    assert state_of(backend.ref) == "running"
    assert await Workspace(backend).read_text("a") == "a"


async def test_b9_working_dir_is_asked_once(provider: Provider, shared: Any) -> None:
    backend = shared.backend(working_dir=None)
    first = await backend.working_dir()
    assert first.startswith("/") and await backend.working_dir() == first
    assert (await backend.run(["pwd", "-P"])).stdout == f"{first}\n"


async def test_b10_get_sandbox_gives_the_machine_whose_stop_keeps_its_files(
    provider: Provider, doomed: list[Any]
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    machine = await backend.get_sandbox()
    assert machine.name == backend.ref.id
    await Workspace(backend).write_text("kept", "after the stop")
    await machine.stop()
    assert state_of(backend.ref) == "stopped"
    attached = provider.backend(ref=backend.ref)
    assert await Workspace(attached).read_text("kept") == "after the stop"


async def test_b11_other_event_loops(provider: Provider, shared: Any) -> None:
    """SmolSandbox needs asyncio and says so; HoltSandbox works under Trio."""

    async def use() -> str:
        return (await shared.backend().run(["echo", "trio"])).stdout

    async def destroy() -> None:
        await provider.sandbox().destroy(GONE)

    def under_trio(function: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        return anyio.to_thread.run_sync(trio.run, function)

    if provider.name == "smol":
        for function in (use, destroy):
            with pytest.raises(UserError, match="asyncio"):
                await under_trio(function)
    else:
        assert await under_trio(use) == "trio\n"
        await under_trio(destroy)


async def test_a1_history_of_a_passed_in_machine_needs_that_machine_again_or_a_new_one(
    provider: Provider, creations: list[str], doomed: list[Any]
) -> None:
    machine = holt.Machine.create("a1-of-the-program", idle_stop=60)
    try:
        ref = WorkspaceRef(provider="smol", id=machine.name)
        script = Script([Turn(calls=[("shell", {"command": "echo $((6*7))"})]), Turn(sees="42", text="42")])
        agent = Agent(script.model(), capabilities=[provider.sandbox(), Coder()])
        result = await agent.run("Calculate.", workspace=provider.backend(ref=ref))
        assert result.workspace.ref == ref
        silent = Agent(Script([Turn(text="never")]).model(), capabilities=[provider.sandbox(), Coder()])
        with pytest.raises(ValueError, match="32 hex"):
            await silent.run("Again.", message_history=result.all_messages())
        assert creations == []
        more = Script([Turn(text="Again."), Turn(text="Elsewhere.")])
        agent = Agent(more.model(), capabilities=[provider.sandbox(), Coder()])
        again = await agent.run("Again.", message_history=result.all_messages(), workspace=provider.backend(ref=ref))
        assert again.workspace.ref == ref and creations == []
        elsewhere = await agent.run("Again.", message_history=result.all_messages(), workspace="new")
        doomed.append(elsewhere.workspace)
        assert elsewhere.output == "Elsewhere." and [elsewhere.workspace.ref.id] == creations
    finally:
        machine.remove(force=True)


async def test_a2_workspace_is_rebuilt_from_its_ref(provider: Provider, shared: Any) -> None:
    await shared.workspace().write_text("rebuilt", "yes")
    rebuilt = provider.sandbox().get_workspace(None, ref=shared.ref)
    assert await Workspace(rebuilt).read_text("rebuilt") == "yes"


async def test_a3_machine_that_another_program_named_so_is_opened(provider: Provider) -> None:
    """The name proves nothing; refs are trusted input."""
    machine = holt.Machine.create("pydantic-ai-" + "ab" * 16, labels={"made-by": "another program"})
    try:
        ref = WorkspaceRef(provider="smol", id=machine.name)
        assert (await provider.sandbox().backend(ref).run(["echo", "in"])).stdout == "in\n"
    finally:
        machine.remove(force=True)


async def test_a4_machine_that_is_gone_is_not_replaced(provider: Provider, creations: list[str]) -> None:
    for backend in (provider.backend(ref=GONE), provider.sandbox().backend(GONE)):
        for operation in (backend.working_dir(), backend.run(["true"]), Workspace(backend).read_bytes("/etc/passwd")):
            with pytest.raises(WorkspaceUnavailableError, match="workspace='new'") as caught:
                await operation
            assert GONE.id in str(caught.value)
    agent = Agent(Script([Turn(text="never")]).model(), capabilities=[provider.sandbox(), Coder()])
    with pytest.raises(WorkspaceUnavailableError):
        await agent.run("Go on.", workspace=GONE)
    assert creations == []


async def test_a4_sandbox_object_of_a_removed_machine_is_unavailable(provider: Provider) -> None:
    machine = holt.Machine.define("a4-removed")
    if provider.name == "smol":
        handle: Any = smol.Machine.open(machine.name)
    else:
        handle = machine
    machine.remove(force=True)
    backend = provider.backend(sandbox=handle)
    assert backend.ref == WorkspaceRef(provider="smol", id="a4-removed")
    for operation in (backend.working_dir(), backend.run(["true"])):
        with pytest.raises(WorkspaceUnavailableError, match="passed as `sandbox` is not, or is no longer") as caught:
            await operation
        assert "a4-removed" in str(caught.value) and "only uses" in str(caught.value)


async def test_a4_sandbox_object_of_either_kind_is_used(provider: Provider, shared: Any) -> None:
    if provider.name == "smol":
        handles: list[Any] = [smol.Machine.open(shared.ref.id)]
        handles.append(smol.AsyncMachine(handles[0]))
    else:
        handles = [holt.Machine.open(shared.ref.id), await holt.AsyncMachine.open(shared.ref.id)]
    for handle in handles:
        backend = provider.backend(sandbox=handle)
        assert backend.ref == shared.ref
        assert (await backend.run(["echo", "used"])).stdout == "used\n"


class Broken(NamedTuple):
    """A host that can run no machine: the environment that makes it so, and the code that says so."""

    variable: str
    value: str
    code: str


NO_QEMU = Broken("HOLT_QEMU", "/nowhere/qemu-system-x86_64", "HYPERVISOR_UNAVAILABLE")
NO_KVM = Broken("HOLT_ACCELERATOR", "kvm", "KVM_UNAVAILABLE")


@pytest.fixture(params=[NO_QEMU, NO_KVM], ids=lambda broken: broken.code)
def broken(request: pytest.FixtureRequest) -> Broken:
    if request.param is NO_KVM and holt.local_availability(holt.HostOptions(accelerator="kvm")).available:
        pytest.skip("KVM works here")
    return request.param


async def test_a5_host_that_cannot_run_machines_makes_the_workspace_unavailable(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, creations: list[str], broken: Broken
) -> None:
    monkeypatch.setenv(broken.variable, broken.value)
    backend = provider.backend()
    with pytest.raises(WorkspaceUnavailableError, match=broken.code):
        await backend.working_dir()
    assert backend.ref is None and len(creations) == 1


async def test_a5_host_that_cannot_start_a_stopped_machine_makes_it_unavailable(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, doomed: list[Any], broken: Broken
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    await (await backend.get_sandbox()).stop()
    with monkeypatch.context() as environment:
        environment.setenv(broken.variable, broken.value)
        attached = provider.backend(ref=backend.ref)
        with pytest.raises(WorkspaceUnavailableError, match=broken.code):
            await attached.run(["true"])
    # The ref stays, and so does the machine.
    assert attached.ref == backend.ref
    assert (await attached.run(["echo", "back"])).stdout == "back\n"


async def test_a5_host_code_that_only_the_boot_finds_makes_the_workspace_unavailable(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, doomed: list[Any]
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    await (await backend.get_sandbox()).stop()

    def refuse(*_: Any, **__: Any) -> None:
        raise holt.KvmUnavailableError("KVM went away")

    monkeypatch.setattr(holt.Machine, "start" if provider.name == "smol" else "connect", refuse)
    attached = provider.backend(ref=backend.ref, working_dir=None)
    with pytest.raises(WorkspaceUnavailableError, match="KVM_UNAVAILABLE"):
        await attached.run(["true"])
    monkeypatch.undo()
    assert state_of(backend.ref) == "stopped"


async def test_d1_destroy_of_a_machine_in_use_ends_it(provider: Provider) -> None:
    backend = provider.backend()
    await backend.working_dir()
    await provider.sandbox().destroy(backend.ref)
    assert not is_there(backend.ref)
    with pytest.raises(WorkspaceUnavailableError):
        await backend.run(["true"])


async def test_d1_two_destroys_at_once_are_both_quiet(provider: Provider) -> None:
    backend = provider.backend()
    await backend.working_dir()
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(provider.sandbox().destroy, backend.ref)
    assert not is_there(backend.ref)


async def test_d2_destroy_of_a_machine_that_is_gone_is_quiet(provider: Provider) -> None:
    await provider.sandbox().destroy(GONE)
    backend = provider.backend()
    await backend.working_dir()
    for _ in range(2):
        await provider.sandbox().destroy(backend.ref)


async def test_d3_destroy_that_has_begun_is_finished_when_its_caller_is_cancelled(provider: Provider) -> None:
    backend = provider.backend()
    await backend.working_dir()
    ref = backend.ref
    async with anyio.create_task_group() as group:
        group.start_soon(provider.sandbox().destroy, ref)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    with anyio.fail_after(WAIT):
        while is_there(ref):
            await anyio.sleep(0.02)


async def test_d4_stopped_machine_is_destroyed(provider: Provider) -> None:
    backend = provider.backend()
    await (await backend.get_sandbox()).stop()
    assert state_of(backend.ref) == "stopped"
    await provider.sandbox().destroy(backend.ref)
    assert not is_there(backend.ref)


async def test_d4_stopped_machine_is_removed_without_a_boot(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, doomed: list[Any]
) -> None:
    """SmolSandbox.destroy connects first, which boots; `smol` itself deletes by name."""
    backend = provider.backend()
    doomed.append(backend)
    await (await backend.get_sandbox()).stop()
    started, qemu = tmp_path / "started", tmp_path / "qemu-system-x86_64"
    real = shutil.which("qemu-system-x86_64")
    qemu.write_text(f'#!/bin/sh\ncase $* in *-M*) echo "$*" >> {started};; esac\nexec {real} "$@"\n')
    qemu.chmod(0o755)
    with monkeypatch.context() as watched:
        watched.setenv("HOLT_QEMU", str(qemu))
        if provider.name == "smol":
            await smol.AsyncMachine.delete_by_name(backend.ref.id)
        else:
            await provider.sandbox().destroy(backend.ref)
    assert not is_there(backend.ref) and not started.exists()


@pytest.mark.parametrize(
    "error",
    [holt.StorageError("disk"), holt.KvmUnavailableError("KVM went away"), holt.RuntimeNotInstalledError("no kernel")],
    ids=lambda error: error.code,
)
async def test_d5_other_errors_of_a_removal_are_passed_on(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, doomed: list[Any], error: holt.Error
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    await backend.working_dir()

    def fails(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as failing:
        failing.setattr(holt.Machine, "remove", fails)
        with pytest.raises((smol.SmolError, holt.Error)) as caught:
            await provider.sandbox().destroy(backend.ref)
    assert caught.value is error or (provider.name == "smol" and caught.value.__cause__ is error)
    assert caught.value.code == error.code and is_there(backend.ref)


async def test_d7_destroy_in_finally_covers_a_run_cancelled_during_the_boot(provider: Provider) -> None:
    backend = provider.backend()
    agent = Agent(Script([Turn(text="never")]).model(), capabilities=[Coder()])

    async def run() -> None:
        try:
            await agent.run("Work.", workspace=backend)
        finally:
            with anyio.CancelScope(shield=True):
                await provider.sandbox().destroy(backend.ref)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        ref = await ref_of(backend)
        group.cancel_scope.cancel()
    assert not is_there(ref)


LEAVING = """
import asyncio, sys
from sandboxes import PROVIDERS
from pydantic_ai.workspaces import Workspace

async def main():
    backend = PROVIDERS[sys.argv[1]].backend()
    await Workspace(backend).write_text('written', 'just before the end')
    print(backend.ref.id, flush=True)
    if sys.argv[2] == 'die':
        import os
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["exit", "die"])
async def test_b8_files_outlive_the_process_that_wrote_them(provider: Provider, how: str, doomed: list[Any]) -> None:
    """A machine of `smol` stops, flushed, with its process, however that ends; one of HoltSandbox goes on."""
    process = subprocess.run(
        [sys.executable, "-c", LEAVING, provider.name, how],
        capture_output=True,
        text=True,
        timeout=WAIT,
        cwd=os.path.dirname(__file__),
    )
    assert process.returncode == (0 if how == "exit" else -9), process.stderr
    ref = WorkspaceRef(provider="smol", id=process.stdout.strip())
    doomed.append(provider.sandbox().backend(ref))
    if provider.name == "smol":
        with anyio.fail_after(WAIT):
            while state_of(ref) in ("running", "stopping"):
                await anyio.sleep(0.02)
        assert state_of(ref) == "stopped"
    else:
        assert state_of(ref) == "running"
    assert await Workspace(provider.backend(ref=ref)).read_text("written") == "just before the end"
