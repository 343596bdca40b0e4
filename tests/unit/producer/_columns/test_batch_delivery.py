"""What became of rows: counted by batch, by partition, and by the part of a batch that was split."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import forebay
from forebay._delivery.callback_thread import report_unsaid
from forebay._delivery.result import BatchResult
from forebay._delivery.split import split_result
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.model import TopicPartition
from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from forebay.producer._columns import batch_delivery as deliveries_module
from tests.fakes.steps import at_step, each_step
from tests.fakes.world import World
from tests.support.pace import HANG_S
from tests.unit.producer._columns.tables import append, arrow


def test_deliveries_count_rows_batches_and_bytes_by_partition() -> None:
    world = World(topics={"t": 2})
    rows = [{"value": b"x" * 10, "partition": i % 2, "timestamp": 5} for i in range(7)]
    deliveries = append(world, rows, "value", "partition", "timestamp", topic="t")
    assert deliveries._collect() == 2
    assert (deliveries.rows, deliveries.acknowledged) == (7, 0)
    world.settle()
    assert deliveries._collect() == 0
    assert (deliveries.acknowledged, deliveries.failed, deliveries.batches) == (7, 0, 2)
    assert deliveries.partitions == {TopicPartition("t", 0): ((0, 4),), TopicPartition("t", 1): ((0, 3),)}
    assert deliveries.raw_bytes == sum(len_of(batch) for log in world.cluster.logs.values() for batch in log.batches)


def len_of(batch: Any) -> int:
    return int(batch.payload_size)


def test_rows_of_a_batch_that_was_split_are_counted_by_their_part() -> None:
    """Two callers take turns; of each, the rows are told apart that came into the part that failed."""
    world = World(topics={"t": 1}, idempotent=True, batch_size=4096, linger_ms=10)
    world.cluster.fail("t", 0, 10, 0, 87)
    mine, other = BatchDelivery(), BatchDelivery()
    for number in range(8):
        deliveries = other if number in (1, 2, 6) else mine
        rows = [{"value": b"%d" % number + bytes(100)}]
        append_columns(world.producer, sink_columns(arrow(rows, "value"), "t"), deliveries, deliveries.rows)
    world.run(500)
    assert world.metric("batch-split-total") == 1
    # Parts of three, three and two records; the second one is refused for good.
    assert [value[:1] for value in world.values("t") if value is not None] == [b"0", b"1", b"2", b"6", b"7"]
    assert (mine._collect(), other._collect()) == (0, 0)
    assert (mine.rows, mine.acknowledged, mine.failed, mine.first_failed_row) == (5, 2, 3, 1)
    assert (other.rows, other.acknowledged, other.failed, other.first_failed_row) == (3, 3, 0, -1)
    assert (mine.batches, other.batches) == (1, 1)


def test_rows_noted_by_hand_are_the_batch_s_first_ones() -> None:
    whole = BatchResult("t", 0)
    parts = [BatchResult("t", 0, None, first) for first in (0, 2)]
    deliveries = BatchDelivery()
    for row in range(5):
        deliveries._track(whole, row, 10)
    assert split_result(whole, parts)
    parts[0].settle(0, -1, None, None, 2, print)
    parts[1].settle(-1, -1, KafkaError("no"), None, 3, print)
    assert deliveries._collect() == 0
    assert (deliveries.acknowledged, deliveries.failed, deliveries.first_failed_row) == (2, 3, 2)


# The future's side


def sent(**options: Any) -> tuple[World, Any]:
    world = World(topics={"t": 1}, linger_ms=100, **options)
    return world, world.producer.send_batch("t", [b"a", b"b", b"c"])


def test_a_delivery_is_done_when_all_rows_are() -> None:
    world, delivery = sent()
    assert (delivery.done(), delivery.cancel(), delivery.cancelled(), delivery.running()) == (False,) * 4
    with pytest.raises(KafkaTimeoutError, match=r"3 of 3 rows have no outcome after 0 s \(1 batches\)"):
        delivery.result(0)
    world.run(200)
    assert delivery.done()
    assert delivery.result(0) == {("t", 0): ((0, 3),)}
    assert delivery.exception() is None
    assert delivery.failures == ()


def test_a_result_raises_a_copy_of_the_first_row_s_error() -> None:
    world, delivery = sent()
    world.cluster.fail("t", 0, 87)
    world.run(200)
    with pytest.raises(KafkaError, match=r"row=0, failed=3") as caught:
        delivery.result(0)
    assert caught.value is not delivery.exception()
    assert [list(failed.rows) for failed in delivery.failures] == [[0, 1, 2]]
    assert np.asarray(delivery.failures[0].rows).tolist() == [0, 1, 2]


def test_callbacks_run_once_before_flush_returns_and_see_the_outcome() -> None:
    world = World(topics={"t": 3}, batch_size=1000)
    delivery = world.producer.send_batch("t", [bytes(90)] * 200, partition=[row % 3 for row in range(200)])
    seen: list[tuple[bool, int, int]] = []
    delivery.add_done_callback(lambda it: seen.append((it.done(), it.acknowledged, len(it.result(0)))))
    delivery.add_done_callback(lambda it: it.add_done_callback(lambda _: seen.append((True, -1, -1))))
    world.settle(60)
    assert seen == [(True, 200, 3), (True, -1, -1)]
    delivery.add_done_callback(lambda _: seen.append((True, 0, 0)))
    assert seen[-1] == (True, 0, 0)


def test_a_callback_that_raises_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    world, delivery = sent()
    seen: list[Any] = []
    delivery.add_done_callback(lambda _: 1 // 0)
    delivery.add_done_callback(seen.append)
    world.run(200)
    assert seen == [delivery]
    assert "A done callback of <BatchDelivery of 3 rows:" in caplog.text


def test_what_cannot_be_called_is_no_callback() -> None:
    world, delivery = sent()
    for _ in range(2):
        with pytest.raises(TypeError, match=r"add_done_callback\(\) takes a callable\(delivery\), got int: 5"):
            delivery.add_done_callback(5)
        world.run(200)


def test_callbacks_of_a_batch_that_was_split_wait_for_all_parts() -> None:
    world = World(topics={"t": 1}, idempotent=True, batch_size=4096, linger_ms=10)
    world.cluster.fail("t", 0, 10, 0, 87)
    delivery = world.producer.send_batch("t", [b"%d" % row + bytes(100) for row in range(8)])
    seen: list[tuple[int, int]] = []
    delivery.add_done_callback(lambda it: seen.append((it.acknowledged, it.failed)))
    world.run(500)
    assert seen == [(5, 3)]
    assert [list(failed.rows) for failed in delivery.failures] == [[3, 4, 5]]


def test_a_record_that_the_broker_names_fails_with_its_own_error() -> None:
    result = BatchResult("t", 0)
    delivery = BatchDelivery()
    for row in (4, 5, 9):
        delivery._track(result, row, 10)
    result.settle(-1, -1, KafkaError("others"), {1: KafkaError("bad")}, 3, print)
    assert [(list(failed.rows), str(failed.error)) for failed in delivery.failures] == [
        ([4, 9], "others"),
        ([5], "bad"),
    ]
    assert (delivery.first_failed_row, str(delivery.first_error)) == (4, "others")


def test_another_thread_waits_for_the_outcome() -> None:
    world, delivery = sent()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(delivery.result(HANG_S)))
    waiting.start()
    world.run(200)
    waiting.join(HANG_S)
    assert found == [{("t", 0): ((0, 3),)}]


def test_a_long_stream_holds_what_is_in_flight() -> None:
    world = World(topics={"t": 1}, batch_size=200)
    delivery = BatchDelivery()
    for at in range(40):
        append_columns(
            world.producer, sink_columns(arrow([{"value": bytes(60)}] * 30, "value"), "t"), delivery, at * 30
        )
        world.settle(40)
    assert len(repr(delivery)) < 100
    assert delivery._collect() <= 3
    assert delivery.acknowledged > 1100
    assert len(delivery.partitions[TopicPartition("t", 0)]) == 1


def test_a_single_large_piece_holds_what_is_in_flight() -> None:
    """Acknowledgements arrive while the one piece is read: they are counted then, and not at its end alone."""
    world = World(topics={"t": 1}, batch_size=200, buffer_memory=4000)
    delivery = BatchDelivery()
    busy: list[int] = []
    seen: list[str] = []

    def wakeup() -> None:
        if not busy:
            seen.append(repr(delivery).partition(": ")[2])
            busy.append(1)
            world.settle(3)
            busy.clear()

    world.selector.wakeup = wakeup  # type: ignore[method-assign]
    append(world, [{"value": bytes(60)}] * 20_000, "value", topic="t", delivery=delivery)
    del world.selector.wakeup
    assert int(seen[-1].partition(" ")[0]) > 10_000


def three_batches() -> Any:
    world = World(topics={"t": 3})
    delivery = world.producer.send_batch("t", [b"a"] * 9, partition=[0, 1, 2] * 3)
    world.settle()
    return delivery


def test_a_done_callback_is_called_or_its_loss_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever allocation fails while the batches get their outcomes, one after the other."""
    if forebay.implementation == "interpreted":
        pytest.skip("there each step of an outcome takes memory")
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")
    lost = 0
    for number in range(60):
        caplog.clear()
        world = World(topics={"t": 3}, linger_ms=1000)
        delivery = world.producer.send_batch("t", [b"a"] * 9, partition=[0, 1, 2] * 3)
        called: list[Any] = []
        delivery.add_done_callback(called.append)
        batches = world.accumulator.incomplete()
        completes = [batch.complete for batch in batches]
        fail, mend = testcapi.set_nomemory, testcapi.remove_mem_hooks
        reports: list[Any] = []

        def report(error: BaseException, result: Any, to: list[Any] = reports) -> None:
            to.append(error)

        fail(number // 2, number // 2 + 1 + 20 * (number % 2))  # one of them, or a score
        completes[0](0, -1, report)
        completes[1](0, -1, report)
        completes[2](0, -1, report)
        mend()
        report_unsaid()
        assert delivery.done() and delivery.acknowledged == 9
        assert called == [delivery] or reports or "No memory to" in caplog.text, number
        lost += not called
    assert lost > 0


def looks_of(delivery: Any) -> list[Any]:
    return [delivery.acknowledged, delivery.batches, delivery.done(), delivery.partitions]


def test_no_code_of_python_s_runs_amid_a_look() -> None:
    """So no signal handler comes there, which would wait for ever if it waited for the delivery; and no Ctrl-C."""
    if forebay.implementation == "interpreted":
        pytest.skip("there all of it is code of Python's")
    deliveries = [three_batches(), three_batches()]
    deliveries[1].failed  # noqa: B018 - imports and caches of the first look
    world = World(topics={"t": 3}, retries=0)
    world.cluster.fail("t", 0, 19)
    deliveries.append(world.producer.send_batch("t", [b"a"] * 9, partition=[0, 1, 2] * 3))
    world.settle()
    calls: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    gc.disable()  # a finaliser may come in: its waits are refused, see below
    sys.setprofile(note)
    try:
        for delivery in deliveries:
            delivery._collect()
    finally:
        sys.setprofile(None)
        gc.enable()
    assert calls == []
    assert [delivery.acknowledged for delivery in deliveries] == [9, 9, 6]


def test_a_handler_may_look_amid_a_look_and_wait_for_the_delivery() -> None:
    """At each step of the interpreted form; the compiled one has none."""
    steps = each_step(handled, "a look with a handler")
    assert (steps == 0) == (forebay.implementation == "compiled")


def handled(number: int) -> bool:
    delivery = three_batches()
    whole = at_step(
        number,
        lambda: looks_of(delivery),
        lambda: [*looks_of(delivery), delivery.result(0)],
        is_step=lambda file: file == deliveries_module.__file__,
    )
    assert looks_of(delivery) == [9, 3, True, {("t", partition): ((0, 3),) for partition in range(3)}]
    return whole
