"""_sender.outcomes: what is counted of a request when it is sent, and of a batch when it is acknowledged."""

from __future__ import annotations

from forebay._metrics.registry import Kind
from forebay._metrics.sensor import BOUNDS_MS
from tests.fakes.world import World


def ack_times(world: World, topic: str = "test") -> dict[float, int]:
    """The buckets of the topic's histogram that hold records, by their bounds."""
    (found,) = [
        reading.buckets
        for reading in world.parts.metrics.readings(world.now)
        if reading.name.kind is Kind.HISTOGRAM and ("topic", topic) in reading.name.tags
    ]
    return {bound: count for bound, count in zip((*BOUNDS_MS, float("inf")), found, strict=True) if count}


def test_batches_and_records_are_counted_by_topic_and_together() -> None:
    world = World()
    world.cluster.create("other", 1) if "other" not in world.cluster.topics else None
    for number in range(3):
        world.send(bytes(100 * number), partition=0)
    world.send(b"v", partition=1)
    world.settle()
    assert world.metric("record-send-total", "producer-topic-metrics", topic="test") == 4
    assert world.metric("byte-total", "producer-topic-metrics", topic="test") == 2 * world.metric("batch-size-avg")
    assert world.metric("compression-rate", "producer-topic-metrics", topic="test") == 1
    assert world.metric("record-size-max") > 200 > world.metric("record-size-avg")


def test_the_time_to_the_acknowledgement_is_from_each_record_s_send() -> None:
    world = World(linger_ms=100)
    for _ in range(4):
        world.send(b"v", partition=0)
        world.let_pass(40)
    world.settle()
    # The batch left 100 ms after its first record, with two more, so their ages are from 20 to 100 ms.
    assert ack_times(world) == {64.0: 1, 128.0: 2}
    world.let_pass(200)
    assert ack_times(world) == {64.0: 1, 128.0: 3}


def test_timestamps_of_the_caller_do_not_count() -> None:
    world = World(linger_ms=100)
    world.send(b"v", partition=0, timestamp=5)
    world.send(b"v", partition=0, timestamp=10**12)
    world.send(b"v", partition=0, timestamp=0)
    world.let_pass(110)
    world.settle()
    assert sum(ack_times(world).values()) == 3
    assert max(ack_times(world)) <= 128.0


def test_a_record_that_failed_has_no_time_of_acknowledgement() -> None:
    world = World()
    world.cluster.fail("test", 0, 29)
    world.send()
    world.settle()
    assert world.metric("record-error-total") == 1
    assert ack_times(world) == {}
