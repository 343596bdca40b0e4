"""The limits' own arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_limits
from tools.check_limits import (
    CLASS_LINES,
    FIELDS,
    FILE_LINES,
    FUNCTION_LINES,
    HALL,
    OTHER_LINES,
    PARAMETERS,
    SMALL_LINES,
    check,
    complaints_of_source,
)


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


def tree(root: Path, **files: str) -> Path:
    """A tree with these files in its package; ``__`` in a name is a slash."""
    for name, text in files.items():
        path = root / "src" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def large(text: str) -> str:
    """The text with enough lines of code to need no reason."""
    return text + "\na = 1" * SMALL_LINES + "\n"


@pytest.fixture(autouse=True)
def no_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_limits, "SMALL", {})
    monkeypatch.setattr(check_limits, "WIDE", {})


def test_long_files_of_every_kind_are_named(tmp_path: Path) -> None:
    for folder, limit in (("src", FILE_LINES["src"]), ("tests", OTHER_LINES)):
        (tmp_path / folder).mkdir()
        for name in ("a.py", "b.pxd", "c.pyc", "d.txt", "e.pyi"):
            (tmp_path / folder / name).write_text(large("") + "\n" * (limit - SMALL_LINES + (name != "e.pyi") - 1))
    assert check(tmp_path) == [
        f"{folder}/{name}: {limit + 1} lines, allowed are {limit}"
        for folder, limit in (("src", FILE_LINES["src"]), ("tests", OTHER_LINES))
        for name in ("a.py", "b.pxd")
    ]


def test_a_class_has_lines_and_fields_at_most(tmp_path: Path) -> None:
    names = ", ".join(f"self.f{number}" for number in range(FIELDS))
    fine = f"class A:\n    def __init__(self):\n        {names} = range({FIELDS})\n"
    assert check(tree(tmp_path, a=large(fine))) == []
    assert check(tree(tmp_path, a=large(fine + "    one: int\n"))) == [
        f"src/a.py:1: A has {FIELDS + 1} fields, allowed are {FIELDS}"
    ]
    assert check(tree(tmp_path, a=large(fine), b=large("class B(A):\n    g: int\n"))) == [
        f"src/b.py:1: B has {FIELDS + 1} fields, allowed are {FIELDS}"
    ]
    tree(tmp_path, b=large(""))
    (tmp_path / "src" / "a.pxd").write_text("cdef class A:\n    cdef readonly int* g\n    cdef int h(self)\n")
    assert check(tmp_path) == [f"src/a.py:1: A has {FIELDS + 1} fields, allowed are {FIELDS}"]
    (tmp_path / "src" / "a.pxd").unlink()
    tall = "class A:\n" + "    # why\n" * (CLASS_LINES - SMALL_LINES) + "    b = 1\n" * SMALL_LINES
    assert check(tree(tmp_path, a=tall)) == [f"src/a.py:1: A has {CLASS_LINES + 1} lines, allowed are {CLASS_LINES}"]


def test_an_exception_that_is_not_needed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, forebay__a=large("class A:\n    one: int\n"), forebay__b__c="a = 1\n")
    monkeypatch.setattr(check_limits, "WIDE", {"A": "No reason."})
    small = {"forebay/a.py": "No reason.", "forebay/b/": "All of it."}
    monkeypatch.setattr(check_limits, "SMALL", small)
    found = check(tmp_path)
    assert [line.partition(":")[0] for line in found] == [
        "src/forebay/a.py",
        "src/forebay/a.py",
    ]
    assert "needs no reason any more" in found[0] and "needs no exception any more" in found[1]


def test_a_small_file_needs_a_reason(tmp_path: Path) -> None:
    tree(tmp_path, forebay__a='"""A."""\n' + "a = 1\n" * (SMALL_LINES - 1))
    (tmp_path / "src" / "forebay" / "__init__.py").touch()
    (complaint,) = check(tmp_path)
    assert f"src/forebay/a.py: {SMALL_LINES - 1} net lines" in complaint


def test_the_hall_has_few_inner_modules(tmp_path: Path) -> None:
    names = [f"forebay___m{number}" for number in range(HALL)]
    assert check(tree(tmp_path, forebay__public=large(""), **dict.fromkeys(names, large("")))) == []
    (complaint,) = check(tree(tmp_path, forebay___one_more=large("")))
    assert f"src/forebay: {HALL + 1} modules with an underscore" in complaint and "_one_more.py" in complaint


def test_drop_in_classes_keep_the_parameters_of_others() -> None:
    place = "src/forebay/compat/confluent_kafka.py:1: produce"
    for name, is_foreign in {"produce": True, "__init__": True, "_inner": False}.items():
        assert check_limits.is_foreign(place, name) is is_foreign
    assert not check_limits.is_foreign("src/forebay/producer.py:1: send", "send")
