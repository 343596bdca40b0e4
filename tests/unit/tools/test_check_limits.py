"""The limits' own arithmetic."""

from __future__ import annotations

from pathlib import Path

from tools.check_limits import FILE_LINES, FUNCTION_LINES, PARAMETERS, check, complaints_of_source


def function_of(lines: int) -> str:
    return "def long():\n" + "    a = 1\n" * (lines - 1)


def test_a_function_at_the_limit_passes_and_one_above_does_not() -> None:
    assert list(complaints_of_source(function_of(FUNCTION_LINES), "x.py")) == []
    assert list(complaints_of_source(function_of(FUNCTION_LINES + 1), "x.py")) == [
        f"x.py:1: long has {FUNCTION_LINES + 1} net lines, allowed are {FUNCTION_LINES}"
    ]


def test_blank_lines_comments_and_docstrings_do_not_count() -> None:
    padding = '    """One\n    two."""\n' + "\n    # why\n" * FUNCTION_LINES
    assert list(complaints_of_source(function_of(1) + padding + "    a = 1\n", "x.py")) == []


def test_a_string_that_is_used_counts() -> None:
    text = '    a = """' + "\n" * FUNCTION_LINES + '"""\n'
    (complaint,) = complaints_of_source("def long():\n" + text, "x.py")
    assert f"{FUNCTION_LINES + 2} net lines" in complaint


def test_positional_parameters_are_counted_without_self_and_after_the_star_not_at_all() -> None:
    names = ", ".join(f"p{number}" for number in range(PARAMETERS))
    fine = f"class A:\n    def a(self, {names}, *, one, two): ...\n"
    assert list(complaints_of_source(fine, "x.py")) == []
    (complaint,) = complaints_of_source(f"class A:\n    @staticmethod\n    def a(self, {names}): ...\n", "x.py")
    assert f"takes {PARAMETERS + 1} parameters" in complaint
    (complaint,) = complaints_of_source(f"def a({names}, /, more): ...\n", "x.py")
    assert f"takes {PARAMETERS + 1} parameters" in complaint


def test_c_functions_may_take_more_for_they_have_no_keywords() -> None:
    names = ", ".join(f"p{number}" for number in range(12))
    assert list(complaints_of_source(f"@cython.cfunc\ndef a({names}): ...\n", "x.py")) == []
    assert len(list(complaints_of_source(f"@cython.cfunc\ndef a({names}, more): ...\n", "x.py"))) == 1


def test_long_files_of_every_kind_are_named(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("a.py", "b.pxd", "c.pyc", "d.txt"):
        (tmp_path / "src" / name).write_text("\n" * (FILE_LINES + 1))
    assert check(tmp_path) == [
        f"src/{name}: {FILE_LINES + 1} lines, allowed are {FILE_LINES}" for name in ("a.py", "b.pxd")
    ]
