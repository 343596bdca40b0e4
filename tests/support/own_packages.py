"""Packages that one example needs and nothing else here: in a folder of their own, for a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forebay
from tests.support.pace import PROGRAM_S


def install(folder: Path, *requirements: str) -> dict[str, str]:
    """The environment of a process that has them; the test fails with the reason if they cannot be had."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
        str(folder),
    ]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    if done.returncode != 0:
        pytest.fail(f"{', '.join(requirements)} could not be installed: {done.stderr[-2000:]}", pytrace=False)
    path = os.pathsep.join([str(folder), str(Path(forebay.__file__).parents[1])])
    return {**os.environ, "PYTHONPATH": path}
