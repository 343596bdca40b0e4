"""Java's properties files."""

from __future__ import annotations

from forebay.config._properties import logical_lines, properties


def test_logical_lines_keep_the_number_they_begin_on() -> None:
    assert list(logical_lines("a\\\n  b\n#x\\\nc\\\\\nd\\")) == [(1, "ab"), (4, "c\\\\"), (5, "d")]


def test_names_and_values() -> None:
    found = list(properties("a=1\nb : \\u0041\\\n  c\n= x\nd"))
    assert found == [(1, "a", "1"), (2, "b", "Ac"), (4, "", "x"), (5, "d", "")]
