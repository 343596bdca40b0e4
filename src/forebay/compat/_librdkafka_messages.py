# cython: binding=True, embedsignature=False
"""The messages of ``Producer.produce`` from their outcome on, and ``poll`` 's queue of them."""

from __future__ import annotations

from collections import deque
from typing import Any

import cython
from cython.cimports.forebay.producer._frontend import Clock, CompiledCallback, Mutex, acquire, release

from forebay.compat._librdkafka_errors import KafkaError, own_error
from forebay.model._metadata import RecordMetadata

TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME = range(3)
NO_TYPE = cython.declare(cython.int, 0)
CREATE_TYPE = cython.declare(cython.int, 1)
"""The first two of them, for compiled code."""


@cython.final
@cython.cclass
class Events:
    """Messages that have their outcome and were not served, and errors of brokers; ``poll`` takes them.

    A message's callback may refer to the producer, and so to this.  The collector sees it here and not in the message,
    for it would walk each.  Most messages have the same, so it stands once, in a tuple with the first of them.
    """

    def __init__(self, clock: Clock, default_callback: Any, only_errors: bool) -> None:
        self.served: Any = deque()
        self.append = self.served.append
        self.take = self.served.popleft
        self.latest: Any = None
        self.current: Any = None
        if not cython.compiled:
            self.lock = Mutex()
        self.waiting: list[Any] = []
        self.clock = clock
        self.default_callback = default_callback
        self.only_errors = only_errors

    @cython.ccall
    def put(self, message: Message) -> cython.void:
        """Adds one, and wakes who waits for it.  Any thread."""
        callback: Any = message._callback
        message._callback = None
        message.events = None
        while not self.put_behind(message, callback, None if callback is self.latest else (callback, message)):
            pass  # another thread came between
        if len(self.waiting) > 0:
            self.wake()

    @cython.cfunc
    @cython.exceptval(-1)
    def put_behind(self, message: Message, callback: Any, both: Any) -> cython.bint:
        # The tuple is made outside the lock, for that may run the collector, and the callback before is dropped there.
        # What is appended is one object, for there may be no memory for it.
        had: Any = None
        acquire(self.lock)
        try:
            if callback is self.latest:
                self.append(message)
            elif both is None:
                return False
            else:
                self.append(both)
                had = self.latest
                self.latest = callback
        finally:
            release(self.lock)
        del had
        return True

    @cython.cfunc
    def taken(self) -> Any:
        # The next one, a message with its callback; None if there is none.
        had: Any = None
        found: Any = None
        acquire(self.lock)
        try:
            if len(self.served) > 0:
                found = self.take()
            if type(found) is tuple:
                had = self.current
                self.current, found = found
            if type(found) is Message:
                cython.cast(Message, found)._callback = self.current
        finally:
            release(self.lock)
        del had
        return found

    @cython.cfunc
    def forget(self) -> object:
        # Lets the callback go if nothing waits for it.
        had: Any = None
        acquire(self.lock)
        try:
            if len(self.served) == 0:
                had = (self.latest, self.current)
                self.latest = self.current = None
        finally:
            release(self.lock)
        return had

    @cython.ccall
    def size(self) -> cython.Py_ssize_t:
        """How many messages and errors there are."""
        return len(self.served)

    def put_error(self, error: KafkaError) -> None:
        """Adds an error that is no message's.  Any thread."""
        self.append(error)
        self.wake()

    def wake(self) -> None:
        """Lets all go on that wait for an event."""
        for ticket in tuple(self.waiting) if self.waiting else ():
            ticket.wake()


# Not tracked by the garbage collector, which would walk all that wait.  Until its outcome its callback is kept as that
# of any record; then it refers to nothing that could refer to it.  So programs get copies of its error and its headers:
# a raised error has a traceback, which refers to all that the callback sees.
@cython.final
@cython.no_gc
@cython.cclass
class Message(CompiledCallback):
    """A message, and what became of it; made by ``produce`` and given to its callback."""

    if not cython.compiled:
        events: Events | None
        _callback: Any
        _topic: Any
        _key: bytes | None
        _value: bytes | None
        _headers: list[tuple[str, bytes | None]] | None
        _failure: Any
        _partition: int
        _offset: int
        _timestamp: int
        _timestamp_type: int
        _begun: float
        _latency: float

    @cython.annotation_typing(False)
    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: Any = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] | None = None,
        latency: float | None = None,
        leader_epoch: int | None = None,
        delivery_count: int | None = None,
    ) -> None:
        """A message as tests and pickles make it; those of ``produce`` come to its callback.

        Args:
            leader_epoch, delivery_count: taken, and not kept.
        """
        self.events = None
        self._callback = None
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._offset = -1 if offset is None else offset
        self._key, self._value, self._headers = key, value, headers
        self._failure = error
        self._timestamp_type, self._timestamp = (TIMESTAMP_NOT_AVAILABLE, 0) if timestamp is None else timestamp
        self._begun = 0.0
        self._latency = -1.0 if latency is None else latency * 1000

    @cython.cfunc
    def deliver(self, metadata: RecordMetadata, error: Any) -> object:
        events: Events | None = self.events
        if events is None:
            return None  # it has its outcome
        self._latency = events.clock.now() - self._begun
        self._partition = metadata._partition
        if error is None:
            if events.only_errors:
                return None
            self._offset = metadata._offset
            self._timestamp = metadata._timestamp
            self._timestamp_type = CREATE_TYPE
        else:
            self._failure = error
        events.put(self)
        return None

    def fail(self, error: BaseException | KafkaError) -> None:
        """The outcome of a message that never reached the native producer; the first outcome stays."""
        events: Events | None = self.events
        if events is None:
            return
        self._latency = events.clock.now() - self._begun
        self._failure = own_error(error)
        events.put(self)

    def error(self) -> KafkaError | None:
        """None once it was delivered; a copy at each call."""
        return None if self._failure is None else own_error(self._failure)

    def topic(self) -> str:
        """The topic's name."""
        return self._topic  # type: ignore[no-any-return]

    def partition(self) -> int | None:
        """The partition's number, None if none was chosen."""
        return self._partition if self._partition >= 0 else None

    def offset(self) -> int | None:
        """The offset, None for a message that failed or where the broker does not tell it."""
        return self._offset if self._offset >= 0 else None

    def key(self) -> Any:
        """The key's bytes, or what ``set_key`` was given."""
        return self._key

    def value(self) -> Any:
        """The value's bytes, or what ``set_value`` was given."""
        return self._value

    def deserialized_key(self) -> Any:
        """As ``key``."""
        return self._key

    def deserialized_value(self) -> Any:
        """As ``value``."""
        return self._value

    def headers(self) -> Any:
        """Pairs of key and value, None if there are none; a copy at each call."""
        return list(self._headers) if isinstance(self._headers, list) else self._headers

    # What is set is not tracked by the garbage collector, as all that a Message has.

    def set_topic(self, topic: str) -> None:
        """Sets what ``topic`` gives."""
        self._topic = topic

    def set_key(self, key: Any) -> None:
        """Sets what ``key`` gives."""
        self._key = key

    def set_value(self, value: Any) -> None:
        """Sets what ``value`` gives."""
        self._value = value

    def set_headers(self, headers: Any) -> None:
        """Sets what ``headers`` gives."""
        self._headers = headers

    def set_error(self, error: KafkaError | None) -> None:
        """Sets what ``error`` gives."""
        self._failure = error

    def timestamp(self) -> tuple[int, int]:
        """(TIMESTAMP_CREATE_TIME, Unix ms) of a message that was delivered, else (TIMESTAMP_NOT_AVAILABLE, -1)."""
        return self._timestamp_type, self._timestamp

    def latency(self) -> float | None:
        """Seconds from ``produce`` to the outcome."""
        return self._latency / 1000 if self._latency >= 0 else None

    def leader_epoch(self) -> None:
        """Always None."""

    def delivery_count(self) -> None:
        """Always None."""

    def __len__(self) -> int:
        return 0 if self._value is None else len(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'Message'")

    def __reduce__(self) -> Any:
        fields = (self._topic, self.partition(), self.offset(), self._key, self._value, self.headers(), self.error())
        return Message, (*fields, self.timestamp(), self.latency())


@cython.cfunc
def new_message(events: Events, topic: Any, key: Any, value: Any, headers: Any, callback: Any) -> Message:
    message: Message = Message.__new__(Message)
    message.events = events
    message._callback = callback
    message._topic = topic
    message._key = key
    message._value = value
    message._headers = list(headers) if headers else None
    message._failure = None
    message._partition = -1
    message._offset = -1
    message._timestamp = -1
    message._timestamp_type = NO_TYPE
    message._begun = events.clock.now()
    message._latency = -1.0
    return message
