"""Faults last for a block: what the embedded broker is asked for, in order."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

import pytest

from forebay.errors import IllegalArgumentError, NotLeaderOrFollowerError
from forebay.testing import DISCONNECT, EmbeddedBroker, Faults
from forebay.testing.faults import MANY, api_key


class Asked:
    """Writes down every call."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def faults(asked: Asked) -> Faults:
    return Faults(cast(EmbeddedBroker, asked))


def fail_in(context: AbstractContextManager[None], asked: Asked, seen: list[Any]) -> None:
    with context:
        seen += asked.calls
        raise ZeroDivisionError


def test_each_ends_with_its_block_also_by_an_error(asked: Asked, faults: Faults) -> None:
    cases: tuple[tuple[AbstractContextManager[None], tuple[Any, ...], tuple[Any, ...]], ...] = (
        (faults.down(2), ("node_down", 2), ("node_up", 2)),
        (faults.slow(50), ("set_rtt", 50, None), ("set_rtt", 0, None)),
        (faults.topic_error("t", 29), ("set_topic_error", "t", 29), ("set_topic_error", "t", 0)),
        (
            faults.refuse("Produce", NotLeaderOrFollowerError, times=2),
            ("push_request_errors", 0, NotLeaderOrFollowerError, NotLeaderOrFollowerError),
            ("clear_request_errors", 0),
        ),
    )
    for context, begun, ended in cases:
        asked.calls.clear()
        seen: list[Any] = []
        with pytest.raises(ZeroDivisionError):
            fail_in(context, asked, seen)
        assert seen == [begun]
        assert asked.calls == [begun, ended]


def test_all_requests_of_the_block_are_refused(asked: Asked, faults: Faults) -> None:
    with faults.refuse(22, DISCONNECT):
        assert asked.calls == [("push_request_errors", 22, *[DISCONNECT] * MANY)]


def test_a_partition_without_a_leader(asked: Asked, faults: Faults) -> None:
    with faults.without_leader("t", 1, back_to=3):
        assert asked.calls[-1] == ("set_leader", "t", 1, None) and asked.calls[0][0] == "set_api_versions"
    assert asked.calls[-1] == ("set_leader", "t", 1, 3)


def test_what_cannot_be(faults: Faults) -> None:
    assert api_key("InitProducerId") == 22 and api_key(7) == 7
    with pytest.raises(IllegalArgumentError, match="API 'produce' is not known; there are Produce, Fetch"):
        api_key("produce")
    with pytest.raises(IllegalArgumentError, match="at least 1, not 0"), faults.refuse("Produce", 1, times=0):
        pass
