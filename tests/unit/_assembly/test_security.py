"""Which filter and which mechanism a configuration asks for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from forebay._assembly.security import mechanism, tls_filters
from forebay.config import ProducerConfig
from forebay.testing import ManualClock

SERVERS = {"bootstrap.servers": "h:1"}
LOGIN = {"sasl.username": "u", "sasl.password": "p"}


def test_without_security_there_is_nothing() -> None:
    config = ProducerConfig(SERVERS)
    assert tls_filters(config, ManualClock()) is None and mechanism(config) is None


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_mechanisms(name: str) -> None:
    made = mechanism(ProducerConfig({**SERVERS, **LOGIN, "security.protocol": "SASL_SSL", "sasl.mechanism": name}))
    assert made is not None and made.name == name


def test_filters() -> None:
    make = tls_filters(ProducerConfig({**SERVERS, "security.protocol": "SSL"}), ManualClock())
    assert make is not None
    made = make("broker")
    made.start()
    assert made.outgoing()[:1] == b"\x16", "a ClientHello"


def test_a_producer_without_tls_imports_no_ssl() -> None:
    program = (
        "import sys; from forebay import KafkaProducer; KafkaProducer(bootstrap_servers='127.0.0.1:1').close(); "
        "print([name for name in ('ssl', 'hmac', 'forebay._network.tls') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
