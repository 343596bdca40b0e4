"""Which tests reach a line: one run of all tests under coverage.py, kept in ``.cache/mutants`` for each commit.

What other processes run is not seen.  A session's fixtures count for the test that sets them up.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tools.mutants.choice import PACKAGE
from tools.mutants.copies import Copy, Run
from tools.mutants.plugin import file_of

Contexts = dict[int, list[str]]


class Selection(NamedTuple):
    """Some of the tests."""

    name: str
    arguments: tuple[str, ...]
    """pytest's, with at least one path."""
    environment: dict[str, str]

    def paths(self, root: Path) -> list[str]:
        """Those of its arguments that are files or folders."""
        return [argument for argument in self.arguments if (root / argument.partition("::")[0]).exists()]


class TestsFailed(Exception):
    """pytest could not run, or could not select, tests of the unchanged package."""

    __test__ = False


def home(root: Path) -> Path:
    """The folder for what is known of this commit's sources and tests."""
    command = ["git", "rev-parse", "HEAD:src", "HEAD:tests", "HEAD:pyproject.toml"]
    trees = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
    folder = root / ".cache" / "mutants" / hashlib.sha256(trees).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def selected(copy: Copy, folder: Path, selection: Selection) -> set[str]:
    """The names of a selection's tests."""
    told = json.dumps([selection.arguments, selection.environment])
    names = folder / f"names-{hashlib.sha256(told.encode()).hexdigest()[:12]}.json"
    if not names.exists():
        plan = {"list": {"names": str(names)}}
        run = copy.pytest(["--collect-only", *selection.arguments], plan, selection.environment)
        _check(run, names, f"the tests of {selection.name}")
    return set(json.loads(names.read_text(encoding="utf-8")))


def parts(paths: Iterable[str]) -> list[str]:
    """Paths, in their order, without those that stand below another one; each is one run, and is kept on its own."""
    every = list(dict.fromkeys(paths))
    return [path for path in every if not any(other != path and Path(path).is_relative_to(other) for other in every)]


def part_files(folder: Path, part: str) -> tuple[Path, Path]:
    """A part's data of coverage, and its tests that pass, with their seconds; the second is written last."""
    stem = part.replace("/", "+")
    return folder / f"{stem}.coverage", folder / f"{stem}.json"


def make(copy: Copy, folder: Path, part: str, environment: dict[str, str]) -> None:
    """Runs the tests of one part, unless that was done before; those that fail count as if they were not there.

    Some fail under coverage alone, because they count steps or hold a time: they are tried again without it.
    """
    data, seconds = part_files(folder, part)
    if seconds.exists():
        return
    data.unlink(missing_ok=True)
    package, told = str(copy.folder / PACKAGE), seconds.with_suffix(".first")
    plan = {"reach": {"data": str(data), "seconds": str(told), "package": package}}
    _check(copy.pytest([part], plan, environment), told, f"{part} under coverage")
    found = json.loads(told.read_text(encoding="utf-8"))
    passed = found["passed"] | _passing(copy, found["failed"], environment)
    seconds.write_text(json.dumps(passed), encoding="utf-8")


def _passing(copy: Copy, tests: dict[str, float], environment: dict[str, str]) -> dict[str, float]:
    """Those of the tests that pass without coverage."""
    if not tests:
        return {}
    events = copy.folder.with_suffix(".events")
    events.write_text("", encoding="utf-8")
    plan = {"choose": {"tests": dict.fromkeys(tests), "events": str(events)}}
    files = list(dict.fromkeys(file_of(test) for test in tests))
    _check(copy.pytest(files, plan, environment), events, "tests that failed under coverage")
    noted = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    failed = {name for event, name in noted if event != "start"}
    return {test: taken for test, taken in tests.items() if test not in failed}


def _check(run: Run, written: Path, what: str) -> None:
    # Some tests that fail are no reason to stop; without what pytest was to write nothing can be said.
    if run.status not in (0, 1) or not written.exists():
        raise TestsFailed(f"{what}: pytest ended with {run.status}\n{run.tail}")


class Reach:
    """What the runs under coverage showed."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = {}
        """The tests that pass on the unchanged package, and how long each takes."""
        self._data = []
        for part in names:
            data, seconds = part_files(folder, part)
            self.seconds |= json.loads(seconds.read_text(encoding="utf-8"))
            self._data.append(CoverageData(str(data)))
            self._data[-1].read()
        self.lines = lru_cache(maxsize=8)(self._lines)

    def _lines(self, path: str) -> list[Contexts]:
        """For each part: the tests that reach each line of a module."""
        return [data.contexts_by_lineno(path) for data in self._data]

    def tests(self, path: str, lines: Collection[int] | None) -> set[str]:
        """The tests that reach one of these lines of a module, or (None) any line of it."""
        found: set[str] = set()
        for contexts in self.lines(path):
            for line in contexts if lines is None else set(lines) & contexts.keys():
                found.update(contexts[line])
        return found & self.seconds.keys()
