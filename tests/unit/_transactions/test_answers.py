"""What answers do: each API's success, and the errors of requests with several parts."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._protocol.add_partitions_to_txn import AddPartitionsToTxnResponse
from forebay._protocol.end_txn import EndTxnResponse
from forebay._protocol.find_coordinator import TRANSACTION, FindCoordinatorResponse
from forebay._protocol.init_producer_id import InitProducerIdResponse
from forebay._transactions.answers import apply_answer, apply_failure, apply_loss
from forebay._transactions.initialization import Coordinator
from forebay._transactions.pending import Pending
from forebay._transactions.requests import AddPartitionsCall, FindCoordinatorCall, Identity
from forebay._transactions.result import TransactionalResult
from forebay.errors import KafkaError, ProtocolError, TopicAuthorizationError, UnsupportedVersionError
from forebay.model import Node, TopicPartition
from tests.unit._transactions.test_session import Session

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
FOOBAR = Coordinator(TRANSACTION, "foobar")


def in_transaction(version: int = 1) -> Session:
    session = Session().prepared(version)
    session.begin()
    return session


def adding(session: Session) -> Pending:
    who = Identity("foobar", 13131, 1)
    return Pending(AddPartitionsCall(who, (A, B)), TransactionalResult(), 1)


def added(session: Session, codes: dict[TopicPartition, int]) -> Pending:
    pending = adding(session)
    apply_answer(session.dialog, pending, AddPartitionsToTxnResponse(0, codes), 0.0)
    return pending


def test_a_coordinator_is_remembered() -> None:
    session = Session()
    pending = Pending(FindCoordinatorCall(FOOBAR), TransactionalResult(), 1)
    apply_answer(session.dialog, pending, FindCoordinatorResponse(0, 0, None, 5, "host", 9092), 0.0)
    assert session.dialog.coordinators == {FOOBAR: Node(5, "host", 9092)}


def test_an_id_makes_ready() -> None:
    session = Session()
    result = session.initialize()
    pending: Any = session.dialog.next_request(0)
    apply_answer(session.dialog, pending, InitProducerIdResponse(0, 0, 7, 3), 0.0)
    assert result.done and result.error is None
    assert (session.dialog.state.value, session.dialog.manager.producer_id, session.dialog.manager.producer_epoch) == (
        "READY",
        7,
        3,
    )


def test_an_id_that_cannot_be_is_fatal() -> None:
    session = Session()
    result = session.initialize()
    pending: Any = session.dialog.next_request(0)
    apply_answer(session.dialog, pending, InitProducerIdResponse(0, 0, -1, -1), 0.0)
    assert isinstance(result.error, KafkaError) and isinstance(result.error.__cause__, ProtocolError)
    assert session.dialog.state.value == "FATAL_ERROR"


def test_partitions_that_were_added() -> None:
    session = in_transaction()
    pending = added(session, {A: 0, B: 0})
    assert pending.result.done and session.dialog.members.started


def test_topics_that_are_forbidden_are_named() -> None:
    session = in_transaction()
    added(session, {A: 29, B: 55})
    assert isinstance(session.dialog.error, TopicAuthorizationError) and "[a]" in str(session.dialog.error)
    assert session.dialog.state.value == "ABORTABLE_ERROR" and not session.dialog.members.started


def test_what_was_refused_otherwise_is_listed() -> None:
    session = in_transaction()
    added(session, {A: 55, B: 0})
    assert "a-0: OPERATION_NOT_ATTEMPTED" in str(session.dialog.error)


def test_a_partition_that_the_answer_leaves_out_is_not_in_the_transaction() -> None:
    session = in_transaction()
    added(session, {A: 0})
    assert session.dialog.state.value == "ABORTABLE_ERROR" and "b-1" in str(session.dialog.error)


@pytest.mark.parametrize("codes", [{A: 3, B: 29}, {A: 29, B: 3}])
def test_the_worst_part_decides_whatever_the_order(codes: dict[TopicPartition, int]) -> None:
    session = in_transaction()
    added(session, codes)
    assert session.dialog.state.value == "ABORTABLE_ERROR"


def test_a_passing_error_is_tried_again_and_may_have_worked() -> None:
    session = in_transaction()
    pending = added(session, {A: 3, B: 0})
    assert pending.uncertain and not pending.result.done
    assert session.dialog.next_request(100) is pending


def test_a_lost_connection_looks_the_coordinator_up() -> None:
    session = in_transaction()
    session.dialog.coordinators[FOOBAR] = Node(5, "host", 9092)
    pending = adding(session)
    apply_loss(session.dialog, pending, 0.0)
    assert session.dialog.coordinators == {}
    found: Any = session.dialog.next_request(0)
    assert found.call == FindCoordinatorCall(FOOBAR)
    assert session.dialog.next_request(100) is pending


def test_what_cannot_be_sent_at_all_is_fatal() -> None:
    session = in_transaction()
    pending = adding(session)
    apply_failure(session.dialog, pending, UnsupportedVersionError("v9 only"))
    assert session.dialog.state.value == "FATAL_ERROR" and isinstance(pending.result.error, UnsupportedVersionError)


def test_version_2_gives_the_next_epoch_with_the_end() -> None:
    session = in_transaction(2)
    session.dialog.members.mark_started()
    result = session.commit()
    pending: Any = session.dialog.next_request(0)
    apply_answer(session.dialog, pending, EndTxnResponse(0, 0, 13131, 2), 0.0)
    assert result.done and session.dialog.manager.producer_epoch == 2 and session.dialog.state.value == "READY"


@pytest.mark.parametrize("code", [120, 48])
def test_an_abort_that_is_refused_leaves_no_way(code: int) -> None:
    """Java's abort fails here and leaves the producer aborting for ever."""
    session = in_transaction()
    session.dialog.members.mark_started()
    result = session.abort()
    pending: Any = session.dialog.next_request(0)
    apply_answer(session.dialog, pending, EndTxnResponse(0, code), 0.0)
    assert session.dialog.state.value == "FATAL_ERROR" and result.error is not None


def test_an_abort_of_what_was_forgotten_needs_another_id() -> None:
    session = in_transaction()
    session.dialog.members.mark_started()
    result = session.abort()
    pending: Any = session.dialog.next_request(0)
    apply_answer(session.dialog, pending, EndTxnResponse(0, 49), 0.0)
    assert session.dialog.state.value == "INITIALIZING" and not result.done
