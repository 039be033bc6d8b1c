"""The tests themselves: a run that could not do its work says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def test_a_run_without_a_prepared_engine_does_not_pass(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "test_every_call", FOLDER / "test_async.py"],
        env=os.environ | {"HOLT_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 2 and "HOLT_HOME has no prepared engine" in run.stdout, run.stdout
