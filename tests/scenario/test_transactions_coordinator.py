"""Finding the coordinator, getting a producer id, being fenced, and calls that time out."""

from __future__ import annotations

import itertools

import pytest

from forebay.errors import (
    ClusterAuthorizationError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
from forebay.producer._path import CLOSED
from tests.fakes.broker import INIT_PRODUCER_ID, PRODUCE, Received
from tests.fakes.coordinator import (
    ADD_PARTITIONS,
    END_TXN,
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    TransactionalWorld,
)
from tests.fakes.waiting import meanwhile

BOTH = pytest.mark.parametrize("version", [1, 2])


@BOTH
@pytest.mark.parametrize("api", [FIND_COORDINATOR, INIT_PRODUCER_ID])
def test_a_lost_connection_is_no_end(version: int, api: int) -> None:
    """G testDisconnectAndRetry, testLookupCoordinatorOnDisconnectAfterSend, ...BeforeSend."""
    world = TransactionalWorld(version, ready=False)
    world.coordinator.lose(api)
    world.finish(world.session.initialize())
    assert world.producer.producer_id == 13131
    assert len(world.coordinator.of(FIND_COORDINATOR)) == 2


@pytest.mark.parametrize("code", [14, 15, 16, 51])
def test_passing_errors_of_init(code: int) -> None:
    """G testCoordinatorNotAvailable, testLookupCoordinatorOnNotCoordinatorError."""
    world = TransactionalWorld(2, ready=False)
    world.coordinator.fail(INIT_PRODUCER_ID, code)
    world.finish(world.session.initialize())
    assert len(world.coordinator.of(FIND_COORDINATOR)) == (2 if code in (15, 16) else 1)


def test_init_is_tried_again_after_the_backoff() -> None:
    """F testSenderShouldRetryWithBackoffOnRetriableError, with a transactional id."""
    world = TransactionalWorld(2, ready=False)
    asked: list[float] = []
    answer = world.coordinator.answer
    world.coordinator.fail(INIT_PRODUCER_ID, 14, 14)

    def noted(request: Received) -> None:
        asked.append(world.now)
        answer(request)

    world.cluster.brokers[0].script[INIT_PRODUCER_ID] = noted
    world.session.initialize()
    world.run(200, 1)
    assert len(asked) == 3
    assert all(50 <= later - when <= 51 for when, later in itertools.pairwise(asked))


@pytest.mark.parametrize("code", [31, 53])
def test_lack_of_permission_for_init_may_be_mended(code: int) -> None:
    """G testTransactionalIdAuthorizationFailureInInitProducerId: init_transactions may be called again."""
    world = TransactionalWorld(2, ready=False)
    world.coordinator.fail(INIT_PRODUCER_ID, code)
    with pytest.raises((ClusterAuthorizationError, TransactionalIdAuthorizationError)):
        world.finish(world.session.initialize())
    assert world.state == "UNINITIALIZED"
    world.finish(world.session.initialize())
    world.begin()
    world.send()
    world.commit()
    assert world.committed() == [b"v"]


def test_lack_of_permission_to_look_up_is_fatal() -> None:
    """G testTransactionalIdAuthorizationFailureInFindCoordinator."""
    world = TransactionalWorld(2, ready=False)
    world.coordinator.fail(FIND_COORDINATOR, 53)
    with pytest.raises(TransactionalIdAuthorizationError):
        world.finish(world.session.initialize())
    assert world.state == "FATAL_ERROR"


def test_an_abortable_error_of_init() -> None:
    """G testTransactionAbortableExceptionInInitProducerId: abort, and there is an id after all."""
    world = TransactionalWorld(2, ready=False)
    world.coordinator.fail(INIT_PRODUCER_ID, 120)
    with pytest.raises(TransactionAbortableError):
        world.finish(world.session.initialize())
    world.abort()
    assert world.state == "READY"
    assert world.producer.producer_id == 13131


@pytest.mark.parametrize(("api", "newest"), [(FIND_COORDINATOR, 0), (INIT_PRODUCER_ID, -1)])
def test_a_broker_that_is_too_old_is_named(api: int, newest: int) -> None:
    """G testUnsupportedFindCoordinator, testUnsupportedInitTransactions."""
    world = TransactionalWorld(1, ready=False)
    if newest < 0:
        del world.cluster.brokers[0].ranges[api]
    else:
        world.coordinator.limit(api, newest)
    world.cluster.brokers[0].drop()
    world.run(200)
    with pytest.raises(UnsupportedVersionError, match=r"127\.0\.0\.1:9000 \(id 0\) is too old for this transaction"):
        world.finish(world.session.initialize())
    assert world.state == "FATAL_ERROR"


@BOTH
@pytest.mark.parametrize("code", [47, 90])
def test_a_newer_producer_takes_over(version: int, code: int) -> None:
    """G testProducerFencedException..., testInvalidProducerEpochConvertToProducerFenced...: every call says so."""
    world = TransactionalWorld(version)
    world.begin()
    world.send()
    world.settle(12)
    world.coordinator.fail(END_TXN, code)
    with pytest.raises(ProducerFencedError, match="newer producer with the same transactional.id"):
        world.commit()
    for call in (world.session.begin, world.session.commit, world.session.abort):
        with pytest.raises(ProducerFencedError, match="newer producer with the same transactional.id"):
            call()
    assert isinstance(world.send().exception(0), ProducerFencedError)
    world.sender.request_close()
    world.settle()
    assert not world.sender.has_work()


@BOTH
def test_the_second_producer_fences_the_first(version: int) -> None:
    first = TransactionalWorld(version)
    first.begin()
    first.send(b"first")
    first.settle(12)
    second = TransactionalWorld(version, ready=False)
    second.coordinator.owners = first.coordinator.owners
    second.finish(second.session.initialize())
    with pytest.raises(ProducerFencedError):
        first.commit()
    assert first.committed() == []


@BOTH
def test_records_that_wait_fail_when_the_producer_is_fenced(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    world.send(partition=0)
    world.settle(12)
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send(partition=1)
    world.settle(2)
    world.session.dialog.fatal(ProducerFencedError())
    world.settle()
    assert isinstance(future.exception(0), ProducerFencedError)


def test_a_transaction_of_version_1_becomes_one_of_version_2() -> None:
    """G testTransactionManagerEnablesV2: not in the middle; another epoch in between, by the client."""
    world = TransactionalWorld(1)
    world.begin()
    world.send(b"1")
    world.settle(12)
    world.coordinator.finalize(2, epoch=2)
    world.cluster.brokers[0].drop()
    world.run(200)
    assert world.producer.transaction_version == 1
    world.commit()
    assert world.coordinator.names()[-2:] == ["end", "init"]
    assert world.coordinator.of(END_TXN)[-1].version == 4
    assert (world.producer.transaction_version, world.producer.producer_epoch) == (2, 2)
    world.begin()
    world.send(b"2")
    world.commit()
    assert world.committed() == [b"1", b"2"]
    assert world.coordinator.of(PRODUCE)[-1].version == 13


def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    world = TransactionalWorld(2, ready=False)
    world.coordinator.next_epoch = 32767
    world.finish(world.session.initialize())
    for number in range(2):
        world.begin()
        world.send(b"%d" % number)
        world.commit()
    assert (world.producer.producer_id, world.producer.producer_epoch) == (13132, 1)
    assert world.committed() == [b"0", b"1"]


@BOTH
@pytest.mark.parametrize("code", [49, 59])
def test_a_forgotten_id_needs_another_one(version: int, code: int) -> None:
    """INVALID_PRODUCER_ID_MAPPING: EndTxn would be refused too, so it is left out."""
    world = TransactionalWorld(version)
    world.begin()
    world.send()
    world.settle(12)
    world.coordinator.fail(END_TXN, code)
    with pytest.raises(KafkaError):
        world.commit()
    assert world.state == "ABORTABLE_ERROR"
    world.abort()
    assert world.state == "READY"
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed()[-1] == b"next"


def test_without_another_epoch_a_forgotten_id_is_the_end() -> None:
    """INVALID_PRODUCER_ID_MAPPING where InitProducerId v3 is missing."""
    world = TransactionalWorld(1, ready=False)
    world.coordinator.limit(INIT_PRODUCER_ID, 2)
    world.cluster.brokers[0].drop()
    world.run(200)
    world.finish(world.session.initialize())
    world.begin()
    world.coordinator.fail(ADD_PARTITIONS, 49)
    world.send()
    world.settle(12)
    assert world.state == "FATAL_ERROR"


def test_what_the_coordinator_could_it_can() -> None:
    """G testCanBumpEpochDuringCoordinatorDisconnect."""
    world = TransactionalWorld(1)
    assert world.session.dialog.can_bump
    world.cluster.down(0)
    world.settle()
    assert world.session.dialog.can_bump


def test_an_error_while_aborting_changes_nothing() -> None:
    """G testAbortableErrorWhileAbortInProgress."""
    world = TransactionalWorld(1)
    world.begin()
    world.send()
    world.settle(12)
    result = world.session.abort()
    world.session.dialog.abortable(KafkaError("late"))
    assert world.state == "ABORTING_TRANSACTION"
    world.finish(result)
    assert world.state == "READY"
    assert world.coordinator.names()[-1] == "end"


@BOTH
@pytest.mark.parametrize("call", ["commit", "abort"])
def test_a_timeout_may_be_repeated(version: int, call: str) -> None:
    """G testRetryCommitTransaction, testRetryAbortTransaction, ...AfterCommitTimeout, ...AfterAbortTimeout."""
    world = TransactionalWorld(version)
    other = "abort" if call == "commit" else "commit"
    producer = world.producer
    world.begin()
    world.send()
    world.settle(12)
    world.cluster.brokers[0].held.add(END_TXN)
    error = meanwhile(world, lambda: getattr(producer, f"{call}_transaction")(0.05))
    assert isinstance(error, KafkaTimeoutError) and f"{call}_transaction()" in str(error)
    wanted = f"`{other}_transaction` because the previous call to `{call}_transaction` timed out and must be retried"
    with pytest.raises(IllegalStateError, match=wanted):
        getattr(producer, f"{other}_transaction")()
    with pytest.raises(IllegalStateError, match="`begin_transaction` because the previous call"):
        producer.begin_transaction()
    world.cluster.brokers[0].release()
    assert meanwhile(world, getattr(producer, f"{call}_transaction")) is None
    assert world.coordinator.names().count("end") == 1
    assert world.committed() == ([b"v"] if call == "commit" else [])


def test_only_close_after_init_timed_out() -> None:
    """H testOnlyCanExecuteCloseAfterInitTransactionsTimeout, testInitTransactionsResponseAfterTimeout."""
    world = TransactionalWorld(2, ready=False)
    producer = world.producer
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    assert isinstance(meanwhile(world, lambda: producer.init_transactions(0.05)), KafkaTimeoutError)
    with pytest.raises(IllegalStateError, match="`begin_transaction` because the previous call to `init_transactions`"):
        producer.begin_transaction()
    world.cluster.brokers[0].release()
    world.settle(12)
    assert meanwhile(world, producer.init_transactions) is None
    assert world.producer.producer_id == 13131
    with pytest.raises(IllegalStateError, match=r"init_transactions\(\) in state READY"):
        producer.init_transactions()


def test_no_transactional_call_after_close() -> None:
    """H testTransactionalMethodThrowsWhenSenderClosed."""
    world = TransactionalWorld(2)
    world.producer._set_state(CLOSED)
    with pytest.raises(ProducerClosedError):
        world.producer.init_transactions()


def test_a_producer_without_transactional_id() -> None:
    from tests.fakes.world import World

    world = World(idempotent=True)
    with pytest.raises(IllegalStateError, match=r"begin_transaction\(\): the producer has no transactional.id"):
        world.producer.begin_transaction()
    assert (world.producer.transactional_id, world.producer.transaction_version) == (None, 0)
    assert world.producer.producer_id == 343434


def test_a_record_that_never_came_into_a_batch_fails_the_transaction() -> None:
    """A record that is too large: its caller may not look at the future, the commit does."""
    world = TransactionalWorld(2, max_request_size=1000)
    world.begin()
    world.send(b"x" * 2000)
    with pytest.raises(KafkaError, match="error state"):
        world.session.commit()
    world.abort()


def test_an_unknown_illegal_move_of_ours_is_fatal() -> None:
    world = TransactionalWorld(2)
    world.session.dialog.abortable(KafkaError("out of nowhere"))
    assert world.state == "FATAL_ERROR"
    with pytest.raises(IllegalStateError, match="previous invalid state transition"):
        world.session.begin()


def test_the_group_is_not_looked_up_where_only_records_are_sent() -> None:
    world = TransactionalWorld(2)
    world.begin()
    world.send()
    world.commit()
    assert [request.body.key_type for request in world.coordinator.of(FIND_COORDINATOR)] == [1]
    assert world.coordinator.of(OFFSET_COMMIT) == []
