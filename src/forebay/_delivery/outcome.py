"""BatchOutcome: what became of a batch's records, and the callbacks that came with them."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._delivery.callback_thread import report_lost
from cython.cimports.forebay._delivery.callbacks import DeliveryCallbacks
from cython.cimports.forebay._delivery.metadata import RecordMetadata, new_metadata
from cython.cimports.forebay._runtime.memory import is_unshared

from forebay._delivery.callback_thread import leave_forked_child, report_safely, was_entered
from forebay.errors._base import own_copy

PENDING = cython.declare(cython.int, 0)

# How many forks lie between this process and the one that imported us: a result of before is another process's.
_forks = cython.declare(cython.int, 0)


def note_fork() -> None:
    """To be called once in each forked child."""
    global _forks
    _forks = (_forks + 1) & 0x7FFF  # a result keeps it in two bytes


# Not tracked by the garbage collector, for the same reasons as RecordFuture.
@cython.no_gc
@cython.cclass
class BatchOutcome:
    """The values of a BatchResult, which says who may read and set them when."""

    @cython.cfunc
    @cython.exceptval(check=False)
    def begin_outcome(self, topic: str, partition: cython.int) -> cython.void:
        self.topic = topic
        self.partition = partition
        self.base_offset = self.log_append_time = -1
        self.error = None
        self.record_errors: dict[int, Any] | None = None
        self.state = PENDING
        self.foretold = False  # the outcome was set before the sender's thread came to it
        self.born = _forks

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_foreign(self) -> cython.bint:
        """Whether it belongs to a process that this one was forked from."""
        return self.born != _forks

    @cython.cfunc
    def run_deliveries(self, deliveries: DeliveryCallbacks, report: Any) -> cython.void:
        shared: Any = None if self.error is None else copy_or_itself(self.error)
        at: cython.int = 0
        while at < deliveries.count:
            at = self.deliver_from(at, deliveries, shared, report)
        self.say_lost(deliveries, -1)

    @cython.cfunc
    @cython.exceptval(-1)
    def deliver_from(self, at: cython.int, calls: DeliveryCallbacks, shared: Any, report: Any) -> cython.int:
        # Up to a callback that raises; where to go on.  A try around each one would be a tenth of its cost.
        metadata: RecordMetadata | None = None
        error: Any = shared
        called: cython.bint = False
        try:
            while at < calls.count:
                called = False
                function: Any = calls.seek(at)
                at += 1
                if function is None:
                    continue
                # One that no callback kept serves again; of a failed batch all are the same.
                if metadata is None or not is_unshared(metadata):
                    metadata = new_metadata(self.topic, self.partition)
                if shared is None:
                    locate(metadata, self, at - 1, calls.timestamp, calls.key_size, calls.value_size)
                elif self.record_errors is not None:
                    error = copy_or_itself(self.record_errors[at - 1]) if at - 1 in self.record_errors else shared
                called = True
                function(metadata, error)
                if self.is_foreign():
                    leave_forked_child(None)
        except BaseException as raised:  # noqa: BLE001 - SystemExit too: a callback never stops the sender
            if called and was_entered(raised):
                self.tell(raised, report)
            else:
                self.say_lost(calls, at - 1)
        return at

    @cython.cfunc
    @cython.exceptval(-1)
    def is_lost(self, raised: Any, at: cython.longlong) -> cython.bint:
        """Whether there was no memory to call the callback of record ``at``, which is said then."""
        if was_entered(raised):
            return False
        report_lost(self.topic, self.partition, self.base_offset, at, 1)
        return True

    @cython.cfunc
    def say_lost(self, calls: DeliveryCallbacks, at: cython.Py_ssize_t) -> cython.void:
        """Notes that record ``at``'s callback was not called, and says so of those before it that are no neighbours.

        Args:
            at: -1 when there are no more.
        """
        if calls.lost > 0 and at != calls.lost_at + calls.lost:
            report_lost(self.topic, self.partition, self.base_offset, calls.lost_at, calls.lost)
            calls.lost = 0
        if at >= 0:
            if calls.lost == 0:
                calls.lost_at = at
            calls.lost += 1

    @cython.cfunc
    def tell(self, raised: Any, report: Any) -> cython.void:
        if self.is_foreign():
            leave_forked_child(raised)
        report_safely(report, raised, self)

    @cython.cfunc
    def metadata_of(
        self, at: cython.int, timestamp: cython.longlong, key_size: cython.longlong, value_size: cython.longlong
    ) -> RecordMetadata:
        """RecordMetadata of this result's record ``at`` as it stands now."""
        metadata: RecordMetadata = new_metadata(self.topic, self.partition)
        if self.error is None and self.state != PENDING:
            locate(metadata, self, at, timestamp, key_size, value_size)
        return metadata


@cython.cfunc
def copy_or_itself(error: Any) -> Any:
    """A copy of its own for each callback; without memory for one, it is better than none."""
    try:
        return own_copy(error)
    except MemoryError:
        return error


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def locate(
    metadata: RecordMetadata,
    outcome: BatchOutcome,
    at: cython.int,
    timestamp: cython.longlong,
    key_size: cython.longlong,
    value_size: cython.longlong,
) -> cython.void:
    """Fills in what is known of a batch's record ``at`` once the batch was written."""
    metadata._offset = outcome.base_offset + at if outcome.base_offset >= 0 else -1
    metadata._timestamp = outcome.log_append_time if outcome.log_append_time >= 0 else timestamp
    metadata._key_size = key_size
    metadata._value_size = value_size
