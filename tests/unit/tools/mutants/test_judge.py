"""What finds a mutant, told by runs of a made-up copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools.mutants.world import mutant_of
from tools.mutants.choice import Mutant
from tools.mutants.copies import Run
from tools.mutants.judge import Kill, killed, told
from tools.mutants.stages import Stage

MUTANT = mutant_of("src/forebay/part.py", "number")
Ends = Callable[[list[str], bool], tuple[int | None, list[list[str]]]]


class MadeUpCopy:
    """Answers for pytest: ``ends`` gets the tests, and whether the mutant is there."""

    def __init__(self, folder: Path, ends: Ends) -> None:
        self.folder = folder / "copy"
        self.runs: list[tuple[list[str], bool]] = []
        self._ends = ends
        self._is_changed = False

    def write(self, mutant: Mutant) -> None:
        self._is_changed = True

    def restore(self, mutant: Mutant) -> None:
        self._is_changed = False

    def pytest(self, arguments: list[str], plan: Mapping[str, Any], environment: object, limit: float) -> Run:
        tests = list(plan["choose"]["tests"])
        self.runs.append((tests, self._is_changed))
        status, events = self._ends(tests, self._is_changed)
        Path(plan["choose"]["events"]).write_text("".join(json.dumps(event) + "\n" for event in events))
        return Run(status, "")


def stage(*tests: str, in_memory: bool = True) -> Stage:
    return Stage(dict.fromkeys(tests, 9.0), {}, 60, in_memory)


def judged(copy: MadeUpCopy, *stages: Stage) -> Kill | None:
    return killed(copy, MUTANT, stages)  # type: ignore[arg-type]


def test_stages_run_until_a_test_fails(tmp_path: Path) -> None:
    copy = MadeUpCopy(tmp_path, lambda tests, _: (1, [["failure", "b"]]) if "b" in tests else (0, []))
    assert judged(copy, stage("a"), stage("b", "c"), stage("d")) == Kill("b", "failure")
    assert copy.runs == [(["a"], True), (["b", "c"], True)]


def test_a_mutant_that_no_test_finds_survives_and_none_without_tests_runs(tmp_path: Path) -> None:
    copy = MadeUpCopy(tmp_path, lambda *_: (0, []))
    assert judged(copy, stage("a"), stage()) is None
    assert len(copy.runs) == 1


def test_a_failure_beside_brokers_counts_if_the_test_fails_again_and_passes_without_the_mutant(tmp_path: Path) -> None:
    copy = MadeUpCopy(tmp_path, lambda _, changed: (1, [["failure", "a"]]) if changed else (0, []))
    assert judged(copy, stage("a", "b", in_memory=False)) == Kill("a", "failure")
    assert copy.runs == [(["a", "b"], True), (["a"], False), (["a"], True)]


def test_a_failure_that_does_not_come_back_says_nothing(tmp_path: Path) -> None:
    copy = MadeUpCopy(tmp_path, lambda tests, _: (1, [["failure", "a"]]) if tests == ["a", "b"] else (0, []))
    assert judged(copy, stage("a", "b", in_memory=False)) is None
    assert copy.runs[-1] == (["b"], True)


@pytest.mark.parametrize("event", ["time", "failure"])
def test_a_test_that_fails_without_the_mutant_too_is_left_out(tmp_path: Path, event: str) -> None:
    copy = MadeUpCopy(tmp_path, lambda tests, _: (1, [[event, "a"]]) if "a" in tests else (0, []))
    assert judged(copy, stage("a", "b", in_memory=event == "time")) is None
    assert copy.runs == [(["a", "b"], True), (["a"], False), (["b"], True)]


@pytest.mark.parametrize(
    ("status", "events", "wanted"),
    [
        (0, [["start", "a"]], None),
        (1, [["start", "a"], ["start", "b"], ["failure", "b"], ["failure", "b"]], Kill("b", "failure")),
        (1, [["start", "a"], ["time", "a"]], Kill("a", "time")),
        (2, [["import", "a.py"]], Kill("a.py", "import")),
        (4, [], Kill("the import of the tests", "import")),
        (None, [["start", "a"], ["start", "b"]], Kill("b", "time")),
        (-11, [["start", "a"]], Kill("a", "crash")),
    ],
)
def test_what_a_run_says(tmp_path: Path, status: int | None, events: list[list[str]], wanted: Kill | None) -> None:
    place = tmp_path / "events"
    place.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert told(Run(status, ""), place) == wanted
