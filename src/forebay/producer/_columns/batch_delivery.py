# cython: binding=True, embedsignature=False
"""BatchDelivery: what ``send_batch`` returns, the outcome of each row, followed batch by batch."""

from __future__ import annotations

import logging
import math
import threading
from array import array
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import cython
from cython.cimports.forebay._delivery.future import new_future, wait_for

from forebay._delivery.callback_thread import call_done_callback, check_done_callback
from forebay._delivery.future import RecordFuture
from forebay._delivery.result import BatchResult
from forebay._delivery.sender_lock import SenderLock, check_wait
from forebay._runtime.clock import SystemClock
from forebay._runtime.ticket import Latch
from forebay._runtime.times import limit
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.errors._base import own_copy
from forebay.model import TopicPartition
from forebay.producer._columns.row_share import RowShare

if TYPE_CHECKING:
    from concurrent.futures import Future

    from forebay._runtime.times import Seconds

logger = logging.getLogger("forebay.callbacks")

FIRST_COLLECT = cython.declare(cython.Py_ssize_t, 256)


class OffsetRun(NamedTuple):
    """Adjacent records of a partition; ``base_offset`` is -1 if the broker did not name it."""

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
    It holds a few words for each record batch in flight, and two bytes for each row with a key or a partition.  Rows
    that were acknowledged are kept as ranges of offsets.  Any thread may use it.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._counted = 0
        self._lost = 0
        self._ended = 0
        self.raw_bytes = 0
        # Re-entrant: a signal handler or a finaliser may read a property while it interrupts another reader.  The
        # sender's thread takes it too, in ``_finish``, so a wait under it is refused.
        self._lock = SenderLock()
        self._collecting = False
        self._watch: Latch | None = None
        self._offsets: dict[TopicPartition, list[OffsetRun]] = {}
        self._failed_runs: list[tuple[KafkaError, Any]] = []
        self._unheard: list[RowShare] = []
        self._shares: list[RowShare] = []
        self._callbacks: list[Callable[[BatchDelivery], object]] = []
        self._runner: int | None = None
        self._by_result: dict[BatchResult, RowShare] = {}
        self._latest: list[RowShare | None] = []
        self._collect_at = FIRST_COLLECT
        self._seen = 0
        self._missing: list[int] = []

    # While rows are sent

    def _track(self, result: BatchResult, row: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
        """Notes that ``row``, a record of ``size`` bytes, went into the batch of ``result``."""
        share: RowShare = self._share_of(result, 0)
        share.add(cython.cast(cython.int, share.rows), row, 1)
        self.rows += 1
        self.raw_bytes += size

    @cython.cfunc
    def _share_of(self, result: BatchResult, timestamp: cython.longlong) -> RowShare:
        # Adjacent rows of a partition mostly go into one batch, so the partition's latest share is tried first.  The
        # dictionary is for several topics whose rows alternate.
        partition: cython.Py_ssize_t = result.partition
        while len(self._latest) <= partition:
            self._latest.append(None)
        share: RowShare | None = self._latest[partition]
        if share is not None and share.result is result:
            return share
        share = self._by_result.get(result)
        if share is None:
            share = RowShare(result, timestamp)
            self._by_result[result] = share
            self._shares.append(share)
        self._latest[partition] = share
        return share

    def _stop_at(self, seen: int, missing: Iterable[int]) -> None:
        """Notes how far the table was read, and which of those rows were not taken."""
        self._seen = seen
        self._missing = sorted(missing)

    def _end_call(self) -> None:
        """No more rows will come."""
        self._by_result = {}
        self._latest = []

    @cython.ccall
    def _trim(self) -> cython.void:
        """Calls ``_collect`` once there are many shares, so that memory follows the batches in flight."""
        if len(self._shares) >= self._collect_at:
            self._collect()
            self._collect_at = FIRST_COLLECT + 2 * len(self._shares)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def _collect(self) -> cython.Py_ssize_t:
        """Counts what has an outcome; returns how many batches have none."""
        share: RowShare
        with self._lock:
            if self._collecting:
                return len(self._shares)  # this call interrupts another one, which goes on
            try:
                self._collecting = True
                still: list[RowShare] = []
                for share in self._shares:
                    if share.unfinished_index() >= 0:
                        still.append(share)
                    elif not share.counted:
                        self._count(share)
                self._shares = still
                self._by_result = {share.result: share for share in still} if self._by_result else {}
                self._latest = []
                return len(still)
            finally:
                self._collecting = False

    @cython.cfunc
    def _count(self, share: RowShare) -> cython.void:
        where = tuple.__new__(TopicPartition, (share.result.topic, share.result.partition))
        outcomes = list(share.outcomes())
        # No Python code runs below (compiled), not even a named tuple's constructor.  So Ctrl-C cannot come in between,
        # and a share is counted once and as a whole.
        share.counted = True
        self._ended += 1
        lost: cython.Py_ssize_t = self._lost
        for rows, base_offset, error in outcomes:
            count: cython.Py_ssize_t = len(rows)
            if error is not None:
                self._lost += count
                self._failed_runs.append((error, rows))
                continue
            self._counted += count
            runs = self._offsets.setdefault(where, [])
            end: cython.Py_ssize_t = len(runs) - 1
            last = runs[end] if runs else (-2, 0)
            if last[0] + last[1] == base_offset or last[0] == base_offset == -1:
                runs[end] = tuple.__new__(OffsetRun, (last[0], last[1] + count))
            else:
                runs.append(tuple.__new__(OffsetRun, (base_offset, count)))
        if self._lost > lost:
            self._unheard.append(share)

    def _hear(self) -> None:
        """Counts what has an outcome, and somebody hears of what failed (``Unheard``)."""
        self._collect()
        self._hear_counted()

    def _hear_counted(self) -> None:
        while self._unheard:
            self._unheard.pop().hear()

    # Of a future

    def __len__(self) -> int:
        """Rows that were taken."""
        return self.rows

    def running(self) -> bool:
        """Always False: the delivery does not know which rows were sent."""
        return False

    def cancel(self) -> bool:
        """Always False: rows cannot be taken back."""
        return False

    def cancelled(self) -> bool:
        """Always False."""
        return False

    def done(self) -> bool:
        """True once the outcome of every row is known."""
        return self._collect() == 0 and self._runner in (None, threading.get_ident())

    def result(self, timeout: Seconds | None = None) -> dict[TopicPartition, tuple[OffsetRun, ...]]:
        """Waits until every row was acknowledged; returns their offsets, as ``partitions``.

        Args:
            timeout: seconds; None waits until all have their outcome (delivery.timeout.ms).

        Raises:
            forebay.errors.KafkaTimeoutError: not known in time; rows may still be delivered.
            forebay.errors.KafkaError: rows could not be delivered: a copy of the first one's error, with ``row``
                and the number of ``failed`` rows; ``failures`` has all of them.
            IllegalStateError: called from a delivery callback while rows have no outcome.
        """
        error = self.exception(timeout)
        if error is not None:
            raise own_copy(error).with_context(row=self.first_failed_row, failed=self.failed)
        return self.partitions

    def exception(self, timeout: Seconds | None = None) -> KafkaError | None:
        """Waits like ``result``; the error of the first row that failed, None if all were acknowledged."""
        self._wait(timeout)
        return self.first_error

    def _wait(self, timeout: Seconds | None) -> None:
        # The batches are waited for one by one, each for the time that is left.  They end in about this order.
        timeout, clock = limit(timeout), SystemClock()
        end = math.inf if timeout is None else clock.now() + 1000 * timeout
        share: RowShare
        for share in list(self._shares):
            while (index := share.unfinished_index()) >= 0:
                if not wait_for(share.result, end - clock.now(), index):
                    left = self._collect()
                    raise KafkaTimeoutError(
                        f"{self.rows - self._counted - self._lost} of {self.rows} rows have no outcome after "
                        f"{timeout:g} s ({left} batches)"
                    )
        self._collect()
        if self._watch is not None and self._runner not in (None, threading.get_ident()):
            check_wait("result()")
            self._watch.wait(end - clock.now())

    def add_done_callback(self, function: Callable[[BatchDelivery], object]) -> None:
        """Calls ``function(delivery)`` when every row has its outcome, on the sender's thread; at once if they have.

        What it raises is logged under ``forebay.callbacks`` and goes no further.

        Raises:
            ForkedProducerError: in a child of the process that sent the rows, unless they were done before the fork.
            TypeError: it cannot be called.
        """
        check_done_callback(function, "delivery")
        self._hear()
        if self._collect() == 0 and self._runner is None:
            self._call(function)
            return
        share: RowShare
        for share in self._shares:
            share.result.check_own_process()
        fresh = Latch()
        with self._lock:
            late = self._runner is None and self._watch is not None and self._watch.is_set()
            if not late:
                self._callbacks.append(function)
            first = self._watch is None
            if first:
                self._watch = fresh
        if late:
            self._call(function)
        elif first:
            try:
                self._watch_next()
            except BaseException:  # no memory: the caller gets the error, and may try again
                with self._lock:
                    self._watch = None
                    self._callbacks.remove(function)
                raise

    def __await__(self) -> Generator[Any, None, dict[TopicPartition, tuple[OffsetRun, ...]]]:
        """``await delivery``: as ``result``, for a coroutine on any event loop.

        Raises:
            forebay.errors.KafkaError: as ``result``.
        """
        from forebay._delivery.awaiting import outcome_of_rows  # asyncio is there, since somebody awaits

        return outcome_of_rows(self).__await__()

    def as_concurrent(self) -> Future[dict[TopicPartition, tuple[OffsetRun, ...]]]:
        """A ``concurrent.futures.Future`` with the same outcome; it cannot be cancelled."""
        from forebay._delivery.awaiting import concurrent_future

        return concurrent_future(self)

    def _follow(self, finished: RecordFuture) -> None:
        for _ in range(2):
            try:
                self._watch_next()
                return
            except MemoryError:
                pass  # a second try goes on at the same place, and may find memory
        logger.error("No memory to follow a delivery of %d rows: its done callbacks may not be called", self.rows)

    def _watch_next(self) -> None:
        # Watches one record without an outcome at a time.  When it has one, the next record without one is watched.  So
        # there is one callback for any number of batches, and the last one runs on the sender's thread.
        future: RecordFuture
        share: RowShare
        self._hear_counted()
        for share in list(self._shares):
            index: cython.int = share.unfinished_index()
            if index < 0 and share.result.error is not None:
                share.hear()
            if index >= 0:
                future = new_future()
                future._batch = share.result
                future._index = index
                future.add_done_callback(self._follow)
                return
        self._finish()

    def _finish(self) -> None:
        event = self._watch
        if event is None or event.is_set():
            return
        self._runner = threading.get_ident()
        try:
            while True:
                with self._lock:
                    callbacks, self._callbacks = self._callbacks, []
                    if not callbacks:
                        event.set()
                        self._runner = None
                        return
                for function in callbacks:
                    self._call(function)
        finally:
            self._runner = None

    def _call(self, function: Callable[[BatchDelivery], object]) -> None:
        if not call_done_callback(function, self):
            logger.error("No memory to call a done callback for %d rows", self.rows)

    # What became of them, as far as it is known

    @property
    def acknowledged(self) -> int:
        """Rows that were acknowledged."""
        self._collect()
        return self._counted

    @property
    def failed(self) -> int:
        """Rows that failed."""
        self._hear()
        return self._lost

    @property
    def batches(self) -> int:
        """Record batches with rows of this table that have their outcome."""
        self._collect()
        return self._ended

    @property
    def partitions(self) -> dict[TopicPartition, tuple[OffsetRun, ...]]:
        """Where acknowledged rows are: for each partition ranges of offsets, ascending."""
        self._collect()
        with self._lock:
            return {where: tuple(sorted(runs)) for where, runs in list(self._offsets.items())}

    @property
    def failures(self) -> tuple[FailedRows, ...]:
        """The rows that failed, each once, in the order of their first row."""
        self._hear()
        rows_of: dict[int, FailedRows] = {}
        # The list only grows, so reading it needs no lock.
        for error, rows in list(self._failed_runs):
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
        self._hear()
        return min(list(self._failed_runs), key=_first_row_of_run, default=None)

    def taken(self) -> list[range]:
        """The rows that were taken: all, unless ``send_batch`` raised; ascending."""
        found: list[range] = []
        begin = 0
        for row in [*self._missing, self._seen]:
            if row > begin:
                found.append(range(begin, row))
            begin = row + 1
        return found

    def __reduce__(self) -> Any:
        raise TypeError("a BatchDelivery cannot be pickled: it belongs to a producer of this process")

    def __repr__(self) -> str:
        left = self.rows - self._counted - self._lost
        return f"<BatchDelivery of {self.rows} rows: {self._counted} acknowledged, {self._lost} failed, {left} open>"


def _first_row(failed: FailedRows) -> int:
    return failed.rows[0]


def _first_row_of_run(run: tuple[KafkaError, Any]) -> int:
    return int(run[1][0])
