"""Every rule of Pydantic AI's own suite for workspace backends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.workspaces import WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from sandboxes import PROVIDERS, Provider


class _Rules(WorkspaceBackendSuite):
    """The suite with every optional fixture given. One machine serves the rules that do not ask for a fresh one."""

    provider: Provider
    options: dict[str, Any] = {}
    may_skip: tuple[str, ...] = ("root bypasses filesystem permissions",)

    @pytest.fixture(scope="class")
    @classmethod
    async def backend(cls) -> AsyncIterator[Any]:
        backend = cls.provider.backend(**cls.options)
        yield backend
        assert backend.ref is not None
        await cls.provider.sandbox().destroy(backend.ref)

    @pytest.fixture
    async def fresh_backend(self) -> AsyncIterator[Callable[[], Any]]:
        made: list[Any] = []

        def fresh() -> Any:
            made.append(self.provider.backend(**self.options))
            return made[-1]

        yield fresh
        for backend in made:
            if backend.ref is not None:
                await self.provider.sandbox().destroy(backend.ref)

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], Any]:
        return lambda ref: self.provider.backend(ref=ref, **self._of_attached())

    @pytest.fixture
    def destroy_environment(self) -> Callable[[Any], Awaitable[None]]:
        async def destroy(backend: Any) -> None:
            await self.provider.sandbox().destroy(backend.ref)

        return destroy

    def _of_attached(self) -> dict[str, Any]:
        return {key: value for key, value in self.options.items() if key in ("working_dir", "env")}


class TestSmolSandboxBackend(_Rules):
    """The published backend, unmodified, on our module `smol`."""

    provider = PROVIDERS["smol"]
    may_skip = (*_Rules.may_skip, "backend does not implement SupportsRealpath")


class TestHoltSandboxBackend(_Rules):
    provider = PROVIDERS["holt"]


class TestHoltSandboxBackendAsAnotherUser(_Rules):
    """Commands and files of a user other than root, so that permissions count."""

    provider = PROVIDERS["holt"]
    options = {"user": "1000:1000", "working_dir": "/tmp/work"}
    may_skip = ()


class TestHoltSandboxBackendOnTrio(_Rules):
    provider = PROVIDERS["holt"]

    @pytest.fixture(scope="session")
    @classmethod
    def anyio_backend(cls) -> str:
        return "trio"


TWO_SKIPS = """
import pytest

class TestRules:
    may_skip = ("for a reason",)

    def test_that_may(self):
        pytest.skip("for a reason")

    def test_that_lacks_something(self):
        pytest.skip("provide a fixture")
"""


def test_rule_that_is_skipped_for_no_named_reason_fails(tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text(TWO_SKIPS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "skips", "-p", "no:cacheprovider", "test_skips.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 1 and "1 failed, 1 skipped" in run.stdout, run.stdout
    assert "provide a fixture" in run.stdout
