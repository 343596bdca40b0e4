"""Generated mistakes: type checkers find a wrong name and a wrong value of each option, and of each public parameter.

One file holds a mistake in each line (`mistakes.py`), so that each checker runs once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.config import table
from tests.package.test_types import Checkers, checkers

__all__ = ["checkers"]

ROOT = Path(__file__).parents[2]


def compared(lines: list[str], found: set[int], expected: list[int]) -> None:
    missed = [lines[number - 1] for number in expected if number not in found]
    wronged = [lines[number - 1] for number in sorted(found - set(expected))]
    assert (missed, wronged) == ([], [])


@pytest.fixture
def expected(checkers: Checkers) -> list[int]:
    """The lines of ``mistakes.py`` in the checkers' folder that have a mistake."""
    # These tests do not wait for the compiled modules, and the interpreted ones have the same signatures.
    surroundings = {**os.environ, "FOREBAY_INTERPRETED": "1"}
    command = [sys.executable, "-m", "tests.package.mistakes"]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text: str
    numbers: list[int]
    text, numbers = json.loads(done.stdout)
    assert len(numbers) > 10 * len(table())
    (checkers.folder / "mistakes.py").write_text(text)
    return numbers


def test_mypy_finds_each_mistake(checkers: Checkers, expected: list[int]) -> None:
    done = checkers.mypy("mistakes.py")
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if re.match(r"mistakes\.py:\d+: error", line)}
    compared((checkers.folder / "mistakes.py").read_text().splitlines(), found, expected)


def test_pyright_finds_each_mistake(checkers: Checkers, expected: list[int]) -> None:
    settings = {"include": ["mistakes.py"], "typeCheckingMode": "standard"}
    (checkers.folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = checkers.pyright("--pythonpath", str(checkers.environment / "bin" / "python"), "--outputjson")
    reports = json.loads(done.stdout)["generalDiagnostics"]
    found = {report["range"]["start"]["line"] + 1 for report in reports if report["severity"] == "error"}
    compared((checkers.folder / "mistakes.py").read_text().splitlines(), found, expected)
