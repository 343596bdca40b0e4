"""purge() of a whole producer: which records fail, with what, and how the producer goes on."""

from __future__ import annotations

import threading

import pytest

from forebay.errors import IllegalStateError, KafkaError, PurgedError
from tests.fakes.answers import hold, reply
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.produce import Answer, batches_of
from tests.fakes.world import Told, World


def purged(future: object) -> object:
    """The phase in which a record was purged."""
    error = future.exception(0)  # type: ignore[attr-defined]
    assert isinstance(error, PurgedError), error
    return error.context["phase"]


@pytest.mark.parametrize("idempotent", [False, True])
def test_what_waits_is_dropped_and_its_memory_comes_back(idempotent: bool) -> None:
    world = World(linger_ms=5000, idempotent=idempotent)
    told = Told()
    futures = [world.send(partition=number % 2, on_delivery=told) for number in range(4)]
    world.producer.purge(blocking=False)
    world.settle(1)
    assert [purged(future) for future in futures] == ["queued"] * 4
    assert [type(error) for _, error in told] == [PurgedError] * 4
    assert world.pool.available() == world.pool.total
    assert world.parts.metrics.record_errors.total == 4
    assert world.cluster.requests() == []


def test_records_that_are_sent_after_the_call_are_not_touched() -> None:
    world = World(linger_ms=5000)
    before = world.send()
    world.producer.purge(blocking=False)
    after = world.send()
    world.run(6000, step=1000)
    assert purged(before) == "queued"
    assert after.result(0).offset == 0


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({"in_flight": False}, (None, "queued")),
        ({"in_queue": False}, ("in flight", None)),
        ({}, ("in flight", "queued")),
    ],
)
def test_in_queue_and_in_flight(which: dict[str, bool], expected: tuple[str | None, str | None]) -> None:
    world = World(max_in_flight_requests_per_connection=1)
    hold(world)
    sent = world.send()
    world.settle()
    waiting = world.send()
    world.producer.purge(blocking=False, **which)
    world.settle(1)
    for future, phase in zip((sent, waiting), expected, strict=True):
        assert future.done() == (phase is not None)
        assert phase is None or purged(future) == phase
    reply(world, (0, Answer()))
    world.settle(3)
    if not waiting.done():
        reply(world, (0, Answer()))
        world.settle(3)
    assert sent.done() and waiting.done()
    assert world.pool.available() == world.pool.total


def test_a_record_that_waits_for_another_attempt_counts_as_in_flight() -> None:
    world = World(retry_backoff_ms=1000, retry_backoff_max_ms=1000)
    world.cluster.fail("test", 0, 7)
    future = world.send()
    world.settle()
    world.producer.purge(in_flight=False, blocking=False)
    world.settle(2)
    assert not future.done()
    world.producer.purge(in_queue=False, blocking=False)
    world.settle(2)
    assert purged(future) == "in flight"


@pytest.mark.parametrize("written", [True, False])
def test_an_idempotent_producer_goes_on_in_order(written: bool) -> None:
    """Whatever becomes of what was purged: later records follow under the next epoch, and are not taken for it."""
    world = World(idempotent=True)
    hold(world)
    lost = world.send(b"lost")
    world.settle()
    world.producer.purge(blocking=False)
    world.settle(2)
    assert purged(lost) == "in flight"
    assert world.pool.available() < world.pool.total, "the request may still be written"
    following = world.send(b"following")
    world.settle()
    if not written:
        reply(world, (0, Answer(7)))
    world.cluster.brokers[0].held.clear()
    world.cluster.brokers[0].release()
    world.run(500)
    assert following.result(0).offset == (1 if written else 0)
    batches = [next(iter(batches_of(request).values())) for request in world.cluster.requests()]
    assert [(batch.producer_epoch, batch.base_sequence) for batch in batches] == [(0, 0), (1, 0)]
    assert world.pool.available() == world.pool.total


def test_a_transaction_with_a_purged_record_can_only_be_aborted() -> None:
    world = TransactionalWorld(linger_ms=5000)
    world.begin()
    future = world.send()
    world.producer.purge(blocking=False)
    world.settle(2)
    error = future.exception(0)
    assert isinstance(error, PurgedError) and error.txn_requires_abort
    with pytest.raises(KafkaError, match="purged before they were sent"):
        world.commit()
    world.abort()
    world.begin()
    again = world.send()
    world.commit()
    assert again.result(0).offset >= 0
    assert world.committed() == [b"v"]


def test_in_a_callback_it_does_not_wait() -> None:
    world = World(linger_ms=5000)
    world.parts.thread.ident = threading.get_ident()
    with pytest.raises(IllegalStateError, match="blocking=False"):
        world.producer.purge()


def test_a_purge_after_the_end_returns() -> None:
    world = World(linger_ms=5000)
    future = world.send()
    world.parts.thread._end()
    assert "closed forcefully" in str(future.exception(0))
    world.producer.purge()


def test_parts_of_a_batch_that_was_split_meanwhile_are_dropped_too() -> None:
    world = World(linger_ms=10, batch_size=1000)
    world.cluster.fail("test", 0, 10)
    futures = [world.send(b"x" * 300) for _ in range(3)]
    hold(world)
    world.run(20)
    world.producer.purge(blocking=False)
    reply(world, (0, Answer(10)))
    world.settle()
    assert {purged(future) for future in futures} <= {"queued", "in flight"}
