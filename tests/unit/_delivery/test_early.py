"""Outcomes that are told while the callbacks cannot run: what futures say then, and what callbacks hear later."""

from __future__ import annotations

from typing import Any

from forebay._delivery.early import foretell
from forebay._delivery.future import BatchResult, RecordFuture
from forebay._delivery.split import split_result
from forebay.errors import KafkaError
from tests.fakes.tickets import CountingTicket
from tests.unit._accumulator.shelf import Shelf, quiet


def pending(count: int, **more: Any) -> tuple[list[RecordFuture], BatchResult]:
    """Futures of one batch of ``count`` records, and its result."""
    shelf = Shelf(batch_size=65536)
    futures = [shelf.append(0, 1, timestamp=1000 + number, **more) for number in range(count)]
    return futures, futures[0]._batch


def test_an_outcome_told_before_the_callbacks_run() -> None:
    """Whoever waits goes on; the callbacks hear the same outcome later, whatever is set then."""
    heard: list[str] = []
    futures, result = pending(2, callback=lambda metadata, error: heard.append(f"delivery {metadata.offset}"))
    futures[1].add_done_callback(lambda future: heard.append(f"done {future.result(0).offset}"))
    ticket = CountingTicket()
    assert not result.subscribe(ticket)
    assert foretell(result, 40, -1, None, 2) and foretell(result, 50, -1, KafkaError("twice"), 2)
    assert ticket.woken == 1 and heard == []
    assert [future.result(0).offset for future in futures] == [40, 41] and all(future.done() for future in futures)
    futures[0].add_done_callback(lambda future: heard.append("at once"))
    assert result.settle(-1, -1, KafkaError("later"), None, 2, quiet)
    assert heard == ["at once", "delivery 40", "delivery 41", "done 41"]
    assert not result.settle(-1, -1, KafkaError("again"), None, 2, quiet)
    assert [future.exception(0) for future in futures] == [None, None]


def test_an_outcome_that_is_set_is_told_as_it_is() -> None:
    (future,), result = pending(1)
    result.settle(-1, -1, KafkaError("refused"), None, 1, quiet)
    assert not foretell(result, 7, -1, None, 1)
    assert str(future.exception(0)) == "refused"


def test_what_was_told_early_holds_for_the_parts() -> None:
    """close() gave up the batch, and then the sender's thread splits it: the callbacks hear what the futures say."""
    told: list[Any] = []
    futures, whole = pending(4, callback=lambda metadata, error: told.append((metadata.offset, str(error))))
    assert not foretell(whole, -1, -1, KafkaError("closed"), 4)
    first, second = BatchResult("test", 0, None, 0), BatchResult("test", 0, None, 2)
    assert split_result(whole, [first, second])
    assert [str(future.exception(0)) for future in futures] == ["closed"] * 4
    first.settle(5, -1, None, None, 2, quiet)
    second.settle(-1, -1, KafkaError("later"), None, 2, quiet)
    assert told == [(-1, "closed")] * 4
    assert [str(future.exception(0)) for future in futures] == ["closed"] * 4
