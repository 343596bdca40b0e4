"""Three real brokers for a whole run of the tests, whole again after each test that broke something.

Every topic has three replicas of which two must be in sync; nobody outside of them becomes a leader.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.admin import wait_until_healthy
from tests.support.fixtures import real_kafka
from tools.kafka import RealKafka

NODES = 3
PROPERTIES = {
    "unclean.leader.election.enable": "false",
    # A dead or frozen broker is noticed in 3 s instead of 9: the tests wait for that.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "replica.lag.time.max.ms": "5000",
    # Leaders move when a test says so.
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
}


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[RealKafka]:
    """The cluster itself; tests take :func:`three_kafka`."""
    with real_kafka(nodes=NODES, properties=PROPERTIES) as cluster:
        yield cluster


@pytest.fixture
def three_kafka(three_brokers: RealKafka) -> Iterator[RealKafka]:
    """Three healthy brokers, to be killed and frozen as a test likes."""
    wait_until_healthy(three_brokers)
    try:
        yield three_brokers
    finally:
        three_brokers.heal()
        wait_until_healthy(three_brokers)
