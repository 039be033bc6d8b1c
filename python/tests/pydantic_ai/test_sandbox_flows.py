"""What SmolSandbox's documentation promises, end to end (spec section 8, flows 1 to 6)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.workspaces import ReadOnlyWorkspace, Workspace, WorkspaceUnavailableError
from pydantic_ai_harness.coder import Coder
from pydantic_ai_harness.filesystem import FileSystem
from pydantic_ai_harness.shell import Shell

from sandboxes import Provider, Script, Turn

pytestmark = pytest.mark.anyio


def writes(path: str, content: str) -> Script:
    return Script([Turn(calls=[("write_file", {"path": path, "content": content})]), Turn(text="Written.")])


def reads(path: str, content: str) -> Script:
    return Script([Turn(calls=[("read_file", {"path": path})]), Turn(sees=content, text="Read.")])


def coder(provider: Provider, script: Script, **options: Any) -> Agent[None, str]:
    return Agent(script.model(), capabilities=[provider.sandbox(**options), Coder()])


async def test_flow_1_history_leads_back_and_no_history_to_a_new_machine(
    provider: Provider, doomed: list[Any]
) -> None:
    first = await coder(provider, writes("a.txt", "of the first run")).run("Write.")
    doomed.append(first.workspace)
    second = await coder(provider, reads("a.txt", "of the first run")).run(
        "Read.", message_history=first.all_messages()
    )
    assert second.workspace.ref == first.workspace.ref
    other = await coder(provider, reads("a.txt", "Path not found")).run("Read.")
    doomed.append(other.workspace)
    assert other.workspace.ref != first.workspace.ref
    await provider.sandbox().destroy(first.workspace.ref)
    with pytest.raises(WorkspaceUnavailableError):
        await coder(provider, reads("a.txt", "never")).run("Read.", message_history=first.all_messages())


async def test_flow_2_stored_ref_and_new(provider: Provider, doomed: list[Any]) -> None:
    first = await coder(provider, writes("a.txt", "stored")).run("Write.")
    doomed.append(first.workspace)
    later = await coder(provider, reads("a.txt", "stored")).run("Read.", workspace=first.workspace.ref)
    assert later.workspace.ref == first.workspace.ref
    fresh = await coder(provider, reads("a.txt", "Path not found")).run(
        "Read.", workspace="new", message_history=first.all_messages()
    )
    doomed.append(fresh.workspace)
    assert fresh.workspace.ref != first.workspace.ref


async def test_flow_3_machine_of_an_image_is_prepared_before_the_run(provider: Provider) -> None:
    """What the flow installs from a network comes from the test: machines have no network."""
    backend = provider.backend(image="holt/default:latest")
    try:
        workspace = Workspace(backend)
        await workspace.write_text("calc.py", "def add(a, b):\n    return a - b\n")
        install = await workspace.run(
            ["sh", "-c", 'mkdir -p lib && printf "VERSION = 7\\n" > lib/tool.py'], timeout=60
        )
        assert install.exit_code == 0
        check = 'PYTHONPATH=lib python3 -c "import calc, tool; print(calc.add(2, 3), tool.VERSION)"'
        script = Script(
            [
                Turn(calls=[("edit_file", {"path": "calc.py", "old_text": "a - b", "new_text": "a + b"})]),
                Turn(calls=[("shell", {"command": check})]),
                Turn(sees="5 7", text="Fixed."),
            ]
        )
        result = await coder(provider, script).run("Fix the bug in calc.py.", workspace=backend)
        assert result.output == "Fixed." and result.workspace.ref == backend.ref
    finally:
        ref = backend.ref
        if ref is not None:
            await provider.sandbox().destroy(ref)


ATTACHING = """
import asyncio, sys
from pydantic_ai.workspaces import WorkspaceRef
from sandboxes import PROVIDERS
from test_sandbox_flows import coder, reads

agent = coder(PROVIDERS[sys.argv[1]], reads("a.txt", "before the stop"))
ref = WorkspaceRef(provider="smol", id=sys.argv[2])
result = asyncio.run(agent.run("Read.", workspace=ref))
print(result.workspace.ref.id, result.output)
"""


async def test_flow_4_stop_and_attach_from_another_process(provider: Provider, doomed: list[Any]) -> None:
    first = await coder(provider, writes("a.txt", "before the stop")).run("Write.")
    ref = first.workspace.ref
    doomed.append(first.workspace)
    machine = await provider.sandbox().backend(ref).get_sandbox()
    await machine.stop()
    other = subprocess.run(
        [sys.executable, "-c", ATTACHING, provider.name, ref.id],
        cwd=Path(__file__).parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert other.stdout == f"{ref.id} Read.\n", other.stderr


async def test_flow_5_tool_of_ones_own(provider: Provider, doomed: list[Any]) -> None:
    script = Script([Turn(calls=[("run_python", {"code": "print(6 * 7)"})]), Turn(sees="42", text="42")])
    agent = Agent(script.model(), capabilities=[provider.sandbox(), Shell(), FileSystem()])

    @agent.tool
    async def run_python(ctx: RunContext[None], code: str) -> str:
        """Run a Python snippet in the machine."""
        result = await ctx.workspace.run(["python3", "-c", code], timeout=10)
        return result.stdout + result.stderr

    result = await agent.run("What is 6 times 7?")
    doomed.append(result.workspace)
    assert result.output == "42"


async def test_flow_6_read_only_hand_over(provider: Provider, doomed: list[Any]) -> None:
    first = await coder(provider, writes("a.txt", "to look at")).run("Write.")
    doomed.append(first.workspace)
    reader = reads("a.txt", "to look at")
    second = await Agent(reader.model(), capabilities=[Coder()]).run(
        "Review.", workspace=ReadOnlyWorkspace(first.workspace)
    )
    assert second.output == "Read."
    assert "write_file" not in reader.tools and "shell" not in reader.tools
    with pytest.raises(PermissionError):
        await second.workspace.write_text("a.txt", "changed")


async def test_history_of_sandbox_without_its_capability_is_told(provider: Provider, doomed: list[Any]) -> None:
    first = await coder(provider, writes("a.txt", "x")).run("Write.")
    doomed.append(first.workspace)
    agent = Agent(Script([Turn(text="never")]).model(), capabilities=[Coder()])
    with pytest.raises(UserError, match="smol"):
        await agent.run("Go on.", message_history=first.all_messages())


async def test_every_tool_of_coder_acts_in_the_machine(provider: Provider, doomed: list[Any]) -> None:
    script = Script(
        [
            Turn(calls=[("shell", {"command": "mkdir src"})]),
            Turn(calls=[("write_file", {"path": "src/a.txt", "content": "alpha\nbeta\n"})]),
            Turn(sees="src/a.txt", calls=[("list_files", {"path": ".", "glob": "*.txt"})]),
            Turn(sees="a.txt", calls=[("grep", {"pattern": "beta", "path": "."})]),
            Turn(sees="beta", calls=[("edit_file", {"path": "src/a.txt", "old_text": "beta", "new_text": "gamma"})]),
            Turn(sees="a.txt", calls=[("read_file", {"path": "src/a.txt"})]),
            Turn(sees="gamma", calls=[("shell", {"command": "uname -s; cat src/a.txt; exit 3"})]),
            Turn(sees="alpha", text="Done."),
        ]
    )
    result = await coder(provider, script).run("Use everything.")
    doomed.append(result.workspace)
    assert result.output == "Done." and script.finished
