"""What becomes of batches: retried, failed, expired, and what the user is told."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.partitioner import BuiltInPartitioner
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.schedule import BatchSchedule
from forebay._records.codec_packages import Chunk
from forebay._records.compression import CompressionType, Compressor, compressor
from forebay._records.ratio import CompressionRatioEstimator
from forebay._runtime.backoff import ExponentialBackoff
from forebay._sender.sender import Sender, SenderOptions
from forebay._transactions.manager import TransactionManager
from forebay.errors import (
    DisconnectError,
    InvalidRecordError,
    InvalidRequestError,
    KafkaError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    RecordTooLargeError,
    TopicAuthorizationError,
)
from tests.fakes.answers import held, hold, reply
from tests.fakes.broker import PRODUCE, Received
from tests.fakes.produce import Answer, batches_of
from tests.fakes.world import Told, World

REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS = 7, 19


def test_not_retried_without_idempotence() -> None:
    """F testCanRetryWithoutIdempotence: no producer id in the batch; TOPIC_AUTHORIZATION_FAILED fails at once."""
    world = World()
    world.cluster.fail("test", 0, 29)
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, TopicAuthorizationError)
    assert error.context["attempts"] == 1 and error.context["node"] == 0
    (request,) = world.cluster.requests()
    (batch,) = batches_of(request).values()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


@pytest.mark.parametrize("message", [None, "testCustomErrorMessage"])
def test_the_broker_s_message(message: str | None) -> None:
    """F testDefaultErrorMessage, testCustomErrorMessage: as it reaches the user."""
    world = World()
    world.cluster.fail("test", 0, Answer(42, message=message))
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, InvalidRequestError)
    assert error.message == (message or InvalidRequestError.default_message())


def test_errors_of_single_records() -> None:
    """F testRecordErrorPropagatedToApplication: records 0, 2, 3 with texts; 1 and 4 exactly KafkaError."""
    world = World()
    told = Told()
    futures = [world.send(b"%d" % number, on_delivery=told) for number in range(5)]
    world.cluster.fail("test", 0, Answer(87, record_errors=((0, "0"), (2, "2"), (3, None))))
    world.settle()
    errors = [future.exception(0) for future in futures]
    assert [type(error) for error in errors] == [
        InvalidRecordError,
        KafkaError,
        InvalidRecordError,
        InvalidRecordError,
        KafkaError,
    ]
    texts = [error.message for error in errors if isinstance(error, InvalidRecordError)]
    assert texts == ["0", "2", InvalidRecordError.default_message()]
    assert [repr(error) for _, error in told] == [repr(error) for error in errors]


@pytest.mark.parametrize("code", [3, 5, 6, 7, 13, 19, 20, 56, 74, 89])
def test_passing_errors_are_retried(code: int) -> None:
    world = World()
    world.cluster.fail("test", 0, code, code)
    future = world.send()
    world.run(600)
    assert future.result(0).offset == 0
    assert len(world.cluster.requests()) == 3
    assert world.metric("record-retry-total") == 2


@pytest.mark.parametrize("code", [-1, 10, 17, 18, 21, 29, 32, 35, 42, 43, 44, 48, 76, 87])
def test_lasting_errors_are_not(code: int) -> None:
    world = World()
    world.cluster.fail("test", 0, code)
    future = world.send()
    world.run(600)
    assert future.exception(0) is not None
    assert len(world.cluster.requests()) == 1
    assert world.metric("record-error-total") == 1
    assert world.pool.available() == world.pool.total


def test_retries_are_byte_identical() -> None:
    world = World(idempotent=True)
    world.cluster.fail("test", 0, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT)
    future = world.send(b"once", key=b"k", headers=[("h", b"1")])
    world.run(600)
    assert future.result(0).offset == 0
    bodies = {request.payload for request in world.cluster.requests()}
    assert len(world.cluster.requests()) == 3 and len(bodies) == 1


def test_retries_are_counted() -> None:
    world = World(retries=2)
    world.cluster.fail("test", 0, *[NOT_ENOUGH_REPLICAS] * 10)
    future = world.send()
    world.run(1000)
    error = future.exception(0)
    assert isinstance(error, NotEnoughReplicasError) and error.context["attempts"] == 3
    assert len(world.cluster.requests()) == 3


def test_no_retry_after_the_delivery_timeout() -> None:
    world = World(delivery_timeout_ms=1500, request_timeout_ms=1500)
    hold(world)
    future = world.send()
    world.settle()
    world.advance(1499)
    world.settle(1)
    reply(world, (0, Answer(NOT_ENOUGH_REPLICAS)))
    world.advance(2)
    world.settle()
    assert isinstance(future.exception(0), (KafkaTimeoutError, NotEnoughReplicasError))
    assert len(world.cluster.requests()) == 1 and world.queue().batches == []


def test_an_expired_batch_is_not_sent_again_for_its_size() -> None:
    """F testExpiredBatchDoesNotSplitOnMessageTooLargeError: the answer after +1500 changes nothing."""
    world = World(delivery_timeout_ms=1500, request_timeout_ms=1500)
    hold(world)
    futures = [world.send(), world.send()]
    world.settle()
    world.advance(1500)
    world.turn()
    assert all(isinstance(future.exception(0), KafkaTimeoutError) for future in futures)
    reply(world, (0, Answer(10)))
    world.settle()
    assert all(isinstance(future.exception(0), KafkaTimeoutError) for future in futures)
    assert world.queue().batches == [] and len(world.cluster.requests()) == 1


def test_too_large_for_the_broker() -> None:
    world = World()
    world.cluster.fail("test", 0, 10)
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, RecordTooLargeError)
    assert error.message.startswith("A record of 8 bytes, 69 in a batch of its own as it was sent, is larger than")
    assert "max.message.bytes of topic test, or message.max.bytes" in error.message


def test_a_partition_left_out_of_the_answer_is_retried() -> None:
    world = World()
    hold(world)
    first, second = world.send(partition=0), world.send(partition=1)
    world.settle()
    world.cluster.brokers[0].held.clear()
    reply(world, (1, Answer(base_offset=8)))
    world.run(200)
    assert (second.result(0).offset, first.result(0).offset) == (8, 0)
    assert [len(batches_of(request)) for request in world.cluster.requests()] == [2, 1]


@pytest.mark.parametrize("processed", [False, True])
def test_a_cut_connection_is_retried(processed: bool) -> None:
    world = World(idempotent=True)
    world.cluster.lose(processed=processed)
    future = world.send()
    world.run(1000)
    assert future.result(0).offset == 0
    assert world.values() == [b"v"]


def test_no_answer_in_time() -> None:
    world = World(idempotent=True, request_timeout_ms=1000)
    hold(world)
    future = world.send()
    world.settle()
    world.advance(1001)
    world.settle(2)
    world.cluster.brokers[0].held.clear()
    world.run(1000)
    assert future.result(0).offset == 0
    assert len(world.cluster.requests()) == 2


def test_an_answer_that_makes_no_sense_costs_the_connection_and_not_the_record() -> None:
    world = World()
    broker = world.cluster.brokers[0]
    produce = broker.script.pop(PRODUCE)

    def nonsense_once(request: Received) -> None:
        broker.script[PRODUCE] = produce
        request.answer_bytes(b"\0nonsense")

    broker.script[PRODUCE] = nonsense_once
    future = world.send()
    world.settle()
    assert not future.done()
    assert not broker.links[-1].open
    world.run(1000)
    assert future.result(0).offset == 0
    assert len(world.cluster.requests()) == 2


class Poisoned(Compressor):
    """Cannot compress a batch with a certain word in it."""

    type = CompressionType.ZSTD

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        data = b"".join(chunks)
        if b"poison" in data:
            raise MemoryError("none left")
        return compressor(CompressionType.ZSTD).compress([data])

    def bound(self, size: int, chunks: int = 1) -> int:
        return size


def test_a_batch_that_cannot_be_compressed_fails_alone() -> None:
    world = World(idempotent=True)
    accumulator = RecordAccumulator(
        pool=BufferPool(1 << 20, 16384),
        schedule=BatchSchedule(linger_ms=0, delivery_timeout_ms=10_000, backoff=ExponentialBackoff(50, 50, lambda: 0)),
        batch_size=16384,
        make_partitioner=lambda topic: BuiltInPartitioner(topic, 16384, lambda: 0),
        compressor=Poisoned(3),
        estimator=CompressionRatioEstimator(),
        clock=world.clock,
    )
    sender = Sender(
        accumulator=accumulator,
        client=world.parts.client,
        metadata=world.metadata,
        transactions=TransactionManager(ExponentialBackoff(50, 50, lambda: 0)),
        metrics=world.parts.metrics,
        options=SenderOptions(delivery_timeout_ms=10_000),
        report=world.parts.report,
    )
    topic = accumulator.refresh("test", world.metadata.cluster())

    def append(partition: int, value: bytes) -> Any:
        return accumulator.appender.append_bytes(topic, partition, value, now=world.now)[1]

    def settle() -> None:
        for _ in range(10):
            world.selector.wakeup()
            sender.run_once(world.now)

    append(0, b"first")
    append(1, b"first")
    settle()
    bad, good = append(0, b"poison"), append(1, b"good")
    settle()
    error = bad.exception(0)
    assert isinstance(error, KafkaError) and "Cannot compress 1 record(s) for test-0: MemoryError" in str(error)
    assert good.result(0).offset == 1
    assert not accumulator.has_incomplete() and accumulator.pool.available() == 1 << 20
    later = append(0, b"fine again")
    settle()
    assert later.result(0).offset == 1


def test_failures_are_logged_with_their_count(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.cluster.fail("test", 0, 87)
    with caplog.at_level(logging.WARNING, logger="forebay.sender"):
        for _ in range(3):
            world.send()
        world.settle()
    assert "3 record(s) for test-0 failed: InvalidRecordError" in caplog.text


def expiring(**more: Any) -> World:
    return World(delivery_timeout_ms=1500, request_timeout_ms=1500, **more)


def test_memory_comes_back_once() -> None:
    """F testNoDoubleDeallocation, O1: an expired batch in flight; its memory only when the connection is through."""
    world = expiring()
    hold(world)
    future = world.send()
    world.settle()
    used = world.pool.total - world.pool.available()
    assert used > 0
    world.advance(1500)
    world.turn()
    assert isinstance(future.exception(0), KafkaTimeoutError)
    assert world.pool.total - world.pool.available() == used
    world.turn()
    reply(world, (0, Answer(base_offset=0)))
    world.settle()
    assert world.pool.available() == world.pool.total
    assert isinstance(future.exception(0), KafkaTimeoutError)


def test_bytes_that_are_still_to_be_written_are_never_reused() -> None:
    """O1 (KAFKA-19012): the batch expires half written; what arrives at last is what was sent."""
    world = World(
        batch_size=100_000, buffer_memory=100_000, max_block_ms=0, delivery_timeout_ms=1500, request_timeout_ms=1500
    )
    link = world.selector.links[-1]
    link.stalled = True
    first = world.send(b"a" * 90_000)
    world.settle()
    world.advance(1500)
    world.turn()
    assert isinstance(first.exception(0), KafkaTimeoutError)
    refused = world.send(b"b" * 90_000)
    assert isinstance(refused.exception(0), BufferError)
    link.stalled = False
    world.settle()
    assert world.values() == [b"a" * 90_000]
    second = world.send(b"b" * 90_000)
    world.settle()
    assert second.result(0).offset == 1


def test_a_muted_partition_waits_for_the_answer_of_what_expired() -> None:
    """F testWhenFirstBatchExpireNoSendSecondBatchIfGuaranteeOrder."""
    world = expiring(max_in_flight_requests_per_connection=1)
    hold(world)
    first = world.send(b"first")
    world.settle()
    world.advance(750)
    second = world.send(b"second")
    world.settle()
    assert len(world.cluster.requests()) == 1
    world.advance(750)
    world.settle()
    assert isinstance(first.exception(0), KafkaTimeoutError)
    assert len(world.cluster.requests()) == 1
    reply(world, (0, Answer(base_offset=0)))
    world.settle()
    assert len(world.cluster.requests()) == 2
    reply(world, (0, Answer(base_offset=1)))
    world.settle()
    assert second.result(0).offset == 1


def test_the_wait_ends_with_the_next_expiry() -> None:
    """F testResetNextBatchExpiry: a turn never waits past the moment a batch expires."""
    world = expiring()
    hold(world)
    future = world.send()
    begun = world.now
    for _ in range(20):
        world.wait()
        if future.done():
            break
    assert future.done()
    assert 1500 <= world.now - begun <= 1502
    assert world.sender.in_flight == {}


def test_expiry_in_several_partitions() -> None:
    """F testExpiredBatchesInMultiplePartitions: both of one request."""
    world = expiring()
    hold(world)
    futures = [world.send(partition=0), world.send(partition=1)]
    world.settle()
    assert len(held(world)) == 1
    world.advance(1500)
    world.turn()
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, KafkaTimeoutError)
        assert error.context["phase"] == "in flight" and error.context["node"] == 0


def test_waiting_for_a_leader_expires_too() -> None:
    world = expiring()
    world.cluster.move("test", 0, -1)
    world.metadata.request_update(True)
    world.run(200)
    future = world.send()
    world.run(1600, 50)
    error = future.exception(0)
    assert isinstance(error, KafkaTimeoutError)
    assert error.context["phase"] == "no leader known" and error.context["node"] == "unknown"


def test_a_dead_broker_does_not_hold_up_the_others() -> None:
    world = World(nodes=2, topics={"test": 2})
    world.cluster.down(1)
    world.settle()
    dead = world.send(b"dead", partition=1)
    for number in range(5):
        alive = world.send(b"%d" % number, partition=0)
        world.run(100)
        assert alive.result(0).offset == number
    assert not dead.done()
    world.run(10_000, 200)
    error = dead.exception(0)
    assert isinstance(error, KafkaTimeoutError) and error.context["node"] == 1
    assert str(error.context["phase"]).startswith("queued (node 1 not ready: Cannot connect to 127.0.0.1:9001")
    assert isinstance(error.__cause__, DisconnectError) and error.__cause__.message in str(error.context["phase"])
