# cython: binding=True, embedsignature=False
"""The way of a record in ``AIOKafkaProducer.send``, compiled: the native ``send``, and the future of its record.

The road not taken is an ``asyncio.Future`` for each record, which costs more than all else that a record costs.
"""

from __future__ import annotations

import logging
import sys
from asyncio import AbstractEventLoop, CancelledError, InvalidStateError
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from typing import Any

import cython
from cython.cimports.forebay.model._metadata import RecordMetadata as Found
from cython.cimports.forebay.producer._frontend import DONE, BatchResult, RecordFuture, hear
from cython.cimports.forebay.producer._path import OPEN, RETURN

from forebay.compat.aiokafka._mapping import of_record, raised
from forebay.compat.aiokafka._own_structs import TopicPartition
from forebay.compat.aiokafka.structs import RecordMetadata
from forebay.errors import KafkaError as NativeError
from forebay.producer._frontend import CALLS_BETWEEN_LOOKS, LONGEST_RUN_S, Turn
from forebay.producer._path import SendPath

MODULES = cython.declare(dict, sys.modules)

logger = logging.getLogger("forebay.callbacks")


@cython.final
@cython.cclass
class Origin:
    """What the futures of one producer share: how their outcomes come to the event loop.

    It works as ``forebay._runtime.event_loop.Handover``, for many futures at the cost of few calls.  The callbacks of a
    future run here, and not by a handle of the loop for each.

    Args:
        loop: the producer's.
        has_answers: False for acks=0, where nobody learns of a record.
    """

    def __init__(self, loop: AbstractEventLoop, has_answers: bool) -> None:
        self.loop = loop
        self.has_answers = has_answers
        self.ready: Any = deque()
        self.asked = False
        self.where: Any = None

    @cython.cfunc
    def put(self, future: DeliveryFuture) -> cython.void:
        """Has the loop tell a future's callbacks.  Any thread; never raises."""
        self.ready.append(future)
        if not self.asked:
            self.asked = True
            try:
                self.loop.call_soon_threadsafe(Turn(self))
            except RuntimeError as error:
                self.drop(str(error))
            except MemoryError:
                self.asked = False  # the next one asks again

    def drop(self, reason: str) -> None:
        """No turn comes any more: the futures that wait for one are dropped, and that is logged."""
        self.asked = False  # first, so that what another thread puts now asks for itself
        count: cython.int = 0
        while len(self.ready) > 0:
            self.ready.popleft()
            count += 1
        if count > 0:
            logger.warning("%d outcome(s) cannot be handed over: %s", count, reason)

    def run(self) -> None:
        """Tells the callbacks of the futures that are ready; what does not fit in its time comes in the next turn."""
        ready: Any = self.ready
        future: DeliveryFuture
        end: cython.double = self.loop.time() + LONGEST_RUN_S
        try:
            while len(ready) > 0 and self.loop.time() < end:
                for _ in range(min(len(ready), CALLS_BETWEEN_LOOKS)):
                    future = ready.popleft()
                    future.tell()
        finally:
            # Cleared before the queue is read for the last time: what is put after that asks again.
            self.asked = False
            if len(ready) > 0:
                self.asked = True
                self.loop.call_soon(Turn(self))


@cython.final
@cython.freelist(256)
@cython.cclass
class DeliveryFuture:
    """The delivery of one record or batch.  It can be awaited, and has the methods of an ``asyncio.Future``.

    ``asyncio.isfuture(future)`` is True, ``isinstance(future, asyncio.Future)`` False.  It asks the native future when
    it is asked itself, so one that nobody looks at costs little.  If it is cancelled, the record goes on.
    """

    if not cython.compiled:
        _record: RecordFuture
        _origin: Origin
        _outcome: Any
        _callbacks: list[Any] | None
        _cancel_message: Any
        _cancelled: bool
        _subscribed: bool
        _asyncio_future_blocking = False

    def __init__(self) -> None:
        raise TypeError("a DeliveryFuture is made by AIOKafkaProducer.send() and send_batch() alone")

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_there(self) -> cython.bint:
        return self._record._batch.leaf(self._record._index).state == DONE

    def done(self) -> bool:
        """True once the outcome is known, or the future was cancelled."""
        return self._cancelled or self.is_there()

    def cancelled(self) -> bool:
        """True if it was cancelled."""
        return self._cancelled

    def cancel(self, msg: Any = None) -> bool:
        """Nobody waits for the outcome any more; the record goes on.  False if it is done."""
        if self._cancelled or self.is_there():
            return False
        self._cancelled = True
        self._cancel_message = msg
        if self._subscribed:
            self._record._batch.unsubscribe(self, self._record._index)
        self.schedule()
        return True

    def result(self) -> RecordMetadata | Any:
        """Where the record went; None with acks=0.

        Raises:
            forebay.compat.aiokafka.errors.KafkaError: it could not be delivered.
            asyncio.CancelledError: the future was cancelled.
            asyncio.InvalidStateError: the outcome is not known yet.
        """
        found = self.outcome()
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

    def exception(self) -> Exception | None:
        """The error of a record that could not be delivered, else None; raises as ``result`` otherwise."""
        part: BatchResult = self._record._batch.leaf(self._record._index)
        if part.state == DONE and part.error is None and not self._cancelled:
            return None  # without metadata that nobody asks for
        found = self.outcome()
        return found if isinstance(found, Exception) else None

    @cython.cfunc
    def outcome(self) -> Any:
        if self._cancelled:
            raise self._make_cancelled_error()
        if not self.is_there():
            raise InvalidStateError("Result is not set: the record is still on its way.")
        if self._outcome is None:
            error = self._record.exception(0)
            if error is not None:
                self._outcome = of_record(error)
            elif self._origin.has_answers:
                self._outcome = self.metadata()
        return self._outcome

    @cython.cfunc
    def metadata(self) -> object:
        found: Found = self._record.metadata()
        part: BatchResult = self._record._batch.leaf(self._record._index)
        topic: Any = found._topic
        partition: Any = found._partition
        where: Any = self._origin.where
        if where is None or where[1] != partition or where[0] != topic:
            # The class of aiokafka's consumers, once a program has imported them: they take no other.
            theirs: Any = MODULES.get("aiokafka.structs")
            kind: Any = TopicPartition if theirs is None else getattr(theirs, "TopicPartition", TopicPartition)
            where = self._origin.where = kind(topic, partition)
        by_broker: cython.int = 1 if part.log_append_time >= 0 else 0
        return RecordMetadata(topic, partition, where, found._offset, found._timestamp, by_broker, None)

    def _make_cancelled_error(self) -> CancelledError:
        message = self._cancel_message
        return CancelledError() if message is None else CancelledError(message)

    def get_loop(self) -> AbstractEventLoop:
        """The producer's event loop."""
        loop: AbstractEventLoop = self._origin.loop
        return loop

    def add_done_callback(
        self, function: Callable[[DeliveryFuture], object], *, context: Context | None = None
    ) -> None:
        """Has the loop call ``function(future)`` once it is done."""
        if context is None:
            context = copy_context()
        if self._callbacks is None:
            self._callbacks = [function, context]
        else:
            self._callbacks += [function, context]
        if not self._subscribed and not self._cancelled:
            self._subscribed = not self._record._batch.subscribe(self, self._record._index)
        if not self._subscribed or self._cancelled:
            self.schedule()

    def remove_done_callback(self, function: Callable[[DeliveryFuture], object]) -> int:
        """Forgets a callback; how often it was there."""
        if self._callbacks is None:
            return 0
        pairs = zip(self._callbacks[::2], self._callbacks[1::2], strict=True)
        kept = [part for pair in pairs if pair[0] != function for part in pair]
        removed = (len(self._callbacks) - len(kept)) // 2
        self._callbacks = kept
        return removed

    def wake(self) -> None:
        """The outcome is known.  Any thread."""
        self._origin.put(self)

    @cython.cfunc
    def schedule(self) -> cython.void:
        """Leaves the callbacks to the loop."""
        if self._callbacks is None:
            return
        callbacks: list[Any] = self._callbacks
        self._callbacks = None
        at: cython.Py_ssize_t
        if not self._cancelled:
            hear(self._record._batch, self._record._index)
        for at in range(0, len(callbacks), 2):
            self._origin.loop.call_soon(callbacks[at], self, context=callbacks[at + 1])

    @cython.cfunc
    @cython.exceptval(-1)
    def tell(self) -> cython.int:
        """Calls the callbacks; as a loop does, it raises only SystemExit and KeyboardInterrupt."""
        self._subscribed = False
        if self._callbacks is None:
            return 0
        callbacks: list[Any] = self._callbacks
        self._callbacks = None
        at: cython.Py_ssize_t
        hear(self._record._batch, self._record._index)
        for at in range(0, len(callbacks), 2):
            try:
                callbacks[at + 1].run(callbacks[at], self)
            except (SystemExit, KeyboardInterrupt):
                self._callbacks = callbacks[at + 2 :]
                self.schedule()
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio.Handle
                what = f"Exception in callback {callbacks[at]!r}"
                self._origin.loop.call_exception_handler({"message": what, "exception": error, "future": self})
        return 0

    def __await__(self) -> Generator[Any, None, RecordMetadata | Any]:
        if not self._cancelled and not self.is_there():
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    __iter__ = __await__

    def __repr__(self) -> str:
        if self._cancelled:
            return "<DeliveryFuture cancelled>"
        return f"<DeliveryFuture of {self._record!r}>"


@cython.cfunc
def new_delivery(record: RecordFuture, origin: Origin) -> DeliveryFuture:
    made: DeliveryFuture = DeliveryFuture.__new__(DeliveryFuture)
    made._record = record
    made._origin = origin
    made._outcome = None
    made._callbacks = None
    made._cancel_message = None
    made._cancelled = False
    made._subscribed = False
    made._asyncio_future_blocking = False
    return made


@cython.cclass
class SendCalls:
    """What ``AIOKafkaProducer.send`` needs; AIOKafkaProducer is its subclass.  The loop's thread only."""

    if not cython.compiled:
        _native: Any = None
        _origin: Any = None

    def _bind(self, native: SendPath | None, origin: Origin | None) -> None:
        self._native = native
        self._origin = origin

    @cython.annotation_typing(False)
    def _take(
        self, topic: Any, value: Any, key: Any, partition: Any, timestamp_ms: Any, headers: Any
    ) -> DeliveryFuture | None:
        """The native ``send``; None, and no trace, if it must wait, was not started, or there is no such partition."""
        native: Any = self._native
        if native is None:
            return None
        path: SendPath = native
        try:
            if path._state != OPEN:
                raise path._refusal()
            if type(topic) is not str:
                raise TypeError(f"topic must be a str, got {type(topic).__name__}")
            sent: Any = path.dispatch(topic, value, key, headers, partition, timestamp_ms, None, RETURN)
        except NativeError as error:
            raise raised(error) from error
        return None if sent is None else new_delivery(sent, self._origin)

    def _delivery(self, record: RecordFuture) -> DeliveryFuture:
        return new_delivery(record, self._origin)
