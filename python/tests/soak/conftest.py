"""Machines by the dozen and in trouble."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint import Footprint, machine_folders, processes_of, settled_growth

import holt


@pytest.fixture(scope="session", autouse=True)
def own_home(home: Path) -> None:
    """All tests here need an engine."""


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """The test leaves no descriptor, process or folder more than there were. Threads of a pool stay for a while."""
    before = Footprint.now()
    yield
    growth = settled_growth(before, besides=["threads"])
    assert not growth, f"left behind: {growth}; {sorted(machine_folders())}, processes {processes_of(footprint.home())}"


@pytest.fixture
def dice() -> random.Random:
    """Random numbers that can be had again: HOLT_TEST_SEED, printed when the test fails."""
    seed = int(os.environ.get("HOLT_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"HOLT_TEST_SEED={seed}")
    return random.Random(seed)


@pytest.fixture(scope="module")
def machine() -> Iterator[holt.Machine]:
    """One machine for the tests of a file that spoil none."""
    with holt.Machine.create(persistent=False) as made:
        yield made
