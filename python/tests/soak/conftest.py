"""Machines by the dozen and in trouble. The tests have a home of their own, with the engine and images of HOLT_HOME."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint import Footprint, machine_folders, processes_of, settled_growth

import holt


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    prepared = Path(os.environ.get("HOLT_HOME") or "/nonexistent")
    if not (prepared / "data/engine/engine.json").exists():
        pytest.skip("HOLT_HOME has no prepared engine; scripts/test prepares one")
    home = tmp_path_factory.mktemp("home")
    for shared in ("data", "cache"):
        (prepared / shared).mkdir(exist_ok=True)
        (home / shared).symlink_to(prepared / shared)
    os.environ["HOLT_HOME"] = str(home)
    yield home
    left = {info.name for info in holt.Machine.list()}
    for name in left:
        holt.Machine.open(name).remove(force=True)
    os.environ["HOLT_HOME"] = str(prepared)
    assert not left, f"tests left machines behind: {sorted(left)}"


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """The test leaves no descriptor, process or folder more than there were. Threads of a pool stay in it."""
    before = Footprint.now()
    yield
    growth = settled_growth(before, besides=["threads"])
    assert not growth, f"left behind: {growth}; {sorted(machine_folders())}, processes {processes_of(own())}"


def own() -> Path:
    return Path(os.environ["HOLT_HOME"])


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
