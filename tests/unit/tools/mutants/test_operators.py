"""The changes themselves."""

from __future__ import annotations

import pytest

from tools.mutants.operators import changes


def changed(line: str) -> list[str]:
    """What a line of a function becomes, once for each change."""
    text = f"def f(self, a, b):\n    while a:\n        {line}\n"
    found = [change.applied(text).split("\n") for change in changes(text) if change.line == 3]
    assert all(len(lines) == 4 for lines in found)
    return [lines[2].strip() for lines in found]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("x = a < b", ["x = a >= b", "x = a <= b"]),
        ("x = a >= b", ["x = a < b", "x = a > b"]),
        ("x = a == b", ["x = a != b"]),
        ("x = a is not b", ["x = a is b"]),
        ("x = a not in b", ["x = a in b"]),
        ("x = a < self <= b", ["x = a >= self <= b", "x = a <= self <= b", "x = a < self > b", "x = a < self < b"]),
        ("x = a and (b) and self", ["x = a or (b) and self", "x = a and (b) or self"]),
        ("x = not (a)", ["x = (a)"]),
        ("x = (a) + b", ["x = (a) - b"]),
        ("x = a // b", ["x = a * b"]),
        ("x = a << b", ["x = a >> b"]),
        ("x = a | b", ["x = a & b"]),
        ("x += b", ["x -= b", "pass"]),
        ("x = 0xff", ["x = 256"]),
        ("x = -1", ["x = -2"]),
        ("x = True", ["x = False"]),
        ("x: cython.int = 3", ["x: cython.int = 4"]),
        ("if a: break", ["if not (a): break", "if a: continue"]),
        ("continue", ["break"]),
        ("a.b(self)", ["pass"]),
        ("self.x = a", ["pass"]),
        ("self.x: int = a", ["pass"]),
        ("a[b], self.x = b", ["pass"]),
        ("a, self.x = b", []),
        ("return a", ["return None"]),
        ("return None", []),
        ("return a == b", ["return None", "return not (a == b)", "return a != b"]),
        ("x = 'ü', a + b", ["x = 'ü', a - b"]),
        ("x = a + 'b'", []),
        ("x = 'a %s' % b", []),
        ("x = (yield a)", []),
    ],
)
def test_each_operator(line: str, wanted: list[str]) -> None:
    assert changed(line) == wanted


def test_a_field_is_not_deleted_where_it_is_made_and_a_call_there_is() -> None:
    text = "class A:\n    def __init__(self):\n        self.x = a\n        self.open()\n"
    assert [change.line for change in changes(text)] == [4]


def test_nothing_is_deleted_that_runs_at_import() -> None:
    assert changes("register(a)\nA.b = a\n") == []


def test_an_operator_is_found_past_a_comment_on_a_line_of_its_own() -> None:
    text = "x = (\n    a\n    # this and that\n    and b\n)\n"
    (change,) = changes(text)
    assert change.applied(text) == text.replace("    and b", "    or b")


def test_what_has_several_lines_is_not_changed_as_a_whole() -> None:
    assert changes("def f(a):\n    a(\n        b,\n    )\n") == []


def test_a_change_that_is_no_program_or_the_same_one_is_told() -> None:
    text = "def f(a):\n    return a\n"
    (change,) = changes(text)
    assert change.is_real(text)
    assert not change._replace(after="a").is_real(text)
    assert not change._replace(after="(").is_real(text)
