"""How transactions end other than by commit and abort: closing, blocks that raise, detaching, adopting."""

from __future__ import annotations

import pytest

from forebay.errors import (
    IllegalStateError,
    KafkaError,
)
from forebay.model import ConsumerGroupMetadata, TransactionIdentity
from tests.fakes.broker import INIT_PRODUCER_ID, PRODUCE
from tests.fakes.coordinator import (
    END_TXN,
    TransactionalWorld,
)
from tests.fakes.waiting import meanwhile

NOT_LEADER, TIMED_OUT, OUT_OF_ORDER, UNKNOWN_ID = 6, 7, 45, 59
GROUP = ConsumerGroupMetadata("myConsumerGroup", 5, "member", "instance")
BOTH = pytest.mark.parametrize("version", [1, 2])


@BOTH
def test_closing_aborts_what_is_open(version: int) -> None:
    """F testIncompleteTransactionAbortOnShutdown: EndTxn(ABORT)."""
    world = TransactionalWorld(version)
    world.begin()
    world.send(b"a")
    world.settle(12)
    world.sender.request_close()
    world.until(lambda: not world.sender.has_work())
    (end,) = world.coordinator.of(END_TXN)
    assert end.body.committed is False
    assert world.committed() == []


@BOTH
def test_a_commit_under_way_is_finished_by_closing(version: int) -> None:
    """F testTransactionalRequestsSentOnShutdown, G testSenderShutdownWithPendingTransactions."""
    world = TransactionalWorld(version)
    world.begin()
    world.send(b"a")
    result = world.session.commit()
    world.sender.request_close()
    world.until(lambda: not world.sender.has_work())
    assert result.done and result.error is None
    assert world.committed() == [b"a"]


def test_closing_does_not_wait_for_a_coordinator_for_ever() -> None:
    world = TransactionalWorld(2, delivery_timeout_ms=6000)
    world.begin()
    world.send(b"a")
    world.settle(12)
    world.cluster.down(0)
    world.sender.request_close()
    world.until(lambda: not world.sender.has_work(), limit_ms=6_500)
    assert world.session.dialog.closed is not None


def test_a_forced_close_tells_who_waits() -> None:
    """H testCloseIsForcedOnPendingInitProducerId and its kind."""
    world = TransactionalWorld(2, ready=False)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    result = world.session.initialize()
    world.settle()
    world.sender.give_up(KafkaError("Producer is closed forcefully."))
    assert result.done and "closed forcefully" in str(result.error)
    with pytest.raises(KafkaError):
        world.session.begin()


@BOTH
def test_the_block_commits_or_aborts(version: int) -> None:
    world = TransactionalWorld(version)
    producer = world.producer

    def good() -> None:
        with producer.transaction():
            producer.send("test", b"good", partition=0)

    def bad() -> None:
        with producer.transaction():
            producer.send("test", b"bad", partition=0)
            producer.flush()
            raise KeyboardInterrupt

    def nested() -> None:
        with producer.transaction(), producer.transaction():
            pass

    assert meanwhile(world, good) is None
    assert isinstance(meanwhile(world, bad), KeyboardInterrupt)
    assert isinstance(meanwhile(world, nested), IllegalStateError)
    assert meanwhile(world, good) is None
    assert world.committed() == [b"good", b"good"]
    assert world.coordinator.aborted["test", 0] == [b"bad"]


@BOTH
def test_an_adopted_identity(version: int) -> None:
    world = TransactionalWorld(version, ready=False)
    other = TransactionalWorld(version)
    identity = other.session.dialog.identity
    world.coordinator.owners = other.coordinator.owners
    world.finish(world.session.initialize(TransactionIdentity(*identity)))
    world.begin()
    world.send(b"adopted")
    world.commit()
    assert world.coordinator.names() == (["add", "produce", "end"] if version == 1 else ["produce", "end"])
    (batch,) = world.cluster.logs["test", 0].batches
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (13131, 1, 0)
    assert world.committed() == [b"adopted"]


@BOTH
def test_a_detached_transaction_is_left_alone(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    with pytest.raises(IllegalStateError, match="nothing was sent"):
        world.producer.detach_transaction()
    world.cluster.brokers[0].held.add(PRODUCE)
    world.send(b"left")
    world.settle(12)
    with pytest.raises(IllegalStateError, match=r"1 record\(s\) without outcome: flush\(\)"):
        world.producer.detach_transaction()
    world.cluster.brokers[0].release()
    world.settle(12)
    identity = world.producer.detach_transaction()
    assert identity == TransactionIdentity("foobar", 13131, 1, version)
    assert world.state == "UNINITIALIZED"
    assert world.producer.producer_id == -1
    with pytest.raises(IllegalStateError, match="UNINITIALIZED"):
        world.send()
    assert world.coordinator.owners["foobar"].open
    world.sender.request_close()
    world.settle()
    assert not world.sender.has_work()
    assert world.coordinator.owners["foobar"].open


@BOTH
def test_another_transactional_id_on_the_same_connection(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    with pytest.raises(IllegalStateError, match="IN_TRANSACTION"):
        world.producer.set_transactional_id("other")
    world.send(b"a")
    world.commit()
    links = len(world.cluster.brokers[0].links)
    world.producer.set_transactional_id("other")
    with pytest.raises(IllegalStateError, match="UNINITIALIZED"):
        world.begin()
    world.finish(world.session.initialize())
    assert (world.producer.transactional_id, world.producer.producer_id) == ("other", 13132)
    world.begin()
    world.send(b"b")
    world.commit()
    assert world.committed() == [b"a", b"b"]
    assert len(world.cluster.brokers[0].links) == links
