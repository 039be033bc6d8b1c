"""Pydantic AI and its Harness on machines of holt. The tests need an engine: HOLT_HOME as scripts/setup makes it."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import holt
import pytest

from sandboxes import PROVIDERS, Provider, Shared
from skips import pytest_runtest_makereport  # noqa: F401  (a hook)


class Announced(logging.Handler):
    """Ids of the machines that both capabilities announce in the log before they make them."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.recent: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith("Creating smol VM "):
            name = message.removeprefix("Creating smol VM ")
            self.names.append(name)
            self.recent.append(name)


@pytest.fixture(scope="session", autouse=True)
def announced() -> Iterator[Announced]:
    """Machines of the tests are in HOLT_HOME, never in the user's own folders; none of them is left behind."""
    if "HOLT_HOME" not in os.environ:
        pytest.exit("set HOLT_HOME to a home that scripts/setup has made", returncode=2)
    handler = Announced()
    logger = logging.getLogger("pydantic_ai_harness.smol_sandbox._backend")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    left = {machine.name for machine in holt.Machine.list()} & set(handler.names)
    for name in left:
        holt.Machine.open(name).remove(force=True)
    assert not left, f"tests left machines behind: {sorted(left)}"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", params=["smol", "holt"])
def provider(request: pytest.FixtureRequest) -> Provider:
    """The Harness's own SmolSandbox on our `smol`, then HoltSandbox."""
    return PROVIDERS[request.param]


@pytest.fixture(scope="session")
async def shared(provider: Provider) -> AsyncIterator[Shared]:
    """One machine for the tests that need no fresh one. They use it through backends of their own."""
    backend = provider.backend()
    await backend.working_dir()
    assert backend.ref is not None
    yield Shared(provider=provider, ref=backend.ref)
    await provider.sandbox().destroy(backend.ref)


@pytest.fixture
async def doomed(provider: Provider) -> AsyncIterator[list[Any]]:
    """Backends whose machines are removed after the test."""
    backends: list[Any] = []
    yield backends
    for backend in backends:
        if backend.ref is not None:
            await provider.sandbox().destroy(backend.ref)


@pytest.fixture
def creations(announced: Announced) -> list[str]:
    """Ids of the machines that were announced since the test began."""
    announced.recent = []
    return announced.recent


@pytest.fixture(scope="session")
def cli() -> str:
    """The command line program that came with the wheel, or HOLT_BIN."""
    beside = Path(sys.executable).parent / "holt"
    found = os.environ.get("HOLT_BIN") or (str(beside) if beside.exists() else shutil.which("holt"))
    assert found, "the command line program of the wheel is missing"
    return found
