"""close() while the producer gets another producer id, after the last epoch of its first."""

from __future__ import annotations

import pytest

from forebay.errors import KafkaError, KafkaTimeoutError
from tests.fakes.answers import held, hold, reply
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.produce import Answer
from tests.fakes.world import PumpedThread, World

OUT_OF_ORDER, NOT_LEADER = 45, 6


def at_the_last_epoch() -> World:
    """A request with a batch of each of two partitions waits for its answer; the epoch cannot grow any more."""
    world = World(idempotent=True, known=False)
    world.cluster.next_epoch = 32767
    world.learn("test")
    world.cluster.next_epoch = 0
    for partition in (0, 1):
        world.send(b"confirmed", partition=partition)
    world.settle()
    hold(world)
    for partition in (0, 1):
        world.send(b"before", partition=partition)
    world.settle(2)
    (request,) = held(world)
    assert request.body.transactional_id is None
    return world


def test_close_waits_for_the_new_producer_id() -> None:
    """F testCloseWithProducerIdReset: tp0 has a gap, tp1 only a stale leader; both are delivered, within 5 s."""
    world = at_the_last_epoch()
    reply(world, (0, Answer(OUT_OF_ORDER)), (1, Answer(NOT_LEADER)))
    world.cluster.brokers[0].held.clear()
    late = world.send(b"late")
    PumpedThread(world)
    begun = world.now
    world.producer.close()
    assert world.now - begun < 5000
    assert late.result(0).offset == 2
    assert [world.values(partition=partition) for partition in (0, 1)] == [
        [b"confirmed", b"before", b"late"],
        [b"confirmed", b"before"],
    ]
    stamps = [
        [(batch.producer_id, batch.producer_epoch) for batch in world.cluster.logs["test", partition].batches]
        for partition in (0, 1)
    ]
    assert stamps[0] == [(343434, 32767), (343435, 0), (343435, 0)]
    assert stamps[1] == [(343434, 32767)] * 2, "what was in flight ends under the old id"


def test_forced_close_does_not_wait_for_it() -> None:
    """F testForceCloseWithProducerIdReset: nobody gives a new id; what waits fails, and all memory is back."""
    world = at_the_last_epoch()
    reply(world, (0, Answer(OUT_OF_ORDER)), (1, Answer(NOT_LEADER)))
    world.cluster.brokers[0].held = {INIT_PRODUCER_ID}
    late = world.send(b"late")
    world.settle()
    PumpedThread(world)
    with pytest.raises(KafkaTimeoutError, match=r"record\(s\) were not acknowledged within 0.2 s"):
        world.producer.close(0.2)
    error = late.exception(0)
    assert isinstance(error, KafkaError) and "closed forcefully" in str(error)
    assert not world.accumulator.has_incomplete()
    assert world.pool.available() == world.pool.total
