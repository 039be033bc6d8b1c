"""Every rule of Pydantic AI's own suite for workspace backends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rules import Rules
from sandboxes import PROVIDERS


class TestSmolSandboxBackend(Rules):
    """The published backend, unmodified, on our module `smol`."""

    provider = PROVIDERS["smol"]
    may_skip = (*Rules.may_skip, "backend does not implement SupportsRealpath")


class TestHoltSandboxBackend(Rules):
    provider = PROVIDERS["holt"]


class TestHoltSandboxBackendAsAnotherUser(Rules):
    """Commands and files of a user other than root, so that permissions count."""

    provider = PROVIDERS["holt"]
    options = {"user": "1000:1000", "working_dir": "/tmp/work"}
    may_skip = ()


class TestHoltSandboxBackendOnTrio(Rules):
    provider = PROVIDERS["holt"]

    @pytest.fixture(scope="session")
    @classmethod
    def anyio_backend(cls) -> str:
        return "trio"


TWO_SKIPS = """
import pytest

class TestRules:
    may_skip = ("for a reason",)

    def test_that_may(self):
        pytest.skip("for a reason")

    def test_that_lacks_something(self):
        pytest.skip("provide a fixture")
"""


def test_rule_that_is_skipped_for_no_named_reason_fails(tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text(TWO_SKIPS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "skips", "-p", "no:cacheprovider", "test_skips.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 1 and "1 failed, 1 skipped" in run.stdout, run.stdout
    assert "provide a fixture" in run.stdout
