"""A small repository of its own goes the whole way: listed, run under coverage, and its mutants judged."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.tools.mutants.world import TEXT, mutant_of
from tools.mutants.copies import Copy, Stopped
from tools.mutants.judge import Kill, killed
from tools.mutants.reach import Reach, Selection, home, make, part_files, selected
from tools.mutants.stages import reaching, stages

ROOT = Path(__file__).parents[4]
TESTS = """import sys

import pytest

from forebay import part


@pytest.mark.parametrize("count", range(4, 6))
def test_more(count):
    assert part.is_more(count)


@pytest.mark.slow
def test_limit():
    assert not part.is_more(part.LIMIT)


def test_something_else():
    pass


def test_that_needs_a_python_without_tracer():
    part.is_more(5)
    assert sys.gettrace() is None


def test_that_fails():
    part.is_more(5)
    assert False
"""
PASSING = ("test_more[4]", "test_more[5]", "test_that_needs_a_python_without_tracer")
NAME = "tests/unit/test_part.py::"
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""The small repository needs none of them, and each takes time to import."""
FIRST = Selection("first", ("-m", "not slow", "tests/unit"), QUICK)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one module, the tests of which are not equally sharp."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "tools/mutants", root / "tools/mutants", ignore=shutil.ignore_patterns("__pycache__"))
    files = {
        "src/forebay/__init__.py": "",
        "src/forebay/part.py": TEXT,
        "tests/unit/test_part.py": TESTS,
        "tools/__init__.py": "",
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow']\n",
        ".gitignore": "__pycache__/\n.cache/\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init"], ["add", "--all"], [*who, "commit", "--no-verify", "--message", "all"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


def test_a_repository_goes_the_whole_way(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    copy, folder = Copy(root, tmp_path / "copy"), home(root)
    first = selected(copy, folder, FIRST)
    assert first == {f"{NAME}{test}" for test in (*PASSING, "test_something_else", "test_that_fails")}
    make(copy, folder, "tests/unit", QUICK)
    reach = Reach(folder, ["tests/unit"])
    assert reach.seconds.keys() == {f"{NAME}{test}" for test in (*PASSING, "test_something_else", "test_limit")}
    shifted, negated = (mutant_of("src/forebay/part.py", word) for word in ("boundary shifted", "comparison negated"))
    reached = reaching(shifted, reach)
    assert reached == {f"{NAME}{test}" for test in (*PASSING, "test_limit")}
    seconds = reach.seconds
    assert killed(copy, shifted, stages(shifted.path, reached & first, seconds, FIRST)) is None
    assert killed(copy, shifted, stages(shifted.path, reached, seconds, FIRST)) == Kill(f"{NAME}test_limit", "failure")
    found = killed(copy, negated, stages(negated.path, reached & first, seconds, FIRST))
    assert found == Kill(f"{NAME}test_more[4]", "failure")
    assert (copy.folder / "src/forebay/part.py").read_text() == TEXT == (root / "src/forebay/part.py").read_text()


def test_what_was_run_under_coverage_is_not_run_again(root: Path, tmp_path: Path) -> None:
    copy, folder = Copy(root, tmp_path / "copy"), home(root)
    part_files(folder, "tests/unit")[1].write_text("{}")
    copy.stop()
    make(copy, folder, "tests/unit", {})
    with pytest.raises(Stopped):
        make(copy, folder, "tests", {})
