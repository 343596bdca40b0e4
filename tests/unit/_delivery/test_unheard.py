"""Failures that nobody hears of: which of them the log has, when, and how often."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest

from forebay._delivery import unheard
from forebay._delivery.unheard import FOLD_AT, LOOK_MS, PATIENCE_MS
from forebay._runtime.log import REPEAT_INTERVAL_MS
from forebay.compat.aiokafka import AIOKafkaProducer
from forebay.compat.confluent_kafka import Producer
from forebay.compat.kafka import KafkaProducer
from forebay.errors import KafkaError
from forebay.producer.aio import AsyncKafkaProducer
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.loop import drive
from tests.fakes.produce import Answer
from tests.fakes.world import PumpedThread, World
from tests.unit._delivery.failures import LARGE, LINE, REFUSED_BY_BROKER, Lines, fail, said, world_of

# Every branch that puts an error into a future


def too_large(world: World) -> None:
    for _ in range(2):
        world.producer.send("t", LARGE)


def refused(world: World) -> None:
    fail(world)
    for _ in range(2):
        world.producer.send("t", b"v")


def expired(world: World) -> None:
    world.cluster.brokers[0].held.add(0)
    for _ in range(2):
        world.producer.send("t", b"v")
    world.settle()
    world.advance(10_000)


def forced(world: World) -> None:
    PumpedThread(world)
    world.cluster.brokers[0].held.add(0)
    for _ in range(2):
        world.producer.send("t", b"v")
    with pytest.raises(KafkaError):
        world.producer.close(0)


def rows(world: World) -> None:
    fail(world)
    world.producer.send_batch("t", [b"a", b"b"])


def by_loop_too_large(world: World) -> None:
    async def main() -> None:
        producer = AsyncKafkaProducer._around(world.producer)
        for _ in range(2):
            await producer.send("t", LARGE)

    drive(world, main)


def by_loop(world: World) -> None:
    async def main() -> None:
        producer = AsyncKafkaProducer._around(world.producer)
        fail(world)
        for _ in range(2):
            await producer.send("t", b"v")

    drive(world, main)


def by_kafka(world: World) -> None:
    fail(world)
    producer = KafkaProducer._around(world.producer)
    for _ in range(2):
        producer.send("t", b"v")


def by_kafka_with_success_alone(world: World) -> None:
    fail(world)
    producer = KafkaProducer._around(world.producer)
    for _ in range(2):
        producer.send("t", b"v").add_callback(print)


def by_aiokafka(world: World) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer._around(world.producer)
        producer._closed = True  # no warning at its end
        fail(world)
        for _ in range(2):
            await producer.send("t", b"v")

    drive(world, main)


def by_aiokafka_batch(world: World) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer._around(world.producer)
        producer._closed = True
        batch = producer.create_batch()
        for _ in range(2):
            batch.append(timestamp=None, key=None, value=b"v")
        fail(world)
        await producer.send_batch(batch, "t", partition=0)

    drive(world, main)


def by_confluent(world: World) -> None:
    fail(world)
    producer = Producer._around(world.producer)
    for _ in range(2):
        producer.produce("t", b"v")


class Hearing:
    """An interceptor."""

    def on_acknowledgement(self, metadata: Any, error: Any) -> None: ...


BRANCHES: dict[str, tuple[Callable[[World], None], str]] = {
    "too large": (too_large, "RecordTooLargeError"),
    "refused by the broker": (refused, "InvalidRecordError"),
    "out of time": (expired, "KafkaTimeoutError"),
    "closed by force": (forced, "KafkaError"),
    "rows": (rows, "InvalidRecordError"),
    "asyncio, too large": (by_loop_too_large, "RecordTooLargeError"),
    "asyncio": (by_loop, "InvalidRecordError"),
    "kafka-python": (by_kafka, "InvalidRecordError"),
    "kafka-python, add_callback": (by_kafka_with_success_alone, "InvalidRecordError"),
    "aiokafka": (by_aiokafka, "InvalidRecordError"),
    "aiokafka, a batch": (by_aiokafka_batch, "InvalidRecordError"),
    "confluent-kafka": (by_confluent, "InvalidRecordError"),
}


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("chain", [[], [Hearing()]], ids=["plain", "interceptor"])
def test_each_branch_has_one_line_with_a_count(name: str, chain: list[Any], lines: Lines) -> None:
    """An interceptor is not the record's owner."""
    branch, kind = BRANCHES[name]
    world = world_of(interceptor_classes=chain)
    branch(world)
    if name != "closed by force":
        said(world)
    else:
        unheard.say_left(over=True)
    (line,) = lines()
    assert (line[0], line[1].removesuffix("-0").removesuffix("--1"), line[2]) == (2, "t", kind)


@pytest.mark.parametrize(
    ("given", "place"),
    [({"topic": "t", "partition": 99}, "t-99"), ({"topic": "absent"}, "absent")],
)
def test_metadata_that_does_not_come(given: dict[str, Any], place: str, lines: Lines) -> None:
    world = world_of(max_block_ms=0)
    for _ in range(3):
        world.producer.send(value=b"v", **given)
    said(world)
    assert lines() == [(3, place, "KafkaTimeoutError")]


def test_a_record_that_the_broker_names_has_its_own_line(caplog: pytest.LogCaptureFixture) -> None:
    world = world_of()
    fail(world, Answer(REFUSED_BY_BROKER, record_errors=((1, "no such field"), (7, "beyond the batch"))))
    for _ in range(3):
        world.producer.send("t", b"v")
    said(world)
    own, rest = sorted(record.getMessage() for record in caplog.records)
    assert "1 record(s) for t-0 failed: InvalidRecordError: no such field" in own
    assert "2 record(s) for t-0 failed: KafkaError: Failed to append record because it was part of a batch" in rest


def test_an_abort_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    world = TransactionalWorld(2)
    world.producer.begin_transaction()
    world.send(b"v")
    call = world.producer._abort_call(None)
    world.settle(20)
    said(world)
    assert call.result.done
    (line,) = [record for record in caplog.records if LINE.match(record.getMessage())]
    assert line.levelno == logging.WARNING and "TransactionAbortedError" in line.getMessage()


def test_a_purge_has_a_line_of_its_own(lines: Lines) -> None:
    world = world_of(linger_ms=1000)
    world.producer.send("t", b"v")
    world.producer.purge(blocking=False)
    said(world)
    assert lines() == []


def test_who_asks_is_taken_off_once(lines: Lines) -> None:
    world = world_of()
    fail(world)
    futures = [world.producer.send("t", b"v") for _ in range(5)]
    futures[1].add_done_callback(print)
    world.settle()
    for _ in range(3):
        futures[3].exception(0)
    del futures
    said(world)
    assert lines() == [(3, "t-0", "InvalidRecordError")]


def test_to_look_whether_it_is_done_is_no_question(lines: Lines) -> None:
    world = world_of()
    fail(world)
    future = world.producer.send("t", b"v")
    with pytest.raises(KafkaError):
        future.result(0)  # too early
    world.settle()
    assert future.done() and "InvalidRecordError" in repr(future) and not future.metadata().has_offset
    del future
    said(world)
    assert lines() == [(1, "t-0", "InvalidRecordError")]


# A future that is kept


@pytest.mark.parametrize("branch", [too_large, refused])
def test_a_future_that_is_kept_may_still_be_asked(branch: Callable[[World], None], lines: Lines) -> None:
    world = world_of()
    if branch is refused:
        fail(world)
    future = world.producer.send("t", LARGE if branch is too_large else b"v")
    world.settle()
    world.let_pass(PATIENCE_MS / 2)
    assert lines() == []
    PumpedThread(world)
    world.producer.close()
    assert lines() == []
    assert future.exception(0) is not None
    unheard.say_left(over=True)
    assert lines() == [] and not unheard._left


def test_one_that_nobody_asks_is_said_at_last(lines: Lines) -> None:
    world = world_of()
    fail(world)
    future = world.producer.send("t", b"v")
    world.settle()
    world.let_pass(PATIENCE_MS + 2 * LOOK_MS)
    assert lines() == [(1, "t-0", "InvalidRecordError")]
    assert future.exception(0) is not None


def test_the_exit_says_what_is_kept(lines: Lines) -> None:
    world = world_of()
    future = world.producer.send("t", LARGE)
    PumpedThread(world)
    world.producer.close()
    assert lines() == [] and future.done()
    unheard.say_left(over=True)
    assert [line[0] for line in lines()] == [1] and not unheard._left


def test_what_is_let_go_after_the_end_is_said_at_the_next_end(lines: Lines) -> None:
    world = world_of()
    future = world.producer.send("t", LARGE)
    PumpedThread(world)
    world.producer.close()
    del future
    gc.collect()
    other = world_of()
    PumpedThread(other)
    other.producer.close()
    assert [line[0] for line in lines()] == [1] and not unheard._left


def test_a_forked_child_leaves_it_to_the_parent(lines: Lines) -> None:
    world = world_of()
    future = world.producer.send("t", LARGE)
    PumpedThread(world)
    world.producer.close()
    unheard.forget_left()
    unheard.say_left(over=True)
    assert lines() == [] and future.done()


# How often


def test_repeats_are_counted(lines: Lines) -> None:
    world = world_of()
    for count in (1, 2, 3):
        for _ in range(count):
            world.producer.send("t", LARGE)
        said(world)
    assert [line[0] for line in lines()] == [1]
    world.let_pass(REPEAT_INTERVAL_MS)
    assert [line[0] for line in lines()] == [5]
    world.let_pass(2 * REPEAT_INTERVAL_MS)
    assert lines() == []


def test_the_end_says_the_rest_at_once(lines: Lines) -> None:
    world = world_of()
    too_large(world)
    said(world)
    too_large(world)
    PumpedThread(world)
    world.producer.close()
    assert [line[0] for line in lines()] == [2, 2]


def test_many_failures_before_a_turn_keep_little(lines: Lines) -> None:
    world = world_of()
    for _ in range(3 * FOLD_AT):
        world.producer.send("t", LARGE)
    assert len(world.sender.outcomes.unheard._failures) <= FOLD_AT + 2
    said(world)
    assert [line[0] for line in lines()] == [3 * FOLD_AT]


def test_causes_are_forgotten(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unheard, "MAX_CAUSES", 4)
    world = world_of(max_block_ms=0)
    for number in range(12):
        world.producer.send(f"absent-{number}", b"v")
        said(world)
    assert len(lines()) == 12
    assert len(world.sender.outcomes.unheard._counts) <= 4


def test_an_idle_sender_looks_now_and_then_and_then_no_more() -> None:
    world = world_of()
    future = world.producer.send("t", LARGE)
    world.settle()
    turns = 0
    begun = world.now
    while world.now < begun + PATIENCE_MS:
        world.wait()
        turns += 1
    assert turns <= 2 * PATIENCE_MS / LOOK_MS
    world.let_pass(3 * LOOK_MS)
    assert not world.sender.outcomes.unheard.waiting and future.done()


def test_success_costs_nothing() -> None:
    world = world_of()
    future = world.producer.send("t", b"v")
    world.settle()
    assert future.result(0).offset == 0
    assert not world.sender.outcomes.unheard.waiting and not world.sender.outcomes.unheard._failures
