"""The words for a batch that ran out of time."""

from __future__ import annotations

from forebay._sender.expiry import expiry_error
from forebay.errors import NotLeaderOrFollowerError, TimeoutError
from tests.unit._accumulator.shelf import Shelf


def test_one_that_was_never_sent() -> None:
    shelf = Shelf(leaders=(-1,))
    shelf.append(0, 3)
    (batch,) = shelf.batches()
    error = expiry_error(batch, "waiting", shelf.now + 120_000)
    assert isinstance(error, TimeoutError) and error.retriable
    assert error.message == "Expiring 3 record(s) for test-0:120000 ms has passed since batch creation"
    assert error.context == {"phase": "waiting", "attempts": 0, "age_ms": 120000, "node": "unknown"}
    assert error.__cause__ is None


def test_the_leader_it_waited_for() -> None:
    shelf = Shelf(leaders=(0, 0, 1))
    shelf.append(2)
    assert expiry_error(shelf.batches(2)[0], "waiting", shelf.now).context["node"] == 1


def test_one_in_flight_tells_node_attempts_and_the_last_error() -> None:
    shelf = Shelf()
    shelf.append()
    (batch,) = shelf.drain(0)
    batch.attempts = 2
    batch.last_node = 7
    batch.last_error = NotLeaderOrFollowerError("moved")
    error = expiry_error(batch, "in flight", shelf.now + 5)
    assert error.context == {
        "phase": "in flight",
        "attempts": 3,
        "age_ms": 5,
        "node": 7,
        "last_error": "NotLeaderOrFollowerError: moved",
    }
    assert error.__cause__ is batch.last_error
    assert "attempts=3" in str(error)
