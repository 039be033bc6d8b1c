"""Pydantic AI and its Harness on machines of holt. The tests need an engine: HOLT_HOME as scripts/setup makes it."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import holt
import pytest

from sandboxes import PROVIDERS, Provider, Shared

OURS = "pydantic-ai-"


def names() -> set[str]:
    return {machine.name for machine in holt.Machine.list()}


@pytest.fixture(scope="session", autouse=True)
def engine() -> Iterator[None]:
    """Machines of the tests are in HOLT_HOME, never in the user's own folders; none is left behind."""
    if "HOLT_HOME" not in os.environ:
        pytest.exit("set HOLT_HOME to a home that scripts/setup has made", returncode=2)
    before = names()
    yield
    left = names() - before
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
async def shared(provider: Provider) -> Iterator[Shared]:
    """One machine for the tests that need no fresh one. They use it through backends of their own."""
    backend = provider.backend()
    await backend.working_dir()
    assert backend.ref is not None
    yield Shared(provider=provider, ref=backend.ref)
    await provider.sandbox().destroy(backend.ref)


@pytest.fixture
async def doomed(provider: Provider) -> Iterator[list[object]]:
    """Backends whose machines are removed after the test."""
    backends: list[object] = []
    yield backends
    for backend in backends:
        ref = backend if not hasattr(backend, "ref") else backend.ref
        if ref is not None:
            await provider.sandbox().destroy(ref)


@pytest.fixture
def creations(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Ids of the machines that were announced in the log since the test began."""
    logger = "pydantic_ai_harness.smol_sandbox._backend"
    announced: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message.startswith("Creating smol VM "):
                announced.append(message.removeprefix("Creating smol VM "))

    collector = Collector()
    target = logging.getLogger(logger)
    level = target.level
    target.setLevel(logging.INFO)
    target.addHandler(collector)
    yield announced
    target.removeHandler(collector)
    target.setLevel(level)


@pytest.fixture(scope="session")
def cli() -> str:
    """The command line program that came with the wheel, or HOLT_BIN."""
    beside = Path(sys.executable).parent / "holt"
    found = os.environ.get("HOLT_BIN") or (str(beside) if beside.exists() else shutil.which("holt"))
    assert found, "the command line program of the wheel is missing"
    return found
