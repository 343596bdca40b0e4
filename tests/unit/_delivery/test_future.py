"""Futures and the result that a batch's records share: order of events, waiting, errors, forks."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import threading
import traceback
import weakref
from typing import Any

import pytest

from forebay import DeliveryReport
from forebay._delivery.future import RecordFuture, failed_future, wait_for
from forebay._delivery.result import BatchResult
from forebay.errors import CorruptRecordError, ForkedProducerError, KafkaError, KafkaTimeoutError
from forebay.model import RecordMetadata
from tests.fakes.tickets import CountingTicket
from tests.support.pace import HANG_S
from tests.unit._accumulator.shelf import Shelf, quiet


class Reports(list[tuple[BaseException, Any]]):
    """What callbacks raised."""

    def __call__(self, error: BaseException, result: Any) -> None:
        self.append((error, result))


def futures_of(count: int, **more: Any) -> tuple[list[RecordFuture], Any]:
    """Futures of one batch, and the batch."""
    shelf = Shelf(batch_size=4096)
    futures = [shelf.append(0, 1, b"value", b"key", timestamp=1000 + number, **more) for number in range(count)]
    return futures, shelf.batches()[0]


def test_the_offset_is_the_batch_s_plus_the_index() -> None:
    """I testConstructionWithBatchIndexOffset: base 15 and index 3 make 18."""
    futures, batch = futures_of(4)
    batch.complete(15, -1, quiet)
    assert futures[3].result() == RecordMetadata("test", 0, 18, 1003, 3, 5)
    assert futures[3].get(0) is not None and futures[3].result(0).has_offset


def test_no_offset() -> None:
    """I testConstructionWithMissingBatchIndex: base offset -1 (acks=0, a duplicate) is no offset."""
    futures, batch = futures_of(4)
    batch.complete(-1, -1, quiet)
    metadata = futures[3].result(0)
    assert (metadata.offset, metadata.has_offset, metadata.timestamp) == (-1, False, 1003)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, 5)


def test_the_broker_s_append_time_goes_first() -> None:
    futures, batch = futures_of(2)
    batch.complete(0, 777, quiet)
    assert [future.result(0).timestamp for future in futures] == [777, 777]


def test_sizes_of_null() -> None:
    shelf = Shelf()
    future = shelf.append(0, 1, None, None)
    shelf.batches()[0].complete(0, -1, quiet)
    assert future.result(0)[4:] == (-1, -1)


def test_timeout() -> None:
    """I RecordSendTest.testTimeout: 5 ms are too short; then base 45 and index 5 make 50."""
    futures, batch = futures_of(6)
    assert not futures[5].done()
    with pytest.raises(KafkaTimeoutError, match=r"test-0 within 0.005 s") as caught:
        futures[5].result(0.005)
    assert caught.value.retriable
    batch.complete(45, -1, quiet)
    assert futures[5].done() and futures[5].result(0.005).offset == 50


def test_error() -> None:
    """I RecordSendTest.testError: the error as it is."""
    futures, batch = futures_of(2)
    batch.fail(CorruptRecordError(), None, quiet)
    with pytest.raises(CorruptRecordError):
        futures[1].get(0)
    assert isinstance(futures[1].exception(0), CorruptRecordError)


def test_another_thread_completes_it() -> None:
    """I RecordSendTest.testBlocking: result() waits for the other thread."""
    futures, batch = futures_of(6)
    thread = threading.Thread(target=batch.complete, args=(45, -1, quiet))
    thread.start()
    assert futures[5].result(HANG_S).offset == 50
    thread.join()


def test_a_time_limit_is_one_for_all() -> None:
    """I FutureRecordMetadataTest: not more than the timeout is waited in all; a batch has one result, no chain."""
    futures, _ = futures_of(1)
    with pytest.raises(KafkaTimeoutError):
        futures[0].exception(0)
    with pytest.raises(KafkaTimeoutError):
        futures[0].result(timeout=0)


def test_like_concurrent_futures() -> None:
    futures, batch = futures_of(1)
    future = futures[0]
    assert (future.done(), future.running(), future.cancel(), future.cancelled()) == (False, False, False, False)
    batch.complete(0, -1, quiet)
    assert (future.done(), future.cancel(), future.exception()) == (True, False, None)


def test_callbacks_in_order_then_waiters() -> None:
    """O12: callbacks run in the order of the records, and before any wait ends."""
    events: list[object] = []
    shelf = Shelf(batch_size=4096)
    for number in range(5):
        shelf.append(0, 1, b"v", callback=lambda report, number=number: events.append((number, report.metadata.offset)))
    (batch,) = shelf.batches()
    batch.result.subscribe(CountingTicket(lambda: events.append("woken")))
    batch.complete(100, -1, quiet)
    assert events == [(0, 100), (1, 101), (2, 102), (3, 103), (4, 104), "woken"]


def test_done_callbacks() -> None:
    futures, batch = futures_of(2)
    seen: list[object] = []
    futures[0].add_done_callback(lambda future: seen.append((future, future.result(0).offset)))
    batch.complete(7, -1, quiet)
    assert seen == [(futures[0], 7)]
    futures[1].add_done_callback(lambda future: seen.append(future.result(0).offset))
    assert seen[1:] == [8]


def test_a_callback_may_add_a_callback() -> None:
    futures, batch = futures_of(1)
    seen: list[str] = []

    def first(future: RecordFuture) -> None:
        seen.append("first")
        future.add_done_callback(lambda _: seen.append("second"))
        assert not future.done()

    futures[0].add_done_callback(first)
    batch.complete(0, -1, quiet)
    assert seen == ["first", "second"] and futures[0].done()


def test_a_callback_may_ask_its_own_future() -> None:
    futures, batch = futures_of(2)
    seen: list[int] = []
    futures[0].add_done_callback(lambda _: seen.append(futures[1].result(0).offset))
    batch.complete(3, -1, quiet)
    assert seen == [4]


def test_another_thread_waits_until_all_callbacks_ran() -> None:
    futures, batch = futures_of(1)
    inside, go_on = threading.Event(), threading.Event()
    seen: list[object] = []

    def slow(_: RecordFuture) -> None:
        inside.set()
        assert go_on.wait(HANG_S)

    futures[0].add_done_callback(slow)
    thread = threading.Thread(target=batch.complete, args=(0, -1, quiet))
    thread.start()
    assert inside.wait(HANG_S)
    try:
        futures[0].result(0.01)
    except KafkaTimeoutError:
        seen.append("not yet")
    go_on.set()
    assert futures[0].result(HANG_S).offset == 0
    thread.join()
    assert seen == ["not yet"]


@pytest.mark.parametrize("raised", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_callback_raises_is_reported_and_stops_nothing(raised: BaseException) -> None:
    reports = Reports()
    seen: list[int] = []

    def bad(report: DeliveryReport) -> None:
        raise raised

    shelf = Shelf(batch_size=4096)
    shelf.append(0, 1, callback=bad)
    shelf.append(0, 1, callback=lambda report: seen.append(report.metadata.offset))
    (batch,) = shelf.batches()
    batch.complete(0, -1, reports)
    assert reports == [(raised, batch.result)] and seen == [1] and batch.result.done


def test_a_late_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    futures, batch = futures_of(1)
    batch.complete(0, -1, quiet)
    with caplog.at_level(logging.ERROR, logger="forebay.callbacks"):
        futures[0].add_done_callback(lambda _: 1 / 0)
    assert "<RecordFuture test, partition 0: offset 0> raised" in caplog.text and "ZeroDivisionError" in caplog.text


def test_giving_up_while_others_are_woken_loses_nobody() -> None:
    """A waiter that leaves in the middle of the wakes must not make the loop skip another."""
    result = BatchResult("test", 0)
    late = CountingTicket()
    first = CountingTicket(lambda: result.unsubscribe(first))
    for ticket in (first, late):
        assert not result.subscribe(ticket)
    result.settle(0, -1, None, None, 1, quiet)
    assert (first.woken, late.woken) == (1, 1)
    assert result.subscribe(late)


def test_a_wait_that_ended_leaves_nothing_to_the_next() -> None:
    """Tickets serve again, but a wake that came is not the next one's."""
    for number in range(20):
        result, other = BatchResult("test", number), BatchResult("test", number)
        assert not wait_for(result, 0)
        settling = threading.Timer(0.002, result.settle, (number, -1, None, None, 1, quiet))
        settling.start()
        assert wait_for(result, 60_000) and wait_for(result, 0)
        assert not wait_for(other, 0) and not wait_for(other, 0.1, 0)
        settling.join()


def test_a_wake_that_comes_after_its_wait_was_given_up_wakes_nobody_else() -> None:
    """The outcome comes between two waiters, of whom the second has given up when its turn to be woken is there."""
    other, outcomes = BatchResult("test", 1), list[bool]()
    for attempt in range(1, 100):
        result, begun, ended = BatchResult("test", 0), threading.Event(), threading.Event()

        def wait_a_while(result: BatchResult, begun: threading.Event, ended: threading.Event) -> None:
            begun.set()
            outcomes.append(wait_for(result, 50))
            ended.set()

        first = CountingTicket(lambda ended=ended: ended.wait(HANG_S))  # type: ignore[misc]
        assert not result.subscribe(first)
        waiting = threading.Thread(target=wait_a_while, args=(result, begun, ended))
        waiting.start()
        assert begun.wait(HANG_S)
        waits = not ended.wait(attempt / 1000)  # by then it mostly waits; on a busy machine its time may be over
        result.settle(0, -1, None, None, 1, quiet)
        waiting.join()
        assert not wait_for(other, 0)
        if waits and not outcomes[-1]:
            break
    assert first.woken == 1 and waits and not outcomes[-1], "it never gave up in time"


def test_settled_once() -> None:
    result = BatchResult("test", 0)
    assert result.settle(5, -1, None, None, 1, quiet)
    assert not result.settle(6, -1, KafkaError(), None, 1, quiet)
    assert (result.base_offset, result.error) == (5, None)
    assert repr(result) == "<BatchResult test-0: offset 5>"


def test_a_shared_error_does_not_grow() -> None:
    """Each record's result() raises the same error; its traceback is of the last raise alone."""
    futures, batch = futures_of(50)
    error = KafkaError("refused")
    batch.fail(error, None, quiet)
    depths = []
    for future in futures:
        with pytest.raises(KafkaError):
            future.result(0)
        depths.append(len(traceback.extract_tb(error.__traceback__)))
    assert depths[0] == depths[-1]


@pytest.mark.parametrize("way", ["result", "exception", "callback", "one record's"])
def test_raising_the_error_pins_no_frame(way: str) -> None:
    """The future is not tracked by the garbage collector, so nothing that it leads to may lead back to it."""

    class Local:
        pass

    def use(local: Local) -> None:
        told: list[Any] = []
        shelf = Shelf()
        future = shelf.append(callback=lambda report: told.append(report.error))
        (batch,) = shelf.drain(0)
        single = {0: CorruptRecordError("first")} if way == "one record's" else None
        assert batch.fail(KafkaError("batch"), single, quiet)
        shelf.accumulator.deallocate(batch)
        if way == "result":
            future.result()
        error = future.exception() if way == "exception" else told[0]
        assert error is not None
        raise error

    local = Local()
    pinned = weakref.ref(local)
    with pytest.raises(KafkaError) as caught:
        use(local)
    del local, caught
    gc.collect()
    assert pinned() is None


def test_it_is_made_by_send_alone() -> None:
    with pytest.raises(TypeError, match="send"):
        RecordFuture()


def test_it_is_not_pickled() -> None:
    futures, _ = futures_of(1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(futures[0])


def test_a_future_pins_no_memory() -> None:
    shelf = Shelf(batch_size=512, pool=512)
    future = shelf.append()
    (batch,) = shelf.drain(0)
    shelf.finish(batch)
    del batch
    gc.collect()
    assert shelf.pool.available() == 512
    assert future.result(0).offset == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_in_a_forked_child_it_says_whose_it_is() -> None:
    """A wait in the child would never end; what was known before the fork can still be read there."""
    from forebay._sender import lifecycle  # registers the hook

    assert lifecycle is not None
    (known,), batch = futures_of(1)
    batch.complete(1, -1, quiet)
    (pending,), other = futures_of(1)
    child = os.fork()
    if child == 0:
        try:
            pending.result(HANG_S)
        except ForkedProducerError:
            os._exit(7 if known.result(0).offset == 1 else 8)
        except BaseException:  # noqa: BLE001 - the child must not run on into pytest
            os._exit(9)
        os._exit(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    other.complete(2, -1, quiet)
    assert pending.result(0).offset == 2


# -- what it shows of itself ----------------------------------------------------------------------------------


def test_a_future_shows_topic_partition_and_state() -> None:
    futures, batch = futures_of(2)
    assert repr(futures[1]) == "<RecordFuture test, partition 0: pending>"
    batch.complete(15, -1, quiet)
    assert [repr(future) for future in futures] == [
        "<RecordFuture test, partition 0: offset 15>",
        "<RecordFuture test, partition 0: offset 16>",
    ]


def test_a_future_whose_broker_told_no_offset_says_so() -> None:
    futures, batch = futures_of(1)
    batch.complete(-1, -1, quiet)
    assert repr(futures[0]) == "<RecordFuture test, partition 0: sent, offset not known>"


def test_a_failed_future_shows_its_error() -> None:
    futures, batch = futures_of(1)
    batch.fail(CorruptRecordError("bad bytes"), None, quiet)
    assert repr(futures[0]) == "<RecordFuture test, partition 0: CorruptRecordError('bad bytes')>"
    refused = failed_future("test", -1, KafkaTimeoutError("no metadata"))
    assert repr(refused) == "<RecordFuture test, partition not known: KafkaTimeoutError('no metadata')>"


def test_a_callback_sees_the_outcome_that_others_do_not_see_yet() -> None:
    futures, batch = futures_of(1)
    seen: list[str] = []

    def look(future: RecordFuture) -> None:
        seen.append(repr(future))
        other = threading.Thread(target=lambda: seen.append(repr(future)))
        other.start()
        other.join()

    futures[0].add_done_callback(look)
    batch.complete(3, -1, quiet)
    assert seen == ["<RecordFuture test, partition 0: offset 3>", "<RecordFuture test, partition 0: pending>"]


def test_a_failed_future_has_run_its_callback() -> None:
    calls: list[tuple[object, object]] = []
    error = KafkaError("too large")
    future = failed_future("t", -1, error, lambda report: calls.append((report.metadata, report.error)), quiet)
    ((metadata, told),) = calls
    assert metadata == RecordMetadata("t", -1, -1, -1, -1, -1)
    assert future.done() and repr(future.exception(0)) == repr(told) == repr(error)


def test_ctrl_c_in_its_callback_reaches_the_caller() -> None:
    """It runs on the caller's own thread."""

    def interrupted(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failed_future("t", 0, KafkaError("too large"), interrupted, quiet)


def test_what_else_the_callback_raises_is_reported() -> None:
    reported: list[BaseException] = []

    def bad(report: object) -> None:
        raise ValueError("of the callback")

    future = failed_future("t", 0, KafkaError("x"), bad, lambda error, result: reported.append(error))
    assert [str(error) for error in reported] == ["of the callback"] and future.done()
