"""``describe``: reads a producer's parts from any thread, as they are.

A list is copied in one step, and then its elements are read, which their owners may change meanwhile.  No lock is held
while a value is made, so nobody waits for a look, and a signal handler may look.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from forebay._insight.values import (
    IdentityDescription,
    MemoryDescription,
    NodeDescription,
    PartitionDescription,
    ProducerDescription,
    TopicDescription,
)
from forebay._metrics.names import PRODUCER
from forebay._metrics.sensor import BOUNDS_MS

if TYPE_CHECKING:
    from forebay._metrics.sensor import TopicSensors


def describe(parts: Any) -> ProducerDescription:
    """The inside of the producer that is made of ``parts`` (``_assembly.Components``)."""
    now = parts.clock.now()
    accumulator = parts.accumulator
    topics = list(accumulator.topics.values())
    queues = [queue for topic in topics for queue in list(topic.queues)]
    busy = [queue for queue in queues if len(queue.batches) > 0 or queue.in_flight > 0]
    partitions = [_partition(queue, parts, now) for queue in busy]
    snapshot = parts.metrics.snapshot(now)
    facts = {name.name: value for name, value in snapshot.items() if name.group == "app-info"}
    started = float(facts.get("start-time-ms", parts.clock.wall()))
    return ProducerDescription(
        client_id=parts.client_id,
        process=os.getpid(),
        time_ms=int(parts.clock.wall()),
        uptime_ms=parts.clock.wall() - started,
        state="closed" if parts.thread.finished else "closing" if parts.sender.closing else "open",
        unfinished=parts.accumulator.unfinished_records(),
        topics=tuple(_topic(name, sensors) for name, sensors in sorted(parts.metrics.topics())),
        partitions=tuple(sorted(partitions, key=lambda each: -each.age_ms)),
        idle_partitions=len(queues) - len(busy),
        memory=_memory(accumulator.pool),
        nodes=tuple(_nodes(parts.client, now)),
        identity=_identity(parts.transactions),
        metrics={
            name.name: float(value)
            for name, value in snapshot.items()
            if name.group == PRODUCER and value == value  # a mean of nothing is no number
        },
    )


def _partition(queue: Any, parts: Any, now: float) -> PartitionDescription:
    batches = list(queue.batches)
    head = batches[0] if batches else None
    error = None if head is None else head.last_error
    opened = batches[-1].estimated_size() if batches and not batches[-1].is_full() else 0
    return PartitionDescription(
        topic=queue.topic,
        partition=queue.partition,
        leader=queue.leader_id,
        batches=len(batches),
        records=sum(batch.record_count for batch in batches),
        bytes=sum(batch.estimated_size() for batch in batches),
        fill=opened / parts.accumulator.pool.poolable_size,
        in_flight=queue.in_flight,
        age_ms=0.0 if head is None else now - head.created,
        attempts=0 if head is None else head.attempts,
        last_error=in_words(error or parts.metadata.last_error(queue.topic)),
    )


def _memory(pool: Any) -> MemoryDescription:
    return MemoryDescription(
        total=pool.total,
        available=pool.available(),
        waiting=tuple((waiter.owner, waiter.size) for waiter in list(pool.waiters.waiting)),
        held=tuple(pool.holders()),
    )


def _nodes(client: Any, now: float) -> Iterator[NodeDescription]:
    for number, state in sorted(client.states.nodes.copy().items()):
        yield NodeDescription(
            id=number,
            address=f"{state.node.host}:{state.node.port}",
            state=state.state.name,
            in_flight=client.in_flight_count(number),
            throttled_ms=max(0.0, state.throttled_until - now),
            failed_attempts=state.failed_attempts,
            last_error=in_words(state.last_error),
        )


def _identity(manager: Any) -> IdentityDescription | None:
    if manager is None:
        return None
    dialog = manager.dialog
    state, error = (manager.state, manager.fatal_error) if dialog is None else (dialog.state, dialog.error)
    return IdentityDescription(
        producer_id=manager.producer_id,
        epoch=manager.producer_epoch,
        state=state.value,
        transactional_id=None if dialog is None else dialog.transactional_id,
        error=in_words(error),
    )


def _topic(name: str, sensors: TopicSensors) -> TopicDescription:
    buckets = sensors.ack_time.buckets()
    return TopicDescription(
        topic=name,
        acknowledged=sum(buckets),
        failed=int(sensors.errors.total),
        retried=int(sensors.retries.total),
        bytes=int(sensors.bytes.total),
        p50_ms=percentile(buckets, 0.5),
        p99_ms=percentile(buckets, 0.99),
    )


def percentile(buckets: tuple[int, ...], share: float) -> float | None:
    """The upper bound of the bucket with that part of the values below it; None if there are no values.

    Args:
        buckets: as ``Histogram.buckets`` gives them.
    """
    left = sum(buckets) * share
    bound: float
    for bound, count in zip((*BOUNDS_MS, float("inf")), buckets, strict=True):
        left -= count
        if count and left <= 0:
            return bound
    return None


def in_words(error: BaseException | None) -> str | None:
    """An error as one line."""
    return None if error is None else " ".join(f"{type(error).__name__}: {error}".split())
