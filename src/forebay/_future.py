"""What ``send()`` gives back: a light future that refers to its batch's result.

A batch has one BatchResult.  A future is an index into it, with the timestamp and the two sizes that
RecordMetadata needs; it pins no buffer, and the batch does not know it unless somebody added a callback.  On
completion the values are set, callbacks run in the order of the records, and only then do ``result()`` and
``flush()`` return (as in Java: a callback always ran before ``get()`` comes back).
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable
from typing import Any

import cython

from forebay._ticket import ThreadTicket
from forebay.errors import ForkedProducerError, IllegalStateError, KafkaError, TimeoutError
from forebay.model import RecordMetadata

logger = logging.getLogger("forebay.callbacks")

# A NamedTuple's own constructor is a Python function and costs three times as much; this is once a callback.
new_tuple: Any = tuple.__new__

# A result's states: values are readable from COMPLETING on, by the completing thread's callbacks only.
PENDING = cython.declare(cython.int, 0)
COMPLETING = cython.declare(cython.int, 1)
DONE = cython.declare(cython.int, 2)


# How many forks lie between this process and the one that imported us: a result of before is another process's.
_forks = cython.declare(cython.int, 0)


def note_fork() -> None:
    """To be called once in each forked child."""
    global _forks
    _forks += 1


# Whether the current thread is a producer's sender: what it waits for, nobody would bring about.
_this_thread = threading.local()


def note_sender_thread() -> None:
    """To be called once by each sender thread, on itself."""
    _this_thread.sends = True


@cython.final
@cython.cclass
class DoneCallback:
    """Marks a function that takes the future, not (metadata, error)."""

    def __init__(self, function: Callable[[RecordFuture], object]) -> None:
        self.function = function


@cython.final
@cython.cclass
class BatchResult:
    """The outcome that all records of a batch share; set once.

    ``callbacks`` is flat (future, function, future, function ...), so that an append under a partition's lock
    creates no object.  Appends to it happen under that lock while the batch is open, later ones under ``lock``.
    """

    def __init__(self, topic: str, partition: cython.int) -> None:
        self.topic = topic
        self.partition = partition
        self.base_offset = -1
        self.log_append_time = -1
        self.error = None
        self.record_errors: dict[int, Any] | None = None
        self.record_count = 0
        self.state = PENDING
        self.born = _forks
        self.callbacks: list[Any] = []
        self.waiters: list[Any] = []
        if not cython.compiled:
            self.lock = threading.Lock()

    @property
    def done(self) -> bool:
        """True once callbacks ran and waiters were let go."""
        return self.state == DONE

    @cython.cfunc
    def add_callback(self, future: RecordFuture, function: Any) -> cython.void:
        self.callbacks.append(future)
        self.callbacks.append(function)

    @cython.ccall
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
        with self.lock:
            if self.state != PENDING:
                return False
            self.state = COMPLETING
            self.completing_thread = threading.get_ident()
            self.base_offset = base_offset
            self.log_append_time = log_append_time
            self.error = error
            self.record_errors = record_errors
            self.record_count = record_count
        while not self.run_callbacks(report):
            pass
        none: list[Any] = []
        with self.lock:
            # Taken out first: who gives up meanwhile would shorten the list under the loop, and another go unwoken.
            waiting: list[Any] = self.waiters
            self.waiters = none
        for ticket in waiting:
            ticket.wake()
        return True

    @cython.cfunc
    def run_callbacks(self, report: Any) -> cython.bint:
        # True when none is left, and then the result is DONE: nobody can have added one in between.
        at: cython.Py_ssize_t
        future: RecordFuture
        none: list[Any] = []
        with self.lock:
            pending: list[Any] = self.callbacks
            self.callbacks = none
            if len(pending) == 0:
                self.state = DONE
        for at in range(0, len(pending), 2):
            future = pending[at]
            future.run(pending[at + 1], report)
        return len(pending) == 0

    @cython.ccall
    def subscribe(self, ticket: Any) -> cython.bint:
        """True if the result is there; else the ticket is woken when it is."""
        with self.lock:
            if self.state == DONE:
                return True
            self.waiters.append(ticket)
            return False

    @cython.ccall
    def unsubscribe(self, ticket: Any) -> cython.void:
        """Forgets a ticket whose owner gave up."""
        with self.lock:
            if ticket in self.waiters:
                self.waiters.remove(ticket)

    @cython.ccall
    def error_of(self, index: cython.int) -> Any:
        """The error of one record, or None."""
        if self.record_errors is not None and self.error is not None:
            return self.record_errors.get(index, self.error)
        return self.error

    def wait(self, timeout_ms: float) -> bool:
        """Blocks the calling thread until the result is there; False if ``timeout_ms`` passed first.

        Raises:
            IllegalStateError: on a sender's thread, unless ``timeout_ms`` is 0.
        """
        if self.state != DONE:
            self.check_own_process()
            if timeout_ms > 0 and getattr(_this_thread, "sends", False):
                raise IllegalStateError(
                    f"A delivery callback cannot wait for a record ({self.topic}-{self.partition}): callbacks run on "
                    "the sender's thread, which brings the outcomes; use add_done_callback() or result(0)"
                )
        ticket = ThreadTicket()
        if self.subscribe(ticket):
            return True
        try:
            return ticket.wait(timeout_ms)
        finally:
            self.unsubscribe(ticket)

    def check_own_process(self) -> None:
        """Raises ForkedProducerError in a child forked since; its locks may have been held at the fork."""
        if self.born != _forks:
            raise ForkedProducerError("This record belongs to the parent process, which alone learns of its delivery")

    def __repr__(self) -> str:
        state = "pending" if self.state != DONE else repr(self.error) if self.error else f"offset {self.base_offset}"
        return f"<BatchResult {self.topic}-{self.partition}: {state}>"


# Not tracked by the garbage collector, which would walk every record in the buffer again and again.  So no cycle may
# lead through a future for good: the one through the callbacks of its batch is cut when the batch has its outcome, and
# the one through the traceback of the batch's error cannot come about, because ``result`` raises a copy.
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
        batch: BatchResult
        index: int
        timestamp: int
        key_size: int
        value_size: int

    def __init__(self) -> None:
        raise TypeError("a RecordFuture is made by KafkaProducer.send() alone")

    def done(self) -> bool:
        """True once the outcome is known."""
        return self.batch.state == DONE

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
        error = self.exception(timeout)
        if error is not None:
            raise own_copy(error)
        return self.metadata()  # type: ignore[no-any-return]

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """``result`` under the name that Java and kafka-python use."""
        return self.result(timeout)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits as ``result`` does, and returns the error (None on success) instead of raising it."""
        if not self.is_visible() and not self.batch.wait(
            threading.TIMEOUT_MAX * 1000 if timeout is None else timeout * 1000
        ):
            raise TimeoutError(
                f"No acknowledgement for the record for {self.batch.topic}-{self.batch.partition} within {timeout} s; "
                "it is still on its way."
            )
        return self.batch.error_of(self.index)  # type: ignore[no-any-return]

    def add_done_callback(self, function: Callable[[RecordFuture], object]) -> None:
        """Calls ``function(future)`` on completion, on the sender thread; at once if it is done.

        What it raises is logged under ``forebay.callbacks`` and goes no further.

        Raises:
            ForkedProducerError: in a child of the process that sent the record, unless it was done before the fork.
        """
        marked = DoneCallback(function)  # made before the lock: an allocation may run the garbage collector
        if self.batch.state != DONE:
            self.batch.check_own_process()
            with self.batch.lock:
                if self.batch.state != DONE:
                    self.batch.add_callback(self, marked)
                    return
        try:
            function(self)
        except Exception:
            logger.exception("a done callback for %s-%d raised", self.batch.topic, self.batch.partition)

    @cython.ccall
    def metadata(self) -> Any:
        """RecordMetadata as it stands now; offset and timestamp are -1 for a failed record."""
        batch: BatchResult = self.batch
        if batch.error is not None or batch.state == PENDING:
            return new_tuple(RecordMetadata, (batch.topic, batch.partition, -1, -1, -1, -1))
        offset: cython.longlong = batch.base_offset + self.index if batch.base_offset >= 0 else -1
        timestamp: cython.longlong = batch.log_append_time if batch.log_append_time >= 0 else self.timestamp
        return new_tuple(
            RecordMetadata, (batch.topic, batch.partition, offset, timestamp, self.key_size, self.value_size)
        )

    @cython.cfunc
    def is_visible(self) -> cython.bint:
        # A callback may ask its own future; everybody else waits until all callbacks ran.
        batch: BatchResult = self.batch
        return batch.state == DONE or (batch.state == COMPLETING and batch.completing_thread == threading.get_ident())

    @cython.cfunc
    def run(self, function: Any, report: Any) -> cython.void:
        try:
            if isinstance(function, DoneCallback):
                function.function(self)
            else:
                function(self.metadata(), self.batch.error_of(self.index))
        except BaseException as error:  # noqa: BLE001 - SystemExit too: a callback never stops the sender
            try:
                report(error, self.batch)
            except BaseException:  # noqa: BLE001 - its repr may raise; the other records' outcomes count for more
                report_briefly(type(error), self.batch)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a RecordFuture cannot be pickled: it belongs to a producer of this process; pickle its result()"
        )

    def __repr__(self) -> str:
        return f"<RecordFuture {self.index} of {self.batch!r}>"


def own_copy(error: KafkaError) -> KafkaError:
    """A copy to be raised: each raise lengthens a traceback, and that pins frames, which may hold the future."""
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return own.with_traceback(None)


def report_briefly(kind: type[BaseException], batch: BatchResult) -> None:
    """For an exception that cannot be described; never raises."""
    try:
        logger.error("A delivery callback for %s-%d raised %s", batch.topic, batch.partition, kind.__name__)
    except BaseException:  # noqa: BLE001 - a log filter of the user's: there is nobody left to tell
        pass


@cython.cfunc
def new_future() -> RecordFuture:
    return RecordFuture.__new__(RecordFuture)


def failed_future(
    topic: str, partition: int, error: KafkaError, callback: Any = None, report: Any = None
) -> RecordFuture:
    """The future of a record that never reached a batch; its callback has run.

    Raises:
        KeyboardInterrupt: Ctrl-C came while the callback ran, which is on the caller's own thread here.
    """
    interrupts: list[BaseException] = []

    def report_or_keep(raised: BaseException, result: Any) -> None:
        if isinstance(raised, KeyboardInterrupt):
            interrupts.append(raised)
        else:
            report(raised, result)

    # Its traceback would pin the frames of the refused send.
    error = error.with_traceback(None)
    future: RecordFuture = new_future()
    future.batch = BatchResult(topic, partition)
    future.index = 0
    future.timestamp = -1
    future.key_size = -1
    future.value_size = -1
    if callback is not None:
        future.batch.add_callback(future, callback)
    future.batch.settle(-1, -1, error, None, 1, report_or_keep)
    if interrupts:
        raise interrupts[0]
    return future
