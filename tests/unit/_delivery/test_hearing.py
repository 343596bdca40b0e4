"""What a mark notes: each record of a batch, all of them at once, and the records of a part."""

from __future__ import annotations

import pytest

from forebay._delivery.hearing import hear, put_mark
from forebay._delivery.result import BatchResult
from forebay._delivery.split import split_result
from forebay._delivery.unheard import Mark
from forebay.errors import KafkaError
from tests.unit._accumulator.shelf import quiet


def test_who_asks_is_noted_with_the_record() -> None:
    result, mark = BatchResult("t", 0), Mark(bytearray(4))
    hear(result, 2)  # it did not fail
    assert put_mark(result, mark)
    for index in (1, 3, 3, 4, -1):
        hear(result, index)
    assert mark.heard == b"\0\1\0\1"


def test_records_with_one_future_are_heard_of_together() -> None:
    result, mark = BatchResult("t", 0), Mark(bytearray(1))
    result.is_whole = True
    assert put_mark(result, mark)
    hear(result, 0)
    assert mark.heard == b"\1"


@pytest.mark.parametrize("how", ["settled", "settled early", "marked", "split"])
def test_a_mark_comes_before_the_outcome_or_not_at_all(how: str) -> None:
    result, mark = BatchResult("t", 0), Mark(bytearray(2))
    if how == "settled":
        result.settle(0, -1, None, None, 2, quiet)
    elif how == "settled early":
        result.settle_early(-1, -1, KafkaError("closed"), 2)
    elif how == "marked":
        assert put_mark(result, Mark(bytearray(2)))
    else:
        split_result(result, [BatchResult("t", 0), BatchResult("t", 0, None, 1)])
    assert not put_mark(result, mark)


def test_a_part_notes_its_own() -> None:
    whole = BatchResult("t", 0)
    parts = [BatchResult("t", 0), BatchResult("t", 0, None, 2)]
    assert split_result(whole, parts)
    marks = [Mark(bytearray(2)), Mark(bytearray(3))]
    for part, mark in zip(parts, marks, strict=True):
        assert put_mark(part, mark)
    for index in (0, 4):
        hear(whole, index)
    assert [bytes(mark.heard) for mark in marks] == [b"\1\0", b"\0\0\1"]
