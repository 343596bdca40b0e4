"""The function of a transform: which arguments it gets, and what is told of a bad one; frames are fakes here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay.spark.jobs.frames import build_frame, map_rows
from forebay.spark.jobs.job import Job, Source
from forebay.spark.jobs.table import JobError
from tests.unit.spark.jobs.test_job import job


class Fake:
    """A session, a reader and a DataFrame, as far as a transform sees them."""

    writeStream = None

    def __init__(self) -> None:
        self.sent: list[Any] = []

    @property
    def read(self) -> Fake:
        return self

    def options(self, **options: str) -> Fake:
        return self

    def table(self, name: str) -> str:
        return f"rows of {name}"

    def addArtifacts(self, path: str, pyfile: bool) -> None:
        self.sent.append((path, pyfile))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    sys.modules.pop("transform_under_test", None)


def of(folder: Path, code: str, name: str = "made") -> Job:
    (folder / "transform_under_test.py").write_text(code)
    sources = (Source("a", table="A"), Source("b", table="B"))
    return job(path=folder / "job.toml", sources=sources, function=f"transform_under_test:{name}")


def test_a_function_gets_the_sources_that_it_names(folder: Path) -> None:
    code = "def made(b, session, other=3):\n    session.got = b, other\n    return session\n"
    session: Any = Fake()
    before = list(sys.path)
    assert build_frame(of(folder, code), session) is session
    assert session.got == ("rows of B", 3)
    assert session.sent == [(str(folder / "transform_under_test.py"), True)]
    assert sys.path == before


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_like_it\n", "module 'transform_under_test' cannot be imported: ModuleNotFoundError"),
        ("made = 3\n", "module 'transform_under_test' has no function 'made'"),
        ("def made(c): pass\n", "has a parameter 'c', which is no source. Allowed: a, b, session"),
        ("def made(a): return a\n", "transform_under_test:made returned str; it must return a DataFrame"),
        (
            "def made(a): return a.nothing\n",
            "transform_under_test:made: AttributeError: 'str' object has no .* [(]{file}, line 1[)]$",
        ),
        ("\nimport json\njson.loads('x')\n", "imported: JSONDecodeError: .* [(]{file}, line 3[)]$"),
    ],
)
def test_a_bad_function_is_one_line(folder: Path, code: str, message: str) -> None:
    with pytest.raises(JobError, match=message.replace("{file}", "transform_under_test.py")) as caught:
        build_frame(of(folder, code), Fake())  # type: ignore[arg-type]
    assert str(caught.value).startswith("[transform] ") and "\n" not in str(caught.value)


def test_a_function_may_take_all_sources_by_name(folder: Path) -> None:
    session: Any = Fake()
    code = "def made(session, *more, **frames):\n    session.got = more, frames\n    return session\n"
    build_frame(of(folder, code), session)
    assert session.got == ((), {"a": "rows of A", "b": "rows of B"})


def test_each_job_has_the_module_beside_it(folder: Path) -> None:
    """Also if another job of this process had one of the same name."""
    for number in (1, 2):
        place = folder / str(number)
        place.mkdir()
        session: Any = Fake()
        build_frame(of(place, f"def made(session):\n    session.got = {number}\n    return session\n"), session)
        assert session.got == number


def test_a_module_of_python_s_own_name_is_refused(folder: Path) -> None:
    (folder / "json.py").write_text("def made(a): return a\n")
    bad = job(path=folder / "job.toml", sources=(Source("a", table="A"),), function="json:made")
    with pytest.raises(JobError, match="module 'json' has the name of a module of Python's own: rename .*json.py"):
        build_frame(bad, Fake())  # type: ignore[arg-type]
    assert "json" in sys.modules


def test_two_columns_of_one_name_are_refused() -> None:
    class Frame:
        columns = ("key", "value", "value")

        def __getitem__(self, name: str) -> str:
            return name

    frame: Any = Frame()
    with pytest.raises(JobError, match="the rows have 2 columns 'value': rename one, or add value to"):
        map_rows(job(), frame)
