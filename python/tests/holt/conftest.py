"""Machines for the tests of the package holt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holt


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
