"""Every mechanism has what the handshake asks of one."""

from __future__ import annotations

import pytest

from forebay._network.sasl.mechanism import MAX_TOKEN, Mechanism
from forebay._network.sasl.plain import Plain
from forebay._network.sasl.scram import HASHES, Scram
from forebay.config import Secret

MECHANISMS: list[Mechanism] = [
    Plain("user", Secret("word")),
    *(Scram(name, "user", Secret("word"), lambda size: bytes(size)) for name in HASHES),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_it_names_itself_and_begins_with_a_token(mechanism: Mechanism) -> None:
    assert mechanism.name in ("PLAIN", *HASHES)
    assert "user" in mechanism.who and "word" not in mechanism.who
    assert 0 < len(next(mechanism.exchange("broker"))) < MAX_TOKEN
