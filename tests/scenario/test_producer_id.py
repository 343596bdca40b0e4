"""The producer id, and sequences through retries: nothing twice, nothing out of order."""

from __future__ import annotations

from typing import Any

from forebay._records.decoded import Batch
from forebay.errors import (
    ClusterAuthorizationError,
    KafkaTimeoutError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
)
from tests.fakes.answers import held, hold, reply, sequences
from tests.fakes.broker import INIT_PRODUCER_ID, METADATA, PRODUCE, Received
from tests.fakes.produce import Answer
from tests.fakes.world import World

REQUEST_TIMED_OUT, NOT_LEADER, OUT_OF_ORDER = 7, 6, 45


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


def test_the_producer_id_is_asked_for_behind_the_first_metadata_on_the_same_connection() -> None:
    """A round trip less before the first record: neither waits for the other's answer."""
    world = World(idempotent=True, known=False)
    world.cluster.brokers[0].held |= {METADATA, INIT_PRODUCER_ID}
    world.metadata.add_topic("test", world.now)
    world.settle(12)
    metadata, init = (world.cluster.brokers[0].of(api) for api in (METADATA, INIT_PRODUCER_ID))
    assert len(metadata) == len(init) == 1 and metadata[0].link is init[0].link
    world.cluster.brokers[0].release()
    world.settle()
    assert world.producer.producer_id == 343434
    future = world.send()
    world.settle()
    assert future.done()
    assert len(world.cluster.brokers[0].of(INIT_PRODUCER_ID)) == 1


def test_with_one_request_in_flight_the_producer_id_waits_for_metadata() -> None:
    world = World(idempotent=True, known=False, max_in_flight_requests_per_connection=1)
    world.cluster.brokers[0].held.add(METADATA)
    world.metadata.add_topic("test", world.now)
    world.settle(12)
    assert world.cluster.brokers[0].of(INIT_PRODUCER_ID) == []
    world.cluster.brokers[0].release()
    world.settle(12)
    assert world.producer.producer_id == 343434


def test_the_producer_id_is_asked_for_again_after_a_backoff() -> None:
    """F testSenderShouldRetryWithBackoffOnRetriableError: COORDINATOR_LOAD_IN_PROGRESS twice, 50 ms apart."""
    world = World(idempotent=True, known=False)
    asked: list[float] = []

    def loading(request: Received) -> None:
        asked.append(world.now)
        if len(asked) < 3:
            world.cluster.init_producer_id(request, 14)
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
    world = World(idempotent=True, known=False)

    script = world.cluster.brokers[0].script
    script[INIT_PRODUCER_ID] = lambda request: world.cluster.init_producer_id(request, 31)
    world.learn("test")
    future = world.send()
    world.run(300)
    assert isinstance(future.exception(0), ClusterAuthorizationError)
    script[INIT_PRODUCER_ID] = world.cluster.init_producer_id
    later = world.send()
    world.run(300)
    assert later.result(0).offset == 0


def test_a_produce_request_without_permission_ends_the_producer() -> None:
    """F testClusterAuthorizationExceptionInProduceRequest: that record, and every one after it."""
    world = World(idempotent=True)
    world.cluster.fail("test", 0, 31)
    for _ in range(2):
        future = world.send()
        world.settle()
        assert type(future.exception(0)) is ClusterAuthorizationError
    assert len(world.cluster.requests()) == 1


def test_a_broker_without_our_versions_of_produce_ends_the_producer() -> None:
    """F testUnsupportedVersionInProduceRequest: found out with the producer id in hand."""
    world = World(idempotent=True, known=False)
    world.cluster.brokers[0].ranges[PRODUCE] = (99, 99)
    world.learn("test")
    assert world.producer.producer_id >= 0
    for _ in range(2):
        future = world.send()
        world.settle()
        error = future.exception(0)
        assert type(error) is UnsupportedVersionError and "Produce versions 99 to 99" in str(error)
    assert world.cluster.requests() == []


def test_a_format_without_idempotence_fails_its_batch_alone() -> None:
    """F testUnsupportedForMessageFormatInProduceRequest: the producer goes on."""
    world = World(idempotent=True)
    world.cluster.fail("test", 0, 43)
    future = world.send()
    world.settle()
    assert type(future.exception(0)) is UnsupportedForMessageFormatError
    later = world.send()
    world.settle()
    assert later.result(0).offset == 0


def test_a_fatal_answer_fails_everything_in_flight() -> None:
    """F testCancelInFlightRequestAfterFatalError: the other partition's batch fails too; a late answer is harmless."""
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


def test_out_of_order_behind_a_failed_batch_goes_back_in_line() -> None:
    """F testCorrectHandlingOfOutOfOrderResponses: both come back, in order, and go out one at a time."""
    world = World(idempotent=True)
    first, second = in_flight_pair(world)
    reply(world, (0, Answer(NOT_LEADER)))
    reply(world, (0, Answer(OUT_OF_ORDER)))
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
    assert isinstance(future.exception(0), KafkaTimeoutError)
    world.cluster.up(0)
    later = world.send(b"later")
    world.run(3000, 50)
    assert later.result(0).offset == 0
    assert [batch.base_sequence for batch in world.cluster.logs["test", 0].batches] == [0]


def test_sequences_wrap_around_with_five_in_flight() -> None:
    """O10: after 2^31 - 1 comes 0, in one batch and over several in flight, through a retry."""
    world = World(idempotent=True)
    world.send(b"before")
    world.settle()
    log = world.cluster.logs["test", 0]
    log.producers.clear()
    world.queue().gate_state.start(343434, 0, 2**31 - 4)
    futures = [world.send(b"first")]
    world.settle()
    hold(world)
    for number in range(5):
        futures += [world.send(b"%d-%d" % (number, index)) for index in range(2)]
        world.settle(2)
    assert len(held(world)) == 5
    assert sequences(world, 5) == [2**31 - 3, 2**31 - 1, 1, 3, 5]
    world.cluster.fail("test", 0, NOT_LEADER)
    world.cluster.brokers[0].release()
    world.run(500)
    assert [future.result(0).offset for future in futures] == list(range(1, 12))
    assert [batch.base_sequence for batch in log.batches] == [0, 2**31 - 4, 2**31 - 3, 2**31 - 1, 1, 3, 5]


def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    """O10, F testRetryWhenProducerIdChanges: a gap at epoch 32767; the records are written once, under the new id."""
    world = World(idempotent=True, known=False)
    world.cluster.next_epoch = 32767
    world.learn("test")
    world.send(b"confirmed", partition=0)
    world.send(b"other", partition=1)
    world.settle()
    world.cluster.next_epoch = 0
    world.cluster.fail("test", 0, OUT_OF_ORDER)
    future = world.send(b"again")
    world.run(500)
    assert future.result(0).offset == 1
    stamps = [(batch.producer_id, batch.producer_epoch, batch.base_sequence) for batch in log_of(world, 0)]
    assert stamps == [(343434, 32767, 0), (343435, 0, 0)]
    later = world.send(b"later", partition=1)
    world.run(100)
    assert later.result(0).offset == 1
    assert [(batch.producer_id, batch.base_sequence) for batch in log_of(world, 1)] == [(343434, 0), (343435, 0)]


def test_a_gap_is_closed_by_the_next_epoch() -> None:
    """F testBumpEpochWhenOutOfOrderSequenceReceived, testEpochBumpOnOutOfOrderSequenceForNextBatch."""
    world = World(idempotent=True)
    world.send(b"one")
    world.send(b"two")
    world.settle()
    world.cluster.fail("test", 0, OUT_OF_ORDER)
    future = world.send(b"three")
    world.run(500)
    assert future.result(0).offset == 2
    assert [(batch.producer_epoch, batch.base_sequence) for batch in log_of(world, 0)] == [(0, 0), (1, 0)]
    assert len(world.cluster.brokers[0].of(INIT_PRODUCER_ID)) == 1


def test_an_expired_batch_whose_fate_is_unknown_stops_what_follows_until_it_is_known() -> None:
    """F testExpiryOfAllSentBatchesShouldCauseUnresolvedSequences: then the next epoch, and nothing out of order."""
    world = World(idempotent=True, delivery_timeout_ms=6000)
    world.send(b"confirmed")
    world.settle()
    hold(world)
    first = world.send(b"first")
    world.settle(2)
    world.run(6100, 500)
    assert isinstance(first.exception(0), KafkaTimeoutError)
    world.cluster.brokers[0].held.clear()
    second = world.send(b"second")
    world.run(6000, 100)
    assert second.result(0).offset >= 1
    assert world.values()[-1] == b"second"
    assert len(world.values()) == len(set(world.values()))


def log_of(world: World, partition: int) -> list[Batch]:
    return world.cluster.logs["test", partition].batches
