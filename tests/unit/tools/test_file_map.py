"""The map of files: one sentence a module, and stable under repetition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.file_map import BEGIN, END, first_sentence, with_map


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""One thing.\n\nMore of it."""', "One thing."),
        ('"""One thing. And another."""', "One thing."),
        ('"""Broken over\ntwo lines, e.g. ``x``."""', "Broken over two lines, e.g."),
        ('"""Without a stop"""', "Without a stop"),
        ('"""a | b."""', "a \\| b."),
        ("x = 1", ""),
    ],
)
def test_the_first_sentence_is_taken(source: str, expected: str) -> None:
    assert first_sentence(source) == expected


def test_the_map_stands_between_its_markers_and_does_not_grow(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "forebay"
    folder.mkdir(parents=True)
    (folder / "pool.py").write_text('"""The pool.  Bounded."""')
    (folder / "__init__.py").write_text('"""See DESIGN.md."""')
    once = with_map(f"before\n{BEGIN}\nstale\n{END}\nafter\n", tmp_path)
    assert once.startswith("before\n")
    assert once.endswith(f"{END}\nafter\n")
    assert "| `pool.py` | The pool. |" in once
    assert "stale" not in once
    assert "__init__" not in once
    assert with_map(once, tmp_path) == once
