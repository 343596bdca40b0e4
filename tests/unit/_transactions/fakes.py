"""A batch, a queue and a little sender: what the manager's tests need of the rest of the producer."""

from __future__ import annotations

from collections.abc import Sequence

from forebay._protocol.init_producer_id import InitProducerIdResponse
from forebay._runtime.backoff import ExponentialBackoff
from forebay._transactions.manager import TransactionManager
from forebay._transactions.sequences import PartitionSequences
from forebay.errors import (
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    NotEnoughReplicasAfterAppendError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    UnknownProducerIdError,
)
from forebay.model._gate import GatedQueue, StampedBatch

NODE = "localhost:9092 (id 0)"
OUT_OF_ORDER = OutOfOrderSequenceError()
NOT_LEADER = NotLeaderOrFollowerError()
UNKNOWN_PID = UnknownProducerIdError()
TIMED_OUT = KafkaTimeoutError("Expiring 1 record(s)")
LAST = 2**31 - 1
"""The highest sequence; 0 follows."""


class FakeQueue(GatedQueue):
    def __init__(self, topic: str = "test", partition: int = 0) -> None:
        super().__init__(topic, partition)
        self.batches: list[FakeBatch] = []


class FakeBatch(StampedBatch):
    def __init__(self, queue: FakeQueue, record_count: int = 1, records: Sequence[int] = ()) -> None:
        super().__init__(queue, record_count)
        self.records = tuple(records)
        self.done = False
        self.maybe_written = False

    @property
    def stamp(self) -> tuple[int, int, int]:
        return self.producer_id, self.producer_epoch, self.base_sequence


def new_manager(producer_id: int = 343434, epoch: int = 0, *, confirm_first: bool = False) -> TransactionManager:
    """A manager that has its producer id; as in Java several batches may be sent before the first is confirmed."""
    manager = TransactionManager(ExponentialBackoff(50, 50, lambda: 0.5), 5, confirm_first)
    give_id(manager, producer_id, epoch)
    return manager


def give_id(manager: TransactionManager, producer_id: int, epoch: int = 0, now: float = 0.0) -> None:
    manager.init_request()
    assert manager.on_init_producer_id(InitProducerIdResponse(0, 0, producer_id, epoch), now, node=NODE) is None


class FakePartition:
    """One partition's queue and what the sender does with it, driven by hand."""

    def __init__(self, manager: TransactionManager, partition: int = 0) -> None:
        self.manager = manager
        self.queue = FakeQueue("test", partition)
        self.incarnation = 0
        self.by_name = False

    @property
    def sequences(self) -> PartitionSequences:
        state = self.queue.gate_state
        assert isinstance(state, PartitionSequences)
        return state

    @property
    def numbers(self) -> tuple[int, int]:
        """The next sequence and the last one confirmed."""
        return self.sequences.next_sequence, self.sequences.last_acked_sequence

    def append(self, record_count: int = 1, records: Sequence[int] = ()) -> FakeBatch:
        batch = FakeBatch(self.queue, record_count, records)
        self.queue.batches.append(batch)
        return batch

    def drain(self) -> FakeBatch | None:
        """Takes the head if the gate lets it out."""
        queue = self.queue
        if queue.batches:
            queue.batches[0].incarnation = self.incarnation
        if not queue.batches or not self.manager.may_drain(queue, queue.batches[0]):
            return None
        batch = queue.batches.pop(0)
        self.manager.stamp(queue, batch)
        batch.by_name = batch.by_name or self.by_name
        return batch

    def send(self, record_count: int = 1) -> FakeBatch:
        """Appends a batch and drains it."""
        batch = self.append(record_count)
        assert self.drain() is batch
        return batch

    def ack(self, batch: FakeBatch, base_offset: int = -1) -> None:
        batch.done = True
        self.manager.on_completed(batch, base_offset)

    def refuse(self, batch: FakeBatch, error: KafkaError, log_start_offset: int = -1) -> bool:
        """An error came: re-enqueued, or found to be written (True), or given up (False)."""
        if batch.maybe_written and self.manager.is_written(batch, error):
            self.ack(batch)
            return True
        batch.maybe_written = batch.maybe_written or isinstance(
            error, (DisconnectError, KafkaTimeoutError, NotEnoughReplicasAfterAppendError)
        )
        if not self.manager.can_retry(batch, error, log_start_offset):
            self.give_up(batch, error, adjust=not batch.maybe_written)
            return False
        self.requeue(batch)
        return True

    def requeue(self, batch: FakeBatch) -> None:
        waiting = self.queue.batches
        at = 0
        while at < len(waiting) and not self.manager.comes_before(batch, waiting[at]):
            at += 1
        waiting.insert(at, batch)

    def give_up(self, batch: FakeBatch, error: KafkaError, *, adjust: bool) -> None:
        batch.done = True
        if batch in self.queue.batches:
            self.queue.batches.remove(batch)
        self.manager.on_failed(batch, error, adjust)


def near_the_wrap(manager: TransactionManager, next_sequence: int) -> FakePartition:
    """A partition whose sequences have come far."""
    partition = FakePartition(manager)
    partition.queue.gate_state = PartitionSequences("test", 0, False)
    partition.sequences.start(manager.producer_id, manager.producer_epoch, next_sequence)
    return partition
