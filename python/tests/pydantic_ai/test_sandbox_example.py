"""The example of the design in Python, and a conversation that changes its language half-way."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import holt
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.workspaces import WorkspaceRef
from pydantic_ai_harness.coder import Coder

from sandboxes import PATTERN, PROVIDERS, Provider, Script, Shared, Turn, first_primes, more_primes

pytestmark = pytest.mark.anyio

WAIT = 120


def agent_of(provider: Provider, script: Script) -> Agent[None, str]:
    return Agent(script.model(), capabilities=[provider.sandbox(), Coder()])


def refs_of(history: Sequence[ModelMessage]) -> set[WorkspaceRef | None]:
    return {message.workspace_ref for message in history if isinstance(message, ModelResponse)}


def test_design_example_two_runs_in_one_machine_then_destroy(provider: Provider) -> None:
    """With `run_sync`, as the README shows it."""
    first, second = Script(first_primes()), Script(more_primes())
    result = agent_of(provider, first).run_sync("Write a script that prints the first 10 primes, and run it.")
    ref = result.workspace.ref
    assert ref is not None
    try:
        again = agent_of(provider, second).run_sync(
            "Now make it print the first 100.", message_history=result.all_messages()
        )
        assert again.workspace.ref == ref
        assert refs_of(again.all_messages()) == {ref}
        assert first.finished and second.finished
        assert again.output == "The last of the first 100 primes is 541."
        assert first.tools[:6] == ["read_file", "write_file", "edit_file", "list_files", "grep", "shell"]
    finally:
        asyncio.run(provider.sandbox().destroy(ref))
    with pytest.raises(holt.NotFoundError):
        holt.Machine.open(ref.id)


async def test_design_example_under_one_event_loop(provider: Provider) -> None:
    first, second = Script(first_primes()), Script(more_primes())
    result = await agent_of(provider, first).run("Write a script that prints the first 10 primes, and run it.")
    try:
        history = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
        again = await agent_of(provider, second).run("Now make it print the first 100.", message_history=history)
        assert again.workspace.ref == result.workspace.ref
        assert (await result.workspace.run(["python3", "primes.py"])).stdout.endswith(" 541\n")
    finally:
        await provider.sandbox().destroy(result.workspace.ref)


@pytest.fixture
def agent_of_cpp(cli: str, tmp_path: Path) -> Callable[..., bytes]:
    """`holt agent run` in a process of its own, answered by `holt dev replay`; gives the messages it saved."""

    def run(prompt: str, turns: list[Turn], history: bytes | None = None) -> bytes:
        script, before, after = (tmp_path / name for name in ("script.jsonl", "before.json", "after.json"))
        script.write_text("".join(json.dumps(replay_entry(turn)) + "\n" for turn in turns))
        command = [cli, "agent", "run", "--json", "--model", "anthropic:claude-opus-5-5", "--save", str(after)]
        if history is not None:
            before.write_bytes(history)
            command += ["--history", str(before)]
        with replayed(cli, script) as url:
            environment = {**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "replayed"}
            ended = subprocess.run([*command, prompt], capture_output=True, text=True, timeout=WAIT, env=environment)
            assert ended.returncode == 0, ended.stderr
        return after.read_bytes()

    return run


@contextmanager
def replayed(cli: str, script: Path) -> Iterator[str]:
    """The URL of a server that answers as the script says, and complains at its end of what did not fit."""
    server = subprocess.Popen([cli, "dev", "replay", str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert url.startswith("http://"), "the replay server did not start"
        yield url
        server.terminate()
        assert server.wait(timeout=20) == 0, "a request did not fit the script"
    finally:
        server.kill()
        server.wait()


def replay_entry(turn: Turn) -> dict[str, object]:
    reply: dict[str, object] = {"text": turn.text} if turn.text else {}
    if turn.calls:
        reply["tool_calls"] = [{"name": name, "arguments": arguments} for name, arguments in turn.calls]
    return {"reply": reply, "expect": {"results": [turn.sees]}} if turn.sees else {"reply": reply}


async def test_conversation_goes_from_python_to_cpp_and_back_in_one_machine(
    provider: Provider, agent_of_cpp: Callable[..., bytes]
) -> None:
    """`all_messages_json()` of Python, `holt agent run --history --save`, and Python again."""
    result = await agent_of(provider, Script(first_primes())).run("Write a script that prints the first 10 primes.")
    ref = result.workspace.ref
    assert ref is not None
    try:
        saved = agent_of_cpp("Now make it print the first 100.", more_primes(), result.all_messages_json())
        history = ModelMessagesTypeAdapter.validate_json(saved)
        # What Python wrote is in the file as it was, and what C++ added names the same machine.
        assert history[: len(result.all_messages())] == result.all_messages()
        assert refs_of(history) == {ref}
        assert len(history) == len(result.all_messages()) + 6

        third = Script(
            [
                Turn(calls=[("read_file", {"path": "primes.py"})]),
                Turn(sees="COUNT = 100", calls=[("shell", {"command": "python3 primes.py | wc -w"})]),
                Turn(sees="100", text="It prints 100 primes."),
            ]
        )
        last = await agent_of(provider, third).run("How many does it print?", message_history=history)
        assert last.workspace.ref == ref and third.finished
        assert refs_of(last.all_messages()) == {ref}
        # And once more, so that C++ reads what Python made of its own messages.
        again = agent_of_cpp("Thanks.", [Turn(text="Welcome.")], last.all_messages_json())
        assert ModelMessagesTypeAdapter.validate_json(again)[-1].parts[0].content == "Welcome."
    finally:
        await provider.sandbox().destroy(ref)


async def test_either_capability_opens_the_others_machine(provider: Provider, shared: Shared) -> None:
    other = PROVIDERS["holt" if provider.name == "smol" else "smol"]
    await shared.workspace().write_text("left-by", provider.name)
    script = Script([Turn(calls=[("read_file", {"path": "left-by"})]), Turn(sees=provider.name, text="Seen.")])
    result = await agent_of(other, script).run("Who was here?", workspace=shared.ref)
    assert (result.output, result.workspace.ref) == ("Seen.", shared.ref)


async def test_machine_of_cpp_is_opened_by_python(provider: Provider, agent_of_cpp: Callable[..., bytes]) -> None:
    turns = [Turn(calls=[("write_file", {"path": "note", "content": "from C++"})]), Turn(text="Done.")]
    history = ModelMessagesTypeAdapter.validate_json(agent_of_cpp("Note it.", turns))
    (ref,) = refs_of(history)
    assert isinstance(ref, WorkspaceRef) and re.fullmatch(PATTERN, ref.id)
    try:
        script = Script([Turn(calls=[("read_file", {"path": "note"})]), Turn(sees="from C++", text="Read.")])
        result = await agent_of(provider, script).run("Read the note.", message_history=history)
        assert result.workspace.ref == ref
    finally:
        await provider.sandbox().destroy(ref)
