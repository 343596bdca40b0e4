"""How the manager comes by its producer id, and what becomes of failures."""

from __future__ import annotations

from math import inf

import pytest

from forebay._protocol.init_producer_id import InitProducerIdResponse
from forebay._runtime.backoff import ExponentialBackoff
from forebay._transactions.manager import TransactionManager
from forebay._transactions.state import State
from forebay.errors import (
    AuthenticationError,
    ClusterAuthorizationError,
    DisconnectError,
    KafkaError,
    NetworkError,
    ProducerFencedError,
    ProtocolError,
    UnsupportedVersionError,
)

from .fakes import NODE, TIMED_OUT, FakePartition, give_id

LOAD_IN_PROGRESS = 14


def waiting_manager(initial: float = 50, maximum: float = 50) -> TransactionManager:
    return TransactionManager(ExponentialBackoff(initial, maximum, lambda: 0.5))


def answer(manager: TransactionManager, code: int, now: float) -> KafkaError | None:
    return manager.on_init_producer_id(InitProducerIdResponse(0, code, -1, -1), now, node=NODE)


class TestProducerId:
    def test_obtained(self) -> None:
        """F testInitProducerIdRequest: id 343434 and epoch 0, without a transactional id."""
        manager = waiting_manager()
        assert manager.needs_producer_id(0.0, False)
        assert manager.init_request().transactional_id is None
        assert manager.state is State.INITIALIZING and not manager.needs_producer_id(0.0, True)
        assert manager.on_init_producer_id(InitProducerIdResponse(0, 0, 343434, 0), 5.0, node=NODE) is None
        assert (manager.producer_id, manager.producer_epoch, manager.state) == (343434, 0, State.READY)
        assert not manager.needs_producer_id(1e9, True) and manager.time_to_next_request(5.0, True) == inf

    def test_nothing_drains_before(self) -> None:
        manager = waiting_manager()
        partition = FakePartition(manager)
        partition.append()
        assert partition.drain() is None
        give_id(manager, 1)
        assert partition.drain() is not None

    def test_retried_with_backoff(self) -> None:
        """F testSenderShouldRetryWithBackoffOnRetriableError: each request 50 ms after the one before."""
        manager = waiting_manager()
        now = 1000.0
        for _ in range(2):
            manager.init_request()
            assert answer(manager, LOAD_IN_PROGRESS, now) is None
            assert not manager.needs_producer_id(now + 49.9, True)
            assert manager.time_to_next_request(now, True) == 50
            now += 50
            assert manager.needs_producer_id(now, True)
        give_id(manager, 7, now=now)
        assert manager.producer_id == 7

    def test_backoff_grows(self) -> None:
        manager = waiting_manager(100, 1000)
        waits = []
        for _ in range(5):
            manager.init_request()
            answer(manager, LOAD_IN_PROGRESS, 0.0)
            waits.append(manager.time_to_next_request(0.0, True))
        assert waits == pytest.approx([100, 200, 400, 800, 1000])

    @pytest.mark.parametrize("error", [DisconnectError(), TIMED_OUT, NetworkError()])
    def test_lost_answers_are_retried(self, error: KafkaError) -> None:
        manager = waiting_manager()
        manager.init_request()
        assert manager.on_init_producer_id(error, 0.0, node=NODE) is None
        assert manager.state is State.INITIALIZING and manager.needs_producer_id(50.0, True)

    def test_not_authorized(self) -> None:
        """F testClusterAuthorizationExceptionInInitProducerIdRequest: batches fail, then it is tried again."""
        manager = waiting_manager()
        manager.init_request()
        error = answer(manager, ClusterAuthorizationError.code or 0, 0.0)
        assert isinstance(error, ClusterAuthorizationError) and NODE in str(error)
        assert manager.state is State.UNINITIALIZED and manager.fatal_error is None
        assert not manager.needs_producer_id(49.0, True)
        assert not manager.needs_producer_id(1e9, False), "nobody waits for it"
        assert manager.needs_producer_id(50.0, True)
        give_id(manager, 5, now=50.0)
        assert FakePartition(manager).send().producer_id == 5

    def test_old_broker(self) -> None:
        """G testUnsupportedInitTransactions: fatal, and the message names the broker and the remedy."""
        manager = waiting_manager()
        manager.init_request()
        error = manager.on_init_producer_id(UnsupportedVersionError("The broker does not support it"), 0.0, node=NODE)
        assert isinstance(error, UnsupportedVersionError) and manager.fatal_error is error
        assert NODE in str(error) and "enable.idempotence" in str(error)
        assert manager.state is State.FATAL_ERROR and not manager.needs_producer_id(1e9, True)

    @pytest.mark.parametrize("error", [AuthenticationError("no"), ProtocolError("no"), ProducerFencedError()])
    def test_fatal(self, error: KafkaError) -> None:
        manager = waiting_manager()
        manager.init_request()
        found = manager.on_init_producer_id(error, 0.0, node=NODE)
        assert repr(found) == repr(error) and manager.fatal_error is found
        assert found is not None and found.fatal

    def test_an_answer_without_an_id(self) -> None:
        manager = waiting_manager()
        manager.init_request()
        error = answer(manager, 0, 0.0)
        assert isinstance(error, ProtocolError) and NODE in str(error) and manager.fatal_error is error

    def test_an_answer_after_the_end(self) -> None:
        manager = waiting_manager()
        manager.init_request()
        manager.fail(ProtocolError("gone"))
        assert manager.on_init_producer_id(InitProducerIdResponse(0, 0, 1, 0), 0.0, node=NODE) is None
        assert manager.producer_id == -1
