"""Callbacks of a batch's records: which are called, in which order, with what; also by the parts of a split batch."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._delivery.callbacks import DeliveryCallbacks
from forebay._delivery.result import BatchResult
from forebay._delivery.split import split_result
from forebay.errors import KafkaError
from forebay.model import DeliveryReport, RecordMetadata
from tests.unit._accumulator.shelf import Shelf, quiet

# Which of three callbacks a record has, or none.
CHOICES = st.lists(st.sampled_from([None, 0, 0, 1, 2]), min_size=1, max_size=80)


class Listeners:
    """Three callbacks that note who was called with what."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, Any, Any]] = []
        self.functions = [self.make(number) for number in range(3)]

    def make(self, number: int) -> Any:
        return lambda report: self.heard.append((number, report.metadata, report.error))


def filled(choices: list[int | None], listeners: Listeners) -> BatchResult:
    """A batch with a record for each choice; record n has n % 5 bytes of key (or none) and n of value."""
    shelf = Shelf(batch_size=1 << 20)
    for number, choice in enumerate(choices):
        shelf.append(
            0,
            key=None if number % 5 == 0 else bytes(number % 5),
            value=bytes(number),
            timestamp=1000 - number,
            callback=None if choice is None else listeners.functions[choice],
        )
    result: BatchResult = shelf.batches()[0].result
    return result


def expected(choices: list[int | None], offsets: dict[int, int]) -> list[Any]:
    return [
        (choice, ("test", 0, offsets[number], 1000 - number, number % 5 or -1, number), None)
        for number, choice in enumerate(choices)
        if choice is not None
    ]


@given(choices=CHOICES)
def test_each_is_called_once_with_its_own_record(choices: list[int | None]) -> None:
    listeners = Listeners()
    filled(choices, listeners).settle(500, -1, None, None, len(choices), quiet)
    assert listeners.heard == expected(choices, {number: 500 + number for number in range(len(choices))})


@given(keeps=st.lists(st.sampled_from(["", "report", "metadata"]), min_size=1, max_size=60))
def test_what_somebody_keeps_does_not_change(keeps: list[str]) -> None:
    """What nobody keeps is used anew for the next record."""
    shelf = Shelf(batch_size=1 << 20)
    kept: list[Any] = []
    seen: list[int] = []

    def delivered(report: Any) -> None:
        keep = keeps[len(seen)]
        if keep:
            kept.append(report if keep == "report" else report.metadata)
        seen.append(report.metadata.offset)

    for _ in keeps:
        shelf.append(0, callback=delivered)
    shelf.batches()[0].result.settle(500, -1, None, None, len(keeps), quiet)
    assert seen == [500 + number for number in range(len(keeps))]
    found = [each.metadata if isinstance(each, DeliveryReport) else each for each in kept]
    assert [metadata.offset for metadata in found] == [500 + number for number, keep in enumerate(keeps) if keep]


@pytest.mark.parametrize("own", [None, {1: KafkaError("second")}])
def test_reports_of_a_failed_batch_that_somebody_keeps_do_not_change(own: dict[int, KafkaError] | None) -> None:
    """One record of a batch may have an error of its own (KIP-467)."""
    shelf = Shelf(batch_size=1 << 20)
    kept: list[Any] = []
    for _ in range(3):
        shelf.append(0, callback=kept.append)
    shelf.batches()[0].result.settle(-1, -1, KafkaError("all"), own, 3, quiet)
    assert [str(report.error) for report in kept] == ["all", "second" if own else "all", "all"]
    assert {report.metadata for report in kept} == {RecordMetadata("test", 0, -1, -1, -1, -1)}


def test_a_callback_that_raises_its_error_leaves_no_garbage() -> None:
    """The error's traceback refers to the report, and that to the error."""
    shelf = Shelf(batch_size=1 << 20)

    def raises(report: DeliveryReport) -> None:
        assert report.error is not None
        raise report.error

    class Own(KafkaError):
        pass

    shelf.append(0, callback=raises)
    shelf.batches()[0].result.settle(-1, -1, Own("no"), None, 1, lambda raised, result: None)
    gc.collect()
    assert [each for each in gc.get_objects() if isinstance(each, Own) and each.__traceback__ is not None] == []


@settings(deadline=None)
@given(choices=CHOICES, cuts=st.sets(st.integers(1, 79), max_size=5))
def test_parts_of_a_split_batch_call_their_own(choices: list[int | None], cuts: set[int]) -> None:
    listeners = Listeners()
    whole = filled(choices, listeners)
    firsts = [0, *sorted(cut for cut in cuts if cut < len(choices))]
    parts = [BatchResult("test", 0, None, first) for first in firsts]
    assert split_result(whole, parts)
    offsets = {}
    for part, first, end in zip(parts, firsts, [*firsts[1:], len(choices)], strict=True):
        base = 1000 * (first + 1)
        offsets.update({number: base + number - first for number in range(first, end)})
        part.settle(base, -1, None, None, end - first, quiet)
    assert listeners.heard == expected(choices, offsets)


def test_a_part_is_split_again() -> None:
    listeners = Listeners()
    whole = filled([0, None, 1, 1, 2, 0], listeners)
    parts = [BatchResult("test", 0, None, first) for first in (0, 2)]
    assert split_result(whole, parts)
    again = [BatchResult("test", 0, None, first) for first in (2, 4)]
    assert split_result(parts[1], again)
    for base, result in ((30, again[1]), (20, again[0]), (10, parts[0])):
        result.settle(base, -1, None, None, 2, quiet)
    assert [(number, metadata.offset) for number, metadata, _ in listeners.heard] == [
        (2, 30), (0, 31), (1, 20), (1, 21), (0, 10),
    ]  # fmt: skip


def test_errors_of_single_records() -> None:
    listeners = Listeners()
    whole, own = KafkaError("whole"), KafkaError("own")
    filled([0, 1, 2], listeners).settle(-1, -1, whole, {1: own}, 3, quiet)
    assert [(repr(error), metadata.offset) for _, metadata, error in listeners.heard] == [
        (repr(error), -1) for error in (whole, own, whole)
    ]


def test_what_one_raises_does_not_stop_the_others() -> None:
    listeners = Listeners()
    raised: list[BaseException] = []

    def bad(report: Any) -> None:
        raise SystemExit(3)

    listeners.functions[1] = bad
    filled([0, 1, 1, 2], listeners).settle(7, -1, None, None, 4, lambda error, result: raised.append(error))
    assert [number for number, _, _ in listeners.heard] == [0, 2]
    assert [type(error) for error in raised] == [SystemExit, SystemExit]


def test_the_functions_are_let_go_with_the_outcome() -> None:
    """A callback that refers to its own batch would otherwise live for ever: nothing here is known to the collector."""

    def callback(report: Any) -> None:
        assert holder

    holder: list[Any] = []
    known = weakref.ref(callback)
    shelf = Shelf(batch_size=1 << 20)
    result = shelf.append(0, 3, callback=callback)._batch
    holder.append(result)
    shelf.finish(shelf.drain(0)[0])
    del callback
    gc.collect()
    assert known() is None and result.done


def test_it_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(DeliveryCallbacks())
