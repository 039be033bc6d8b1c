"""The home of a test run: machines of its own, with the engine, images and templates of HOLT_HOME."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holt


def pytest_configure() -> None:
    """What a shell starts in the background ignores SIGINT, and so would the programs that tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def make_home() -> Callable[[Path], Path]:
    """Makes a folder a home that shares what HOLT_HOME has prepared."""
    prepared = Path(os.environ.get("HOLT_HOME") or "/nonexistent")
    if not (prepared / "data/engine/engine.json").exists():
        # A run without its machines must not pass for one.
        pytest.exit("HOLT_HOME has no prepared engine; scripts/test prepares one", returncode=2)

    def make(folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        for shared in ("data", "cache"):
            (prepared / shared).mkdir(exist_ok=True)
            (folder / shared).symlink_to(prepared / shared)
        return folder

    return make


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, make_home: Callable[[Path], Path]) -> Iterator[Path]:
    """The home of this run, in which no machine may be left at the end."""
    folder = make_home(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOLT_HOME", str(folder))
        yield folder
        left = [info.name for info in holt.Machine.list()]
        for name in left:
            holt.Machine.open(name).remove(force=True)
    assert left == [], "every test removes its machines"
