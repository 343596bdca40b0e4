"""BatchResult: the outcome that all records of a batch share, and the callbacks and waiters that it reaches.

The sender's thread settles a result once.  It sets the values, runs the callbacks in the order of the records, and only
then wakes the threads that wait, as in Java: a callback has always run before ``get()`` returns.

A batch that is split hands its callbacks and waiters on to parts (``split``), each the result of a smaller batch.
Futures keep their reference to the whole, because any thread may read it, and walk from there to the part that has
their record.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._delivery.callback_thread import report_lost
from cython.cimports.forebay._delivery.callbacks import DeliveryCallbacks, copy_or_itself, deliver_to
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release, thread_ident
from cython.cimports.forebay.model._metadata import DeliveryReport, RecordMetadata, new_metadata, next_report

from forebay._delivery.callback_thread import leave_forked_child, report_safely, was_entered
from forebay.errors import ForkedProducerError

if not cython.compiled:
    PENDING, COMPLETING, DONE = range(3)
    """A result's states.  While it is COMPLETING only the callbacks that the completing thread runs read its values."""

# How many forks lie between this process and the one that imported this module.
_forks = cython.declare(cython.int, 0)

# In place of a list until there is a callback or a waiter, which is rare; never changed.
NOBODY: list[Any] = []


def note_fork() -> None:
    """To be called once in each forked child: results from before belong to another process."""
    global _forks
    _forks = (_forks + 1) & 0x7FFF  # a result keeps it in two bytes


@cython.cfunc
@cython.exceptval(check=False)
def process_number() -> cython.int:
    """Another one after each fork."""
    return _forks


# Not tracked by the garbage collector, for the same reasons as RecordFuture.
@cython.final
@cython.no_gc
@cython.cclass
class BatchResult:
    """The outcome of a batch.  ``lock`` guards all fields but ``deliveries``; only the sender's thread settles.

    ``deliveries`` are the callbacks that came with the records.  The batch fills them under its queue's lock.
    ``added`` has those that a compiled class of this package adds to a record after its ``send``, in the same form.
    Once the result is no longer PENDING, both are the sender's thread's.
    ``callbacks`` is flat (future, function, future, function ...), and so is ``waiters`` (ticket, index of the record,
    or -1 for all).  ``account`` has ``charge_callback`` and ``credit_callback``, because later callbacks cost memory
    too.  It is dropped with the outcome, so that a future that is kept keeps no pool.

    Args:
        first: for a part, the index that its first record has in the batch it was appended to.
    """

    def __init__(self, topic: str, partition: cython.int, account: Any = None, first: cython.int = 0) -> None:
        self.begin(topic, partition, account, first)

    @cython.cfunc
    @cython.exceptval(check=False)
    def begin(self, topic: str, partition: cython.int, account: Any, first: cython.int) -> cython.void:
        self.topic = topic
        self.partition = partition
        self.base_offset = self.log_append_time = -1
        self.error = None
        self.record_errors: dict[int, Any] | None = None
        self.state = PENDING
        self.settled_early = False
        self.forks = _forks
        self.account = account
        self.mark: Any = None
        self.is_whole = False
        self.record_count = self.open_parts = 0
        self.deliveries: DeliveryCallbacks | None = None
        self.added: DeliveryCallbacks | None = None
        self.callbacks = self.waiters = NOBODY
        self.first = first
        self.parts: list[Any] | None = None
        self.parent: BatchResult | None = None
        if not cython.compiled:
            self.lock = Mutex()

    @property
    def done(self) -> bool:
        """True once callbacks ran and waiters were woken."""
        return self.state == DONE

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_foreign(self) -> cython.bint:
        """Whether it belongs to a process that this one was forked from."""
        return self.forks != _forks

    def check_own_process(self) -> None:
        """Raises ForkedProducerError in a forked child: another thread may have held the locks at the fork."""
        if self.is_foreign():
            raise ForkedProducerError("This record belongs to the parent process, which alone learns of its delivery")

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
        """Sets the outcome, runs the callbacks, wakes the waiters.  False (and no change) if it was set before.

        Args:
            base_offset: the first record's offset, or -1.
            log_append_time: the broker's append time in ms, or -1 where records keep their own.
            error: None for success.
            record_errors: errors of single records by index (KIP-467), or None.
            report: called with what a callback raised; must not raise.
        """
        acquire(self.lock)
        try:
            if (self.state != PENDING and not self.settled_early) or self.parts is not None:
                return False
            self.completing_thread = thread_ident()
            # An early outcome stays, because another thread may have read it.
            if not self.settled_early:
                self.state = COMPLETING
                self.base_offset = base_offset
                self.log_append_time = log_append_time
                self.error = error
                self.record_errors = record_errors
                self.record_count = record_count
            self.settled_early = False
        finally:
            release(self.lock)
        self.run_deliveries(self.deliveries, report)
        self.run_deliveries(self.added, report)
        self.deliveries = self.added = None
        while not self.run_callbacks(report):
            pass
        self.account = None
        self.wake_waiters()
        if self.parent is not None:
            self.tell_whole()
        return True

    @cython.ccall
    @cython.exceptval(-1)
    def settle_early(
        self, base_offset: cython.longlong, log_append_time: cython.longlong, error: Any, record_count: cython.int
    ) -> cython.bint:
        """Wakes the waiters while a callback holds the sender's thread.  Any thread.

        An outcome that is set stays.  Where none is, this one is set; ``settle`` keeps it later, and runs the
        callbacks.  The arguments are those of ``settle``.  True if the records were acknowledged.
        """
        acquire(self.lock)
        try:
            if self.state == PENDING and self.parts is None:
                self.settled_early = True
                self.base_offset = base_offset
                self.log_append_time = log_append_time
                self.error = error
                self.record_count = record_count
            if self.parts is None:
                self.state = DONE
        finally:
            release(self.lock)
        self.wake_waiters()
        if self.parts is None:
            self.tell_whole()
        return self.error is None

    @cython.cfunc
    @cython.exceptval(-1)
    def tell_whole(self) -> cython.int:
        # The batch that this one is a part of is done with its last part.  Once: an early outcome is settled again.
        acquire(self.lock)
        try:
            whole: BatchResult | None = self.parent
            self.parent = None
        finally:
            release(self.lock)
        if whole is not None and whole.end_part(self):
            whole.wake_waiters()
            whole.tell_whole()
        return 0

    @cython.cfunc
    def run_deliveries(self, calls: DeliveryCallbacks | None, report: Any) -> cython.void:
        if calls is None:
            return
        shared: Any = None if self.error is None else copy_or_itself(self.error)
        at: cython.int = 0
        while at < calls.count:
            at = self.deliver_from(at, calls, shared, report)
        self.note_lost(calls, -1)

    @cython.cfunc
    @cython.exceptval(-1)
    def deliver_from(self, at: cython.int, calls: DeliveryCallbacks, shared: Any, report: Any) -> cython.int:
        # Up to a callback that raises; returns where to go on.  A try around each call would make each call dearer.
        outcome: DeliveryReport | None = None
        called: cython.bint = False
        try:
            while at < calls.count:
                called = False
                function: Any = calls.seek(at)
                at += 1
                if function is None:
                    continue
                outcome = next_report(outcome, self.topic, self.partition, shared)
                if shared is None:
                    locate(outcome._metadata, self, at - 1, calls.timestamp, calls.key_size, calls.value_size)
                elif self.record_errors is not None:
                    outcome._error = (
                        copy_or_itself(self.record_errors[at - 1]) if at - 1 in self.record_errors else shared
                    )
                called = True
                deliver_to(function, outcome)
                if self.is_foreign():
                    leave_forked_child(None)
        except BaseException as raised:  # noqa: BLE001 - SystemExit too: a callback never stops the sender
            if called and was_entered(raised):
                self.report_raised(raised, report)
            else:
                self.note_lost(calls, at - 1)
        return at

    @cython.cfunc
    def note_lost(self, calls: DeliveryCallbacks, at: cython.Py_ssize_t) -> cython.void:
        """Notes that record ``at``'s callback got no memory (-1: there are no more), and logs those before a gap."""
        if calls.lost > 0 and at != calls.lost_at + calls.lost:
            report_lost(self.topic, self.partition, self.base_offset, calls.lost_at, calls.lost)
            calls.lost = 0
        if at >= 0:
            if calls.lost == 0:
                calls.lost_at = at
            calls.lost += 1

    @cython.cfunc
    @cython.exceptval(-1)
    def run_callbacks(self, report: Any) -> cython.bint:
        # True when none is left.  Then the result is DONE, and no thread can have added a callback in between.
        at: cython.Py_ssize_t
        acquire(self.lock)
        try:
            pending: list[Any] = self.callbacks
            self.callbacks = NOBODY
            if len(pending) == 0:
                self.state = DONE
        finally:
            release(self.lock)
        for at in range(0, len(pending), 2):
            try:
                pending[at + 1](pending[at])
            except BaseException as raised:  # noqa: BLE001 - as in deliver_from
                if was_entered(raised):
                    self.report_raised(raised, report)
                else:
                    report_lost(self.topic, self.partition, self.base_offset, pending[at]._index - self.first, 1)
            if self.is_foreign():
                leave_forked_child(None)
        return len(pending) == 0

    @cython.cfunc
    def report_raised(self, raised: Any, report: Any) -> cython.void:
        if self.is_foreign():
            leave_forked_child(raised)
        report_safely(report, raised, self)

    @cython.cfunc
    @cython.exceptval(-1)
    def wake_waiters(self) -> cython.int:
        acquire(self.lock)
        try:
            # Taken out first: a thread that gives up meanwhile would shorten the list under the loop.
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
    def add_callback(self, index: cython.int, future: Any, function: Any) -> cython.bint:
        """Has ``function(future)`` called when record ``index`` of that future has its outcome; False if it has one."""
        result: BatchResult
        fresh: list[Any] = []  # made before the lock, because it may run the garbage collector
        while True:
            result = self.leaf(index)
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
    @cython.exceptval(-1)
    def subscribe(self, ticket: Any, index: cython.int = -1) -> cython.bint:
        """True if the result is there; else the ticket is woken when it is, however often the batch is split.

        Args:
            index: of the one record that counts; -1 for all of them.
        """
        result: BatchResult
        fresh: list[Any] = []  # as in add_callback
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
    def error_of(self, index: cython.int) -> Any:
        """The error of one record, or None."""
        part: BatchResult = self.leaf(index)
        if part.record_errors is not None and part.error is not None:
            return part.record_errors.get(index - part.first, part.error)
        return part.error

    @cython.cfunc
    def metadata_of(
        self, at: cython.int, timestamp: cython.longlong, key_size: cython.longlong, value_size: cython.longlong
    ) -> RecordMetadata:
        """RecordMetadata of this result's record ``at`` as it stands now."""
        metadata: RecordMetadata = new_metadata(self.topic, self.partition)
        if self.error is None and self.state != PENDING:
            locate(metadata, self, at, timestamp, key_size, value_size)
        return metadata

    def __repr__(self) -> str:
        state = "pending" if self.state != DONE else repr(self.error) if self.error else f"offset {self.base_offset}"
        return f"<BatchResult {self.topic}-{self.partition}: {state}>"


@cython.cfunc
def part_with(parts: list[Any], index: cython.int) -> BatchResult:
    # The last part whose first record is not after the record.
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
@cython.inline
@cython.exceptval(check=False)
def locate(
    metadata: RecordMetadata,
    result: BatchResult,
    at: cython.int,
    timestamp: cython.longlong,
    key_size: cython.longlong,
    value_size: cython.longlong,
) -> cython.void:
    """Fills in what is known of a batch's record ``at`` once the batch was written."""
    metadata._offset = result.base_offset + at if result.base_offset >= 0 else -1
    metadata._timestamp = result.log_append_time if result.log_append_time >= 0 else timestamp
    metadata._key_size = key_size
    metadata._value_size = value_size


@cython.cfunc
def new_result(topic: str, partition: cython.int, account: Any, first: cython.int) -> BatchResult:
    result: BatchResult = BatchResult.__new__(BatchResult)
    result.begin(topic, partition, account, first)
    return result
