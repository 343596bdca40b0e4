"""The guards of the transactional calls, without a network: what each state allows, and what it says otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from forebay._runtime.backoff import ExponentialBackoff
from forebay._transactions.dialog import TransactionMachine
from forebay._transactions.initialization import InitProducerIdCall
from forebay._transactions.manager import TransactionManager
from forebay._transactions.requests import EndTxnCall
from forebay._transactions.session import TransactionCalls
from forebay._transactions.state import State
from forebay.errors import IllegalStateError, KafkaError, ProducerClosedError, ProducerFencedError
from forebay.model import TransactionIdentity
from tests.unit._transactions.fakes import FakeBatch, FakeQueue


class Seal:
    """Stands for the accumulator."""

    def __init__(self) -> None:
        self.sealed = False
        self.incomplete = False
        self.interrupted = False

    def seal(self) -> None:
        self.sealed = True
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def unseal(self) -> None:
        self.sealed = False

    def has_incomplete(self) -> bool:
        return self.incomplete


class Session(TransactionCalls):
    """One with its surroundings, by hand."""

    def __init__(self) -> None:
        self.bolt = Seal()
        dialog = TransactionMachine(
            "foobar",
            timeout_ms=1121,
            manager=TransactionManager(ExponentialBackoff(50, 50, lambda: 0.5)),
            accumulator=self.bolt,
            backoff=ExponentialBackoff(100, 100, lambda: 0.5),
            lock=threading.RLock(),
        )
        super().__init__(dialog)

    def prepared(self, version: int = 2) -> Session:
        """Ready for a transaction, as after ``init_transactions``."""
        self.initialize(TransactionIdentity("foobar", 13131, 1, version)).acknowledged = True
        return self


def flags_of(error: KafkaError) -> tuple[bool, bool, bool]:
    return error.fatal, error.txn_requires_abort, error.retriable


def calls(session: TransactionCalls) -> dict[str, Callable[[], object]]:
    return {
        "init_transactions": session.initialize,
        "begin_transaction": session.begin,
        "commit_transaction": session.commit,
        "abort_transaction": session.abort,
        "set_transactional_id": lambda: session.rename("other"),
    }


ALLOWED = {
    State.UNINITIALIZED: {"init_transactions", "set_transactional_id"},
    State.INITIALIZING: set(),
    State.READY: {"begin_transaction", "set_transactional_id"},
    State.IN_TRANSACTION: {"commit_transaction", "abort_transaction"},
    State.COMMITTING_TRANSACTION: set(),
    State.ABORTING_TRANSACTION: set(),
}


@pytest.mark.parametrize("state", list(ALLOWED))
@pytest.mark.parametrize("call", list(calls(Session())))
def test_every_call_in_every_state(state: State, call: str) -> None:
    session = Session().prepared()
    session.dialog.state = state
    if call in ALLOWED[state]:
        calls(session)[call]()
        assert session.dialog.state is not state or call == "set_transactional_id"
        return
    wanted = rf"Cannot call {call}\(\) in state {state.value}; allowed now: .*close\(\)"
    with pytest.raises(IllegalStateError, match=wanted):
        calls(session)[call]()
    assert session.dialog.state is state


@pytest.mark.parametrize("state", list(ALLOWED))
def test_records_are_taken_in_a_transaction_only(state: State) -> None:
    session = Session().prepared()
    session.dialog.state = state
    assert f"send() in state {state.value}" in str(session.refusal())


def test_the_seal_is_off_only_between_begin_and_end() -> None:
    session = Session()
    seen = [session.bolt.sealed]
    session.prepared()
    seen.append(session.bolt.sealed)
    session.begin()
    seen.append(session.bolt.sealed)
    session.commit()
    seen.append(session.bolt.sealed)
    assert seen == [True, True, False, True]


def test_a_commit_that_is_not_allowed_leaves_the_seal_off() -> None:
    session = Session().prepared()
    session.begin()
    with pytest.raises(IllegalStateError):
        session.begin()
    assert not session.bolt.sealed


def test_an_abortable_error() -> None:
    """G testFailIfNotReadyForSendAfterAbortableError; "assert abortable": commit raises, abort clears it."""
    session = Session().prepared()
    session.begin()
    cause = KafkaError("a record")
    session.dialog.abortable(cause)
    assert session.bolt.sealed and session.dialog.open
    for call in ("init_transactions", "begin_transaction", "commit_transaction", "set_transactional_id"):
        with pytest.raises(KafkaError, match="error state: a record") as caught:
            calls(session)[call]()
        assert caught.value.__cause__ is session.dialog.error
        assert flags_of(caught.value) == (False, True, False)
    assert repr(session.dialog.error) == repr(cause) and session.refusal().__cause__ is session.dialog.error
    assert session.is_refusal(session.refusal()) and not session.is_refusal(cause)
    session.abort()
    assert session.dialog.state is State.ABORTING_TRANSACTION


def test_a_fatal_error() -> None:
    """G testFailIfNotReadyForSendAfterFatalError; "assert fatal": every call raises, every time."""
    session = Session().prepared()
    session.begin()
    result = session.commit()
    cause = KafkaError("beyond repair")
    session.dialog.fatal(cause)
    assert result.done and repr(result.error) == repr(cause)
    result.acknowledged = True
    assert not session.dialog.open and not session.dialog.has_work()
    for _ in range(2):
        for call in calls(session).values():
            with pytest.raises(KafkaError, match="error state: beyond repair") as caught:
                call()
            assert caught.value.__cause__ is session.dialog.error
            assert flags_of(caught.value) == (True, False, False)
    assert session.dialog.manager.fatal_error is session.dialog.error


def test_fenced_is_not_wrapped() -> None:
    session = Session().prepared()
    session.begin()
    session.dialog.fatal(ProducerFencedError())
    with pytest.raises(ProducerFencedError, match="newer producer.*'foobar', producer id 13131 and epoch 1"):
        session.abort()
    assert isinstance(session.refusal(), ProducerFencedError)


def test_ongoing() -> None:
    """G testHasOngoingTransaction...: from begin until the end is acknowledged; not after a fatal error."""
    session = Session().prepared()
    assert not session.dialog.open
    session.begin()
    assert session.dialog.open
    session.dialog.abortable(KafkaError("?"))
    assert session.dialog.open
    session.dialog.fatal(KafkaError("!"))
    assert not session.dialog.open


def test_the_first_request_has_no_id() -> None:
    session = Session()
    session.initialize()
    request = session.dialog.next_request(0)
    assert request is not None and request.call == InitProducerIdCall("foobar", 1121)


def test_the_end_waits_for_batches() -> None:
    """G testEndTxnNotSentIfIncompleteBatches."""
    session = Session().prepared()
    session.begin()
    session.dialog.members.mark_started()
    session.commit()
    session.bolt.incomplete = True
    assert session.dialog.next_request(0) is None
    session.bolt.incomplete = False
    request = session.dialog.next_request(0)
    assert request is not None and isinstance(request.call, EndTxnCall) and request.call.commit


def test_nothing_is_asked_for_in_an_error_state() -> None:
    session = Session().prepared(1)
    session.begin()
    assert not session.dialog.manager.may_drain(FakeQueue(), FakeBatch(FakeQueue()))
    session.dialog.abortable(KafkaError("?"))
    assert session.dialog.next_request(0) is None


def test_a_given_identity() -> None:
    session = Session().prepared(1)
    assert session.dialog.identity == TransactionIdentity("foobar", 13131, 1, 1)
    assert session.dialog.state is State.READY


def test_closed() -> None:
    session = Session()
    result = session.initialize()
    session.dialog.close(KafkaError("The producer closed forcefully"))
    assert "forcefully" in str(result.error)
    result.acknowledged = True
    with pytest.raises(ProducerClosedError):
        session.initialize()
    assert not session.dialog.has_work()


def test_records_refused_outside_a_transaction_change_nothing() -> None:
    session = Session().prepared()
    session.note_failed_send(KafkaError("too large"))
    assert session.dialog.state is State.READY
    session.begin()
    session.note_failed_send(KafkaError("too large"))
    assert session.dialog.state.value == "ABORTABLE_ERROR"
