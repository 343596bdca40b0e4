"""Results that hand on to parts: look-ups, waiters, callbacks and the outcome of the whole."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from forebay._delivery.callback_thread import note_sender_thread
from forebay._delivery.future import RecordFuture, wait_for
from forebay._delivery.result import BatchResult
from forebay._delivery.split import split_result
from forebay.errors import IllegalStateError, KafkaError, KafkaTimeoutError, NotEnoughReplicasError
from tests.fakes.tickets import CountingTicket
from tests.support.pace import HANG_S
from tests.unit._accumulator.shelf import Shelf, quiet


def pending(count: int, **more: Any) -> tuple[list[RecordFuture], BatchResult]:
    """Futures of one batch of ``count`` records, and its result."""
    shelf = Shelf(batch_size=65536)
    futures = [shelf.append(0, 1, timestamp=1000 + number, **more) for number in range(count)]
    return futures, futures[0]._batch


def split(result: BatchResult, *firsts: int) -> list[BatchResult]:
    parts = [BatchResult("test", 0, None, first) for first in firsts]
    assert split_result(result, parts)
    return parts


def test_futures_walk_to_the_part_with_their_record() -> None:
    futures, whole = pending(9)
    first, second = split(whole, 0, 4)
    third, fourth, fifth = split(second, 4, 5, 8)
    first.settle(100, -1, None, None, 4, quiet)
    third.settle(300, -1, None, None, 1, quiet)
    fourth.settle(500, 777, None, None, 3, quiet)
    assert not whole.done and not second.done and not futures[8].done()
    fifth.settle(-1, -1, NotEnoughReplicasError(), None, 1, quiet)
    assert [future.exception(0) for future in futures[:8]] == [None] * 8
    assert [future.result(0).offset for future in futures[:8]] == [100, 101, 102, 103, 300, 500, 501, 502]
    assert [future.result(0).timestamp for future in futures[3:8]] == [1003, 1004, 777, 777, 777]
    assert isinstance(futures[8].exception(0), NotEnoughReplicasError)
    assert whole.done and second.done and isinstance(whole.error, NotEnoughReplicasError)
    assert whole.record_count == 9


def test_only_once_and_not_after_an_outcome() -> None:
    _, whole = pending(2)
    split(whole, 0, 1)
    assert not split_result(whole, [BatchResult("test", 0)])
    assert not whole.settle(5, -1, None, None, 2, quiet)
    _, done = pending(2)
    done.settle(5, -1, None, None, 2, quiet)
    assert not split_result(done, [BatchResult("test", 0)])


def test_callbacks_move_in_order() -> None:
    heard: list[int] = []
    futures, whole = pending(6)
    for number in (0, 3, 5, 3):
        futures[number].add_done_callback(lambda future: heard.append(future._index))
    first, second = split(whole, 0, 3)
    futures[4].add_done_callback(lambda future: heard.append(4))  # comes late
    second.settle(3, -1, None, None, 3, quiet)
    assert heard == [3, 5, 3, 4]
    first.settle(0, -1, None, None, 3, quiet)
    assert heard == [3, 5, 3, 4, 0]
    futures[1].add_done_callback(lambda future: heard.append(1))
    assert heard[-1] == 1


def test_on_delivery_gets_the_part_s_offset() -> None:
    heard: list[tuple[int, Any]] = []
    _, whole = pending(4, callback=lambda report: heard.append((report.metadata.offset, report.error)))
    first, second = split(whole, 0, 2)
    first.settle(10, -1, None, None, 2, quiet)
    second.settle(20, -1, None, {1: KafkaError("bad")}, 2, quiet)
    assert heard == [(10, None), (11, None), (20, None), (21, None)]


def test_errors_of_single_records_count_from_the_part() -> None:
    futures, whole = pending(4)
    _, second = split(whole, 0, 2)
    rest, bad = KafkaError("rest"), KafkaError("bad")
    second.settle(-1, -1, rest, {1: bad, 9: KafkaError("nobody's")}, 2, quiet)
    assert [repr(future.exception(0)) for future in futures[2:]] == [repr(rest), repr(bad)]


def test_who_waits_for_one_record_moves_with_it() -> None:
    _, whole = pending(4)
    one, all_of_them = CountingTicket(), CountingTicket()
    assert not whole.subscribe(one, 3)
    assert not whole.subscribe(all_of_them)
    first, second = split(whole, 0, 2)
    assert (one.woken, all_of_them.woken) == (0, 0)
    third, fourth = split(second, 2, 3)
    fourth.settle(0, -1, None, None, 1, quiet)
    assert (one.woken, all_of_them.woken) == (1, 0)
    first.settle(0, -1, None, None, 2, quiet)
    assert all_of_them.woken == 0
    third.settle(0, -1, None, None, 1, quiet)
    assert (one.woken, all_of_them.woken) == (1, 1)
    assert whole.subscribe(one, 3) and whole.subscribe(one)


def test_who_gave_up_is_forgotten_where_he_was_moved_to() -> None:
    _, whole = pending(4)
    gone, other = CountingTicket(), CountingTicket()
    for ticket in (gone, other):
        assert not whole.subscribe(ticket, 3)
    _, second = split(whole, 0, 2)
    whole.unsubscribe(gone, 3)
    second.settle(0, -1, None, None, 2, quiet)
    assert (gone.woken, other.woken) == (0, 1)


@pytest.mark.parametrize("settled", [True, False])
def test_one_limit_over_several_splits(settled: bool) -> None:
    futures, whole = pending(8)
    heard: list[Any] = []

    def wait() -> None:
        try:
            heard.append(futures[7].result(HANG_S if settled else 0.1).offset)
        except KafkaTimeoutError as error:
            heard.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    _, second = split(whole, 0, 4)
    thread.join(0.02)
    _, third = split(second, 4, 6)
    if settled:
        third.settle(50, -1, None, None, 2, quiet)
    thread.join()
    assert heard == [51] if settled else isinstance(heard[0], KafkaTimeoutError)


def follow(futures: list[RecordFuture], heard: list[int], offsets: list[list[int]]) -> None:
    for future in futures:
        future.add_done_callback(lambda future: heard.append(future._index))
    offsets.append([future.result(HANG_S).offset for future in futures])


def test_splits_beside_waiters_and_late_callbacks() -> None:
    """Threads wait and add callbacks while the sender's thread splits and settles."""
    for _ in range(20):
        futures, whole = pending(64)
        heard: list[int] = []
        offsets: list[list[int]] = []

        threads = [threading.Thread(target=follow, args=(futures, heard, offsets)) for _ in range(2)]
        for thread in threads:
            thread.start()
        parts = split(whole, 0, 16, 32, 48)
        leaves = [leaf for part in parts for leaf in split(part, *range(part.first, part.first + 16, 4))]
        for leaf in leaves:
            leaf.settle(leaf.first, -1, None, None, 4, quiet)
        for thread in threads:
            thread.join()
        assert sorted(heard) == sorted([*range(64)] * 2)
        assert offsets == [list(range(64))] * 2


def test_who_waits_for_all_does_not_wait_where_nobody_would_bring_it_about() -> None:
    """On the sender's thread, also while the first part alone is done."""
    _, whole = pending(4)
    first, second = split(whole, 0, 2)
    first.settle(0, -1, None, None, 2, quiet)
    raised: list[Exception] = []

    def wait() -> None:
        note_sender_thread()
        try:
            wait_for(whole, 50)
        except IllegalStateError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert len(raised) == 1 and "cannot wait" in str(raised[0])
    second.settle(2, -1, None, None, 2, quiet)
    assert wait_for(whole, 0)
