"""What ``send()`` gives back: a light future that refers to its batch's result.

A batch has one BatchResult.  A future is an index into it, with the timestamp and the two sizes that
RecordMetadata needs; it pins no buffer, and the batch does not know it unless somebody added a callback.  On
completion the values are set, callbacks run in the order of the records, and only then do ``result()`` and
``flush()`` return (as in Java: a callback always ran before ``get()`` comes back).

A batch that is split hands its result on to parts, each the result of a smaller batch.  Futures keep what they refer
to, as any thread may read them, and walk from there to the part that has their record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import TIMEOUT_MAX
from typing import Any

import cython
from cython.cimports.forebay._delivery.callback_thread import on_sender_thread
from cython.cimports.forebay._delivery.callbacks import DeliveryCallbacks
from cython.cimports.forebay._delivery.metadata import RecordMetadata
from cython.cimports.forebay._delivery.outcome import BatchOutcome
from cython.cimports.forebay._delivery.sender_lock import check_wait
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release, thread_ident
from cython.cimports.forebay._runtime.ticket import ThreadTicket, keep_ticket, spare_ticket

from forebay._delivery.callback_thread import leave_forked_child
from forebay.errors import ForkedProducerError, IllegalStateError, KafkaError, TimeoutError
from forebay.errors._base import own_copy

logger = logging.getLogger("forebay.callbacks")

# A result's states: values are readable from COMPLETING on, by the completing thread's callbacks only.
PENDING = cython.declare(cython.int, 0)
COMPLETING = cython.declare(cython.int, 1)
DONE = cython.declare(cython.int, 2)

LONGEST_MS = cython.declare(cython.double, TIMEOUT_MAX * 1000)

# In place of a list until somebody waits or asks to be called, which mostly nobody does; never changed.
NOBODY: list[Any] = []


# Not tracked by the garbage collector, for the same reasons as RecordFuture below.
@cython.final
@cython.no_gc
@cython.cclass
class BatchResult(BatchOutcome):
    """The outcome that all records of a batch share; set once, by the sender's thread.  ``lock`` guards all fields.

    ``deliveries`` are the callbacks that came with the records; the batch fills them, under its queue's lock.
    ``callbacks`` of futures are flat (future, function, future, function ...), and so is ``waiters`` (ticket, index of
    the record, or -1 for all).
    ``account`` (``charge_callback``, ``credit_callback``) is told of later ones, since they cost memory too; it is let
    go with the outcome, for a future that is kept must not keep a pool.

    Args:
        first: for a part, the index that its first record has in the batch it was appended to.
    """

    def __init__(self, topic: str, partition: cython.int, account: Any = None, first: cython.int = 0) -> None:
        self.begin(topic, partition, account, first)

    @cython.cfunc
    def begin(self, topic: str, partition: cython.int, account: Any, first: cython.int) -> object:
        self.begin_outcome(topic, partition)
        self.account = account
        self.record_count = self.open_parts = 0
        self.deliveries: DeliveryCallbacks | None = None
        self.callbacks = self.waiters = NOBODY
        self.first = first
        self.parts: list[Any] | None = None
        self.parent: BatchResult | None = None
        if not cython.compiled:
            self.lock = Mutex()
        return None

    @property
    def done(self) -> bool:
        """True once callbacks ran and waiters were let go."""
        return self.state == DONE

    @cython.ccall
    @cython.exceptval(-1)
    def settle(
        self,
        base_offset: cython.longlong,
        log_append_time: cython.longlong,
        error: Any,
        record_errors: dict[int, Any] | None,
        record_count: cython.int,
        report: Any,
    ) -> cython.bint:
        """Sets the outcome, runs callbacks, lets waiters go.  False (and no change) if it was set before.

        Args:
            base_offset: the first record's offset, or -1.
            log_append_time: the broker's append time in ms, or -1 where records keep their own.
            error: None for success.
            record_errors: errors of single records by index (KIP-467), or None.
            report: called with what a callback raised; must not raise.
        """
        acquire(self.lock)
        try:
            if (self.state != PENDING and not self.foretold) or self.parts is not None:
                return False
            self.completing_thread = thread_ident()
            # One that was told early stays: somebody may have read it (``_future_early``).
            if not self.foretold:
                self.state = COMPLETING
                self.base_offset = base_offset
                self.log_append_time = log_append_time
                self.error = error
                self.record_errors = record_errors
                self.record_count = record_count
            self.foretold = False
        finally:
            release(self.lock)
        if self.deliveries is not None:
            self.run_deliveries(self.deliveries, report)
            self.deliveries = None
        while not self.run_callbacks(report):
            pass
        self.account = None
        self.wake_waiters()
        part: BatchResult = self
        while part.parent is not None:
            whole: BatchResult = part.parent
            part.parent = None
            if not whole.end_part(part):
                break
            whole.wake_waiters()
            part = whole
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def wake_waiters(self) -> cython.int:
        acquire(self.lock)
        try:
            # Taken out first: who gives up meanwhile would shorten the list under the loop, and another go unwoken.
            waiting: list[Any] = self.waiters
            self.waiters = NOBODY
        finally:
            release(self.lock)
        at: cython.Py_ssize_t
        for at in range(0, len(waiting), 2):
            waiting[at].wake()
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def end_part(self, part: BatchResult) -> cython.bint:
        # True if it was the last one.  The whole has an error if any part has.
        acquire(self.lock)
        try:
            if self.error is None:
                self.error = part.error
            self.record_count += part.record_count
            self.open_parts -= 1
            if self.open_parts == 0:
                self.state = DONE
            return self.open_parts == 0
        finally:
            release(self.lock)

    @cython.cfunc
    def leaf(self, index: cython.int) -> BatchResult:
        """The result that has, or will have, the outcome of the record with this index."""
        result: BatchResult = self
        while result.parts is not None:
            result = part_with(result.parts, index)
        return result

    @cython.cfunc
    @cython.exceptval(-1)
    def run_callbacks(self, report: Any) -> cython.bint:
        # True when none is left, and then the result is DONE: nobody can have added one in between.
        at: cython.Py_ssize_t
        future: RecordFuture
        acquire(self.lock)
        try:
            pending: list[Any] = self.callbacks
            self.callbacks = NOBODY
            if len(pending) == 0:
                self.state = DONE
        finally:
            release(self.lock)
        for at in range(0, len(pending), 2):
            future = pending[at]
            future._run(pending[at + 1], report)
        return len(pending) == 0

    @cython.ccall
    @cython.exceptval(-1)
    def subscribe(self, ticket: Any, index: cython.int = -1) -> cython.bint:
        """True if the result is there; else the ticket is woken when it is, however often the batch is split.

        Args:
            index: of the one record that counts; -1 for all of them.
        """
        result: BatchResult
        fresh: list[Any] = []  # made before the lock: that may run the garbage collector
        while True:
            result = self if index < 0 else self.leaf(index)
            acquire(result.lock)
            try:
                if result.state == DONE:
                    return True
                if index < 0 or result.parts is None:
                    if result.waiters is NOBODY:
                        result.waiters = fresh
                    result.waiters.append(ticket)
                    result.waiters.append(index)
                    return False
            finally:
                release(result.lock)

    @cython.ccall
    def unsubscribe(self, ticket: Any, index: cython.int = -1) -> cython.void:
        """Forgets a ticket whose owner gave up; ``index`` as it was subscribed with."""
        at: cython.Py_ssize_t
        result: BatchResult
        moved: cython.bint = True
        while moved:
            result = self if index < 0 else self.leaf(index)
            acquire(result.lock)
            try:
                moved = index >= 0 and result.parts is not None
                for at in range(0, 0 if moved else len(result.waiters), 2):
                    if result.waiters[at] is ticket:
                        # Not by a slice, which is an object that the garbage collector tracks.
                        result.waiters.pop(at + 1)
                        result.waiters.pop(at)
                        break
            finally:
                release(result.lock)

    @cython.cfunc
    @cython.exceptval(-1)
    def add_late(self, future: RecordFuture, function: Any) -> cython.bint:
        """Adds a callback of a record whose batch may have been sent; False if it is done."""
        result: BatchResult
        fresh: list[Any] = []  # as in subscribe
        while True:
            result = self.leaf(future._index)
            acquire(result.lock)
            try:
                if result.state == DONE:
                    return False
                if result.parts is None:
                    if result.callbacks is NOBODY:
                        result.callbacks = fresh
                    result.callbacks.append(future)
                    result.callbacks.append(function)
                    return True
            finally:
                release(result.lock)

    @cython.ccall
    def error_of(self, index: cython.int) -> Any:
        """The error of one record, or None."""
        part: BatchResult = self.leaf(index)
        if part.record_errors is not None and part.error is not None:
            return part.record_errors.get(index - part.first, part.error)
        return part.error

    @cython.ccall
    @cython.exceptval(-1)
    def wait(self, timeout_ms: cython.double, index: cython.int = -1) -> cython.bint:
        """Blocks the calling thread until the result is there; False if ``timeout_ms`` passed first.

        Args:
            index: of the one record that counts; -1 for all of them.

        Raises:
            IllegalStateError: on a sender's thread, or in a handler that must not wait, unless ``timeout_ms`` is 0.
        """
        result: BatchResult = self if index < 0 else self.leaf(index)
        if result.state != DONE:
            self.check_own_process()
            if timeout_ms > 0 and on_sender_thread():
                raise IllegalStateError(
                    f"A delivery callback cannot wait for a record ({self.topic}-{self.partition}): callbacks run on "
                    "the sender's thread, which brings the outcomes; use add_done_callback() or result(0)"
                )
            if timeout_ms > 0:
                check_wait("result()")
        ticket: ThreadTicket = spare_ticket()
        if self.subscribe(ticket, index):
            keep_ticket(ticket)
            return True
        woken: cython.bint = False
        try:
            woken = ticket.wait(timeout_ms)
        finally:
            if not woken:
                self.unsubscribe(ticket, index)
        # Who gave up may be woken all the same, and whoever had the ticket next in his place.
        if woken:
            keep_ticket(ticket)
        return woken

    def check_own_process(self) -> None:
        """Raises ForkedProducerError in a child forked since; its locks may have been held at the fork."""
        if self.is_foreign():
            raise ForkedProducerError("This record belongs to the parent process, which alone learns of its delivery")

    def __repr__(self) -> str:
        state = "pending" if self.state != DONE else repr(self.error) if self.error else f"offset {self.base_offset}"
        return f"<BatchResult {self.topic}-{self.partition}: {state}>"


# Not tracked by the garbage collector, which would walk every record in the buffer again and again.  So no cycle may
# lead through a future for good: the one through the callbacks of its batch is cut when the batch has its outcome, and
# the one through the traceback of the batch's error cannot come about, because nobody gets that error, but copies.
@cython.final
@cython.no_gc
@cython.freelist(256)
@cython.cclass
class RecordFuture:
    """The delivery of one record; follows ``concurrent.futures.Future``.

    ``result`` and ``exception`` take a timeout in seconds.  ``cancel`` is always refused (a record may be on its
    way already).  Cannot be pickled: it belongs to a producer of this process.
    """

    if not cython.compiled:
        _batch: BatchResult
        _index: int
        _timestamp: int
        _key_size: int
        _value_size: int

    def __init__(self) -> None:
        raise TypeError("a RecordFuture is made by KafkaProducer.send() alone")

    def done(self) -> bool:
        """True once the outcome is known."""
        return self._batch.leaf(self._index).state == DONE

    def running(self) -> bool:
        """False: a record on its way cannot be told from one that waits."""
        return False

    def cancel(self) -> bool:
        """Always False: a record cannot be taken back."""
        return False

    def cancelled(self) -> bool:
        """Always False."""
        return False

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Waits for the record's metadata.

        Args:
            timeout: seconds; None waits until the record is delivered or has failed (delivery.timeout.ms).

        Raises:
            forebay.errors.TimeoutError: not known in time; the record may still be delivered.
            forebay.errors.KafkaError: the record could not be delivered; a copy at each call.
            IllegalStateError: called from a delivery callback for a record without an outcome.
        """
        error = self._error(timeout)
        if error is not None:
            raise error
        return self.metadata()  # type: ignore[no-any-return]

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """``result`` under the name that Java and kafka-python use."""
        return self.result(timeout)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits as ``result`` does, and returns a copy of the error (None on success) instead of raising it."""
        return self._error(timeout)  # type: ignore[no-any-return]

    @cython.cfunc
    def _error(self, timeout: Any) -> Any:
        timeout_ms: cython.double = LONGEST_MS if timeout is None else timeout * 1000
        if not self._is_visible() and not self._batch.wait(timeout_ms, self._index):
            where = f"{self._batch.topic}-{self._batch.partition}"
            raise TimeoutError(
                f"No acknowledgement for the record for {where} within {timeout} s; it is still on its way."
            )
        error = self._batch.error_of(self._index)
        return None if error is None else own_copy(error)

    def add_done_callback(self, function: Callable[[RecordFuture], object]) -> None:
        """Calls ``function(future)`` on completion, on the sender thread; at once if it is done.

        What it raises is logged under ``forebay.callbacks`` and goes no further.

        Raises:
            ForkedProducerError: in a child of the process that sent the record, unless it was done before the fork.
            TypeError: it cannot be called.
        """
        if not callable(function):
            raise TypeError(
                f"add_done_callback() takes a callable(future), got {type(function).__name__}: {function!r}"
            )
        part: BatchResult = self._batch.leaf(self._index)
        if part.state != DONE:
            part.check_own_process()
            account = part.account
            if account is not None:
                account.charge_callback(function)
            if self._batch.add_late(self, function):
                return
            if account is not None:
                account.credit_callback(function)
        try:
            function(self)
        except Exception as raised:
            if not part.is_lost(raised, self._index - part.first):
                logger.exception("a done callback for %s-%d raised", self._batch.topic, self._batch.partition)

    @cython.ccall
    def metadata(self) -> Any:
        """RecordMetadata as it stands now; offset and timestamp are -1 for a failed record."""
        part: BatchResult = self._batch.leaf(self._index)
        return part.metadata_of(self._index - part.first, self._timestamp, self._key_size, self._value_size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_visible(self) -> cython.bint:
        # A callback may ask its own future; everybody else waits until all callbacks ran.
        batch: BatchResult = self._batch.leaf(self._index)
        return batch.state == DONE or (batch.state == COMPLETING and batch.completing_thread == thread_ident())

    @cython.cfunc
    def _run(self, function: Any, report: Any) -> cython.void:
        try:
            function(self)
        except BaseException as raised:  # noqa: BLE001 - SystemExit too: a callback never stops the sender
            part: BatchResult = self._batch.leaf(self._index)
            if not part.is_lost(raised, self._index - part.first):
                self._batch.tell(raised, report)
        if self._batch.is_foreign():
            leave_forked_child(None)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a RecordFuture cannot be pickled: it belongs to a producer of this process; pickle its result()"
        )

    def __repr__(self) -> str:
        visible = self._is_visible()  # before the metadata, which the outcome changes
        metadata = self.metadata()
        error = self._batch.error_of(self._index)
        if not visible:
            state = "pending"
        elif error is not None:
            state = repr(error)
        else:
            state = f"offset {metadata.offset}" if metadata.has_offset else "sent, offset not known"
        partition = "partition not known" if metadata.partition < 0 else f"partition {metadata.partition}"
        return f"<RecordFuture {metadata.topic}, {partition}: {state}>"


@cython.cfunc
def part_with(parts: list[Any], index: cython.int) -> BatchResult:
    # The last part that does not begin behind the record.
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = len(parts) - 1
    part: BatchResult
    while low < high:
        middle: cython.Py_ssize_t = (low + high + 1) // 2
        part = parts[middle]
        if part.first <= index:
            low = middle
        else:
            high = middle - 1
    part = parts[low]
    return part


@cython.cfunc
def new_result(topic: str, partition: cython.int, account: Any, first: cython.int) -> BatchResult:
    result: BatchResult = BatchResult.__new__(BatchResult)
    result.begin(topic, partition, account, first)
    return result


@cython.cfunc
def new_future() -> RecordFuture:
    return RecordFuture.__new__(RecordFuture)
