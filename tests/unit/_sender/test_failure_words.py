"""The words for a batch that ran out of time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from forebay._sender.failure_words import expiry_error, waiting_phase
from forebay.errors import KafkaTimeoutError, NotLeaderOrFollowerError
from tests.unit._accumulator.shelf import Shelf


def test_one_that_was_never_sent() -> None:
    shelf = Shelf(leaders=(-1,))
    shelf.append(0, 3)
    (batch,) = shelf.batches()
    error = expiry_error(batch, "waiting", shelf.now + 120_000)
    assert isinstance(error, KafkaTimeoutError) and error.retriable
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


def phase(shelf: Shelf, batch: Any) -> str:
    """Of a batch that was just taken out of its queue, with nothing wrong with its node."""
    client = SimpleNamespace(unready_reason=lambda node, now: None)
    return waiting_phase(batch, shelf.now, client=client, transactions=None, schedule=shelf.schedule)


def tried_once(shelf: Shelf) -> Any:
    """A batch that waits for its second attempt."""
    shelf.append()
    shelf.clock.advance(10)
    assert shelf.ready().nodes == [0]
    (batch,) = shelf.drain(0)
    shelf.schedule.reenqueue(batch, shelf.now, None)
    assert batch.retry_at > shelf.now
    return batch


def test_a_back_off_that_has_ended_since_the_last_look_kept_the_batch_all_the_same() -> None:
    """Delivery timeout and back-off end between two turns: it was never free to go."""
    shelf = Shelf()
    batch = tried_once(shelf)
    assert shelf.ready().nodes == []
    assert phase(shelf, batch) == "backing off"
    shelf.clock.advance(batch.retry_at - shelf.now + 5)
    assert phase(shelf, batch) == "backing off"


def test_one_that_was_free_to_go_and_was_passed_over_is_queued() -> None:
    shelf = Shelf()
    batch = tried_once(shelf)
    shelf.clock.advance(batch.retry_at - shelf.now)
    assert shelf.ready().nodes == [0]
    assert phase(shelf, batch) == "queued"


def test_one_that_was_never_tried_lingers_and_then_is_queued() -> None:
    shelf = Shelf(linger=10)
    shelf.append()
    (batch,) = shelf.batches()
    assert phase(shelf, batch) == "lingering"
    shelf.clock.advance(10)
    assert phase(shelf, batch) == "queued"
