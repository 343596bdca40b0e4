"""``make test`` and ``make test-rest``: each test, in each of its forms, is in one of the two.

A test that tries more inputs in a whole run (``sized``) is in both: small in the one, whole in the other.  What the
commands run is read out of the Makefile, and which tests there are is asked of pytest.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.collected import VARIABLE

ROOT = Path(__file__).parents[2]
IN_BOTH_FORMS = ("tests/unit/", "tests/conformance/", "tests/scenario/", "tests/property/")
FORMS = {"FOREBAY_INTERPRETED": "interpreted", "FOREBAY_BUILD_CHECKED": "checked"}
"""Other forms than the product, by the variable that asks for it."""
Marks = dict[str, list[str]]


class Run(NamedTuple):
    """One call of pytest by a command."""

    command: str
    form: str
    size: str
    folders: tuple[str, ...]
    expression: str

    def takes(self, test: str, marks: list[str]) -> bool:
        if not test.startswith(self.folders):
            return False
        words = re.findall(r"\w+", self.expression)
        # An expression of pytest's is one of Python's; a name is whether the test has that mark.
        return not words or bool(eval(self.expression, {word: word in marks for word in words}))


def runs(command: str) -> list[Run]:
    """What ``make`` would run for this target."""
    ours = ("MAKE", "FOREBAY", "PYTEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        ["make", "--dry-run", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return [run_of(command, line) for line in done.stdout.splitlines() if "-m pytest" in line]


def run_of(command: str, line: str) -> Run:
    """A line of the shell, such as ``NAME=value python -m pytest -m "not rest" tests/unit``."""
    words = shlex.split(line)
    begin = words.index("pytest")
    given = dict(word.split("=", 1) for word in words[:begin] if "=" in word)
    arguments = words[begin + 1 :]
    expression = arguments[arguments.index("-m") + 1] if "-m" in arguments else ""
    folders = tuple(f"{word}/" for word in arguments if word.startswith("tests/"))
    form = next((form for name, form in FORMS.items() if given.get(name) == "1"), "compiled")
    assert folders and all((ROOT / folder).is_dir() for folder in folders), line
    return Run(command, form, given.get("FOREBAY_EXAMPLES", "whole"), folders, expression)


def findings(found: list[Run], tests: Marks) -> list[str]:
    """What is wrong: a test that is missing in a form, or that is run twice."""
    wrong = []
    for test, marks in tests.items():
        sizes = defaultdict(list)
        for run in found:
            if run.takes(test, marks):
                sizes[run.form].append((run.command, run.size))
        for form in ("compiled", *FORMS.values()) if test.startswith(IN_BOTH_FORMS) else ("compiled",):
            twice = "sized" in marks and form == "compiled"
            allowed = [[("test", "small"), ("test-rest", "whole")]] if twice else []
            if not (len(sizes[form]) == 1 and not twice) and sizes[form] not in allowed:
                wrong.append(f"{test} {form}: {sizes[form] or 'nowhere'}")
    return wrong


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> Marks:
    """Of all that pytest finds one test of each kind, with its marks: a command chooses by folder and marks alone.

    Found in the interpreted form: this part of ``make test`` begins while the modules are still being compiled.
    """
    file = tmp_path_factory.mktemp("collected") / "marks.json"
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.collected", "--collect-only", "-qq", "tests"]
    environment = {**os.environ, VARIABLE: str(file), "FOREBAY_INTERPRETED": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    found: Marks = json.loads(file.read_text())
    kinds = {(test.split("/")[1], *marks): test for test, marks in found.items()}
    return {test: found[test] for test in kinds.values()}


def test_each_test_is_in_one_of_the_two_commands(tests: Marks) -> None:
    found = [*runs("test"), *runs("test-rest")]
    assert findings(found, tests)[:5] == []
    # The check itself can fail: each run is needed, and none may be there twice.
    for run in found:
        less = [other for other in found if other is not run]
        assert findings(less, tests), f"nobody misses {run}"
        assert findings([*found, run], tests), f"nobody sees two of {run}"


def test_each_part_can_be_called_alone() -> None:
    for command in ("test", "test-rest"):
        whole = {run._replace(command="") for run in runs(command)}
        parts = re.findall(r"^\w+_PARTS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
        alone = {run._replace(command="") for part in " ".join(parts).split() for run in runs(part)}
        assert whole <= alone


def test_a_test_in_both_commands_is_small_in_the_first() -> None:
    marked = {"tests/unit/test_a.py::test_a": ["sized"]}
    small = Run("test", "compiled", "small", ("tests/unit/",), "not rest")
    whole = Run("test-rest", "compiled", "whole", ("tests/unit/",), "rest or sized")
    interpreted = Run("test-rest", "interpreted", "whole", ("tests/unit/",), "")
    checked = Run("test-rest", "checked", "small", ("tests/unit/",), "")
    others = [interpreted, checked]
    assert findings([small, whole, *others], marked) == []
    assert findings([small._replace(size="whole"), whole, *others], marked)
    assert findings([small, *others], marked), "it is never whole"
    assert findings([small, whole, interpreted], marked), "it is in no checked form"
    assert findings([small, whole._replace(expression=""), *others], {"tests/unit/test_a.py::test_a": []})
