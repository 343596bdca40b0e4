"""A real Kafka with TLS and SASL listeners, and the certificates that go with it.

Listeners: ``SSL``, ``MTLS`` (asks for a client certificate), ``SASLP`` (SASL without TLS), ``SASLS`` (SASL over TLS),
``REAUTH`` (as SASLP; wants another authentication after three seconds).  The user is ``alice``, her password
``PASSWORD`` on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from tests.support.fixtures import real_kafka
from tests.support.pace import HANG_S, within_ms
from tools.certificates import Identity, identity
from tools.kafka import Listener, RealKafka

USER = "alice"
PASSWORD = "pa,ss=wörd-canary"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
REAUTHENTICATION_MS = within_ms(3000)
KEY_LIMIT = 1 << 20
"""Bytes after which the brokers change the keys of a TLS 1.3 connection (KeyUpdate)."""


class Secure(NamedTuple):
    """The running cluster and what its clients need."""

    kafka: RealKafka
    authority: trustme.CA
    ca: Path
    client: Identity
    folder: Path

    def options(self, listener: str, **more: str) -> dict[str, str]:
        """The options of a client of a listener, TLS included; without SASL's."""
        protocol = {"SASLP": "SASL_PLAINTEXT", "REAUTH": "SASL_PLAINTEXT", "SASLS": "SASL_SSL"}.get(listener, "SSL")
        options = {"bootstrap.servers": self.kafka.address_of(listener), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            options["ssl.truststore.location"] = str(self.ca)
        if listener == "MTLS":
            options["ssl.keystore.location"] = str(self.client.both)
        return {**options, **more}


def java_escaped(text: str) -> str:
    """For a .properties file, which Java reads as Latin-1."""
    return "".join(sign if sign.isascii() else f"\\u{ord(sign):04x}" for sign in text)


def sasl_properties() -> dict[str, str]:
    """The broker's side of a listener with all mechanisms; SCRAM's users are in the cluster's metadata."""
    jaas = "org.apache.kafka.common.security"
    password = java_escaped(PASSWORD)
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "plain.sasl.jaas.config": f'{jaas}.plain.PlainLoginModule required user_{USER}="{password}";',
        "scram-sha-256.sasl.jaas.config": f"{jaas}.scram.ScramLoginModule required;",
        "scram-sha-512.sasl.jaas.config": f"{jaas}.scram.ScramLoginModule required;",
    }


def listeners(server: Identity, ca: Path) -> list[Listener]:
    """The five listeners."""
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(server.both)}
    asks = {**tls, "ssl.client.auth": "required", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    again = {f"{name.lower()}.connections.max.reauth.ms": str(REAUTHENTICATION_MS) for name in MECHANISMS}
    return [
        Listener("SSL", "SSL", tls),
        Listener("MTLS", "SSL", asks),
        Listener("SASLP", "SASL_PLAINTEXT", sasl_properties()),
        Listener("SASLS", "SASL_SSL", {**tls, **sasl_properties()}),
        Listener("REAUTH", "SASL_PLAINTEXT", {**sasl_properties(), **again}),
    ]


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """One cluster for all tests of security."""
    folder = tmp_path_factory.mktemp("secure")
    authority = trustme.CA()
    ca = folder / "ca.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    server = identity(folder, "server", authority.issue_cert("localhost"))
    client = identity(folder, "client", authority.issue_cert("client.example"))
    java = folder / "java.security"
    java.write_text(
        f"jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate {KEY_LIMIT}, ChaCha20-Poly1305 KeyUpdate {KEY_LIMIT}\n"
    )
    options = [f"-Djava.security.properties={java}"]
    with real_kafka(advertised_host="localhost", listeners=listeners(server, ca), jvm_options=options) as kafka:
        add_scram_users(kafka)
        yield Secure(kafka, authority, ca, client, folder)


def add_scram_users(kafka: RealKafka, iterations: int = 4096, *, user: str = USER, password: str = PASSWORD) -> None:
    """Gives the cluster the user with both hashes, or another password to one that is there."""
    # Not by StorageTool, which takes no comma in a password.
    from confluent_kafka import admin as confluent

    names: Any = confluent  # they are exported, but not by __all__
    admin = names.AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for mechanism in (names.ScramMechanism.SCRAM_SHA_256, names.ScramMechanism.SCRAM_SHA_512):
        info = names.ScramCredentialInfo(mechanism, iterations)
        change = names.UserScramCredentialUpsertion(user, info, password.encode())
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(HANG_S)
