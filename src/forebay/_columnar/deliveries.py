"""What ``send_batch`` gives back: what became of each row, followed batch by batch."""

from __future__ import annotations

import logging
import math
import threading
from array import array
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import cython

from forebay.errors import IllegalStateError, KafkaError, TimeoutError
from forebay.model import TopicPartition

if cython.compiled:
    from cython.cimports.forebay._codec._collector import pause_collector, resume_collector
    from cython.cimports.forebay._columnar.shares import Share
    from cython.cimports.forebay._future import BatchResult, RecordFuture, new_future
    from cython.cimports.forebay._ticket import Latch
else:
    from forebay._codec._collector import pause_collector, resume_collector
    from forebay._columnar.shares import Share
    from forebay._future import BatchResult, RecordFuture, new_future
    from forebay._ticket import Latch

from forebay._callback_thread import was_entered
from forebay._clock import SystemClock
from forebay._sender_lock import AMID_A_LOCK, may_wait
from forebay.errors._base import own_copy

logger = logging.getLogger("forebay.callbacks")

FIRST_COLLECT = cython.declare(cython.Py_ssize_t, 256)


class OffsetRun(NamedTuple):
    """Records that follow each other in a partition; ``base_offset`` is -1 if the broker did not tell it."""

    base_offset: int
    records: int


class FailedRows(NamedTuple):
    """Rows that were not delivered, by their numbers in the table, and why.

    ``rows`` is an ``array('q')``, which ``numpy.asarray`` takes without a copy.
    """

    rows: array[int]
    error: KafkaError


@cython.final
@cython.cclass
class BatchDelivery:
    """The delivery of a table's rows; row numbers count from 0 over the whole table or stream.

    ``done``, ``result``, ``exception`` and ``add_done_callback`` are those of ``RecordFuture``, for all rows together.
    It holds a few words for each record batch in flight, and for rows with keys or partitions two bytes each until
    they are acknowledged; what was acknowledged is kept as ranges of offsets.  Any thread may use it.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.counted = 0
        self.lost = 0
        self.ended = 0
        self.raw_bytes = 0
        # The sender's thread takes it too, in ``_follow``: so neither code of Python's (a named tuple's constructor is
        # such) nor the garbage collector runs under it, or a signal handler or finaliser that waits for the delivery
        # would wait for ever.
        self.lock = threading.RLock()
        self.collecting = False
        self.watch: Latch | None = None
        self.offsets: dict[TopicPartition, list[OffsetRun]] = {}
        self.failed_runs: list[tuple[KafkaError, Any]] = []
        self.shares: list[Share] = []
        self.callbacks: list[Callable[[BatchDelivery], object]] = []
        self.runner: int | None = None
        self.by_result: dict[BatchResult, Share] = {}
        self.latest: list[Share | None] = []
        self.collect_at = FIRST_COLLECT
        self.seen = 0
        self.missing: list[int] = []

    # While rows are sent

    def track(self, result: BatchResult, row: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
        """Notes that ``row``, a record of ``size`` bytes, went into the batch of ``result``."""
        share: Share = self.share_of(result, 0)
        share.add(cython.cast(cython.int, share.rows), row, 1)
        self.rows += 1
        self.raw_bytes += size

    @cython.cfunc
    def share_of(self, result: BatchResult, timestamp: cython.longlong) -> Share:
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
            share = Share(result, timestamp)
            self.by_result[result] = share
            self.shares.append(share)
        self.latest[partition] = share
        return share

    def stop_at(self, seen: int, missing: Iterable[int]) -> None:
        """Notes how far the table was read, and which of those rows were not taken."""
        self.seen = seen
        self.missing = sorted(missing)

    def end_call(self) -> None:
        """No more rows will come."""
        self.by_result = {}
        self.latest = []

    @cython.ccall
    def trim(self) -> cython.void:
        """``collect`` once there is much to be collected, so that memory follows what is in flight."""
        if len(self.shares) >= self.collect_at:
            self.collect()
            self.collect_at = FIRST_COLLECT + 2 * len(self.shares)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def collect(self) -> cython.Py_ssize_t:
        """Counts what has an outcome; returns how many batches have none."""
        with self.lock:
            if self.collecting:
                return len(self.shares)  # as far as the look that we came amid has got (interpreted)
            paused: cython.int = pause_collector()
            try:
                self.collecting = True
                return self.count_ended()
            finally:
                self.collecting = False
                resume_collector(paused)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def count_ended(self) -> cython.Py_ssize_t:
        share: Share
        still: list[Share] = []
        for share in self.shares:
            if share.unfinished_index() >= 0:
                still.append(share)
            elif not share.counted:
                self.count(share)
        self.shares = still
        self.by_result = {share.result: share for share in still} if self.by_result else {}
        self.latest = []
        return len(still)

    @cython.cfunc
    def count(self, share: Share) -> cython.void:
        where = tuple.__new__(TopicPartition, (share.result.topic, share.result.partition))
        outcomes = list(share.outcomes())
        # Nothing lets Ctrl-C in here either (compiled), so that a share is counted once and as a whole.
        share.counted = True
        self.ended += 1
        for rows, base_offset, error in outcomes:
            count: cython.Py_ssize_t = len(rows)
            if error is not None:
                self.lost += count
                self.failed_runs.append((error, rows))
                continue
            self.counted += count
            runs = self.offsets.setdefault(where, [])
            end: cython.Py_ssize_t = len(runs) - 1
            last = runs[end] if runs else (-2, 0)
            if last[0] + last[1] == base_offset or last[0] == base_offset == -1:
                runs[end] = tuple.__new__(OffsetRun, (last[0], last[1] + count))
            else:
                runs.append(tuple.__new__(OffsetRun, (base_offset, count)))

    # Of a future

    def __len__(self) -> int:
        """Rows that were taken."""
        return self.rows

    def running(self) -> bool:
        """False: rows on their way cannot be told from those that wait."""
        return False

    def cancel(self) -> bool:
        """Always False: rows cannot be taken back."""
        return False

    def cancelled(self) -> bool:
        """Always False."""
        return False

    def done(self) -> bool:
        """True once the outcome of every row is known."""
        return self.collect() == 0 and self.runner in (None, threading.get_ident())

    def result(self, timeout: float | None = None) -> dict[TopicPartition, tuple[OffsetRun, ...]]:
        """Waits until every row was acknowledged; where they are, as ``partitions``.

        Args:
            timeout: seconds; None waits until all have their outcome (delivery.timeout.ms).

        Raises:
            forebay.errors.TimeoutError: not known in time; rows may still be delivered.
            forebay.errors.KafkaError: rows could not be delivered: a copy of the first one's error, with ``row``
                and the number of ``failed`` rows; ``failures`` has all of them.
            IllegalStateError: called from a delivery callback while rows have no outcome.
        """
        error = self.exception(timeout)
        if error is not None:
            raise own_copy(error).with_context(row=self.first_failed_row, failed=self.failed)
        return self.partitions

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits like ``result``; the error of the first row that failed, None if all were acknowledged."""
        self._wait(timeout)
        return self.first_error

    def _wait(self, timeout: float | None) -> None:
        # One batch after the other, each with what is left of the time; they come to an end in about this order.
        clock = SystemClock()
        end = math.inf if timeout is None else clock.now() + 1000 * timeout
        share: Share
        for share in list(self.shares):
            while (index := share.unfinished_index()) >= 0:
                if not share.result.wait(end - clock.now(), index):
                    left = self.collect()
                    raise TimeoutError(
                        f"{self.rows - self.counted - self.lost} of {self.rows} rows have no outcome after "
                        f"{timeout:g} s ({left} batches)"
                    )
        self.collect()
        if self.watch is not None and self.runner not in (None, threading.get_ident()):
            if not may_wait():
                raise IllegalStateError(AMID_A_LOCK % "result()")
            self.watch.wait(end - clock.now())

    def add_done_callback(self, function: Callable[[BatchDelivery], object]) -> None:
        """Calls ``function(delivery)`` when every row has its outcome, on the sender thread; at once if they have.

        What it raises is logged under ``forebay.callbacks`` and goes no further.

        Raises:
            ForkedProducerError: in a child of the process that sent the rows, unless they were done before the fork.
        """
        if self.collect() == 0 and self.runner is None:
            self._call(function)
            return
        share: Share
        for share in self.shares:
            share.result.check_own_process()
        fresh = Latch()
        with self.lock:
            late = self.runner is None and self.watch is not None and self.watch.is_set
            if not late:
                self.callbacks.append(function)
            first = self.watch is None
            if first:
                self.watch = fresh
        if late:
            self._call(function)
        elif first:
            try:
                self._watch_next()
            except BaseException:  # no memory: it is the caller's to know, and to try again
                with self.lock:
                    self.watch = None
                    self.callbacks.remove(function)
                raise

    def _follow(self, finished: RecordFuture) -> None:
        for _ in range(2):
            try:
                self._watch_next()
                return
            except MemoryError:
                pass  # it goes on where it was, and there may be some now
        logger.error("No memory to follow a delivery of %d rows: done callbacks may not be called", self.rows)

    def _watch_next(self) -> None:
        # One record that has no outcome is watched at a time; when it has one, the next that has none.  So it costs
        # one callback whatever the number of batches, and ends on the thread and before the end of the last batch.
        future: RecordFuture
        share: Share
        for share in list(self.shares):
            index: cython.int = share.unfinished_index()
            if index >= 0:
                future = new_future()
                future.batch = share.result
                future.index = index
                future.add_done_callback(self._follow)
                return
        self._finish()

    def _finish(self) -> None:
        latch: Latch | None = self.watch
        if latch is None or latch.is_set:
            return
        self.runner = threading.get_ident()
        try:
            while True:
                with self.lock:
                    callbacks, self.callbacks = self.callbacks, []
                    if not callbacks:
                        latch.set()
                        self.runner = None
                        return
                for function in callbacks:
                    self._call(function)
        finally:
            self.runner = None

    def _call(self, function: Callable[[BatchDelivery], object]) -> None:
        try:
            function(self)
        except Exception as raised:
            if was_entered(raised):
                logger.exception("a done callback for %d rows raised", self.rows)
            else:
                logger.error("No memory to call a done callback for %d rows", self.rows)

    # What became of them, as far as it is known

    @property
    def acknowledged(self) -> int:
        """Rows that were acknowledged."""
        self.collect()
        return self.counted

    @property
    def failed(self) -> int:
        """Rows that failed."""
        self.collect()
        return self.lost

    @property
    def batches(self) -> int:
        """Record batches with rows of this table that have their outcome."""
        self.collect()
        return self.ended

    @property
    def partitions(self) -> dict[TopicPartition, tuple[OffsetRun, ...]]:
        """Where acknowledged rows are: for each partition ranges of offsets, ascending."""
        self.collect()
        found: dict[TopicPartition, tuple[OffsetRun, ...]] = {}
        with self.lock:
            paused: cython.int = pause_collector()
            try:
                for where, runs in list(self.offsets.items()):
                    found[where] = tuple(sorted(runs))
            finally:
                resume_collector(paused)
        return found

    @property
    def failures(self) -> tuple[FailedRows, ...]:
        """The rows that failed, each once; by their first row."""
        self.collect()
        rows_of: dict[int, FailedRows] = {}
        # A list that only grows, so what is read of it needs no lock.
        for error, rows in list(self.failed_runs):
            rows_of.setdefault(id(error), FailedRows(array("q"), error)).rows.extend(rows)
        found = [FailedRows(array("q", sorted(rows)), error) for rows, error in rows_of.values()]
        return tuple(sorted(found, key=_first_row))

    @property
    def first_error(self) -> KafkaError | None:
        """The error of the first row that failed."""
        first = self._first_failed()
        return None if first is None else first[0]

    @property
    def first_failed_row(self) -> int:
        """The first row that failed; -1 if none has."""
        first = self._first_failed()
        return -1 if first is None else int(first[1][0])

    def _first_failed(self) -> tuple[KafkaError, Any] | None:
        self.collect()
        return min(list(self.failed_runs), key=_first_row_of_run, default=None)

    def taken(self) -> list[range]:
        """The rows that were taken: all, unless ``send_batch`` raised; ascending."""
        found: list[range] = []
        begin = 0
        for row in [*self.missing, self.seen]:
            if row > begin:
                found.append(range(begin, row))
            begin = row + 1
        return found

    def __reduce__(self) -> Any:
        raise TypeError("a BatchDelivery cannot be pickled: it belongs to a producer of this process")

    def __repr__(self) -> str:
        left = self.rows - self.counted - self.lost
        return f"<BatchDelivery of {self.rows} rows: {self.counted} acknowledged, {self.lost} failed, {left} open>"


def _first_row(failed: FailedRows) -> int:
    return failed.rows[0]


def _first_row_of_run(run: tuple[KafkaError, Any]) -> int:
    return int(run[1][0])
