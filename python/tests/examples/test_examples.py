"""The examples run as they are printed, and README.md shows the first of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"


@pytest.fixture(scope="module", autouse=True)
def own_home(home: Path) -> None:
    """All tests here need an engine."""


def run(name: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python_blocks(document: Path) -> list[str]:
    parts = document.read_text().split("```python\n")[1:]
    return [part.split("```")[0] for part in parts]


def test_readme_shows_the_example_that_runs() -> None:
    assert python_blocks(ROOT / "README.md")[0] == (EXAMPLES / "first_machine.py").read_text()


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_every_python_block_of_the_documents_is_python(document: str) -> None:
    for block in python_blocks(ROOT / document):
        compile(block, document, "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def test_first_machine() -> None:
    assert run("first_machine.py") == "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]\n\n"


def test_many_machines() -> None:
    numbers = [int(line.split(":")[0]) for line in run("many_machines.py").splitlines()]
    assert numbers == [2**exponent + 1 for exponent in range(60, 65)]


# What the model says in each turn: calls of tools, or its answer.
TURNS: list[Sequence[tuple[str, dict[str, Any]]] | str] = [
    [("write_file", {"path": "primes.py", "content": "print(2, 3, 5)\n"})],
    [("shell", {"command": "python3 primes.py"})],
    "first answer",
    [("shell", {"command": "cat primes.py && hostname"})],
    "second answer",
]


@pytest.mark.anyio
async def test_agent_goes_on_in_the_same_machine_and_destroys_it(capsys: pytest.CaptureFixture[str]) -> None:
    turns = iter(TURNS)
    seen: list[str] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        seen.append(str(messages[-1].parts))
        turn = next(turns)
        if isinstance(turn, str):
            yield turn
        else:
            yield {n: DeltaToolCall(name=name, json_args=json.dumps(args)) for n, (name, args) in enumerate(turn)}

    code = compile((EXAMPLES / "agent.py").read_text(), "agent.py", "exec")
    example: dict[str, Any] = {"__name__": "example"}
    exec(code, example)
    await example["main"](FunctionModel(stream_function=answer))
    assert capsys.readouterr().out == "first answer\nsecond answer\n"
    assert "2 3 5" in seen[2]
    assert "print(2, 3, 5)" in seen[4] and "pydantic-ai-" in seen[4]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
