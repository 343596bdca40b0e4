"""What one drain takes: turns among partitions, the request's size, the gate, and what is passed over."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from forebay._records.compression import CompressionType, compressor
from forebay.model._gate import Gate, StampedBatch
from tests.unit._accumulator.shelf import Holding, Shelf


def test_drain_takes_turns() -> None:
    """B testDrainBatches: one batch a partition, and the next drain goes on where the last one had to stop."""
    shelf = Shelf(batch_size=5 + 61, linger=10, leaders=(0, 0, 1, 1))
    for partition in range(4):
        shelf.append(partition)
    assert shelf.drain_partitions(0, 1, max_size=66) == [0, 2]
    shelf.append(0)
    shelf.append(2)
    assert shelf.drain_partitions(0, 1, max_size=66) == [1, 3]
    assert shelf.drain_partitions(0, 1, max_size=66) == [0, 2]
    for partition in (1, 2, 3):
        shelf.append(partition)
    shelf.queue(3).muted = True
    assert shelf.drain_partitions(0, 1, max_size=66) == [1, 2]
    for partition in (0, 1, 2):
        shelf.append(partition)
    shelf.queue(3).muted = False
    assert sorted(shelf.drain_partitions(0, 1)) == [0, 1, 2, 3]


def test_drain_for_a_node_without_partitions() -> None:
    """B testDrainWithANodeThatDoesntHostAnyPartitions: nothing, and no error."""
    shelf = Shelf(leaders=(0, 0, 0))
    shelf.append()
    assert shelf.drain(1) == []
    assert len(shelf.drain(0)) == 1


def test_a_batch_larger_than_the_request_goes_alone() -> None:
    shelf = Shelf(leaders=(0, 0, 0))
    shelf.append(0, 1, bytes(5000))
    shelf.append(1)
    assert shelf.drain_partitions(0, max_size=1000) == [0]
    assert shelf.drain_partitions(0, max_size=1000) == [1]


def test_what_does_not_fit_is_first_in_the_next_request() -> None:
    shelf = Shelf(leaders=(0, 0, 0))
    shelf.append(0, 10)
    shelf.append(1, 1, bytes(900))
    shelf.append(2)
    shelf.append(0)
    assert shelf.drain_partitions(0, max_size=1000) == [0]
    assert shelf.drain_partitions(0, max_size=2000) == [1, 2]


def test_one_blocked_partition_does_not_hold_up_its_broker() -> None:
    """The gate, a backoff or mute pass over one partition; the Java client stops serving the whole broker there."""
    shelf = Shelf(leaders=(0, 0, 0, 0))
    shelf.append(1)
    (retried,) = shelf.drain(0)
    shelf.schedule.reenqueue(retried, shelf.now, None)
    for partition in (0, 2, 3):
        shelf.append(partition)
    shelf.queue(2).muted = True
    gate = Holding(0)
    assert [batch.partition for batch in shelf.drain(0, gate=gate)] == [3]
    assert gate.stamped == [3]
    shelf.queue(2).muted = False
    shelf.clock.advance(100)
    assert [batch.partition for batch in shelf.drain(0, gate=Holding())] == [1, 0, 2]


def test_a_batch_that_backs_off_and_would_not_fit_is_passed_over_too() -> None:
    shelf = Shelf(leaders=(0, 0, 0))
    shelf.append(1, 1, bytes(900))
    (retried,) = shelf.drain(0)
    shelf.append(0)
    shelf.append(2)
    assert shelf.ready().nodes == [0]
    shelf.schedule.reenqueue(retried, shelf.now, None)
    shelf.append(0)
    assert sorted(shelf.drain_partitions(0, max_size=500)) == [0, 2]


def test_empty_queues_leave_the_line_and_come_back() -> None:
    shelf = Shelf()
    for _ in range(3):
        shelf.append()
        assert shelf.ready().nodes == [0]
        assert len(shelf.drain(0)) == 1
        assert not shelf.schedule.has_undrained()
        assert shelf.drain(0) == []
    assert "{0: 0}" in repr(shelf.schedule)


class Looking(Gate):
    """Notes for which topic a batch was to go when it was judged; metadata comes in before it is stamped."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.judged: list[int] = []

    def may_drain(self, queue: Any, batch: StampedBatch) -> bool:
        self.judged.append(batch.incarnation)
        self.shelf.topic_id = b"%016d" % len(self.judged)
        self.shelf.update()
        return True

    def stamp(self, queue: Any, batch: StampedBatch) -> int:
        self.judged.append(batch.incarnation)
        return 0


def test_a_batch_goes_to_the_topic_that_it_was_judged_for() -> None:
    """Another thread may apply metadata between two steps of a drain."""
    shelf = Shelf()
    gate = Looking(shelf)
    shelf.topic_id = b"first".ljust(16)
    shelf.update()
    shelf.append()
    (batch,) = shelf.drain(0, gate=gate)
    assert (batch.topic_id, batch.incarnation, gate.judged) == (b"first".ljust(16), 0, [0, 0])
    shelf.schedule.reenqueue(batch, shelf.now, None)
    shelf.clock.advance(1000)
    assert shelf.drain(0) == [batch]
    assert (batch.topic_id, batch.incarnation) == (b"%016d" % 1, 1)


def test_another_topic_of_the_name_has_epochs_of_its_own() -> None:
    """Else a batch that was meant for the topic before had its leader's epoch for ever, which no leader has now."""
    shelf = Shelf(epoch=101)
    shelf.topic_id = b"first".ljust(16)
    shelf.update()
    shelf.append()
    (batch,) = shelf.drain(0)
    assert (batch.incarnation, batch.leader_epoch) == (0, 101)
    shelf.schedule.reenqueue(batch, shelf.now, None)
    shelf.topic_id, shelf.epochs[0] = b"second".ljust(16), 0
    shelf.update()
    shelf.clock.advance(1000)
    assert shelf.drain(0) == [batch]
    assert (batch.incarnation, batch.leader_epoch) == (1, 0)


class Meanwhile(Holding):
    """A gate that takes its time: other threads append while it is asked."""

    def __init__(self, append: Callable[[], object]) -> None:
        super().__init__()
        self.append = append

    def may_drain(self, queue: Any, batch: StampedBatch) -> bool:
        self.append()
        return True


class Helpers:
    """They accept what is to be compressed, and do nothing yet."""

    def accept(self, queue: object, size: int) -> bool:
        return True


def test_a_head_that_is_filled_while_the_gate_is_asked_is_left_to_its_filler() -> None:
    shelf = Shelf(compressor=compressor(CompressionType.LZ4), batch_size=256)
    closer = shelf.accumulator.closer
    closer.helpers = Helpers()
    closer.helped_threads.add(threading.get_ident())
    shelf.append(0, 1, os.urandom(50))
    (head,) = shelf.batches()

    def fill() -> None:
        while len(shelf.batches()) < 2:
            shelf.append(0, 1, os.urandom(50))

    gate = Meanwhile(fill)
    assert shelf.drain(0, gate=gate) == [] and gate.stamped == []
    assert head.closing and shelf.batches()[0] is head
    closer.compress_queues([shelf.queue()])
    assert shelf.drain(0, gate=Holding()) == [head] and head.closed


def test_a_head_that_grows_while_the_gate_is_asked_may_fit_no_more() -> None:
    shelf = Shelf(leaders=(0, 0, 1))
    for partition in (0, 1):
        shelf.append(partition, 1, bytes(100))
    first, second = (shelf.batches(partition)[0] for partition in (0, 1))
    limit = first.estimated_size() + second.estimated_size()
    asked: list[None] = []

    def grow() -> None:
        asked.append(None)
        if len(asked) == 2:
            shelf.append(1, 1, bytes(100))

    assert shelf.drain(0, limit, Meanwhile(grow)) == [first]
    assert shelf.accumulator.drain.cut_short and shelf.batches(1) == [second]
    assert shelf.drain(0, limit) == [second] and second.record_count == 2
