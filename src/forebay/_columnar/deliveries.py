"""What became of the rows that one caller gave: followed batch by batch, with the rows that each batch took."""

from __future__ import annotations

import cython

from forebay.errors import KafkaError
from forebay.model import TopicPartition

if cython.compiled:
    from cython.cimports.forebay._future import BatchResult
else:
    from forebay._future import BatchResult


@cython.final
@cython.cclass
class Share:
    """The rows of one caller that went into one batch.

    Which of its records they are counts only if it is split: kept as runs of indices, one unless several callers take
    turns.  ``runs`` (first index, rows, first index ...) has those before the latest.
    """

    def __init__(self, result: BatchResult, row: cython.Py_ssize_t, timestamp: cython.longlong) -> None:
        self.result = result
        self.rows = 0
        self.first_row = row
        self.base_timestamp = timestamp
        self.run_first = -1
        self.run_rows = 0
        self.runs: list[int] = []

    @cython.cfunc
    def add(self, index: cython.int, count: cython.int) -> cython.void:
        self.rows += count
        if index != self.run_first + self.run_rows:
            if self.run_rows > 0:
                self.runs.append(self.run_first)
                self.runs.append(self.run_rows)
            self.run_first = index
            self.run_rows = 0
        self.run_rows += count


@cython.final
@cython.cclass
class Deliveries:
    """What became of one caller's rows; used by that caller's thread alone.

    Holds one ``Share`` for each batch that has no outcome yet; ``collect`` folds the others into the counts, so
    that memory follows what is in flight and not what was sent.  ``first_failed_row`` is exact unless a batch was split
    whose rows did not follow each other; then the row that failed is not before it.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.acknowledged = 0
        self.failed = 0
        self.batches = 0
        self.raw_bytes = 0
        self.first_error: KafkaError | None = None
        self.first_failed_row = -1
        self.partitions: dict[TopicPartition, int] = {}
        self.shares: list[Share] = []
        self.by_result: dict[BatchResult, Share] = {}
        self.latest: list[Share | None] = []

    def track(self, result: BatchResult, row: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
        """Notes that ``row``, a record of ``size`` bytes, went into the batch of ``result``."""
        share: Share = self.share_of(result, row, 0)
        share.add(cython.cast(cython.int, share.rows), 1)
        self.rows += 1
        self.raw_bytes += size

    @cython.cfunc
    def share_of(self, result: BatchResult, row: cython.Py_ssize_t, timestamp: cython.longlong) -> Share:
        # Rows of a partition mostly follow each other into one batch: a look at the partition's latest share, and
        # the dictionary only for several topics that take turns.
        partition: cython.Py_ssize_t = result.partition
        while len(self.latest) <= partition:
            self.latest.append(None)
        share: Share | None = self.latest[partition]
        if share is not None and share.result is result:
            return share
        share = self.by_result.get(result)
        if share is None:
            share = Share(result, row, timestamp)
            self.by_result[result] = share
            self.shares.append(share)
        self.latest[partition] = share
        return share

    def collect(self) -> int:
        """Counts what has an outcome; returns how many batches have none."""
        share: Share
        still: list[Share] = []
        for share in self.shares:
            if share.result.done:
                self._count(share)
            else:
                still.append(share)
        self.shares = still
        self.by_result = {share.result: share for share in still}
        self.latest = []
        return len(still)

    def _count(self, share: Share) -> None:
        self.batches += 1
        if share.result.parts is None:
            self._count_rows(share.result, share.rows, share.first_row)
            return
        runs = [*share.runs, share.run_first, share.run_rows]
        part: BatchResult
        before: cython.Py_ssize_t = 0
        for at in range(0, len(runs), 2):
            index: cython.int = runs[at]
            end: cython.int = index + runs[at + 1]
            while index < end:
                part = share.result.leaf(index)
                rows: cython.int = min(end, part.first + part.record_count) - index
                self._count_rows(part, rows, share.first_row + before)
                before += rows
                index += rows

    @cython.cfunc
    def _count_rows(self, result: BatchResult, rows: cython.Py_ssize_t, first_row: cython.Py_ssize_t) -> cython.void:
        error: KafkaError | None = result.error
        if error is None:
            where = TopicPartition(result.topic, result.partition)
            self.acknowledged += rows
            self.partitions[where] = self.partitions.get(where, 0) + rows
            return
        self.failed += rows
        if self.first_error is None or first_row < self.first_failed_row:
            self.first_error = error
            self.first_failed_row = first_row
