"""What an error inside a transaction is: its class, its flags, its words; for records, calls and tables alike."""

from __future__ import annotations

import pytest

from forebay.errors import (
    InvalidTopicError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    RecordTooLargeError,
    TopicAuthorizationError,
    TransactionAbortableError,
    UnsupportedForMessageFormatError,
)
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import PRODUCE, Topic
from tests.fakes.coordinator import ADD_PARTITIONS, END_TXN, OFFSET_COMMIT, TransactionalWorld
from tests.fakes.waiting import meanwhile

BOTH = pytest.mark.parametrize("version", [1, 2])
OFFSETS = {TopicPartition("in", 0): OffsetAndMetadata(7)}
ABORT, FATAL = (False, True, False), (True, False, False)


def flags_of(error: KafkaError | None) -> tuple[bool, bool, bool] | None:
    return None if error is None else (error.fatal, error.txn_requires_abort, error.retriable)


@BOTH
def test_a_record_that_a_broker_refused(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.fail("test", 0, 29)
    told: list[KafkaError | None] = []
    future = world.producer.send("test", b"v", partition=0, on_delivery=lambda report: told.append(report.error))
    world.settle(12)
    failed = future.exception(0)
    assert type(failed) is TopicAuthorizationError and flags_of(failed) == ABORT
    assert [flags_of(error) for error in told] == [ABORT]
    for call in (world.session.commit, world.session.begin, world.send):
        with pytest.raises(TopicAuthorizationError, match=r"error state: Not authorized .* \[test\]") as caught:
            call()
        assert flags_of(caught.value) == ABORT
        assert isinstance(caught.value.__cause__, TopicAuthorizationError)
    world.abort()
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed() == [b"next"]
    assert not TopicAuthorizationError().txn_requires_abort


@BOTH
def test_a_record_that_never_came_into_a_batch(version: int) -> None:
    """It is too large: its future says so with the flags, and the class of what commit raises is the record's."""
    world = TransactionalWorld(version)
    world.begin()
    future = world.producer.send("test", b"v" * 2_000_000, partition=0)
    failed = future.exception(0)
    assert type(failed) is RecordTooLargeError and flags_of(failed) == ABORT
    with pytest.raises(RecordTooLargeError, match="error state: The message is 2000") as caught:
        world.session.commit()
    assert flags_of(caught.value) == ABORT
    world.abort()
    assert world.state == "READY"


@BOTH
def test_flags_belong_to_the_transaction_and_not_to_what_is_known_of_a_topic(version: int) -> None:
    """An invalid topic's error is kept with the metadata, and is the next transaction's, too."""
    world = TransactionalWorld(version)
    world.cluster.topics["in valid"] = Topic(error=17)
    for _ in range(2):
        world.begin()
        error = meanwhile(world, lambda: world.producer.send("in valid", b"v").result(0))
        assert isinstance(error, InvalidTopicError) and flags_of(error) == ABORT
        world.abort()
    error = meanwhile(world, lambda: world.producer.partitions_for("in valid"))
    assert isinstance(error, InvalidTopicError) and flags_of(error) == (False, False, False)


@BOTH
def test_a_table_whose_row_is_refused(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    with pytest.raises(RecordTooLargeError) as caught:
        world.producer.send_batch("test", [b"good", b"v" * 2_000_000])
    error = caught.value
    assert flags_of(error) == ABORT and error.context["row"] == 1
    assert list(error.delivery.taken()) == [range(1)]
    with pytest.raises(RecordTooLargeError, match="error state") as caught:
        world.producer.send_batch("test", [b"good"])
    assert flags_of(caught.value) == ABORT


@BOTH
def test_a_record_that_expired_is_no_reason_to_call_commit_again(version: int) -> None:
    """KafkaTimeoutError of a call says that it may be repeated; a lost record says that there is nothing to commit.

    The block aborts, where it leaves a commit that timed out alone.
    """
    world = TransactionalWorld(version, delivery_timeout_ms=6000)
    world.cluster.brokers[0].held.add(PRODUCE)
    producer = world.producer

    def block() -> None:
        with producer.transaction():
            producer.send("test", b"late", partition=0)

    error = meanwhile(world, block, step=10)
    assert type(error) is TransactionAbortableError and flags_of(error) == ABORT
    assert "Expiring 1 record(s)" in str(error) and isinstance(error.__cause__, KafkaTimeoutError)
    assert world.state == "READY"
    world.cluster.brokers[0].held.clear()
    assert meanwhile(world, block) is None
    assert world.committed() == [b"late"]


def test_what_the_coordinator_refuses_is_caught_by_its_class() -> None:
    for api, code, kind in (
        (ADD_PARTITIONS, 48, InvalidTxnStateError),
        (OFFSET_COMMIT, 43, UnsupportedForMessageFormatError),
        (END_TXN, 48, InvalidTxnStateError),
    ):
        world = TransactionalWorld(1)
        world.begin()
        world.coordinator.fail(api, code)
        world.send()
        world.settle(12)
        if api == OFFSET_COMMIT:
            with pytest.raises(kind, match=kind.default_message()) as caught:
                world.finish(world.session.send_offsets(OFFSETS, ConsumerGroupMetadata("g")))
        else:
            with pytest.raises(kind, match=kind.default_message()) as caught:
                world.commit()
        assert flags_of(caught.value) == FATAL
        with pytest.raises(kind, match="error state") as caught:
            world.session.begin()
        assert flags_of(caught.value) == FATAL


def test_the_real_reason_stands_before_what_was_not_attempted() -> None:
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(ADD_PARTITIONS, {("test", 0): 55, ("test", 1): 17})
    world.send(partition=0)
    world.send(partition=1)
    world.settle(12)
    with pytest.raises(InvalidTopicError, match=r"test-0: OPERATION_NOT_ATTEMPTED .*test-1: INVALID_TOPIC_EXCEPTION"):
        world.commit()


def test_a_refused_send_into_an_error_state_raises_and_fails_nothing_else() -> None:
    """An error state's error may be of a kind that a record's future would have; it is not this record's."""
    world = TransactionalWorld(2)
    world.begin()
    assert world.producer.send("test", b"v" * 2_000_000).exception(0) is not None
    told: list[object] = []
    with pytest.raises(RecordTooLargeError, match="error state"):
        world.producer.send("test", b"v", on_delivery=lambda report: told.append(report.error))
    assert told == []
