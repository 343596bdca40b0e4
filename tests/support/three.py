"""Three real brokers for a whole run of the tests, whole again after each test that broke something.

Every topic has three replicas of which two must be in sync; nobody outside of them becomes a leader.  Beside the plain
listener there are ``SASLS`` (TLS, and PLAIN and SCRAM as in ``tests.support.secure``) and ``MAPPED`` (TLS, and a name
that no name server knows).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from tests.support.admin import wait_until_healthy
from tests.support.fixtures import real_kafka
from tests.support.secure import add_scram_users, identity, sasl_properties
from tools.kafka import Listener, RealKafka

NODES = 3
MAPPED_HOST = "kafka.invalid"
"""What the brokers advertise on the listener ``MAPPED``: a name that is never resolved (RFC 2606)."""
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


class Three(NamedTuple):
    """The cluster, and the file of the authority of its certificates."""

    kafka: RealKafka
    ca: Path


@contextlib.contextmanager
def three_secure(folder: Path) -> Iterator[Three]:
    """Starts the three brokers; ``folder`` gets the certificates."""
    authority = trustme.CA()
    ca = folder / "ca.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    server = identity(folder, "server", authority.issue_cert("localhost", MAPPED_HOST))
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(server.both)}
    listeners = [
        Listener("SASLS", "SASL_SSL", {**tls, **sasl_properties()}, "localhost"),
        Listener("MAPPED", "SSL", tls, MAPPED_HOST),
    ]
    with real_kafka(nodes=NODES, properties=PROPERTIES, listeners=listeners) as cluster:
        add_scram_users(cluster)
        yield Three(cluster, ca)


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    """The cluster itself; tests take :func:`three_kafka`, too."""
    with three_secure(tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_brokers(three: Three) -> RealKafka:
    """The cluster itself; tests take :func:`three_kafka`."""
    return three.kafka


@pytest.fixture
def three_kafka(three_brokers: RealKafka) -> Iterator[RealKafka]:
    """Three healthy brokers, to be killed and frozen as a test likes."""
    wait_until_healthy(three_brokers)
    try:
        yield three_brokers
    finally:
        three_brokers.heal()
        wait_until_healthy(three_brokers)
