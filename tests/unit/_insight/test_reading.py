"""_insight.reading: what describe() sees, while records wait, are in flight, are refused and are done."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from forebay._insight.reading import percentile
from forebay._metrics.sensor import Histogram
from forebay.errors import ForkedProducerError
from forebay.producer._path import FORKED
from tests.fakes.broker import PRODUCE
from tests.fakes.world import World
from tests.support.pace import HANG_S


def test_records_that_wait() -> None:
    world = World(linger_ms=100, batch_size=1000, topics={"test": 3, "other": 1}, client_id="me")
    for partition, count in ((0, 3), (1, 2)):
        for _ in range(count):
            world.send(bytes(100), partition=partition)
        world.advance(20)
    seen = world.producer.describe()
    assert (seen.client_id, seen.process, seen.state, seen.unfinished) == ("me", os.getpid(), "open", 5)
    first, second = seen.partitions
    assert (first.topic, first.partition, first.leader, first.batches, first.records) == ("test", 0, 0, 1, 3)
    assert (first.age_ms, second.age_ms) == (40, 20)
    assert 300 < first.bytes < 500 and first.fill == first.bytes / 1000
    assert (first.attempts, first.last_error, first.in_flight) == (0, None, 0)
    assert seen.idle_partitions == 2
    used = seen.memory.total - seen.memory.available
    assert used == dict(seen.memory.held)[0] and first.bytes + second.bytes <= used <= 2000
    assert seen.memory.waiting == ()
    assert seen.identity is None


def test_records_in_flight_and_their_end() -> None:
    world = World(client_id="me")
    world.cluster.brokers[0].held.add(PRODUCE)
    world.send(b"v")
    world.settle()
    (partition,) = world.producer.describe().partitions
    assert (partition.batches, partition.in_flight, partition.age_ms) == (0, 1, 0)
    (node,) = [node for node in world.producer.describe().nodes if node.id == 0]
    assert (node.state, node.in_flight, node.last_error) == ("READY", 1, None)
    world.advance(3)
    world.cluster.brokers[0].release()
    world.settle()
    seen = world.producer.describe()
    assert seen.partitions == () and seen.unfinished == 0
    (topic,) = seen.topics
    assert (topic.topic, topic.acknowledged, topic.failed, topic.retried, topic.p50_ms, topic.p99_ms) == (
        "test", 1, 0, 0, 4.0, 4.0
    )  # fmt: skip
    assert topic.bytes > 60
    assert seen.metrics["record-send-total"] == 1
    assert "produce-throttle-time-avg" in seen.metrics and "batch-split-rate" in seen.metrics
    assert "reauthentication-latency-avg" not in seen.metrics


def test_what_is_tried_again() -> None:
    world = World()
    world.cluster.fail("test", 0, 19, 19, 19)
    world.send(b"v")
    world.settle(3)
    (partition,) = world.producer.describe().partitions
    assert partition.attempts == 1 and partition.batches == 1
    assert str(partition.last_error).startswith("NotEnoughReplicasError: ")
    world.run(1000)
    (topic,) = world.producer.describe().topics
    assert (topic.acknowledged, topic.retried) == (1, 3)


def test_a_broker_that_cannot_be_reached() -> None:
    world = World()
    world.cluster.down(0)
    world.cluster.brokers[0].drop()
    world.send(b"v")
    world.run(300)
    nodes = {node.id: node for node in world.producer.describe().nodes}
    assert nodes[0].state != "READY" and nodes[0].failed_attempts >= 1
    assert "Error: " in str(nodes[0].last_error)
    assert nodes[0].address.startswith("127.0.0.1:")


def test_who_waits_for_memory() -> None:
    world = World(batch_size=1000, buffer_memory=2000, max_block_ms=60_000)
    world.cluster.brokers[0].held.add(PRODUCE)
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    waiting = threading.Thread(target=world.send, args=(bytes(900),))
    waiting.start()
    try:
        while world.pool.queued() == 0:
            pass
        memory = world.producer.describe().memory
        assert memory.waiting == ((0, 1000),)
        assert memory.available == 0
    finally:
        world.cluster.brokers[0].release()
        while waiting.is_alive():
            world.settle()
        waiting.join()


def test_producer_id_and_transaction() -> None:
    seen = World(idempotent=True).producer.describe().identity
    assert seen is not None
    assert (seen.transactional_id, seen.state, seen.error) == (None, "READY", None) and seen.producer_id > 0
    seen = World(idempotent=True, transactional_id="t", known=False).producer.describe().identity
    assert seen is not None
    assert (seen.producer_id, seen.transactional_id, seen.state) == (-1, "t", "UNINITIALIZED")


def test_states_of_the_producer() -> None:
    world = World()
    assert world.producer.describe().state == "open"
    world.sender.request_close()
    assert world.producer.describe().state == "closing"
    world.parts.thread.finished = True
    assert world.producer.describe().state == "closed"
    world.producer._set_state(FORKED)
    with pytest.raises(ForkedProducerError):
        world.producer.describe()


def test_describing_while_others_send() -> None:
    """Any thread may look, and no lock is taken, so what it reads changes under its hands."""
    world = World(topics={"test": 20}, batch_size=500, buffer_memory=64 << 20)
    failures: list[Any] = []
    over = threading.Event()

    def look() -> None:
        try:
            while not over.is_set():
                seen = world.producer.describe()
                assert all(each.records >= 0 and each.age_ms >= 0 for each in seen.partitions)
        except BaseException as error:  # noqa: BLE001 - asserted on below
            failures.append(error)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    for number in range(2000):
        world.send(bytes(50), partition=number % 20)
        if number % 50 == 0:
            world.turn()
    over.set()
    for looker in lookers:
        looker.join(HANG_S)
    assert failures == []


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, None), ([3.0], 0.5, 4.0), ([1.0] * 99 + [100.0], 0.5, 1.0), ([1.0] * 98 + [100.0] * 2, 0.99, 128.0),
     ([1.0] * 99 + [100.0], 0.99, 1.0), ([1e9], 0.5, float("inf"))],
)  # fmt: skip
def test_percentiles(values: list[float], share: float, expected: float | None) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record_even(value, value, 1)
    assert percentile(histogram.buckets(), share) == expected
