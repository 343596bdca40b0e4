"""Three real brokers for a whole run of the tests, whole again after each test that broke something.

Every topic has three replicas of which two must be in sync; nobody outside of them becomes a leader.  Beside the plain
listener there are ``SASLS`` (TLS, and PLAIN and SCRAM as in ``tests.support.secure``) and ``MAPPED`` (TLS, and a name
that no name server knows).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from tests.support.admin import wait_until_healthy
from tests.support.fixtures import real_kafka
from tests.support.pace import within_ms
from tests.support.secure import MECHANISMS, REAUTHENTICATION_MS, add_scram_users, sasl_properties
from tools.certificates import identity
from tools.kafka import Listener, RealKafka

NODES = 3
MAPPED_HOST = "kafka.invalid"
"""What the brokers advertise on the listener ``MAPPED``: a name that is never resolved (RFC 2606)."""
PROPERTIES = {
    "unclean.leader.election.enable": "false",
    # A dead or frozen broker is noticed in 3 s instead of 9: the tests wait for that.
    "broker.session.timeout.ms": str(within_ms(3000)),
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": str(within_ms(500)),
    "replica.lag.time.max.ms": str(within_ms(5000)),
    # Leaders move when a test says so.
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
    # Certificates of another authority and another name may be taken while a broker runs (KIP-978).
    "ssl.allow.dn.changes": "true",
}


class Three(NamedTuple):
    """The cluster, the file of the authority of its certificates, and the folder with the certificates."""

    kafka: RealKafka
    ca: Path
    folder: Path


def certificate(folder: Path, name: str, authority: trustme.CA) -> Path:
    """The file of a new certificate and key for the brokers' names."""
    return identity(folder, name, authority.issue_cert("localhost", MAPPED_HOST)).both


def three_listeners(folder: Path) -> tuple[Path, list[Listener]]:
    """The file of a new authority, and the listeners beside the plain one; ``folder`` gets the certificates."""
    authority = trustme.CA()
    ca = folder / "ca.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate(folder, "server", authority))}
    again = {f"{name.lower()}.connections.max.reauth.ms": str(REAUTHENTICATION_MS) for name in MECHANISMS}
    return ca, [
        Listener("SASLS", "SASL_SSL", {**tls, **sasl_properties(), **again}, "localhost"),
        Listener("MAPPED", "SSL", tls, MAPPED_HOST),
    ]


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    """The cluster itself; tests take :func:`three_kafka`, too."""
    folder = tmp_path_factory.mktemp("three")
    ca, listeners = three_listeners(folder)
    with real_kafka(nodes=NODES, properties=PROPERTIES, listeners=listeners) as kafka:
        add_scram_users(kafka)
        yield Three(kafka, ca, folder)


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
