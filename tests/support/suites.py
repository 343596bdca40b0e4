"""Suites of a user's, run by pytest in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import forebay
from tests.support.pace import PROGRAM_S

ROOT = Path(__file__).parents[2]


def run(folder: Path, *arguments: str) -> tuple[dict[str, int], str]:
    """Runs pytest in ``folder``: how many tests passed, failed and so on, and what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(forebay.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}, done.stdout + done.stderr
