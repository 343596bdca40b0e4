"""_sender.outcomes, RequestSensors: what is counted of a request when it is sent."""

from __future__ import annotations

from tests.fakes.world import World


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
