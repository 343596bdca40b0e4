"""What is kept of the runs under coverage; ``test_copies`` makes real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools.mutants.world import SMALL
from tools.mutants.copies import Run
from tools.mutants.reach import Reach, Selection, TestsFailed, make, part_files, parts, selected

PART = "src/forebay/part.py"


class FailingCopy:
    """A copy whose tests cannot be collected."""

    folder = Path("copy")

    def pytest(self, *_: object) -> Run:
        return Run(2, "ImportError")


def test_a_path_below_another_one_is_no_part_of_its_own() -> None:
    assert parts(["tests/units/a", "tests/units", "tests/unit", "tests/units"]) == ["tests/units", "tests/unit"]


def test_paths_are_told_from_other_arguments(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    assert Selection("all", ("-m", "not rest", "tests", "tests::a"), {}).paths(tmp_path) == ["tests", "tests::a"]


def test_lines_are_looked_up_in_all_parts_and_only_tests_that_pass_count(tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage")
    for part, seen in {"tests/unit": {"a": [1, 2], "b": [2]}, "tests/spark": {"c": [2, 7], "broken": [2]}}.items():
        data, seconds = part_files(tmp_path, part)
        kept: Any = coverage.CoverageData(str(data))
        for test, lines in seen.items():
            kept.set_context(test)
            kept.add_lines({PART: lines})
        kept.close()
        seconds.write_text(json.dumps({test: 1.0 for test in seen if test != "broken"}))
    reach = Reach(tmp_path, ["tests/unit", "tests/spark"])
    assert reach.tests(PART, [1]) == {"a"}
    assert reach.tests(PART, range(2, 4)) == {"a", "b", "c"}
    assert reach.tests(PART, [3]) == set()
    assert reach.tests(PART, None) == {"a", "b", "c"}
    assert reach.tests("src/forebay/other.py", None) == set()


def test_tests_that_cannot_be_collected_are_an_error(tmp_path: Path) -> None:
    copy: Any = FailingCopy()
    with pytest.raises(TestsFailed, match="the tests of make test: pytest ended with 2\nImportError"):
        selected(copy, tmp_path, SMALL)
    with pytest.raises(TestsFailed, match="tests/unit under coverage"):
        make(copy, tmp_path, "tests/unit", {})
