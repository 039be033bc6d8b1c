"""What is refused before anything runs. V-* and A-* are the rules of SmolSandbox; HoltSandbox keeps them."""

from __future__ import annotations

import math
from typing import Any

import holt
import pytest
import smol
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.workspaces import WorkspaceRef
from pydantic_ai_harness.coder import Coder

from sandboxes import GONE, PROVIDERS, Provider, Script, Turn

pytestmark = pytest.mark.anyio

FOREIGN = WorkspaceRef(provider="local", id="/tmp")
BAD_IDS = [
    "dev",
    "pydantic-ai-",
    "pydantic-ai-" + "0" * 31,
    "pydantic-ai-" + "0" * 33,
    "pydantic-ai-" + "A" * 32,
    "pydantic-ai-" + "g" * 32,
    "pydantic-ai-" + "0" * 32 + "\n",
    " pydantic-ai-" + "0" * 32,
    "../pydantic-ai-" + "0" * 32,
    "",
]


def no_context() -> Any:
    """`get_workspace` looks at no context."""
    return None


@pytest.mark.parametrize("option", ["cpus", "memory_mb"])
@pytest.mark.parametrize("value", [0, -1, True, False, 1.5, "2", math.nan])
def test_v1_sizes_are_whole_numbers_above_zero(provider: Provider, option: str, value: object) -> None:
    with pytest.raises(UserError, match=option):
        provider.sandbox(**{option: value})


@pytest.mark.parametrize("option", ["cpus", "memory_mb"])
def test_v1_sizes_may_be_left_to_the_engine(provider: Provider, option: str) -> None:
    provider.sandbox(**{option: None})
    provider.sandbox(**{option: 1})


@pytest.mark.parametrize("value", ["relative", "", ".", "~/work"])
def test_v1_working_dir_of_the_capability_is_absolute(provider: Provider, value: str) -> None:
    with pytest.raises(UserError, match="working_dir"):
        provider.sandbox(working_dir=value)


def test_v1_sandbox_cannot_be_deferred(provider: Provider) -> None:
    with pytest.raises(UserError, match="defer_loading"):
        provider.sandbox(id="sandbox", defer_loading=True)


def test_v2_ref_of_another_provider_is_refused(provider: Provider) -> None:
    with pytest.raises(ValueError, match="smol"):
        provider.backend(ref=FOREIGN)


async def test_v2_sandbox_and_ref_exclude_each_other(provider: Provider, shared: Any) -> None:
    if provider.name == "smol":
        machine: Any = smol.Machine.open(shared.ref.id)
    else:
        machine = holt.Machine.open(shared.ref.id)
    with pytest.raises(ValueError, match="not both"):
        provider.backend(sandbox=machine, ref=shared.ref)


@pytest.mark.parametrize("value", ["relative", "", "."])
def test_v2_working_dir_of_the_backend_is_absolute(provider: Provider, value: str) -> None:
    with pytest.raises(ValueError, match="working_dir"):
        provider.backend(working_dir=value)


@pytest.mark.parametrize("env", [{1: "a"}, {"A": 1}, {b"A": "a"}, {"A": None}])
def test_v2_env_of_other_types_is_a_type_error(provider: Provider, env: Any) -> None:
    with pytest.raises(TypeError, match="env"):
        provider.backend(env=env)


@pytest.mark.parametrize("env", [{"": "a"}, {"A=B": "a"}, {"A\0": "a"}, {"A": "secret\0"}])
def test_v2_env_that_no_process_can_have_is_a_value_error(provider: Provider, env: Any) -> None:
    with pytest.raises(ValueError, match="env") as caught:
        provider.backend(env=env)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", BAD_IDS)
def test_v2_backend_accepts_any_id(provider: Provider, name: str) -> None:
    ref = WorkspaceRef(provider="smol", id=name)
    assert provider.backend(ref=ref).ref == ref


@pytest.mark.parametrize("name", BAD_IDS)
async def test_v3_capability_reaches_only_names_that_it_gives(provider: Provider, name: str) -> None:
    """A ref of the history, of `workspace=`, of `backend` and of `destroy`."""
    ref = WorkspaceRef(provider="smol", id=name)
    sandbox = provider.sandbox()
    agent = Agent(Script([Turn(text="never")]).model(), capabilities=[sandbox, Coder()])
    history = [
        ModelRequest(parts=[UserPromptPart("Hello")]),
        ModelResponse(parts=[TextPart("Hello")], workspace_ref=ref),
    ]
    with pytest.raises(ValueError, match="32 hex") as caught:
        sandbox.backend(ref)
    assert "workspace='new'" in str(caught.value) and "SandboxBackend(sandbox=" in str(caught.value)
    with pytest.raises(ValueError, match="32 hex"):
        await sandbox.destroy(ref)
    with pytest.raises(ValueError, match="32 hex"):
        await agent.run("Go on.", message_history=history)
    with pytest.raises(ValueError, match="32 hex"):
        await agent.run("Go on.", workspace=ref)


async def test_v3_destroy_refuses_refs_of_other_providers(provider: Provider) -> None:
    with pytest.raises(ValueError, match="smol"):
        await provider.sandbox().destroy(FOREIGN)


async def test_v4_links_in_working_dir_are_kept_as_given(provider: Provider, shared: Any) -> None:
    workspace = shared.workspace()
    await workspace.run(["ln", "-sfn", "/workspace", "/tmp/alias"])
    backend = shared.backend(working_dir="/tmp/alias")
    assert (await backend.run('echo "$PWD"; pwd -P', shell=True)).stdout.splitlines()[-1] == "/workspace"
    assert await backend.working_dir() == "/workspace"


def test_capability_declines_refs_of_other_providers(provider: Provider) -> None:
    assert provider.sandbox().get_workspace(no_context(), ref=FOREIGN) is None


def test_capability_gives_backends_without_doing_anything(provider: Provider, creations: list[str]) -> None:
    sandbox = provider.sandbox(image="absent", cpus=1, memory_mb=1, env={"A": "b"})
    assert sandbox.get_workspace(no_context(), ref=None).ref is None
    assert sandbox.get_workspace(no_context(), ref=GONE).ref == GONE
    assert sandbox.backend(GONE).ref == GONE
    assert creations == []


def test_env_is_not_shown(provider: Provider) -> None:
    assert "secret" not in repr(provider.sandbox(env={"TOKEN": "secret"}))


HOLT = PROVIDERS["holt"]


@pytest.mark.parametrize(
    "options",
    [
        {"disk_gb": 0},
        {"disk_gb": True},
        {"disk_gb": "20"},
        {"idle_stop": 0},
        {"idle_stop": -1},
        {"idle_stop": math.inf},
        {"idle_stop": math.nan},
        {"idle_stop": True},
        {"idle_stop": "5m"},
        {"labels": {"a": 1}},
        {"labels": {1: "a"}},
        {"allow_hosts": "example.com"},
        {"allow_hosts": [1]},
        {"allow_hosts": [""]},
        {"allow_hosts": ["example.com"], "allow_internet_access": True},
        {"allow_internet_access": "yes"},
        {"require_kvm": 1},
        {"image": ""},
        {"image": 3},
        {"image": "a\0b"},
        {"user": ""},
        {"user": 1000},
        {"working_dir": 5},
        {"working_dir": "/a\0b"},
        {"cpus": 0},
        {"memory_mb": 1.5},
    ],
    ids=str,
)
def test_options_of_holt_sandbox_are_checked_by_name_at_construction(options: dict[str, Any]) -> None:
    name = next(iter(options))
    with pytest.raises(UserError, match=name):
        HOLT.sandbox(**options)
    with pytest.raises((TypeError, ValueError), match=name):
        HOLT.backend(**options)


def test_sandbox_of_another_kind_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="sandbox"):
        HOLT.backend(sandbox="dev")
