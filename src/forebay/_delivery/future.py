# cython: binding=True, embedsignature=False
"""RecordFuture: what ``send()`` gives back, an index into the result of the record's batch.

It has the timestamp and the two sizes that RecordMetadata needs.  It keeps no buffer, and the batch does not know it
unless it has a callback.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._delivery.callback_thread import on_sender_thread, report_lost
from cython.cimports.forebay._delivery.callbacks import hears
from cython.cimports.forebay._delivery.hearing import hear
from cython.cimports.forebay._delivery.result import COMPLETING, DONE
from cython.cimports.forebay._delivery.sender_lock import check_wait
from cython.cimports.forebay._runtime.mutex import thread_ident

from forebay._delivery.callback_thread import call_done_callback, check_done_callback
from forebay._delivery.callbacks import DeliveryCallbacks
from forebay._delivery.result import BatchResult
from forebay._delivery.unheard import REFUSED
from forebay._runtime.hints import FUTURE, no_attribute
from forebay._runtime.ticket import ThreadTicket
from forebay._runtime.times import limit
from forebay.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from forebay.errors._base import own_copy
from forebay.model._metadata import RecordMetadata

if TYPE_CHECKING:
    from concurrent.futures import Future

    from forebay._runtime.times import Seconds

LONGEST_MS = cython.declare(cython.double, TIMEOUT_MAX * 1000)


# Not tracked by the garbage collector, which would walk every record in the buffer again and again.  So no lasting
# cycle may lead through a future.  The cycle through the callbacks of its batch ends with the batch's outcome.  There
# is none through the traceback of the batch's error, because users get copies of that error.
@cython.final
@cython.no_gc
@cython.freelist(256)
@cython.cclass
class RecordFuture:
    """The delivery of one record; follows ``concurrent.futures.Future``.

    ``result`` and ``exception`` take a timeout in seconds.  ``cancel`` is always refused, because the record may be on
    its way already.  Cannot be pickled: it belongs to a producer of this process.
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
        """Always False: the future does not know whether the record was sent."""
        return False

    def cancel(self) -> bool:
        """Always False: a record cannot be taken back."""
        return False

    def cancelled(self) -> bool:
        """Always False."""
        return False

    def result(self, timeout: Seconds | None = None) -> RecordMetadata:
        """Waits for the record's metadata.

        Args:
            timeout: seconds; None waits until the record is delivered or has failed (delivery.timeout.ms).

        Raises:
            forebay.errors.KafkaTimeoutError: not known in time; the record may still be delivered.
            forebay.errors.KafkaError: the record could not be delivered; a copy at each call.
            IllegalStateError: called from a delivery callback for a record without an outcome.
        """
        error = self._error(timeout)
        if error is not None:
            try:
                raise error
            finally:
                error = None  # interpreted, its traceback has this frame: a cycle, which would keep the caller's frames
        return self.metadata()  # type: ignore[no-any-return]

    def get(self, timeout: Seconds | None = None) -> RecordMetadata:
        """``result`` under the name that Java and kafka-python use."""
        return self.result(timeout)

    def exception(self, timeout: Seconds | None = None) -> KafkaError | None:
        """Waits as ``result`` does, and returns a copy of the error (None on success) instead of raising it."""
        return self._error(timeout)  # type: ignore[no-any-return]

    @cython.cfunc
    def _error(self, timeout: Any) -> Any:
        timeout = limit(timeout)
        timeout_ms: cython.double = LONGEST_MS if timeout is None else timeout * 1000
        if not self._is_visible() and not wait_for(self._batch, timeout_ms, self._index):
            where = f"{self._batch.topic}-{self._batch.partition}"
            raise KafkaTimeoutError(
                f"No acknowledgement for the record for {where} within {timeout} s; it is still on its way."
            )
        error = self._batch.error_of(self._index)
        if error is None:
            return None
        hear(self._batch, self._index)
        return own_copy(error)

    def add_done_callback(self, function: Callable[[RecordFuture], object]) -> None:
        """Calls ``function(future)`` on completion, on the sender's thread; at once if it is done.

        What it raises is logged under ``forebay.callbacks`` and goes no further.

        Raises:
            ForkedProducerError: in a child of the process that sent the record, unless it was done before the fork.
            TypeError: it cannot be called.
        """
        check_done_callback(function, "future")
        part: BatchResult = self._batch.leaf(self._index)
        if part.state != DONE:
            part.check_own_process()
            account = part.account
            if account is not None:
                account.charge_callback(function)
            if self._batch.add_callback(self._index, self, function):
                if hears(function):
                    hear(self._batch, self._index)
                return
            if account is not None:
                account.credit_callback(function)
        if hears(function):
            hear(self._batch, self._index)
        if not call_done_callback(function, self):
            report_lost(part.topic, part.partition, part.base_offset, self._index - part.first, 1)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        """``await future``: as ``result``, for a coroutine on any event loop; a cancelled one leaves the record alone.

        Raises:
            forebay.errors.KafkaError: the record could not be delivered; a copy at each await.
        """
        from forebay._delivery.awaiting import outcome_of_record  # asyncio is there, since somebody awaits

        return outcome_of_record(self, self._subscribe, self._unsubscribe).__await__()

    def _subscribe(self, ticket: Any) -> bool:
        return self._batch.subscribe(ticket, self._index)

    def _unsubscribe(self, ticket: Any) -> None:
        self._batch.unsubscribe(ticket, self._index)

    def as_concurrent(self) -> Future[RecordMetadata]:
        """The same outcome as a ``concurrent.futures.Future``, for what takes no other; it cannot be cancelled."""
        from forebay._delivery.awaiting import concurrent_future

        return concurrent_future(self)

    @cython.ccall
    def metadata(self) -> Any:
        """RecordMetadata as it stands now; offset and timestamp are -1 for a failed record."""
        part: BatchResult = self._batch.leaf(self._index)
        return part.metadata_of(self._index - part.first, self._timestamp, self._key_size, self._value_size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_visible(self) -> cython.bint:
        # A callback may read its own future.  All other code waits until all callbacks ran.
        batch: BatchResult = self._batch.leaf(self._index)
        return batch.state == DONE or (batch.state == COMPLETING and batch.completing_thread == thread_ident())

    if not TYPE_CHECKING:  # a type checker would take it for an attribute of any name

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("RecordFuture", name, FUTURE.get(name))

    def __reduce__(self) -> Any:
        raise TypeError(
            "a RecordFuture cannot be pickled: it belongs to a producer of this process; pickle its result()"
        )

    def __repr__(self) -> str:
        visible = self._is_visible()  # read before the metadata, which the outcome changes
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


@cython.ccall
@cython.exceptval(-1)
def wait_for(result: BatchResult, timeout_ms: cython.double, index: cython.int = -1) -> cython.bint:
    """Blocks the calling thread until there is an outcome; False if ``timeout_ms`` passed first.

    Args:
        index: of the one record that counts; -1 for all records of the batch.

    Raises:
        ForkedProducerError: see ``BatchResult.check_own_process``.
        IllegalStateError: on a sender's thread, or in a handler that must not wait, unless ``timeout_ms`` is 0.
    """
    leaf: BatchResult = result if index < 0 else result.leaf(index)
    if leaf.state != DONE:
        result.check_own_process()
        if timeout_ms > 0 and on_sender_thread():
            raise IllegalStateError(
                f"A delivery callback cannot wait for a record ({result.topic}-{result.partition}): callbacks run on "
                "the sender's thread, which brings the outcomes; use add_done_callback() or result(0)"
            )
        if timeout_ms > 0:
            check_wait("result()")
    ticket: ThreadTicket = ThreadTicket()
    if result.subscribe(ticket, index):
        return True
    woken: cython.bint = False
    try:
        woken = ticket.wait(timeout_ms)
    finally:
        if not woken:
            result.unsubscribe(ticket, index)
    return woken


@cython.cfunc
def new_future() -> RecordFuture:
    return RecordFuture.__new__(RecordFuture)


def lone_future(
    topic: str, partition: int, callback: Any = None, timestamp: int = -1, key_size: int = -1, value_size: int = -1
) -> RecordFuture:
    """The future of a record in no batch; the ``settle`` of its ``_batch`` gives it its outcome.

    Args:
        callback: called as that of ``send``.
        timestamp: Unix ms; -1 for none, as the sizes in bytes.
    """
    future: RecordFuture = new_future()
    future._batch = BatchResult(topic, partition)
    future._index = 0
    future._timestamp = timestamp
    future._key_size = key_size
    future._value_size = value_size
    if callback is not None:
        deliveries: DeliveryCallbacks = DeliveryCallbacks()
        deliveries.reserve(0, 1)
        deliveries.add(0, callback, timestamp, key_size, value_size)
        future._batch.deliveries = deliveries
    return future


def failed_future(
    topic: str, partition: int, error: KafkaError, callback: Any = None, report: Any = None, unheard: Any = None
) -> RecordFuture:
    """The future of a record that never reached a batch; its callback has run.

    Args:
        unheard: counts it if nobody hears of it (Unheard), or None.

    Raises:
        KeyboardInterrupt: Ctrl-C came while the callback ran, here on the caller's own thread.
    """
    interrupts: list[BaseException] = []

    def report_or_keep(raised: BaseException, result: Any) -> None:
        if isinstance(raised, KeyboardInterrupt):
            interrupts.append(raised)
        else:
            report(raised, result)

    # Its traceback would keep the frames of the refused send.
    error = error.with_traceback(None)
    future: RecordFuture = lone_future(topic, partition, callback)
    if unheard is not None:
        unheard.note(future._batch, error, None, 1, REFUSED)
    future._batch.settle(-1, -1, error, None, 1, report_or_keep)
    if interrupts:
        raise interrupts[0]
    return future
