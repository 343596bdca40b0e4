"""A real MIT KDC, and a real Kafka whose listeners ``GSSP`` and ``GSSS`` (over TLS) take Kerberos tickets."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from tests.support.fixtures import WITHOUT, real_kafka
from tests.support.pace import within_ms
from tools.certificates import identity
from tools.kafka import Listener, RealKafka
from tools.kerberos import REALM, Kdc, KdcUnavailable

SERVICE = f"kafka/localhost@{REALM}"
CLIENT = f"alice@{REALM}"
REAUTHENTICATION_MS = within_ms(3000)


class Kerberized(NamedTuple):
    """The KDC, the cluster, the client's keytab, and the authority of the cluster's certificates."""

    kdc: Kdc
    kafka: RealKafka
    keytab: Path
    ca: Path
    folder: Path

    def options(self, listener: str, **more: str) -> dict[str, str]:
        """The options of a client with the keytab."""
        options = {
            "bootstrap.servers": self.kafka.address_of(listener),
            "security.protocol": "SASL_SSL" if listener == "GSSS" else "SASL_PLAINTEXT",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.keytab": str(self.keytab),
            "sasl.kerberos.principal": CLIENT,
            "ssl.truststore.location": str(self.ca),
        }
        if listener != "GSSS":
            del options["ssl.truststore.location"]
        return {**options, **more}


@contextlib.contextmanager
def running_kdc(folder: Path) -> Iterator[Kdc]:
    """A KDC; where the machine has none and gets none the test fails with the reason.  It is for a real Kafka only."""
    if os.environ.get(WITHOUT) == "1":
        pytest.skip(f"{WITHOUT}=1 is set")
    try:
        kdc = Kdc(folder)
        kdc.__enter__()
    except KdcUnavailable as error:
        pytest.fail(str(error), pytrace=False)
    try:
        yield kdc
    finally:
        kdc.stop()


@pytest.fixture(scope="module")
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    """One of each for all tests; ``KRB5_CONFIG`` names the KDC meanwhile."""
    folder = tmp_path_factory.mktemp("kerberos")
    authority = trustme.CA()
    ca = folder / "ca.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    server = identity(folder, "server", authority.issue_cert("localhost"))
    with running_kdc(folder) as kdc, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(kdc.config))
        patch.setenv("KRB5CCNAME", f"FILE:{folder}/nobody")
        keys, keytab = kdc.keytab(SERVICE), kdc.keytab(CLIENT)
        gssapi = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "gssapi.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
            f'storeKey=true keyTab="{keys}" principal="{SERVICE}";',
        }
        tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(server.both)}
        listeners = [
            Listener(
                "GSSP", "SASL_PLAINTEXT", {**gssapi, "gssapi.connections.max.reauth.ms": str(REAUTHENTICATION_MS)}
            ),
            Listener("GSSS", "SASL_SSL", {**gssapi, **tls}),
        ]
        options = [f"-Djava.security.krb5.conf={kdc.config}"]
        with real_kafka(advertised_host="localhost", listeners=listeners, jvm_options=options) as kafka:
            yield Kerberized(kdc, kafka, keytab, ca, folder)
