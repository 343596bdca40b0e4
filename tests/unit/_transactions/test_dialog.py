"""The queue of requests: what goes first, what waits, and what an error leaves of it."""

from __future__ import annotations

import pytest

from forebay._protocol.find_coordinator import TRANSACTION
from forebay._transactions.initialization import Coordinator
from forebay._transactions.pending import Pending
from forebay._transactions.requests import (
    AddPartitionsCall,
    EndTxnCall,
    FindCoordinatorCall,
)
from forebay.errors import ClusterAuthorizationError, KafkaError, TransactionAbortedError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.unit._transactions.fakes import FakeBatch, FakeQueue
from tests.unit._transactions.test_session import Session

OFFSETS = {TopicPartition("test", 0): OffsetAndMetadata(3)}
GROUP = ConsumerGroupMetadata("group")


def taken(session: Session, now: float = 0.0) -> list[str]:
    """The requests that can be taken now, by the names of their calls."""
    names = []
    while (pending := session.dialog.next_request(now)) is not None:
        names.append(type(pending.call).__name__)
    return names


def in_transaction(version: int = 1) -> Session:
    session = Session().prepared(version)
    session.begin()
    return session


def ask_for_a_partition(session: Session) -> Pending:
    queue = FakeQueue()
    assert not session.dialog.manager.may_drain(queue, FakeBatch(queue))
    pending = session.dialog.next_request(0)
    assert pending is not None and isinstance(pending.call, AddPartitionsCall)
    return pending


def test_requests_go_by_priority() -> None:
    session = in_transaction()
    session.dialog.members.mark_started()
    session.send_offsets(OFFSETS, GROUP).acknowledged = True
    session.commit()
    session.dialog.look_up(Coordinator(TRANSACTION, "foobar"))
    session.dialog.manager.may_drain(FakeQueue(), FakeBatch(FakeQueue()))
    assert taken(session) == ["FindCoordinatorCall", "AddOffsetsCall", "AddPartitionsCall", "EndTxnCall"]


def test_a_look_up_is_asked_for_once() -> None:
    session = in_transaction()
    for _ in range(2):
        session.dialog.look_up(Coordinator(TRANSACTION, "foobar"))
    assert taken(session) == ["FindCoordinatorCall"]


def test_another_try_waits_for_its_backoff() -> None:
    session = in_transaction()
    pending = ask_for_a_partition(session)
    session.dialog.try_again(pending, 1000)
    assert session.dialog.delay(1000) == 100
    assert session.dialog.next_request(1099) is None
    assert session.dialog.next_request(1100) is pending
    assert pending.attempts == 1


def test_another_try_may_be_soon() -> None:
    session = in_transaction()
    pending = ask_for_a_partition(session)
    session.dialog.try_again(pending, 1000, 20)
    assert session.dialog.delay(1000) == 20


def test_nothing_to_do_is_no_time_at_all() -> None:
    session = in_transaction()
    assert session.dialog.delay(0) == float("inf")
    session.dialog.members.mark_started()
    session.commit()
    session.bolt.incomplete = True
    assert session.dialog.delay(0) == float("inf")
    session.bolt.incomplete = False
    assert session.dialog.delay(0) == 0


def test_an_error_ends_what_waits() -> None:
    session = in_transaction()
    result = session.send_offsets(OFFSETS, GROUP)
    error = KafkaError("a record")
    session.dialog.abortable(error)
    assert result.done and repr(result.error) == repr(error)
    assert taken(session) == []


def test_what_may_have_been_added_is_added_for_certain_by_the_abort() -> None:
    """G testAbortResendsAddPartitionErrorIfRetried."""
    session = in_transaction()
    pending = ask_for_a_partition(session)
    pending.uncertain = True
    session.dialog.try_again(pending, 0)
    session.dialog.abortable(KafkaError("a record"))
    assert session.dialog.next_request(500) is None
    session.abort()
    assert session.dialog.next_request(500) is pending


def test_a_look_up_goes_on_in_an_abortable_error() -> None:
    """G testFindCoordinatorAllowedInAbortableErrorState."""
    session = in_transaction()
    session.dialog.abortable(KafkaError("a record"))
    session.dialog.look_up(Coordinator(TRANSACTION, "foobar"))
    pending = session.dialog.next_request(0)
    assert pending is not None and isinstance(pending.call, FindCoordinatorCall)


def test_nothing_started_is_nothing_to_end() -> None:
    session = in_transaction()
    result = session.commit()
    assert taken(session) == []
    assert result.done and result.error is None
    assert session.dialog.state.value == "READY"


def test_an_epoch_follows_the_end_where_the_client_has_to_ask_for_it() -> None:
    session = in_transaction(1)
    session.dialog.members.mark_started()
    session.dialog.on_failed_batch(KafkaError("a record"))
    result = session.abort()
    end = session.dialog.next_request(0)
    assert end is not None and isinstance(end.call, EndTxnCall) and not end.call.commit
    session.dialog.end_of_transaction(result)
    assert session.dialog.state.value == "INITIALIZING"
    (bump,) = [session.dialog.next_request(0)]
    assert bump is not None and (bump.call.producer_id, bump.call.producer_epoch) == (13131, 1)
    assert bump.result is result and not result.done


def test_version_2_needs_no_epoch_of_the_clients() -> None:
    session = in_transaction(2)
    session.dialog.members.mark_started()
    session.dialog.on_failed_batch(KafkaError("a record"))
    result = session.abort()
    session.dialog.next_request(0)
    session.dialog.end_of_transaction(result)
    assert session.dialog.state.value == "READY" and result.done


def test_what_is_not_sent_yet_fails_once() -> None:
    session = in_transaction()
    assert session.dialog.purge_reason() is None
    session.abort()
    assert isinstance(session.dialog.purge_reason(), TransactionAbortedError)
    assert session.dialog.purge_reason() is None


def test_the_reason_is_the_error_that_made_the_abort_necessary() -> None:
    session = in_transaction()
    error = KafkaError("a record")
    session.dialog.abortable(error)
    assert repr(session.dialog.purge_reason()) == repr(error)


def test_refused_is_where_it_began() -> None:
    session = Session()
    session.initialize()
    session.dialog.refused(ClusterAuthorizationError())
    assert session.dialog.state.value == "UNINITIALIZED"
    assert session.dialog.error is None


def test_refused_at_any_other_moment_is_a_mistake_of_ours() -> None:
    session = in_transaction()
    session.dialog.refused(ClusterAuthorizationError())
    assert session.dialog.state.value == "FATAL_ERROR"


def test_a_transaction_that_cannot_end_now_is_a_mistake_of_ours() -> None:
    session = in_transaction()
    result = session.send_offsets(OFFSETS, GROUP)
    session.dialog.end_of_transaction(result)
    assert session.dialog.state.value == "FATAL_ERROR"


def test_what_comes_back_after_the_end_is_told_so() -> None:
    session = in_transaction()
    pending = ask_for_a_partition(session)
    session.dialog.close(KafkaError("over"))
    session.dialog.put_back(pending)
    assert pending.result.done and "over" in str(pending.result.error)


@pytest.mark.parametrize("call", ["commit", "abort"])
def test_an_end_that_is_interrupted_may_be_called_again(call: str) -> None:
    session = in_transaction()
    session.dialog.members.mark_started()
    session.bolt.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        getattr(session, call)()
    assert session.dialog.state.value == "IN_TRANSACTION" and not session.bolt.sealed
    getattr(session, call)()
    assert taken(session) == ["EndTxnCall"]
