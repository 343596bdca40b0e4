"""The sender's turns against a scripted broker: requests, answers, retries, expiry, leader changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.partitioner import BuiltInPartitioner
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.schedule import BatchSchedule
from forebay._backoff import ExponentialBackoff
from forebay._records.compression import Chunk, CompressionType, Compressor, compressor
from forebay._records.ratio import CompressionRatioEstimator
from forebay._records.reader import read_batches
from forebay._sender.sender import Sender, SenderOptions
from forebay._transactions.manager import TransactionManager
from forebay.errors import (
    ClusterAuthorizationError,
    InvalidRecordError,
    InvalidRequestError,
    KafkaError,
    NetworkError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    TimeoutError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from tests.fakes.broker import INIT_PRODUCER_ID, METADATA, PRODUCE, Received
from tests.fakes.produce import Answer, answer_produce, batches_of
from tests.fakes.world import Told, World

REQUEST_TIMED_OUT, NOT_LEADER, NOT_ENOUGH_REPLICAS = 7, 6, 19


def held(world: World, node: int = 0) -> list[Received]:
    """The produce requests that wait for an answer."""
    return [request for request in world.cluster.brokers[node].waiting if request.api_key == PRODUCE]


def hold(world: World, node: int = 0) -> None:
    world.cluster.brokers[node].held.add(PRODUCE)


def reply(world: World, *parts: tuple[int, Answer], node: int = 0, **more: Any) -> None:
    """Answers the oldest produce request that waits."""
    waiting = world.cluster.brokers[node].waiting
    request = next(request for request in waiting if request.api_key == PRODUCE)
    waiting.remove(request)
    answer_produce(request, {("test", partition): answer for partition, answer in parts}, **more)


# -- basics -----------------------------------------------------------------------------------------------------


def test_simple() -> None:
    """F testSimple: one request in flight, one batch of its partition; then offset 0 and nothing in flight."""
    world = World()
    hold(world)
    future = world.send()
    world.settle(2)
    assert (world.in_flight, world.queue().in_flight, len(world.sender.in_flight)) == (1, 1, 1)
    reply(world, (0, Answer(base_offset=0)))
    world.settle(2)
    assert (world.in_flight, world.queue().in_flight, len(world.sender.in_flight)) == (0, 0, 0)
    assert future.result(0).offset == 0
    assert world.pool.available() == world.pool.total


def test_one_request_for_all_partitions_of_a_node() -> None:
    world = World(topics={"test": 3, "other": 2})
    for partition in range(3):
        world.send(partition=partition)
    world.send(topic="other", partition=1)
    world.settle()
    (request,) = world.cluster.requests()
    assert sorted(batches_of(request)) == [("other", 1), ("test", 0), ("test", 1), ("test", 2)]


def test_max_request_size_parts_the_request() -> None:
    world = World(topics={"test": 3}, max_request_size=3000)
    for partition in range(3):
        world.send(bytes(1500), partition=partition)
    world.until(lambda: len(world.cluster.requests()) == 3)
    assert [list(batches_of(request)) for request in world.cluster.requests()] == [
        [("test", 0)],
        [("test", 1)],
        [("test", 2)],
    ]


def test_an_old_broker_gets_old_messages() -> None:
    """F testMessageFormatDownConversion: magic 1 in a version 2 request; offset 0."""
    world = World(known=False)
    broker = world.cluster.brokers[0]
    broker.ranges[PRODUCE] = (0, 2)
    seen: list[int] = []

    def answer(request: Received) -> None:
        assert request.version == 2
        # acks, timeout, one topic "test", one partition 0, the message set
        (message,) = read_batches(request.payload[2 + 4 + 4 + 2 + 4 + 4 + 4 + 4 :])
        seen.append(message.magic)
        request.answer_bytes(b"\0\0\0\1\0\4test\0\0\0\1" + b"\0\0\0\0" + b"\0\0" + bytes(8) + b"\xff" * 8 + b"\0\0\0\0")

    broker.script[PRODUCE] = answer
    world.learn("test")
    future = world.send()
    world.settle()
    assert (seen, future.result(0).offset) == ([1], 0)


def test_idempotence_with_an_old_broker_fails_with_a_way_out() -> None:
    """B testIdempotenceWithOldMagic: by the broker's produce version, at sending time."""
    world = World(known=False, idempotent=True)
    world.cluster.brokers[0].ranges[PRODUCE] = (0, 2)
    world.learn("test")
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, UnsupportedVersionError) and "enable.idempotence=false" in str(error)


def test_throttled() -> None:
    """F testQuotaMetrics, O11: nothing is sent until the time is over, however short the request timeout."""
    world = World(request_timeout_ms=50)
    world.cluster.throttles.extend([100, 200, 300])
    for number, throttle in enumerate((100, 200, 300)):
        world.send(b"%d" % number)
        world.settle()
        assert len(world.values()) == number + 1
        assert world.parts.client.throttle_delay(0, world.now) == throttle
        world.send(b"waits", partition=1)
        world.run(throttle - 1, 9)
        assert len(world.cluster.requests()) == 2 * number + 1, "a request to a node that throttles"
        world.cluster.throttles.appendleft(0)
        world.run(2, 1)
        assert len(world.values(partition=1)) == number + 1
    assert world.metric("produce-throttle-time-max") == 300
    assert world.metric("produce-throttle-time-avg") == 100  # three answers of the six were not throttled
    assert world.metric("connection-creation-total") == 2  # the bootstrap server's and the broker's


def test_order_with_one_in_flight() -> None:
    """F testSendInOrder: max.in.flight 1; a move to another broker does not let the second batch pass the first."""
    world = World(nodes=2, max_in_flight_requests_per_connection=1, retries=1)
    hold(world, 1)
    world.send(b"first", partition=1)
    world.settle()
    assert world.in_flight == 1 and world.queue(partition=1).muted
    world.advance(900)
    world.send(b"second", partition=1)
    world.cluster.move("test", 1, 0)
    world.metadata.request_update(True)
    world.run(200)
    assert world.cluster.requests(0) == [] and len(held(world, 1)) == 1
    reply(world, (1, Answer(NOT_LEADER)), node=1)
    world.run(200)
    assert world.values(partition=1) == [b"first", b"second"]
    assert not world.queue(partition=1).muted


def test_appends_in_the_callbacks_of_an_expiry() -> None:
    """F testAppendInExpiryCallback: ten expire, each callback appends; no dead-lock, one new batch of ten."""
    world = World(delivery_timeout_ms=10_000, request_timeout_ms=9_000)
    hold(world)
    errors: list[BaseException | None] = []

    def again(metadata: Any, error: BaseException | None) -> None:
        errors.append(error)
        world.send(b"again", partition=1)

    for _ in range(10):
        world.send(b"first", partition=1, on_delivery=again)
    world.settle()
    world.cluster.down(0)
    world.run(10_100, 500)
    assert [type(error) for error in errors] == [TimeoutError] * 10
    assert [batch.record_count for batch in world.queue(partition=1).batches] == [10]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(acks: str) -> None:
    world = World(acks=acks)
    told = Told()
    future = world.send(on_delivery=told)
    world.settle()
    assert future.done() and world.values() == [b"v"]
    (request,) = world.cluster.requests()
    assert request.body.acks == {"0": 0, "1": 1, "all": -1}[acks]
    offset = -1 if acks == "0" else 0
    assert (future.result(0).offset, told[0][0].offset) == (offset, offset)
    assert future.result(0).timestamp == world.clock.wall()
    assert world.pool.available() == world.pool.total


def test_without_acks_a_lost_connection_is_retried() -> None:
    world = World(acks="0", batch_size=1 << 20)
    world.selector.links[-1].stalled = True
    future = world.send(bytes(500_000))
    world.settle()
    assert not future.done()
    world.cluster.brokers[0].links[-1].reset()
    world.run(2000)
    assert future.done() and world.values() == [bytes(500_000)]


def test_log_append_time() -> None:
    world = World()
    hold(world)
    future = world.send(timestamp_ms=5)
    world.settle()
    reply(world, (0, Answer(base_offset=3, log_append_time=1_600_000_000_000)))
    world.settle()
    assert (future.result(0).offset, future.result(0).timestamp) == (3, 1_600_000_000_000)


def test_no_more_in_flight_than_allowed() -> None:
    world = World(max_in_flight_requests_per_connection=2)
    hold(world)
    for number in range(4):
        world.send(b"%d" % number)
        world.settle(2)
    assert len(held(world)) == 2
    for offset in range(3):
        reply(world, (0, Answer(base_offset=offset)))
        world.settle(3)
    assert world.queue().batches == [] and len(held(world)) == 0 or len(world.cluster.requests()) >= 3


# -- errors -----------------------------------------------------------------------------------------------------


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
    assert [error for _, error in told] == errors


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
    assert isinstance(future.exception(0), (TimeoutError, NotEnoughReplicasError))
    assert len(world.cluster.requests()) == 1 and world.queue().batches == []


def test_an_expired_batch_is_not_sent_again_for_its_size() -> None:
    """F testExpiredBatchDoesNotSplitOnMessageTooLargeError: the answer after +1500 changes nothing."""
    world = World(delivery_timeout_ms=1500, request_timeout_ms=1500)
    hold(world)
    futures = [world.send(), world.send()]
    world.settle()
    world.advance(1500)
    world.turn()
    assert all(isinstance(future.exception(0), TimeoutError) for future in futures)
    reply(world, (0, Answer(10)))
    world.settle()
    assert all(isinstance(future.exception(0), TimeoutError) for future in futures)
    assert world.queue().batches == [] and len(world.cluster.requests()) == 1


def test_too_large_for_the_broker() -> None:
    world = World()
    world.cluster.fail("test", 0, 10)
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, RecordTooLargeError) and "message.max.bytes" in error.message


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


def test_an_answer_that_makes_no_sense_closes_the_connection() -> None:
    world = World()
    world.cluster.brokers[0].script[PRODUCE] = lambda request: request.answer_bytes(b"\0nonsense")
    future = world.send()
    world.settle()
    assert future.exception(0) is not None
    assert not world.cluster.brokers[0].links[-1].open


class Poisoned(Compressor):
    """Cannot compress a batch with a certain word in it."""

    type = CompressionType.ZSTD

    def compress(self, chunks: Sequence[Chunk]) -> bytes:
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
        return accumulator.append_bytes(topic, partition, value, now=world.now)[1]

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


# -- producer id ------------------------------------------------------------------------------------------------


def test_the_producer_id_is_asked_for_first() -> None:
    """F testInitProducerIdRequest: 343434, epoch 0, without a transactional id."""
    world = World(idempotent=True)
    future = world.send()
    world.settle()
    (request,) = world.cluster.brokers[0].of(INIT_PRODUCER_ID)
    assert request.body.transactional_id is None
    assert future.done()
    (batch,) = world.cluster.logs["test", 0].batches
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (343434, 0, 0)


def test_the_producer_id_is_asked_for_again_after_a_backoff() -> None:
    """F testSenderShouldRetryWithBackoffOnRetriableError: COORDINATOR_LOAD_IN_PROGRESS twice, 50 ms apart."""
    world = World(idempotent=True, known=False)
    asked: list[float] = []

    def loading(request: Received) -> None:
        asked.append(world.now)
        if len(asked) < 3:
            from datetime import timedelta

            from kio.schema.errors import ErrorCode

            from tests.unit._protocol.kio_peer import make, schema

            module = schema("init_producer_id", request.version, "response")
            request.answer(
                make(
                    module,
                    "InitProducerIdResponse",
                    throttle_time=timedelta(0),
                    error_code=ErrorCode(14),
                    producer_id=-1,
                    producer_epoch=-1,
                )
            )
        else:
            world.cluster.init_producer_id(request)

    world.cluster.brokers[0].script[INIT_PRODUCER_ID] = loading
    world.learn("test")
    begun = world.now
    world.send()
    world.run(200, 1)
    assert [round(when - begun) for when in asked] == [0, 50, 100]
    assert world.values() == [b"v"]


def test_no_producer_id_for_lack_of_permission_fails_what_waits_and_asks_again() -> None:
    from datetime import timedelta

    from kio.schema.errors import ErrorCode

    from tests.unit._protocol.kio_peer import make, schema

    world = World(idempotent=True, known=False)

    def refuse(request: Received) -> None:
        module = schema("init_producer_id", request.version, "response")
        request.answer(
            make(
                module,
                "InitProducerIdResponse",
                throttle_time=timedelta(0),
                error_code=ErrorCode(31),
                producer_id=-1,
                producer_epoch=-1,
            )
        )

    script = world.cluster.brokers[0].script
    script[INIT_PRODUCER_ID] = refuse
    world.learn("test")
    future = world.send()
    world.run(300)
    assert isinstance(future.exception(0), ClusterAuthorizationError)
    script[INIT_PRODUCER_ID] = world.cluster.init_producer_id
    later = world.send()
    world.run(300)
    assert later.result(0).offset == 0


def test_a_fatal_answer_fails_everything_in_flight() -> None:
    """F testCancelInFlightRequestAfterFatalError: the other partition's batch fails too; its late answer is harmless."""
    world = World(idempotent=True)
    for partition in (0, 1):
        world.send(partition=partition)
    world.settle()
    hold(world)
    first = world.send(partition=0)
    world.settle(2)
    second = world.send(partition=1)
    world.settle(2)
    assert len(held(world)) == 2
    reply(world, (0, Answer(31)))
    world.settle(3)
    assert isinstance(first.exception(0), ClusterAuthorizationError)
    assert isinstance(second.exception(0), ClusterAuthorizationError)
    reply(world, (1, Answer(base_offset=1)))
    world.settle(3)
    assert isinstance(second.exception(0), ClusterAuthorizationError)
    assert world.pool.available() == world.pool.total
    third = world.send(partition=1)
    world.settle(3)
    assert isinstance(third.exception(0), ClusterAuthorizationError)


def in_flight_pair(world: World) -> tuple[Any, Any]:
    """Two requests of a confirmed partition wait for their answers."""
    world.send(b"confirmed")
    world.settle()
    hold(world)
    first = world.send(b"first")
    world.settle(2)
    second = world.send(b"second")
    world.settle(2)
    assert len(held(world)) == 2
    return first, second


def sequences(world: World, count: int) -> list[int]:
    """Base sequences of the newest produce requests."""
    return [
        batch.base_sequence for request in world.cluster.requests()[-count:] for batch in batches_of(request).values()
    ]


def test_out_of_order_behind_a_failed_batch_goes_back_in_line() -> None:
    """F testCorrectHandlingOfOutOfOrderResponses: both come back, in order, and go out one at a time."""
    world = World(idempotent=True)
    first, second = in_flight_pair(world)
    reply(world, (0, Answer(NOT_LEADER)))
    reply(world, (0, Answer(45)))
    world.settle(1)
    assert [batch.base_sequence for batch in world.queue().batches] == [1, 2]
    world.cluster.brokers[0].held.clear()
    world.run(300)
    assert (first.result(0).offset, second.result(0).offset) == (1, 2)
    assert sequences(world, 4) == [1, 2, 1, 2]
    assert world.values() == [b"confirmed", b"first", b"second"]


def test_the_second_succeeds_before_the_first() -> None:
    """F testCorrectHandlingOfOutOfOrderResponsesWhenSecondSucceeds: the first is sent again under its sequence."""
    world = World(idempotent=True)
    first, second = in_flight_pair(world)
    reply(world, (0, Answer(REQUEST_TIMED_OUT)))
    reply(world, (0, Answer(base_offset=2)))
    world.settle(1)
    assert second.result(0).offset == 2
    assert [batch.base_sequence for batch in world.queue().batches] == [1]
    world.run(60)
    assert sequences(world, 1) == [1]
    reply(world, (0, Answer(base_offset=1)))
    world.settle()
    assert first.result(0).offset == 1


def test_a_duplicate_is_success_without_an_offset() -> None:
    """F testCorrectHandlingOfDuplicateSequenceError: DUPLICATE_SEQUENCE_NUMBER, offset -1."""
    world = World(idempotent=True)
    first, second = in_flight_pair(world)
    reply(world, (0, Answer(46)))
    reply(world, (0, Answer(base_offset=1000)))
    world.settle(2)
    assert (first.result(0).offset, first.result(0).has_offset) == (-1, False)
    assert second.result(0).offset == 1000


def test_expiry_of_what_was_never_sent_leaves_no_gap() -> None:
    """F testExpiryOfUnsentBatchesShouldNotCauseUnresolvedSequences: the next batch takes the sequence."""
    world = World(idempotent=True)
    world.cluster.down(0)
    world.settle()
    future = world.send(b"expires")
    world.run(10_100, 200)
    assert isinstance(future.exception(0), TimeoutError)
    world.cluster.up(0)
    later = world.send(b"later")
    world.run(3000, 50)
    assert later.result(0).offset == 0
    assert [batch.base_sequence for batch in world.cluster.logs["test", 0].batches] == [0]


# -- expiry -----------------------------------------------------------------------------------------------------


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
    assert isinstance(future.exception(0), TimeoutError)
    assert world.pool.total - world.pool.available() == used
    world.turn()
    reply(world, (0, Answer(base_offset=0)))
    world.settle()
    assert world.pool.available() == world.pool.total
    assert isinstance(future.exception(0), TimeoutError)


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
    assert isinstance(first.exception(0), TimeoutError)
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
    assert isinstance(first.exception(0), TimeoutError)
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
        assert isinstance(error, TimeoutError)
        assert error.context["phase"] == "in flight" and error.context["node"] == 0


def test_waiting_for_a_leader_expires_too() -> None:
    world = expiring()
    world.cluster.move("test", 0, -1)
    world.metadata.request_update(True)
    world.run(200)
    future = world.send()
    world.run(1600, 50)
    error = future.exception(0)
    assert isinstance(error, TimeoutError)
    assert error.context["phase"] == "waiting" and error.context["leader"] == "unknown"


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
    assert isinstance(error, TimeoutError) and error.context["leader"] == 1


# -- leaders ----------------------------------------------------------------------------------------------------


def moved(hint: bool) -> tuple[World, list[Any]]:
    world = World(nodes=1, topics={"test": 3}, retry_backoff_ms=500, retry_backoff_max_ms=500)
    hold(world)
    futures = [world.send(partition=partition) for partition in range(3)]
    world.settle()
    for node_id, partition in ((9990, 0), (9991, 1)):
        world.cluster.add(node_id)
        world.cluster.move("test", partition, node_id)
    answers = [
        (0, Answer(NOT_LEADER, leader=(9990, 101) if hint else None)),
        (1, Answer(NOT_LEADER, leader=(9991, 101) if hint else None)),
        (2, Answer(base_offset=100)),
    ]
    endpoints = [(node, "127.0.0.1", 9000 + node) for node in (9990, 9991)] if hint else []
    world.cluster.brokers[0].held.add(METADATA)
    reply(world, *answers, endpoints=endpoints)
    world.settle()
    return world, futures


def test_a_leader_change_without_hints_backs_off() -> None:
    """F testWhenProduceResponseReturnsWithALeaderShipChangeErrorButNoNewLeaderInformation."""
    world, futures = moved(False)
    assert futures[2].result(0).offset == 100
    infos = world.metadata.cluster().partitions("test")
    assert [(info.leader.id if info.leader else None, info.leader_epoch) for info in infos] == [(0, 100)] * 3
    world.settle(10)
    assert len(world.cluster.requests()) == 1
    assert len([request for request in world.cluster.brokers[0].waiting if request.api_key == METADATA]) == 1
    world.cluster.brokers[0].release()
    world.run(700, 50)
    assert [future.result(0).partition for future in futures] == [0, 1, 2]


def test_a_leader_change_with_hints_is_followed_at_once() -> None:
    """F testWhenProduceResponseReturnsWithALeaderShipChangeErrorAndNewLeaderInformation: no backoff."""
    world, futures = moved(True)
    infos = world.metadata.cluster().partitions("test")
    assert [(info.leader.id if info.leader else None, info.leader_epoch) for info in infos] == [
        (9990, 101),
        (9991, 101),
        (0, 100),
    ]
    world.settle(10)
    assert [len(world.cluster.requests(node)) for node in (9990, 9991)] == [1, 1]
    assert [future.result(0).offset for future in futures] == [0, 0, 100]
    # Metadata is asked for all the same.
    world.run(1200, 50)
    assert len([request for request in world.cluster.brokers[0].requests if request.api_key == METADATA]) >= 2


# -- what is sent when ------------------------------------------------------------------------------------------


def test_lingering() -> None:
    world = World(linger_ms=50)
    world.send(b"a")
    world.run(49, 7)
    assert world.cluster.requests() == []
    world.send(b"b")
    world.run(2, 1)
    assert world.values() == [b"a", b"b"]
    assert len(world.cluster.requests()) == 1


def test_the_turn_waits_until_the_linger_is_over() -> None:
    world = World(linger_ms=50)
    world.send()
    begun = world.now
    while not world.cluster.requests():
        world.wait()
    assert world.now - begun == pytest.approx(50, abs=1.5)


def test_a_full_batch_does_not_linger() -> None:
    world = World(linger_ms=50, batch_size=200)
    for _ in range(5):
        world.send(bytes(60))
    world.settle()
    assert len(world.values()) >= 4


def test_a_full_pool_sends_small_batches_only_when_nothing_else_can_go() -> None:
    world = World(linger_ms=1000, batch_size=1000, buffer_memory=2000, topics={"test": 2})
    world.send(b"small", partition=0)
    world.send(b"small", partition=1)
    world.settle()
    assert world.cluster.requests() == []
    from tests.fakes.tickets import CountingTicket

    ticket = CountingTicket()
    assert world.pool.allocate(1000, 0, ticket) is None
    world.settle()
    assert ticket.woken == 1
    assert world.values() == [b"small"] and world.values(partition=1) == [b"small"]


def test_everything_goes_at_close() -> None:
    world = World(linger_ms=4000)
    futures = [world.send(partition=partition) for partition in (0, 1)]
    world.settle()
    assert world.cluster.requests() == []
    world.sender.request_close()
    world.accumulator.close()
    assert world.sender.has_work()
    world.settle()
    assert all(future.done() for future in futures)
    assert not world.sender.has_work()


def test_forced_end_fails_what_is_left() -> None:
    """C shouldCloseProperly (by force): waiting and in flight; memory when the connection is closed."""
    world = World(linger_ms=4000)
    hold(world)
    in_flight = world.send(partition=0)
    world.accumulator.begin_flush()
    world.settle()
    world.accumulator.end_flush()
    waiting = world.send(partition=1)
    world.settle(1)
    assert world.sender.unfinished_records() == 2
    world.accumulator.close()
    error = KafkaError("Producer is closed forcefully.")
    world.sender.fail_all(error)
    assert (in_flight.exception(0), waiting.exception(0)) == (error, error)
    assert not world.accumulator.has_incomplete()
    assert world.pool.available() < world.pool.total
    world.parts.client.close(world.now)
    assert world.pool.available() == world.pool.total


def test_metrics_of_a_request() -> None:
    world = World()
    for number in range(4):
        world.send(bytes(10 * number))
    world.settle()
    assert world.metric("record-send-total") == 4
    assert world.metric("records-per-request-avg") == 4
    assert world.metric("record-send-total", "producer-topic-metrics", topic="test") == 4
    assert world.metric("batch-size-avg") == world.metric("batch-size-max") > 61
    assert world.metric("requests-in-flight") == 0
    assert world.metric("buffer-available-bytes") == world.metric("buffer-total-bytes")


def test_answers_come_in_the_order_of_the_requests() -> None:
    """O12: callbacks of a partition follow the order of the appends."""
    world = World(idempotent=True)
    order: list[bytes] = []

    def note(value: bytes) -> Callable[..., None]:
        return lambda metadata, error: order.append(value)

    for number in range(20):
        world.send(b"%d" % number, on_delivery=note(b"%d" % number))
        if number % 3 == 0:
            world.settle(2)
    world.settle()
    assert order == [b"%d" % number for number in range(20)] == world.values()


def test_a_request_on_its_way_out_is_not_followed_by_more() -> None:
    world = World(batch_size=1 << 20)
    world.selector.links[-1].stalled = True
    world.send(bytes(300_000), partition=0)
    world.settle(2)
    world.send(b"grows", partition=1)
    world.settle(2)
    world.send(b"with this", partition=1)
    world.settle(2)
    world.selector.links[-1].stalled = False
    world.settle()
    assert len(world.cluster.requests()) == 2
    assert world.values(partition=1) == [b"grows", b"with this"]


def test_a_network_error_names_the_node() -> None:
    world = World(retries=0)
    world.cluster.lose(processed=False)
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, NetworkError) and error.context["node"] == 0


def test_moving_on_after_a_stale_leader() -> None:
    world = World(nodes=2, topics={"test": 1})
    world.cluster.move("test", 0, 1)
    future = world.send()
    world.run(500)
    assert future.result(0).offset == 0
    assert NotLeaderOrFollowerError.invalid_metadata
    assert len(world.cluster.requests(1)) == 1
