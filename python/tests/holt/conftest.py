"""Machines for the tests of the package holt. They have a home of their own, with the engine and images of HOLT_HOME."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import holt


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which no machine may be left at the end."""
    prepared = Path(os.environ.get("HOLT_HOME") or "/nonexistent")
    if not (prepared / "data/engine/engine.json").exists():
        pytest.skip("HOLT_HOME has no prepared engine; scripts/test prepares one")
    folder = tmp_path_factory.mktemp("home")
    for shared in ("data", "cache"):
        (prepared / shared).mkdir(exist_ok=True)
        (folder / shared).symlink_to(prepared / shared)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOLT_HOME", str(folder))
        yield folder
        left = [info.name for info in holt.Machine.list()]
        for name in left:
            holt.Machine.open(name).remove(force=True)
    assert left == [], "every test removes its machines"


@pytest.fixture(scope="session")
def machine(home: Path) -> Iterator[holt.Machine]:
    """One machine for all tests that spoil none."""
    with holt.Machine.create(persistent=False, env={"FROM_MACHINE": "yes"}, labels={"suite": "holt"}) as made:
        yield made


@pytest.fixture
def own(home: Path) -> Iterator[holt.Machine]:
    """A persistent machine of the test's own."""
    made = holt.Machine.create()
    yield made
    try:
        made.remove(force=True)
    except holt.NotFoundError:
        pass


@pytest.fixture
def folder(machine: holt.Machine, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty folder in the machine."""
    path = f"/root/{request.node.name}"[:200]
    machine.make_dir(path)
    yield path
    machine.remove_path(path, recursive=True)
