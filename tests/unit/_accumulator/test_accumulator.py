"""The accumulator as a whole: flush, the end, and what takes batches out of it."""

from __future__ import annotations

import pytest

from forebay.errors import KafkaError
from tests.unit._accumulator.shelf import Shelf, quiet


def test_flush_makes_everything_sendable_and_lists_what_to_wait_for() -> None:
    """B testFlush: everything drains, and when all is acknowledged nothing is incomplete."""
    shelf = Shelf(batch_size=4096 + 61, pool=64 * 1024, linger=float("inf"))
    for number in range(100):
        shelf.append(number % 3)
        assert shelf.accumulator.has_incomplete()
    assert shelf.ready().nodes == []
    batches = shelf.accumulator.begin_flush()
    assert shelf.accumulator.flushing() and len(batches) == 3
    assert sorted(shelf.ready(send_all=shelf.accumulator.flushing()).nodes) == [0, 1]
    drained = shelf.drain(0) + shelf.drain(1)
    assert set(drained) == set(batches)
    assert shelf.accumulator.has_incomplete() and not shelf.schedule.has_undrained()
    for batch in drained:
        shelf.finish(batch)
    shelf.accumulator.end_flush()
    assert all(batch.result.done for batch in batches)
    assert not shelf.accumulator.flushing()
    assert not shelf.accumulator.has_incomplete()


def test_a_flush_does_not_wait_for_what_comes_later() -> None:
    shelf = Shelf(linger=float("inf"))
    shelf.append(0)
    batches = shelf.accumulator.begin_flush()
    shelf.append(1)
    assert [batch.partition for batch in batches] == [0]


def test_abort_of_what_waits() -> None:
    """B testAbortUnsentBatches: what waits gets exactly that error; what was drained stays in flight."""
    shelf = Shelf(batch_size=128, pool=64 * 1024, linger=float("inf"))
    errors: list[BaseException | None] = []
    for number in range(100):
        shelf.append(number % 3, callback=lambda report: errors.append(report.error))
    drained = shelf.drain(0) + shelf.drain(1)
    cause = KafkaError("why")
    for batch in shelf.accumulator.take_waiting():
        batch.abort(cause, quiet)
        shelf.accumulator.deallocate(batch)
    assert [repr(error) for error in errors] == [repr(cause)] * (100 - sum(batch.record_count for batch in drained))
    assert not any(batch.done for batch in drained)
    assert not shelf.schedule.has_undrained()
    assert set(shelf.accumulator.incomplete()) == set(drained)


def test_how_it_prints() -> None:
    shelf = Shelf(batch_size=100, pool=1000)
    shelf.append()
    assert repr(shelf.accumulator) == "<RecordAccumulator: 1 topics, 1 batches, 900 of 1000 bytes free>"


def test_closed() -> None:
    shelf = Shelf(batch_size=1024)
    shelf.append()
    shelf.accumulator.close()
    with pytest.raises(KafkaError, match="Producer closed while send in progress"):
        shelf.append(0)
    with pytest.raises(KafkaError, match="Producer closed"):
        shelf.append(1)
    assert len(shelf.batches()) == 1 and shelf.accumulator.has_incomplete()
