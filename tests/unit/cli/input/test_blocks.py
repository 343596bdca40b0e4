"""cli.input.blocks: columns of adjacent records, cut, counted, and filled in from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from forebay.cli.failure import CommandError
from forebay.cli.input.blocks import Block, gathered, size_of
from forebay.cli.input.rows import BadRow, Row
from tests.unit.cli.fakes import rows_of


def test_rows_are_gathered_between_bad_ones() -> None:
    found = list(gathered([Row(1, b"a"), Row(4, b"bc", b"k"), BadRow(5, "no"), Row(6, None)]))
    assert found == [
        Block([1, 4], [b"a", b"bc"], 4, [None, b"k"]),
        BadRow(5, "no"),
        Block([6], [None], 0),
    ]
    full = [Row(1, b"a", None, [("h", b"1")], 2, None), Row(2, b"b", None, (), None, 7)]
    assert list(gathered(full)) == [Block([1, 2], [b"a", b"b"], 2, None, [[("h", b"1")], ()], [2, None], [None, 7])]
    assert rows_of(gathered(full)) == full
    assert list(gathered([])) == []


def test_rows_before_the_input_s_end_by_an_error_are_handed_out() -> None:
    def broken() -> Iterator[Row | BadRow]:
        yield Row(1, b"a")
        raise CommandError("not CSV")

    found = gathered(broken())
    assert next(found) == Block([1], [b"a"], 1)
    with pytest.raises(CommandError, match="not CSV"):
        next(found)


def test_a_part_has_the_size_of_its_rows() -> None:
    block = Block(range(5, 9), [b"a", b"bb", None, b"dddd"], 9, [None, b"kk", None, None], None, [1, None, 2, 3])
    assert block.part(0, 4) is block
    assert block.part(1, 3) == Block(range(6, 8), [b"bb", None], 4, [b"kk", None], None, [None, 2])
    assert block.size_at([0, 1]) == 5
    assert block.size_at([2]) == 0


def test_arrow_s_columns_are_cut_and_counted() -> None:
    values: Any = pa.array(["ä", "", None, "dddd"])
    keys: Any = pa.array([b"k", None, b"\xff\xff", None], pa.large_binary())
    assert size_of(values) == 6
    block = Block(range(1, 5), values, 9, keys)
    part = block.part(0, 3)
    assert (part.values.to_pylist(), part.keys.to_pylist(), part.size) == (
        ["ä", "", None],
        [b"k", None, b"\xff\xff"],
        5,
    )
    assert block.size_at([0, 2, 3]) == 9
    assert block.filled(b"own", (), empty_is_null=True) == Block(
        range(1, 5), ["ä", None, None, "dddd"], 15, [b"k", b"own", b"\xff\xff", b"own"]
    )


def test_what_the_command_line_says_of_every_record() -> None:
    block = Block(range(1, 4), [b"a", b"", b"c"], 3, [b"", b"k", None], [[("h", b"1")], (), ()])
    assert block.filled(None, (), empty_is_null=False) == block
    filled = block.filled(b"own", [("n", None)], empty_is_null=True)
    assert filled.values == [b"a", None, b"c"]
    assert filled.keys == [b"own", b"k", b"own"]
    assert filled.headers == [[("h", b"1"), ("n", None)], [("n", None)], [("n", None)]]
    assert filled.size == size_of(filled.values) + size_of(filled.keys)
    bare = Block(range(1, 3), [b"a", b"b"], 2).filled(b"kk", [("h", b"1")], empty_is_null=False)
    assert bare == Block(range(1, 3), [b"a", b"b"], 6, [b"kk", b"kk"], [[("h", b"1")]] * 2)
