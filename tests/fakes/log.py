"""A partition's log as a broker keeps it, with the rules by which it takes or refuses a batch (KIP-98, KIP-360)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from forebay._records.decoded import Batch, Record
from forebay._records.layout import increment_sequence

NONE, OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH = 0, 45, 46, 47
REMEMBERED = 5
"""Batches of one producer that a broker remembers, to recognise one that is sent again."""


@dataclass(frozen=True)
class Verdict:
    """What the broker answers for one batch."""

    code: int = NONE
    base_offset: int = -1


@dataclass
class KnownProducer:
    """What a partition knows of one producer id."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """First and last sequence, and base offset, of the newest batches."""


@dataclass
class PartitionLog:
    """Batches in the order they were taken; ``start`` is the log's first offset."""

    batches: list[Batch] = field(default_factory=list)
    end: int = 0
    start: int = 0
    producers: dict[int, KnownProducer] = field(default_factory=dict)

    @property
    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records]

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]

    def append(self, batch: Batch) -> Verdict:
        """Takes the batch, or says why not."""
        if batch.producer_id >= 0:
            verdict = self._check(batch)
            if verdict is not None:
                return verdict
        offset = self.end
        self.end += batch.count
        self.batches.append(batch)
        if batch.producer_id >= 0:
            known = self.producers[batch.producer_id]
            known.batches.append((batch.base_sequence, batch.last_sequence, offset))
        return Verdict(NONE, offset)

    def restart(self) -> None:
        """As after a start of the broker: its snapshot has one batch of each producer."""
        for known in self.producers.values():
            while len(known.batches) > 1:
                known.batches.popleft()

    def _check(self, batch: Batch) -> Verdict | None:
        known = self.producers.get(batch.producer_id)
        if known is None:
            # Whatever sequence comes first is taken: the producer may be older than what the log remembers.
            self.producers[batch.producer_id] = KnownProducer(batch.producer_epoch)
            return None
        if batch.producer_epoch < known.epoch:
            return Verdict(INVALID_EPOCH)
        if batch.producer_epoch > known.epoch:
            if batch.base_sequence != 0:
                return Verdict(OUT_OF_ORDER)
            self.producers[batch.producer_id] = KnownProducer(batch.producer_epoch)
            return None
        for first, last, offset in known.batches:
            if (first, last) == (batch.base_sequence, batch.last_sequence):
                return Verdict(NONE, offset)
        newest = known.batches[-1][1]
        return None if batch.base_sequence == increment_sequence(newest, 1) else Verdict(OUT_OF_ORDER)
