"""Calls that fall into the middle of the sender's turn, or of one another: nothing is lost, stuck or told wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay._delivery.future import RecordFuture
from forebay.errors import (
    IllegalArgumentError,
    KafkaError,
    ProducerClosedError,
    RecordTooLargeError,
    SaslAuthenticationError,
)
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from forebay.producer._path import CLOSED, OPEN
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.coordinator import ADD_OFFSETS, ADD_PARTITIONS, END_TXN, OFFSET_COMMIT, TransactionalWorld
from tests.fakes.waiting import meanwhile

GROUP = ConsumerGroupMetadata("group")
OFFSETS = {TopicPartition("test", 0): OffsetAndMetadata(1)}
BOTH = pytest.mark.parametrize("version", [1, 2])


def opened(version: int, **config: Any) -> TransactionalWorld:
    """A world with a transaction in which one record is confirmed."""
    world = TransactionalWorld(version, **config)
    world.begin()
    world.send(b"confirmed")
    world.settle(12)
    return world


@BOTH
@pytest.mark.parametrize("started", [False, True])
def test_an_abort_in_the_middle_of_a_turn_leaves_the_next_transaction_alone(version: int, started: bool) -> None:
    world = opened(version) if started else TransactionalWorld(version)
    if not started:
        world.begin()
    world.sender._prepare(world.now)
    result = world.session.abort()
    for _ in range(12):
        # What is left of this turn; the whole may fit into one.
        world.requests.turn(world.now)
        world.selector.wakeup()
        world.parts.client.poll(0, world.now)
    assert result.done
    result.acknowledged = True
    world.begin()
    future = world.send(b"next")
    world.commit()
    assert future.exception(0) is None
    assert world.committed() == [b"next"]


class Overtaken:
    """A lock that somebody else gets first: whoever wants it finds ``first`` done."""

    def __init__(self, lock: Any, first: Callable[[], None]) -> None:
        self.lock = lock
        self.first: Callable[[], None] | None = first

    def __enter__(self) -> None:
        first, self.first = self.first, None
        if first is not None:
            first()
        self.lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self.lock.__exit__(None, None, None)


@BOTH
def test_a_commit_in_the_middle_of_a_turn_waits_for_its_records(version: int) -> None:
    """Whether batches are left is asked after the end is, or the end would not know of the last ones."""
    world = TransactionalWorld(version)
    world.begin()
    futures: list[RecordFuture] = []
    results: list[Any] = []

    def overtake() -> None:
        futures.append(world.send(b"late"))
        results.append(world.session.commit())

    world.session.dialog.lock = Overtaken(world.session.dialog.lock, overtake)
    world.requests.turn(world.now)
    assert len(results) == 1 and not results[0].done
    world.finish(results[0])
    assert futures[0].exception(0) is None
    assert world.committed() == [b"late"]


@BOTH
@pytest.mark.parametrize("lost", [False, True])
def test_a_record_that_is_refused_while_the_end_is_decided_changes_nothing(version: int, lost: bool) -> None:
    """The coordinator may have committed by then: neither the commit nor the producer fails for it."""
    world = opened(version)
    if lost:
        world.coordinator.lose(END_TXN, processed=True)
    else:
        world.cluster.brokers[0].held.add(END_TXN)
    result = world.session.commit()
    world.settle(6)
    world.session.note_failed_send(RecordTooLargeError("too late"))
    world.cluster.brokers[0].release()
    world.finish(result)
    assert world.state == "READY"
    assert world.committed() == [b"confirmed"]


def test_the_transaction_has_failed_before_the_callback_of_its_record_runs() -> None:
    world = TransactionalWorld(2, max_request_size=1000)
    world.begin()
    seen: list[str] = []
    world.send(b"x" * 2000, on_delivery=lambda report: seen.append(world.state))
    assert seen == ["ABORTABLE_ERROR"]


def test_what_send_nowait_raises_is_its_callers() -> None:
    """No future that nobody looks at: the transaction goes on."""
    world = TransactionalWorld(2)
    world.begin()
    with pytest.raises(KafkaError):
        world.producer.send_nowait("unknown", b"v")
    assert world.state == "IN_TRANSACTION"


@BOTH
def test_offsets_that_cannot_be_committed_do_not_hold_up_the_abort(version: int) -> None:
    world = opened(version)
    world.coordinator.fail(OFFSET_COMMIT, *[15, 14] * 500)
    offsets = world.session.send_offsets(OFFSETS, GROUP)
    world.run(500)
    assert not offsets.done
    world.finish(world.session.abort(without_offsets=True), limit_ms=2000)
    assert isinstance(offsets.error, KafkaError)
    assert world.coordinator.aborted["test", 0] == [b"confirmed"]
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed() == [b"next"]
    assert world.coordinator.offsets["group"] == {}


@BOTH
def test_offsets_that_cannot_be_committed_do_not_hold_up_the_end(version: int) -> None:
    world = opened(version)
    world.coordinator.fail(OFFSET_COMMIT, *[14] * 1000)
    world.session.send_offsets(OFFSETS, GROUP)
    world.run(500)
    world.sender.request_close()
    world.until(lambda: not world.sender.has_work(), limit_ms=2000)
    assert world.coordinator.aborted["test", 0] == [b"confirmed"]


@pytest.mark.parametrize("in_flight", [False, True])
def test_offsets_in_doubt_tell_their_caller_when_the_transaction_fails(in_flight: bool) -> None:
    """They are sent again by the abort alone, which he could not call while he had to repeat this call."""
    world = opened(1)
    if in_flight:
        world.cluster.brokers[0].held.add(ADD_OFFSETS)
    else:
        world.coordinator.fail(ADD_OFFSETS, 14)
    result = world.session.send_offsets(OFFSETS, GROUP)
    world.settle(4)
    cause = KafkaError("a record")
    world.session.dialog.abortable(cause)
    if in_flight:
        assert not result.done
        world.cluster.brokers[0].drop()
        world.cluster.brokers[0].held.clear()
        world.run(300)
    assert result.done and repr(result.error) == repr(cause)
    assert result.error is not None and result.error.txn_requires_abort
    result.acknowledged = True
    world.abort()
    assert world.coordinator.names()[-2:] == ["offsets", "end"]
    assert world.coordinator.offsets["group"] == {}


def test_a_topic_that_is_gone_does_not_hold_up_the_abort() -> None:
    world = opened(1)
    world.coordinator.fail(ADD_PARTITIONS, *[3] * 1000)
    world.send(partition=1)
    world.run(300)
    world.finish(world.session.abort(), limit_ms=2000)
    assert world.coordinator.names()[-2:] == ["end", "init"]
    world.coordinator.faults.clear()
    world.begin()
    world.send(b"next")
    world.commit()
    assert world.committed() == [b"next"]


@pytest.mark.parametrize("call", ["init_transactions", "commit_transaction", "abort_transaction"])
def test_a_timeout_that_cannot_be_begins_nothing(call: str) -> None:
    world = TransactionalWorld(2, ready=call != "init_transactions")
    if call != "init_transactions":
        world.begin()
    before = world.state
    with pytest.raises(IllegalArgumentError, match="-1"):
        getattr(world.producer, call)(-1)
    assert world.state == before


def test_the_error_of_a_block_is_not_replaced_when_the_producer_was_closed_in_it() -> None:
    world = TransactionalWorld(2)
    producer = world.producer

    def failing() -> None:
        with producer.transaction():
            producer._set_state(CLOSED)
            raise LookupError("the block's own")

    def closing() -> None:
        with producer.transaction():
            producer._set_state(CLOSED)

    assert isinstance(meanwhile(world, failing), LookupError)
    producer._set_state(OPEN)
    world.abort()
    assert isinstance(meanwhile(world, closing), ProducerClosedError)


def test_the_end_does_not_wait_for_an_id_that_nobody_waits_for() -> None:
    """init_transactions() timed out: close() would take delivery.timeout.ms more."""
    world = TransactionalWorld(2, ready=False)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    producer = world.producer
    assert isinstance(meanwhile(world, lambda: producer.init_transactions(0.05)), KafkaError)
    world.sender.request_close()
    assert not world.sender.has_work()


class Instead:
    """An object with some attributes replaced."""

    def __init__(self, real: Any, **attributes: Any) -> None:
        self.real = real
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_a_request_outlives_what_its_connection_trips_over() -> None:
    world = opened(2)
    client = world.requests._client

    def exhausted(node: Any, now: float) -> bool:
        world.requests._client = client
        raise OSError(24, "Too many open files")

    world.requests._client = Instead(client, ready=exhausted)
    result = world.session.commit()
    with pytest.raises(OSError, match="Too many open files"):
        world.turn()
    world.finish(result, limit_ms=1000)
    assert world.committed() == [b"confirmed"]


def test_who_waits_hears_of_a_refused_login_in_the_same_turn() -> None:
    world = opened(2)
    refused = SaslAuthenticationError("wrong password")
    world.requests._client = Instead(
        world.requests._client,
        ready=lambda node, now: False,
        states=Instead(
            world.requests._client.states,
            failed=lambda node_id: True,
            authentication_error=lambda node_id: refused,
        ),
    )
    result = world.session.commit()
    assert world.requests.turn(world.now) == float("inf")
    assert result.done and repr(result.error) == repr(refused)
    assert result.error is not None and result.error.fatal
    assert world.state == "FATAL_ERROR"


def test_an_answer_that_cannot_be_applied_ends_the_producer() -> None:
    """Whoever waits for it would wait for ever."""
    world = opened(2)
    result = world.session.commit()
    trouble = MemoryError("no room")

    def fail(*_: Any) -> None:
        raise trouble

    world.session.dialog.manager = Instead(world.session.dialog.manager, set_identity=fail)  # type: ignore[assignment]
    world.until(lambda: bool(result.done), limit_ms=1000)
    assert "EndTxn could not be applied" in str(result.error)
    assert result.error is not None and result.error.__cause__ is trouble
    assert world.state == "FATAL_ERROR"


def test_an_end_that_leaves_a_transaction_open_says_so(caplog: pytest.LogCaptureFixture) -> None:
    world = opened(2)
    with caplog.at_level("WARNING", "forebay.transactions"):
        world.sender.give_up(KafkaError("Producer is closed forcefully."))
    assert "'foobar' ended in state IN_TRANSACTION" in caplog.text
    assert "1121 ms" in caplog.text
