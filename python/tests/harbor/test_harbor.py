"""Harbor's own `-e smol` environment, unmodified, on holt's `smol`.

Harbor runs as a program in its own virtual environment (HOLT_HARBOR_VENV, or build/venv-harbor as scripts/test makes
it): it needs Python 3.12 or newer, whatever these tests run with.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TASK = Path(__file__).parent / "task"
VENV = Path(os.environ.get("HOLT_HARBOR_VENV") or ROOT / "build" / "venv-harbor")
HARBOR = VENV / "bin" / "harbor"

# Harbor's imports alone take seconds, and far longer on a machine that builds at the same time.
DEADLINE_SECONDS = 240


@dataclass
class Trial:
    """One finished `harbor run` and the files that it left."""

    folder: Path
    result: dict
    output: str

    @property
    def reward(self) -> float:
        return self.result["verifier_result"]["rewards"]["reward"]

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def home(tmp_path: Path, make_home: Callable[[Path], Path]) -> Path:
    """A home for each test: `harbor` is a program of its own."""
    return make_home(tmp_path / "home")


def harbor_environment(home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of `harbor`: nothing of the user's, and no way to a network for its own libraries."""
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HOLT_HOME": str(home),
        "HARBOR_TELEMETRY": "off",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }


def run_harbor(agent: str, home: Path, tmp_path: Path) -> Trial:
    """Runs the task once with `agent` and gives back what Harbor wrote about it."""
    reason = VENV / "unavailable"
    if reason.exists():
        pytest.skip(reason.read_text().strip())
    assert HARBOR.exists(), f"no Harbor below {VENV}; scripts/test makes it"
    jobs = tmp_path / "jobs"
    # One image, from holt's own store, and one machine made from nothing: no golden machine to clone.
    argv = [HARBOR, "run", "--path", TASK, "--agent", agent, "-e", "smol", "--ek", "auto_checkpoint=false"]
    argv += ["--jobs-dir", jobs, "--n-concurrent", "1", "--quiet", "--yes"]
    done = subprocess.run(
        argv,
        env=harbor_environment(home, tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    results = list(jobs.glob("*/*/result.json"))
    assert len(results) == 1, output
    return Trial(results[0].parent, json.loads(results[0].read_text()), output)


def left_machines(home: Path) -> list[str]:
    machines = home / "state" / "machines"
    return sorted(entry.name for entry in machines.iterdir()) if machines.exists() else []


def test_only_a_missing_python_is_a_reason_to_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "VENV", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "HARBOR", tmp_path / "bin" / "harbor")
    # Not pytest.raises(AssertionError), which a skip would pass by.
    with pytest.raises(BaseException) as caught:
        run_harbor("nop", tmp_path, tmp_path)
    assert isinstance(caught.value, AssertionError)
    (tmp_path / "unavailable").write_text("no Python 3.12 here")
    with pytest.raises(pytest.skip.Exception, match="no Python 3.12 here"):
        run_harbor("nop", tmp_path, tmp_path)


def test_the_oracle_agent_solves_the_task_in_a_machine(home: Path, tmp_path: Path) -> None:
    trial = run_harbor("oracle", home, tmp_path)
    assert trial.result["exception_info"] is None, trial.output
    assert trial.reward == 1.0, trial.text("verifier/test-stdout.txt")
    assert trial.text("verifier/reward.txt").strip() == "1"
    assert left_machines(home) == []


def test_an_agent_that_does_nothing_scores_zero(home: Path, tmp_path: Path) -> None:
    trial = run_harbor("nop", home, tmp_path)
    assert trial.result["exception_info"] is None, trial.output
    assert trial.reward == 0.0
    assert left_machines(home) == []
