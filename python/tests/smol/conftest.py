"""Machines for the tests that need one; the others run without an engine."""

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import smol

FIXTURES = (
    Path(os.environ.get("HOLT_FIXTURES") or Path(__file__).resolve().parents[3] / "tests" / "fixtures")
    / "smol"
)


@pytest.fixture(scope="session")
def surface() -> dict[str, Any]:
    return json.loads((FIXTURES / "surface-1.32.2.json").read_text())


@pytest.fixture(scope="session")
def behaviour() -> dict[str, Any]:
    return json.loads((FIXTURES / "behaviour-1.32.2.json").read_text())


@pytest.fixture(scope="session")
def home(home: Path) -> Iterator[Path]:
    """The home of this run, with nothing that points to a cloud."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("SMOL_CLOUD_TOKEN", raising=False)
        yield home


def find_processes(marker: str) -> list[str]:
    """A command that prints the processes whose command line has `marker`, itself not among them."""
    pattern = f"[{marker[0]}]{marker[1:]}"
    return ["sh", "-c", f"grep -l {pattern} /proc/[0-9]*/cmdline 2>/dev/null || true"]


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def machine(home: Path) -> Iterator[smol.Machine]:
    """One running machine for the tests of a file. They leave it running."""
    with smol.Machine.create(smol.MachineConfig(name=f"t-{uuid.uuid4().hex[:12]}", persistent=True)) as made:
        yield made
