"""Commands: E-*, and what an engine's failure becomes."""

from __future__ import annotations

import math
from typing import Any

import anyio
import holt
import pytest
from pydantic_ai.workspaces import (
    Workspace,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from sandboxes import Provider

pytestmark = pytest.mark.anyio

WAIT = 60
LIMIT = 10_485_760
PREVIEW = 65_536


async def alive(backend: Any, pid: str) -> bool:
    return (await backend.run(["sh", "-c", 'kill -0 "$1"', "sh", pid])).exit_code == 0


async def until_dead(backend: Any, pid: str) -> None:
    with anyio.fail_after(WAIT):
        while await alive(backend, pid):
            await anyio.sleep(0.05)


async def test_e1_forms(provider: Provider, shared: Any) -> None:
    backend = shared.backend()
    assert (await backend.run("echo $((1+1))", shell=True)).stdout == "2\n"
    assert (await backend.run(["echo", "$((1+1))"])).stdout == "$((1+1))\n"
    for command, shell in [("true", False), (["true"], True), (b"true", False), (b"true", True), ([b"true"], False)]:
        with pytest.raises(TypeError):
            await backend.run(command, shell=shell)
    for command in ([1], ["true", None], None, 7):
        with pytest.raises((TypeError, ValueError)):
            await backend.run(command)
    with pytest.raises((TypeError, ValueError)):
        await backend.run([])
    with pytest.raises(ValueError):
        await Workspace(backend).run([])


async def test_e1_nul_in_an_argument_is_a_value_error(provider: Provider, shared: Any) -> None:
    with pytest.raises(ValueError):
        await shared.backend().run(["echo", "a\0b"])


async def test_e1_nul_in_a_script_runs_nothing(provider: Provider, shared: Any) -> None:
    """SmolSandbox hands such a script on, and the engine refuses it; HoltSandbox says so itself."""
    with pytest.raises(ValueError if provider.name == "holt" else Exception) as caught:
        await shared.backend().run("echo a\0b", shell=True)
    assert not isinstance(caught.value, WorkspaceUnavailableError)
    assert (await shared.backend().run(["echo", "alive"])).stdout == "alive\n"


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, -math.inf, "1"])
async def test_timeout_out_of_range_is_a_value_error(provider: Provider, shared: Any, timeout: Any) -> None:
    for workspace in (shared.backend(), shared.workspace()):
        with pytest.raises(ValueError):
            await workspace.run(["true"], timeout=timeout)


@pytest.mark.parametrize("env", [{"A": 1}, {1: "a"}])
async def test_env_of_a_call_has_strings(provider: Provider, shared: Any, env: Any) -> None:
    with pytest.raises(TypeError):
        await shared.backend().run(["true"], env=env)


@pytest.mark.parametrize("env", [{"": "a"}, {"A=": "a"}, {"A": "\0"}])
async def test_env_of_a_call_fits_a_process(provider: Provider, shared: Any, env: Any) -> None:
    with pytest.raises(ValueError):
        await shared.backend().run(["true"], env=env)


async def test_e2_arguments_stay_literal_and_input_is_empty(provider: Provider, shared: Any) -> None:
    arguments = ["", " a  b ", "$HOME", "`id`", "*", "'", '"', "\\", "\n", "ä€😀", "-n", "--", ";rm -rf /"]
    result = await shared.backend().run(["printf", "[%s]", *arguments])
    assert result.stdout == "".join(f"[{argument}]" for argument in arguments)
    assert (await shared.backend().run(["cat"])).stdout == ""
    assert (await shared.backend().run("cat; echo end", shell=True)).stdout == "end\n"


async def test_e3_missing_program_is_127(provider: Provider, shared: Any) -> None:
    for program in ("no-such-program", "/no/such/program", "./none"):
        result = await shared.backend().run([program])
        assert (result.exit_code, result.stdout) == (127, "")
    assert (await shared.backend().run("no-such-program", shell=True)).exit_code == 127


async def test_e3_program_that_cannot_be_executed_is_126(provider: Provider, shared: Any) -> None:
    await shared.workspace().write_text("/tmp/plain", "no program")
    assert (await shared.backend().run(["/tmp/plain"])).exit_code == 126
    assert (await shared.backend().run(["/tmp"])).exit_code == 126


async def test_e3_program_whose_name_starts_with_a_dash(provider: Provider, shared: Any) -> None:
    workspace = shared.workspace()
    await workspace.write_text("/tmp/odd/-c", '#!/bin/sh\necho "odd: $*"\n')
    await workspace.run(["chmod", "755", "/tmp/odd/-c"])
    inside = shared.backend(working_dir="/tmp/odd")
    assert (await inside.run(["./-c", "a b"])).stdout == "odd: a b\n"
    assert (await inside.run(["-c", "echo read as an option"])).exit_code == 127
    missing = await inside.run(["-none"])
    assert (missing.exit_code, missing.stdout) == (127, "")


async def test_e4_commands_start_in_working_dir(provider: Provider, shared: Any) -> None:
    assert (await shared.backend(working_dir="/tmp/start here").run(["pwd"])).stdout == "/tmp/start here\n"
    assert (await shared.backend(working_dir=None).run(["pwd"])).stdout.startswith("/")


async def test_e5_environment_of_the_call_lies_over_that_of_the_backend(
    provider: Provider, shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "never")
    backend = shared.backend(env={"A": "backend", "B": "backend"})
    result = await backend.run('echo $A $B $C "[$HOST_SECRET]"', shell=True, env={"B": "call", "C": "call"})
    assert result.stdout == "backend call call []\n"
    assert (await backend.run("echo $A $B $C", shell=True)).stdout == "backend backend\n"
    assert "/bin" in (await backend.run("echo $PATH", shell=True)).stdout


async def test_e6_user_is_the_images(provider: Provider, shared: Any) -> None:
    assert (await shared.backend().run(["id", "-u"])).stdout == "0\n"


async def test_e7_timeout_kills_all_processes_and_keeps_the_output(provider: Provider, shared: Any) -> None:
    backend = shared.backend()
    script = "sleep 3600 & echo $!; echo $$; echo partly >&2; exec sleep 3600"
    with pytest.raises(WorkspaceTimeoutError, match=r"0\.7 seconds") as caught:
        await backend.run(script, shell=True, timeout=0.7)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.stderr == "partly\n"
    pids = caught.value.stdout.split()
    assert len(pids) == 2
    for pid in pids:
        await until_dead(backend, pid)


async def test_e7_exit_that_comes_first_wins(provider: Provider, shared: Any) -> None:
    assert (await shared.backend().run("exit 3", shell=True, timeout=30)).exit_code == 3


async def test_e8_cancellation_kills_all_processes(provider: Provider, shared: Any) -> None:
    backend, workspace = shared.backend(), shared.workspace()
    await workspace.run(["rm", "-f", "/tmp/pids"])
    script = "sleep 3600 & echo $! $$ > /tmp/pids.new; mv /tmp/pids.new /tmp/pids; wait"
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: backend.run(script, shell=True))
        with anyio.fail_after(WAIT):
            while not await workspace.exists("/tmp/pids"):
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    for pid in (await workspace.read_text("/tmp/pids")).split():
        await until_dead(backend, pid)


async def test_e9_detached_job_survives_the_command_that_started_it(provider: Provider, shared: Any) -> None:
    backend = shared.backend()
    script = "nohup sleep 3600 > /dev/null 2>&1 & echo $!"
    pid = (await backend.run(script, shell=True)).stdout.strip()
    assert await alive(backend, pid)
    await backend.run(f"kill -9 {pid}", shell=True)
    await until_dead(backend, pid)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_e10_output_over_the_cap_raises_with_its_beginning(provider: Provider, shared: Any, stream: str) -> None:
    script = 'printf begin; printf begin >&2; head -c 10485760 /dev/zero | tr "\\0" x'
    if stream == "stderr":
        script += " >&2"
    with pytest.raises(WorkspaceOutputLimitError) as caught:
        await shared.backend().run(script, shell=True, timeout=WAIT)
    error = caught.value
    full, other = (error.stdout, error.stderr) if stream == "stdout" else (error.stderr, error.stdout)
    assert error.limit == LIMIT
    assert full == "begin" + "x" * (PREVIEW - 5) and other == "begin"


async def test_e10_output_that_never_ends_is_stopped(provider: Provider, shared: Any) -> None:
    with anyio.fail_after(WAIT), pytest.raises(WorkspaceOutputLimitError):
        await shared.backend().run(["yes"])


async def test_e11_output_up_to_the_cap_is_complete(provider: Provider, shared: Any) -> None:
    result = await shared.backend().run('head -c 10485760 /dev/zero | tr "\\0" x', shell=True, timeout=WAIT)
    assert (result.exit_code, len(result.stdout), result.stderr) == (0, LIMIT, "")


async def test_e10_text_is_decoded_across_pieces(provider: Provider, shared: Any) -> None:
    script = 'for i in 1 2 3; do printf "\\342"; sleep 0.05; printf "\\202"; sleep 0.05; printf "\\254"; done'
    assert (await shared.backend().run(script, shell=True)).stdout == "€€€"


@pytest.mark.parametrize("code", [0, 1, 124, 125, 126, 127, 128, 255])
async def test_e13_exit_codes_pass_through(provider: Provider, shared: Any, code: int) -> None:
    assert (await shared.backend().run(f"exit {code}", shell=True)).exit_code == code


@pytest.mark.parametrize("signal", [1, 9, 11, 15])
async def test_e13_death_by_signal_is_128_and_its_number(provider: Provider, shared: Any, signal: int) -> None:
    assert (await shared.backend().run(f"kill -{signal} $$", shell=True)).exit_code == 128 + signal


async def test_failure_machine_removed_before_a_command_is_unavailable(provider: Provider) -> None:
    backend = provider.backend()
    await backend.working_dir()
    holt.Machine.open(backend.ref.id).remove(force=True)
    with pytest.raises(WorkspaceUnavailableError) as caught:
        await backend.run(["true"])
    assert backend.ref.id in str(caught.value)
    with pytest.raises(WorkspaceUnavailableError):
        await Workspace(backend).read_bytes("/etc/passwd")


@pytest.mark.parametrize("end", ["remove", "stop", "poweroff"])
async def test_failure_machine_ended_during_a_command_is_unavailable(
    provider: Provider, doomed: list[Any], end: str
) -> None:
    backend = provider.backend()
    doomed.append(backend)
    await Workspace(backend).write_text("/tmp/before", "")
    caught: list[BaseException] = []

    async def run() -> None:
        with pytest.raises(WorkspaceUnavailableError) as error:
            await backend.run("touch /tmp/started; exec sleep 3600", shell=True, timeout=WAIT)
        caught.append(error.value)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with anyio.fail_after(WAIT):
            while not await Workspace(backend).exists("/tmp/started"):
                await anyio.sleep(0.02)
        machine = holt.Machine.open(backend.ref.id)
        if end == "remove":
            await anyio.to_thread.run_sync(lambda: machine.remove(force=True))
        elif end == "stop":
            await anyio.to_thread.run_sync(machine.stop)
        else:
            # The guest ends itself, as a kernel panic would end it.
            with pytest.raises(holt.OutcomeUnknownError):
                await anyio.to_thread.run_sync(
                    lambda: machine.exec("echo o > /proc/sysrq-trigger; exec sleep 60", shell=True)
                )
    assert caught and backend.ref.id in str(caught[0])


async def test_failure_stopped_machine(provider: Provider, doomed: list[Any]) -> None:
    """SmolSandbox says that it was stopped; HoltSandbox, whose machines stop by themselves, starts it again."""
    backend = provider.backend()
    doomed.append(backend)
    await Workspace(backend).write_text("kept", "kept")
    holt.Machine.open(backend.ref.id).stop()
    if provider.name == "smol":
        with pytest.raises(WorkspaceUnavailableError, match="stopped"):
            await backend.run(["true"])
    else:
        assert (await backend.run(["cat", "kept"])).stdout == "kept"
        holt.Machine.open(backend.ref.id).stop()
        assert await Workspace(backend).read_text("kept") == "kept"


async def test_failure_working_dir_that_was_removed_is_a_workspace_error(provider: Provider, shared: Any) -> None:
    backend = shared.backend(working_dir="/tmp/going")
    await backend.run(["rmdir", "/tmp/going"])
    with pytest.raises(WorkspaceError, match="/tmp/going") as caught:
        await backend.run(["true"])
    assert not isinstance(caught.value, WorkspaceUnavailableError)
    assert "No such file or directory" in str(caught.value) or provider.name == "holt"


async def test_many_commands_at_once(provider: Provider, shared: Any) -> None:
    backend = shared.backend()
    answers: dict[int, str] = {}

    async def ask(number: int) -> None:
        answers[number] = (await backend.run(["echo", str(number)])).stdout

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(ask, number)
    assert answers == {number: f"{number}\n" for number in range(30)}
