"""Transactions as their owner sees them, over both generations of the protocol (KIP-890)."""

from __future__ import annotations

import pytest

from forebay.errors import (
    IllegalStateError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import INIT_PRODUCER_ID, PRODUCE
from tests.fakes.coordinator import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    TransactionalWorld,
)
from tests.fakes.produce import Answer

NOT_LEADER, TIMED_OUT, OUT_OF_ORDER, UNKNOWN_ID = 6, 7, 45, 59
GROUP = ConsumerGroupMetadata("myConsumerGroup", 5, "member", "instance")
BOTH = pytest.mark.parametrize("version", [1, 2])


@BOTH
def test_a_committed_transaction(version: int) -> None:
    """G testBasicTransaction: partitions are added (version 1), records written, EndTxn last; then it is over."""
    world = TransactionalWorld(version)
    world.begin()
    future = world.send(b"a")
    assert world.committed() == []
    world.commit()
    assert future.result(0).offset == 0
    assert world.committed() == [b"a"]
    added = ["add"] if version == 1 else []
    assert world.coordinator.names() == ["init", *added, "produce", "end"]
    (produce,) = world.cluster.requests()
    assert produce.version == (13 if version == 2 else 11)
    assert world.coordinator.of(END_TXN)[0].version == (5 if version == 2 else 4)
    assert world.state == "READY"
    assert not world.session.dialog.completing


@BOTH
def test_the_first_request_names_id_and_timeout(version: int) -> None:
    world = TransactionalWorld(version)
    (request,) = world.coordinator.of(INIT_PRODUCER_ID)
    assert request.body.transactional_id == "foobar"
    assert request.body.transaction_timeout.total_seconds() == 1.121
    assert (world.producer.producer_id, world.producer.producer_epoch) == (13131, 1)
    assert world.producer.transaction_version == version


@BOTH
def test_several_transactions_one_after_the_other(version: int) -> None:
    world = TransactionalWorld(version)
    for number in range(4):
        world.begin()
        for partition in (0, 1):
            world.send(b"%d" % number, partition=partition)
        world.commit() if number % 2 == 0 else world.abort()
    for partition in (0, 1):
        assert world.committed(partition) == [b"0", b"2"]
    # What was aborted was never sent, so nothing of it is in the log and the coordinator was not asked.
    assert world.producer.producer_epoch == (3 if version == 2 else 1)
    sequences = [batch.base_sequence for batch in world.cluster.logs["test", 0].batches]
    assert sequences == ([0, 0] if version == 2 else [0, 1])


@BOTH
def test_an_aborted_transaction(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    future = world.send(b"a")
    world.settle()
    assert future.result(0).offset == 0
    world.abort()
    assert world.committed() == []
    assert world.coordinator.aborted["test", 0] == [b"a"]


@BOTH
def test_what_was_not_sent_fails_when_the_transaction_is_aborted(version: int) -> None:
    """F testTransactionAbortedExceptionOnAbortWithoutError, G testCancelUnsentAddPartitionsAndProduceOnAbort."""
    world = TransactionalWorld(version, linger_ms=1000)
    world.begin()
    future = world.send(b"a")
    world.settle()
    world.abort()
    assert isinstance(future.exception(0), TransactionAbortedError)
    assert "end" not in world.coordinator.names()
    assert world.state == "READY"


@BOTH
def test_an_empty_transaction_asks_nobody(version: int) -> None:
    world = TransactionalWorld(version)
    for end in (world.commit, world.abort):
        world.begin()
        end()
    assert world.coordinator.names() == ["init"]


def test_partitions_are_added_together() -> None:
    world = TransactionalWorld(1)
    world.begin()
    for partition in (0, 1):
        world.send(partition=partition)
    world.settle()
    (request,) = world.coordinator.of(ADD_PARTITIONS)
    (topic,) = request.body.v3_and_below_topics
    assert sorted(topic.partitions) == [0, 1]


def test_a_partition_that_comes_later_is_added_before_its_records_go() -> None:
    """G testMultipleAddPartitionsPerForOneProduce, testRaiseErrorWhenNoPartitionsPendingOnDrain."""
    world = TransactionalWorld(1)
    world.begin()
    world.cluster.brokers[0].held.add(ADD_PARTITIONS)
    world.send(b"0", partition=0)
    world.settle(3)
    world.send(b"1", partition=1)
    world.settle(3)
    assert world.cluster.requests() == []
    world.cluster.brokers[0].release()
    world.commit()
    assert world.coordinator.names().count("add") == 2
    assert world.committed(0) == [b"0"] and world.committed(1) == [b"1"]


def test_partitions_are_added_again_in_the_next_transaction() -> None:
    world = TransactionalWorld(1)
    for _ in range(2):
        world.begin()
        world.send()
        world.commit()
    assert world.coordinator.names().count("add") == 2


@BOTH
def test_a_commit_waits_for_every_batch(version: int) -> None:
    """F testAwaitPendingRecordsBeforeCommittingTransaction, G testEndTxnNotSentIfIncompleteBatches."""
    world = TransactionalWorld(version)
    world.begin()
    world.send(b"confirmed")
    world.settle()
    world.cluster.brokers[0].held.add(PRODUCE)
    futures = [world.send(b"1")]
    world.settle(2)
    futures.append(world.send(b"2"))
    result = world.session.commit()
    world.settle()
    assert "end" not in world.coordinator.names()
    world.cluster.brokers[0].release()
    world.finish(result)
    assert world.committed() == [b"confirmed", b"1", b"2"]
    assert [future.result(0).offset for future in futures] == [1, 2]


@BOTH
def test_linger_does_not_count_when_the_transaction_ends(version: int) -> None:
    """F testRecordsFlushedImmediatelyOnTransactionCompletion: sent at once; in the next one linger works again."""
    world = TransactionalWorld(version, linger_ms=50)
    world.begin()
    world.send(partition=0)
    world.settle()
    assert world.cluster.requests() == []
    result = world.session.commit()
    world.settle(12)
    assert result.done
    result.acknowledged = True
    world.begin()
    world.send(partition=0)
    world.advance(49)
    world.settle()
    assert len(world.cluster.requests()) == 1
    world.advance(1)
    world.settle()
    assert len(world.cluster.requests()) == 2


@BOTH
def test_no_record_is_taken_outside_a_transaction(version: int) -> None:
    """G testFailIfNotReadyForSendNoProducerId, ...NoOngoingTransaction; O: nothing slips in between."""
    world = TransactionalWorld(version, ready=False)
    with pytest.raises(IllegalStateError, match=r"send\(\) in state UNINITIALIZED; allowed now: init_transactions"):
        world.send()
    world.finish(world.session.initialize())
    with pytest.raises(IllegalStateError, match=r"state READY; allowed now: begin_transaction"):
        world.send()
    world.begin()
    world.send(b"in")
    result = world.session.commit()
    with pytest.raises(IllegalStateError, match="state COMMITTING_TRANSACTION"):
        world.send()
    world.finish(result)
    with pytest.raises(IllegalStateError, match="state READY"):
        world.send()
    assert world.committed() == [b"in"]


@BOTH
def test_a_failed_record_is_never_committed(version: int) -> None:
    """G testDropCommitOnBatchExpiry and its kind: commit raises, abort works, and the next one is good."""
    world = TransactionalWorld(version)
    world.begin()
    world.send(b"good", partition=1)
    world.cluster.fail("test", 0, 29)
    future = world.send(b"bad")
    world.settle(12)
    assert isinstance(future.exception(0), TopicAuthorizationError)
    assert world.state == "ABORTABLE_ERROR"
    with pytest.raises(KafkaError, match="error state") as caught:
        world.session.commit()
    assert isinstance(caught.value.__cause__, TopicAuthorizationError)
    with pytest.raises(KafkaError, match="error state"):
        world.send()
    world.abort()
    assert world.committed(1) == []
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed() == [b"next"]


@BOTH
def test_a_record_fails_while_the_commit_waits(version: int) -> None:
    """G testDropCommitOnBatchExpiry: the commit fails for the record's sake; abort, then another epoch."""
    world = TransactionalWorld(version, delivery_timeout_ms=6000)
    world.begin()
    world.send(b"confirmed")
    world.settle()
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send(b"late")
    world.settle(2)
    result = world.session.commit()
    with pytest.raises(TransactionAbortableError, match=r"Expiring 1 record") as caught:
        world.finish(result)
    assert isinstance(caught.value.__cause__, KafkaTimeoutError)
    assert isinstance(future.exception(0), KafkaTimeoutError)
    assert world.session.dialog.open and not world.session.dialog.completing
    world.cluster.brokers[0].held.clear()
    world.abort()
    assert world.producer.producer_epoch == 2
    assert world.coordinator.names()[-1] == ("init" if version == 1 else "end")
    assert world.committed() == []


@BOTH
@pytest.mark.parametrize(("code", "kind"), [(48, InvalidTxnStateError), (120, TransactionAbortableError)])
def test_errors_of_produce_that_can_be_aborted(version: int, code: int, kind: type[KafkaError]) -> None:
    """F testInvalidTxnStateIsAnAbortableError, testTransactionAbortableExceptionIsAnAbortableError."""
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.fail("test", 0, code)
    future = world.send()
    world.settle(12)
    assert isinstance(future.exception(0), kind)
    assert world.state == "ABORTABLE_ERROR"
    world.abort()
    assert world.coordinator.names()[-2:] == (["end", "init"] if version == 1 else ["produce", "end"])
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed() == [b"next"]


@BOTH
def test_a_stale_epoch_in_produce_can_be_aborted(version: int) -> None:
    """G testInvalidProducerEpochFromProduce: abortable; EndTxn then decides whether we are fenced."""
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.fail("test", 0, 47)
    world.send()
    world.settle(12)
    assert world.state == "ABORTABLE_ERROR"
    world.abort()
    assert world.state == "READY"


@BOTH
def test_a_gap_ends_the_transaction_and_not_the_producer(version: int) -> None:
    """OUT_OF_ORDER_SEQUENCE: no epoch of our own making; what follows the gap fails, the next transaction is whole."""
    world = TransactionalWorld(version)
    world.begin()
    world.send(b"confirmed")
    world.settle(12)
    world.cluster.fail("test", 0, OUT_OF_ORDER)
    futures = [world.send(b"1")]
    world.settle(1)
    futures.append(world.send(b"2"))
    world.settle(12)
    assert all(future.exception(0) is not None for future in futures)
    world.abort()
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed() == [b"next"]


def test_without_another_epoch_sequences_go_on_after_the_last_confirmed() -> None:
    """G testAbortTransactionAndReuseSequenceNumberOnError: InitProducerId v1, two confirmed, the third refused."""
    world = TransactionalWorld(1, ready=False)
    world.coordinator.limit(INIT_PRODUCER_ID, 1)
    world.cluster.brokers[0].drop()
    world.run(200)
    world.finish(world.session.initialize())
    world.begin()
    for value in (b"0", b"1"):
        world.send(value)
        world.settle(12)
    world.cluster.fail("test", 0, 29)
    world.send(b"2")
    world.settle(12)
    world.abort()
    assert world.coordinator.names().count("init") == 1
    world.begin()
    world.send(b"next")
    world.commit()
    assert [batch.base_sequence for batch in world.cluster.logs["test", 0].batches] == [0, 1, 2]
    assert world.committed() == [b"next"]


def test_a_producer_that_the_broker_forgot_begins_at_0_again() -> None:
    """F testTransactionalUnknownProducerHandlingWhenRetentionLimitReached: the log was deleted behind it."""
    world = TransactionalWorld(1)
    world.begin()
    world.send(b"0")
    world.settle(12)
    log = world.cluster.logs["test", 0]
    log.start, log.end = 1010, 1010
    log.producers.clear()
    world.cluster.fail("test", 0, Answer(UNKNOWN_ID, log_start_offset=1010))
    futures = [world.send(b"1"), world.send(b"2")]
    world.run(300)
    assert [future.result(0).offset for future in futures] == [1010, 1011]
    assert log.batches[-1].base_sequence == 0
    world.commit()
    assert world.state == "READY"


@BOTH
def test_what_was_sent_is_finished_before_the_abort(version: int) -> None:
    """G testAbortResendsProduceRequestIfRetried, testRecoveryFromAbortableErrorProduceRequestInRetry."""
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.fail("test", 0, TIMED_OUT)
    future = world.send(b"again")
    world.settle(6)
    result = world.session.abort()
    world.finish(result)
    assert future.result(0).offset == 0
    assert world.coordinator.names()[-1] == "end"
    assert world.committed() == [] and world.coordinator.aborted["test", 0] == [b"again"]


def test_partitions_that_may_have_been_added_are_added_again_before_the_abort() -> None:
    """G testAbortResendsAddPartitionErrorIfRetried: UNKNOWN_TOPIC_OR_PARTITION, then abort: add, end."""
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(ADD_PARTITIONS, 3)
    future = world.send()
    world.settle(4)
    assert world.coordinator.names()[-1] == "add"
    world.abort()
    assert isinstance(future.exception(0), TransactionAbortedError)
    assert world.coordinator.names() == ["init", "add", "add", "end"]


def test_an_abort_after_partitions_were_refused_asks_nobody() -> None:
    """G shouldNotSendAbortTxnRequestWhenOnlyAddPartitionsRequestFailed, ...TopicAuthorizationFailureInAddPartitions."""
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(ADD_PARTITIONS, {("test", 0): 29, ("test", 1): 55})
    futures = [world.send(partition=partition) for partition in (0, 1)]
    world.settle(12)
    error = world.session.dialog.error
    assert isinstance(error, TopicAuthorizationError) and "[test]" in str(error)
    assert all(isinstance(future.exception(0), KafkaError) for future in futures)
    world.abort()
    assert "end" not in world.coordinator.names()


def test_the_first_partitions_are_tried_again_soon_while_the_last_transaction_is_finished() -> None:
    """CONCURRENT_TRANSACTIONS: 20 ms, not retry.backoff.ms."""
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(ADD_PARTITIONS, 51)
    world.send()
    world.settle(4)
    begun = world.now
    world.until(lambda: world.coordinator.names().count("add") == 2, step=1)
    assert 20 <= world.now - begun <= 22


@BOTH
def test_the_end_is_asked_for_again_when_the_connection_is_lost(version: int) -> None:
    """G testRetryCommitTransaction: the coordinator is looked up again, and the same call returns."""
    world = TransactionalWorld(version)
    world.begin()
    world.send()
    world.settle(12)
    world.coordinator.lose(END_TXN)
    found = len(world.coordinator.of(FIND_COORDINATOR))
    world.commit()
    assert world.coordinator.names()[-2:] == ["end", "end"]
    assert len(world.coordinator.of(FIND_COORDINATOR)) == found + 1
    assert world.committed() == [b"v"]


@BOTH
def test_the_coordinator_moves(version: int) -> None:
    """G testLookupCoordinatorOnNotCoordinatorError."""
    world = TransactionalWorld(version, nodes=2)
    world.begin()
    world.send()
    world.settle(12)
    world.coordinator.at = 1
    world.commit()
    assert world.coordinator.of(END_TXN)[-1].broker.node.id == 1
    assert world.committed() == [b"v"]


@BOTH
def test_requests_of_the_transaction_do_not_hold_up_records(version: int) -> None:
    """Java's sender sends nothing while a transactional request is out; here records flow meanwhile."""
    world = TransactionalWorld(version, ready=False, nodes=2)
    world.coordinator.at = 1
    world.finish(world.session.initialize())
    world.begin()
    world.send(partition=0)
    world.settle(12)
    world.cluster.brokers[1].held.update((OFFSET_COMMIT, ADD_OFFSETS))
    world.session.send_offsets({TopicPartition("test", 0): OffsetAndMetadata(1)}, GROUP)
    world.settle(6)
    assert world.cluster.brokers[1].waiting
    future = world.send(b"meanwhile", partition=0)
    world.settle(12)
    assert future.result(0).offset == 1
