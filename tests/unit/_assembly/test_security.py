"""Which mechanism a configuration asks for."""

from __future__ import annotations

import pytest

from forebay._assembly.security import mechanism
from forebay.config import ProducerConfig
from forebay.testing import ManualClock

SERVERS = {"bootstrap.servers": "h:1"}
LOGIN = {"sasl.username": "u", "sasl.password": "p"}


def test_without_security_there_is_nothing() -> None:
    config = ProducerConfig(SERVERS)
    assert mechanism(config, ManualClock(), lambda: 0.5) is None


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_mechanisms(name: str) -> None:
    config = ProducerConfig({**SERVERS, **LOGIN, "security.protocol": "SASL_SSL", "sasl.mechanism": name})
    made = mechanism(config, ManualClock(), lambda: 0.5)
    assert made is not None and made.name == name
