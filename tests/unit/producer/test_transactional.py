"""The transactional methods of KafkaProducer: arguments, waiting, and what they leave to the session."""

from __future__ import annotations

import pytest

from forebay.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError
from forebay.model import TopicPartition, TransactionIdentity
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.names import LONE_SURROGATES, TOO_LONG
from tests.fakes.waiting import meanwhile


@pytest.mark.parametrize("call", ["init_transactions", "commit_transaction", "abort_transaction"])
def test_a_negative_timeout(call: str) -> None:
    world = TransactionalWorld(2, ready=call != "init_transactions")
    if call != "init_transactions":
        world.begin()
    with pytest.raises(IllegalArgumentError, match="timeout cannot be negative: -1"):
        getattr(world.producer, call)(-1)


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (TransactionIdentity("other", 1, 0, 2), "'other'.*'foobar'"),
        (TransactionIdentity("foobar", -1, 0, 2), "got -1 and 0"),
        (TransactionIdentity("foobar", 1, 40_000, 2), "got 1 and 40000"),
        (TransactionIdentity("foobar", 1, 0, 3), "0, 1 or 2, got 3"),
    ],
)
def test_an_identity_that_cannot_be(identity: TransactionIdentity, words: str) -> None:
    world = TransactionalWorld(2, ready=False)
    with pytest.raises(IllegalArgumentError, match=words):
        world.producer.init_transactions(identity=identity)
    assert world.state == "UNINITIALIZED"


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_transactional_id_that_cannot_be(name: object) -> None:
    world = TransactionalWorld(2)
    with pytest.raises(IllegalArgumentError, match="non-empty str"):
        world.producer.set_transactional_id(name)  # type: ignore[arg-type]
    for text in (*LONE_SURROGATES, *TOO_LONG):
        with pytest.raises(IllegalArgumentError, match="transactional_id '.*' cannot be sent: it "):
            world.producer.set_transactional_id(text)


def test_the_limit_is_max_block_ms_unless_given() -> None:
    """H testInitTransactionTimeout: the first call times out, the second is good."""
    world = TransactionalWorld(2, ready=False, max_block_ms=100)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    error = meanwhile(world, world.producer.init_transactions)
    assert isinstance(error, KafkaTimeoutError) and "100ms while awaiting init_transactions()" in str(error)
    world.cluster.brokers[0].release()
    assert meanwhile(world, world.producer.init_transactions) is None


def test_not_from_a_callback() -> None:
    world = TransactionalWorld(2)
    world.begin()
    raised: list[BaseException] = []

    def on_delivery(report: object) -> None:
        for call in (world.producer.commit_transaction, world.producer.begin_transaction):
            try:
                call()
            except IllegalStateError as refusal:
                raised.append(refusal)

    world.producer._on_sender_thread = lambda: True  # type: ignore[method-assign]
    world.send(on_delivery=on_delivery)
    world.settle(12)
    assert len(raised) == 2 and "delivery callback" in str(raised[0])


def test_times_are_counted() -> None:
    world = TransactionalWorld(2)
    producer = world.producer

    def use() -> None:
        with producer.transaction():
            producer.send("test", b"v", partition=0)
            producer.send_offsets_to_transaction({TopicPartition("test", 0): 1}, "g")

    assert meanwhile(world, use) is None
    for name in ("txn-send-offsets-time-ns-total", "txn-commit-time-ns-total"):
        assert world.metric(name) > 0


def test_an_abort_that_fails_is_noted_on_what_the_block_raised() -> None:
    world = TransactionalWorld(2, max_block_ms=50)

    def use() -> None:
        with world.producer.transaction():
            world.producer.send("test", b"v", partition=0)
            world.producer.flush()
            world.cluster.brokers[0].held.add(26)
            raise ValueError("the block's")

    error = meanwhile(world, use)
    assert isinstance(error, ValueError)
    assert any("could not be aborted" in note for note in error.__notes__)


def test_a_commit_that_fails_is_followed_by_an_abort() -> None:
    world = TransactionalWorld(2)
    world.cluster.fail("test", 0, 29)

    def use() -> None:
        with world.producer.transaction():
            world.producer.send("test", b"v", partition=0)

    error = meanwhile(world, use)
    assert "TOPIC_AUTHORIZATION_FAILED" in getattr(error, "name", "")
    assert world.state == "READY"


def test_the_block_aborts_also_when_offsets_timed_out_in_it() -> None:
    world = TransactionalWorld(2)
    world.cluster.brokers[0].held.add(28)

    def use() -> None:
        with world.producer.transaction():
            try:
                world.producer.send_offsets_to_transaction({TopicPartition("test", 0): 1}, "g", 0.02)
            finally:
                world.cluster.brokers[0].release()

    assert isinstance(meanwhile(world, use), KafkaTimeoutError)
    assert world.state == "READY"
    assert world.coordinator.offsets["g"] == {}
