"""The programs that travel with the package: where they are, and the commands `holt` and `holt-prepare`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

FOLDER = Path(__file__).resolve().parent / "_engine"


def program(name: str) -> Path | None:
    """The path of a program of the package, or None where the package came without."""
    path = FOLDER / name
    return path if path.exists() else None


def _become(name: str) -> NoReturn:
    path = program(name)
    if path is None:
        sys.exit(f"{name}: this installation of the package holt has no engine programs")
    os.execv(path, [name, *sys.argv[1:]])


def holt() -> NoReturn:
    """The command line `holt`."""
    _become("holt")


def holt_prepare() -> NoReturn:
    """The command `holt-prepare`."""
    _become("holt-prepare")
