"""More of the Java accumulator's checks: full, muted, partly drained, aborted, and adaptive partitions."""

from __future__ import annotations

from collections import Counter

from forebay.errors import KafkaError
from tests.unit._accumulator.shelf import Shelf, quiet

FIT = 68
"""Records of a key and a value that a batch of 1025 + 61 bytes holds."""


def test_full() -> None:
    """B testFull: not ready while the one batch has room; with the next record it is, and goes out alone."""
    shelf = Shelf(batch_size=1025 + 61, linger=10)
    for _ in range(FIT):
        shelf.append()
        assert len(shelf.batches()) == 1
        assert shelf.ready().nodes == []
    shelf.append()
    full, opened = shelf.batches()
    assert (full.record_count, opened.record_count) == (FIT, 1)
    assert shelf.ready().nodes == [0]
    assert shelf.drain(0) == [full]
    assert shelf.batches() == [opened]
    assert shelf.ready().nodes == []


def test_partial_drain() -> None:
    """B testPartialDrain: two full batches, and room for one of them in a request of 1024 bytes."""
    shelf = Shelf(batch_size=1025 + 61, linger=10)
    for partition in (0, 1):
        shelf.append(partition, FIT + 1)
    assert shelf.ready().nodes == [0]
    (first,) = shelf.drain(0, 1024)
    (second,) = shelf.drain(0, 1024)
    assert {first.partition, second.partition} == {0, 1}


def test_muted_partitions() -> None:
    """B testMutedPartitions: what has lingered is neither ready nor drained while muted, both afterwards."""
    shelf = Shelf(batch_size=1025 + 61, linger=10)
    for _ in range(FIT):
        shelf.append()
        assert shelf.ready().nodes == []
    shelf.clock.advance(2000)
    shelf.queue().muted = True
    assert shelf.ready().nodes == []
    assert shelf.drain(0) == []
    shelf.queue().muted = False
    assert shelf.ready().nodes == [0]
    shelf.queue().muted = True
    assert shelf.drain(0) == []
    shelf.queue().muted = False
    (batch,) = shelf.drain(0)
    assert batch.record_count == FIT


def test_abort_of_everything() -> None:
    """B testAbortIncompleteBatches: each of 100 records hears the error, drained or not, and all memory is back."""
    shelf = Shelf(batch_size=128, pool=64 * 1024, linger=float("inf"))
    errors: list[BaseException | None] = []
    for number in range(100):
        shelf.append(number % 3, callback=lambda report: errors.append(report.error))
    drained = shelf.drain(0) + shelf.drain(1)
    assert shelf.schedule.has_undrained() and shelf.accumulator.has_incomplete()
    assert 0 < sum(batch.record_count for batch in drained) < 100
    assert not any(batch.done for batch in drained)
    cause = KafkaError("the producer is closed forcefully")
    for batch in (*shelf.accumulator.take_waiting(), *drained):
        batch.abort(cause, quiet)
        shelf.accumulator.deallocate(batch)
    assert [repr(error) for error in errors] == [repr(cause)] * 100
    assert not shelf.schedule.has_undrained() and not shelf.accumulator.has_incomplete()
    assert shelf.pool.available() == shelf.pool.total


def picks(shelf: Shelf, count: int) -> Counter[int]:
    """Which partitions the topic's partitioner chooses next, each for as long as it may stay."""
    partitioner = shelf.topic.partitioner
    return Counter(partitioner.next_partition() for _ in range(count))


def test_adaptive_partitions_by_their_queues() -> None:
    """B testAdaptiveBuiltInPartitioner: in proportion to how much shorter than the longest a queue is, plus 1."""
    shelf = Shelf(batch_size=61 + 20, leaders=(0, 0, 1), adaptive=True, availability=50)
    for partition, batches in enumerate((1, 7, 2)):
        shelf.append(partition, batches)
        assert len(shelf.batches(partition)) == batches
    shelf.ready()
    assert picks(shelf, 2 * (7 + 1 + 6)) == {0: 2 * 7, 1: 2 * 1, 2: 2 * 6}


def test_adaptive_partitions_of_a_broker_that_takes_nothing() -> None:
    """B testAdaptiveBuiltInPartitioner: none of its partitions while it takes nothing, and some again when it does.

    Looked at once some queue has more than one batch, which the queue of a broker that takes nothing soon has.
    """
    shelf = Shelf(batch_size=61 + 20, leaders=(0, 0, 1), adaptive=True, availability=50)
    for partition in range(3):
        shelf.append(partition, 2)
    schedule = shelf.schedule
    for node in (0, 1):
        schedule.loads.update_node_latency(node, shelf.now, True)
    shelf.clock.advance(51)
    schedule.loads.update_node_latency(0, shelf.now, True)
    schedule.loads.update_node_latency(1, shelf.now, False)
    shelf.ready()
    assert set(picks(shelf, 60)) == {0, 1}
    schedule.loads.update_node_latency(1, shelf.now, True)
    shelf.ready()
    assert set(picks(shelf, 60)) == {0, 1, 2}
