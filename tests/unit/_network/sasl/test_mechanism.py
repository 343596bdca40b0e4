"""Every mechanism has what the handshake asks of one."""

from __future__ import annotations

import pytest

from forebay._network.sasl.mechanism import MAX_TOKEN, Blocking, Mechanism
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
    first = next(mechanism.exchange("broker"))
    assert isinstance(first, bytes) and 0 < len(first) < MAX_TOKEN


def test_work_shows_neither_its_arguments_nor_its_result() -> None:
    work = Blocking("a token", lambda: "canary")
    work.run()
    assert work.done and work.result == "canary" and "canary" not in repr(work)


def test_work_that_is_given_up_is_not_run() -> None:
    work = Blocking("a token", lambda: 1)
    work.fail(ValueError("closed"))
    work.run()
    assert work.result is None and isinstance(work.error, ValueError)
