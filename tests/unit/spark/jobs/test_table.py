"""One table: typed values by key, and what each refusal says.  ``test_loading`` has the tables of a job file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forebay.spark.jobs.table import JobError, Table, duration


def table(values: Any, *allowed: str) -> Table:
    return Table(values, "t", allowed or None, Path("/jobs"))


def test_values_by_kind() -> None:
    found = table({"a": "x", "b": ["y", "z"], "c": True, "d": "false", "e": "2 minutes", "f": "p.csv", "g": "s3://b/k"})
    assert (found.text("a"), found.text("none")) == ("x", None)
    assert (found.texts("b"), found.texts("none")) == (("y", "z"), ())
    assert (found.flag("c"), found.flag("d"), found.flag("none", True)) == (True, False, True)
    assert (found.seconds("e"), found.seconds("none")) == (120.0, None)
    assert (found.place("f"), found.place("g"), found.place("none")) == ("/jobs/p.csv", "s3://b/k", None)
    assert found.names() == tuple("abcdefg") and "a" in found


def test_options_are_flat_texts() -> None:
    inside = {"linger": {"ms": 5}, "x": True, "y": 0.5, "z": ["a", "b"]}
    assert table({"o": inside}).options("o") == {"linger.ms": "5", "x": "true", "y": "0.5", "z": "a,b"}
    assert table({}).options("o") == {}
    with pytest.raises(JobError, match=r"\[t.o\] must be a table of options, not 3"):
        table({"o": 3}).options("o")


def test_a_choice_has_a_hint() -> None:
    assert table({}).choice("a", ("x", "y"), "x") == "x"
    with pytest.raises(
        JobError, match=r"^\[t\] a is 'appendd', which is unknown; did you mean 'append'\? Allowed: append, up"
    ):
        table({"a": "appendd"}).choice("a", ("append", "update"))


@pytest.mark.parametrize("text", ["soon", "0 seconds", "5", "5seconds", "-1 day", "1 fortnight"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(
        JobError, match="x is '.*', which is no duration. Allowed: a number over 0 and millisecond, second"
    ):
        duration(text, "x")
    assert duration("1 second", "x") == 1.0 and duration("250 milliseconds", "x") == 0.25


@pytest.mark.parametrize("name", ["", "none/r.html", "s3://b/r.html"])
def test_what_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    found = Table({"report": name or str(tmp_path), "fine": "r.html"}, "t", None, tmp_path)
    assert found.output("fine") == str(tmp_path / "r.html") and found.output("none") is None
    with pytest.raises(JobError, match=r"\[t\] report '.*' cannot be written; it must name a file in a folder that"):
        found.output("report")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_bytes(b"SELECT '\xff'")
    with pytest.raises(JobError, match=r"\[t\] file '.*q.sql' is no text in UTF-8 \(byte 9\)"):
        Table({"file": "q.sql"}, "t", None, tmp_path).content("file")
