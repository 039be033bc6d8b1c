"""Pydantic AI's suite for workspace backends, with every optional fixture given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai.workspaces import WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from sandboxes import Provider


class Rules(WorkspaceBackendSuite):
    """One machine serves the rules that do not ask for a fresh one."""

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
