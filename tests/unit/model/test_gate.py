"""What the accumulator and the transactions see of each other."""

from __future__ import annotations

import pytest

from forebay._accumulator.topic import PartitionQueue
from forebay._transactions.manager import TransactionManager
from forebay.model._gate import Gate, GatedQueue, StampedBatch


def test_a_batch_is_stamped_and_stamped_anew() -> None:
    batch = StampedBatch(GatedQueue("t", 3), 7)
    assert (batch.queue.topic, batch.queue.partition, batch.queue.gate_state, batch.record_count) == ("t", 3, None, 7)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.transactional) == (-1, -1, -1, False)
    for stamp in ((2**62, 32767, 2**31 - 1, True), (5, 1, 0, False)):
        batch.set_producer_state(*stamp)
        found = (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.transactional)
        assert found == stamp


def test_the_two_sides_are_what_they_know_of_each_other() -> None:
    assert issubclass(PartitionQueue, GatedQueue)
    assert issubclass(TransactionManager, Gate)


def test_a_gate_decides_by_itself() -> None:
    gate, queue = Gate(), GatedQueue("t", 0)
    batch = StampedBatch(queue, 1)
    with pytest.raises(NotImplementedError):
        gate.may_drain(queue, batch)
    with pytest.raises(NotImplementedError):
        gate.stamp(queue, batch)
    with pytest.raises(NotImplementedError):
        gate.comes_before(batch, batch)
    with pytest.raises(NotImplementedError):
        gate.on_split(batch, [batch])


def test_a_batch_is_for_the_first_incarnation_until_somebody_says_another() -> None:
    batch = StampedBatch(GatedQueue("t", 3), 7)
    assert (batch.incarnation, batch.stamped_for) == (0, 0)
