"""The transactional requests on their way: connections that are being made, lost or refused, and the turn's times."""

from __future__ import annotations

import pytest

from forebay.errors import KafkaError, SaslAuthenticationError
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.coordinator import END_TXN, FIND_COORDINATOR, TransactionalWorld


def test_one_request_at_a_time() -> None:
    world = TransactionalWorld(1, ready=False)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    world.session.initialize()
    world.settle(12)
    assert world.coordinator.names() == []
    requests = world.requests
    assert list(requests.in_flight) == [False] and requests.turn(world.now) == float("inf")


def test_the_versions_of_produce_follow_the_transactions() -> None:
    assert TransactionalWorld(1).requests.produce_versions == (0, 11)
    assert TransactionalWorld(2).requests.produce_versions == (12, 13)


def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    """F testNodeNotReady: it is found all the same, when it is back, and nothing spins meanwhile."""
    world = TransactionalWorld(2, nodes=2)
    world.begin()
    world.send(partition=0)
    world.settle(12)
    world.coordinator.at = 1
    world.cluster.down(1)
    result = world.session.commit()
    asked = len(world.coordinator.of(FIND_COORDINATOR))
    world.run(2000, 10)
    assert not result.done
    assert 2 < len(world.coordinator.of(FIND_COORDINATOR)) - asked < 60
    world.cluster.up(1)
    world.finish(result)
    assert world.coordinator.of(END_TXN)[-1].broker.node.id == 1


def test_a_throttled_coordinator_is_waited_for() -> None:
    """H testInitTransactionWhileThrottled: 5 s are no error."""
    world = TransactionalWorld(2, ready=False)
    world.cluster.brokers[0].throttle_ms = 5000
    world.cluster.brokers[0].drop()
    world.run(300)
    world.cluster.brokers[0].throttle_ms = 0
    begun = world.now
    world.finish(world.session.initialize())
    assert world.now - begun < 6000


def test_the_time_of_an_end_counts_only_while_it_waits_for_the_coordinator() -> None:
    world = TransactionalWorld(2)
    requests = world.requests
    requests.prepare_close(world.now)
    world.advance(1_000_000)
    requests.prepare_close(world.now)
    assert not world.session.dialog.has_work() and requests.turn(world.now) == float("inf")


def test_a_refused_login_is_the_end() -> None:
    world = TransactionalWorld(2, ready=False)
    refused = SaslAuthenticationError("wrong password")
    result = world.session.initialize()
    world.session.dialog.fatal(refused)
    assert result.done and repr(result.error) == repr(refused)
    result.acknowledged = True
    with pytest.raises(KafkaError):
        world.session.initialize()


def test_features_are_taken_from_the_newest_epoch() -> None:
    world = TransactionalWorld(1)
    assert world.session.dialog.newest_version == 1
    world.coordinator.finalize(2, epoch=2)
    world.cluster.brokers[0].drop()
    world.run(200)
    assert world.session.dialog.newest_version == 2
    world.coordinator.finalize(1, epoch=1)
    world.cluster.brokers[0].drop()
    world.run(200)
    assert world.session.dialog.newest_version == 2
