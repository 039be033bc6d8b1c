"""What the tests share: the two providers, and a model that follows a script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holt.pydantic_ai import HoltSandbox, HoltSandboxBackend
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.workspaces import Workspace, WorkspaceRef
from pydantic_ai_harness.smol_sandbox import SmolSandbox, SmolSandboxBackend

PATTERN = r"pydantic-ai-[0-9a-f]{32}"
GONE = WorkspaceRef(provider="smol", id="pydantic-ai-" + "0" * 32)


@dataclass(frozen=True)
class Provider:
    """A capability and its backend."""

    name: str
    sandbox: Callable[..., Any]
    backend: Callable[..., Any]

    def __repr__(self) -> str:
        return self.name


PROVIDERS = {
    "smol": Provider("smol", SmolSandbox, SmolSandboxBackend),
    "holt": Provider("holt", HoltSandbox, HoltSandboxBackend),
}


@dataclass(frozen=True)
class Shared:
    """A machine that several tests use."""

    provider: Provider
    ref: WorkspaceRef

    def backend(self, **options: Any) -> Any:
        return self.provider.backend(ref=self.ref, **options)

    def workspace(self, **options: Any) -> Workspace:
        return Workspace(self.backend(**options))


@dataclass
class Turn:
    """One answer of the model: text, or calls of tools. `sees` must be in the newest tool results."""

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    sees: str = ""


@dataclass
class Script:
    """A model's answers in order. `model()` also checks what each answer is supposed to have seen."""

    turns: list[Turn]
    tools: list[str] = field(default_factory=list)
    _next: int = 0

    def model(self) -> FunctionModel:
        """Answers whole or as a stream, as it is asked."""

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = self._take(messages, info)
            calls = [ToolCallPart(name, arguments) for name, arguments in turn.calls]
            return ModelResponse(parts=[*([TextPart(turn.text)] if turn.text else []), *calls])

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            turn = self._take(messages, info)
            if turn.text:
                yield turn.text
            for index, (name, arguments) in enumerate(turn.calls):
                yield {index: DeltaToolCall(name=name, json_args=json.dumps(arguments))}

        return FunctionModel(answer, stream_function=stream)

    def _take(self, messages: list[ModelMessage], info: AgentInfo) -> Turn:
        turn = self.turns[self._next]
        self._next += 1
        self.tools = [tool.name for tool in info.function_tools]
        seen = newest_results(messages)
        assert turn.sees in seen, f"turn {self._next} expected {turn.sees!r} in {seen!r}"
        return turn

    @property
    def finished(self) -> bool:
        return self._next == len(self.turns)


def newest_results(messages: Sequence[ModelMessage]) -> str:
    """The tool results of the newest request."""
    newest = messages[-1]
    if not isinstance(newest, ModelRequest):
        return ""
    return "\n".join(part.model_response_str() for part in newest.parts if isinstance(part, ToolReturnPart))


PRIMES = """\
COUNT = 10


def primes(count):
    found = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found if prime * prime <= candidate):
            found.append(candidate)
        candidate += 1
    return found


print(*primes(COUNT))
"""
FIRST_TEN = "2 3 5 7 11 13 17 19 23 29"
"""What the script prints; the hundredth prime is 541."""


def first_primes() -> list[Turn]:
    """The design's example, first run."""
    return [
        Turn(calls=[("write_file", {"path": "primes.py", "content": PRIMES})]),
        Turn(calls=[("shell", {"command": "python3 primes.py"})]),
        Turn(sees=FIRST_TEN, text=f"The first 10 primes are {FIRST_TEN}."),
    ]


def more_primes() -> list[Turn]:
    """The design's example, second run."""
    return [
        Turn(calls=[("edit_file", {"path": "primes.py", "old_text": "COUNT = 10\n", "new_text": "COUNT = 100\n"})]),
        Turn(calls=[("shell", {"command": "python3 primes.py"})]),
        Turn(sees="523 541", text="The last of the first 100 primes is 541."),
    ]
