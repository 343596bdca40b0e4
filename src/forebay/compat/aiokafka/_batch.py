# cython: binding=True, embedsignature=False
"""``create_batch`` and ``send_batch``: records that the user puts together, and that are one batch in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import cython
from cython.cimports.forebay.model._arguments import checked_timestamp
from cython.cimports.forebay.producer._frontend import (
    APPENDED,
    BATCH_OVERHEAD,
    RecordFuture,
    TopicState,
    append_whole,
    encode_headers,
    new_future,
    record_body_size,
    record_size,
)
from cython.cimports.forebay.producer._path import OPEN

from forebay.errors import KafkaError as NativeError
from forebay.errors import KafkaTimeoutError
from forebay.producer._path import SendPath

NO_HEADERS = cython.declare(bytes, b"\x00")


class AppendedMetadata(NamedTuple):
    """What ``BatchBuilder.append`` tells of a message: its number in the batch, bytes, and Unix ms; ``crc`` is None."""

    offset: int
    crc: None
    size: int
    timestamp: int


@cython.final
@cython.cclass
class BatchBuilder:
    """Messages for one partition; ``AIOKafkaProducer.create_batch`` makes it, ``send_batch`` sends it.

    Args:
        limit: bytes of header and messages (``max_batch_size``); a first message may be larger.
        now: gives the time in Unix ms.
        key_serializer, value_serializer: functions of a key or value, or None.
    """

    if not cython.compiled:
        _size: int

    def __init__(
        self,
        limit: int,
        now: Callable[[], int],
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
    ) -> None:
        self._records: list[Any] = []
        self._limit = limit
        self._now = now
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._size = BATCH_OVERHEAD
        self._first_timestamp = 0
        self._closed = False

    @cython.annotation_typing(False)
    def append(
        self, *, timestamp: int | None, key: Any, value: Any, headers: Iterable[tuple[str, bytes | None]] | None = None
    ) -> AppendedMetadata | None:
        """Adds a message; None if the batch is full, which closes it, or was closed.

        Args:
            timestamp: Unix ms, None for now.
            key: bytes or None, or what the producer's ``key_serializer`` takes.
            value: as the key.
            headers: pairs of str and bytes.

        Raises:
            TypeError: key or value are not bytes, or something else has another type.
            ValueError: a timestamp or header that cannot be.
        """
        if self._closed:
            return None
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        key_bytes: Any = as_bytes("key", key)
        value_bytes: Any = as_bytes("value", value)
        try:
            when: cython.longlong = self._now() if timestamp is None else checked_timestamp(timestamp)
            section: bytes = encode_headers(list(headers)) if headers else NO_HEADERS
        except NativeError as error:
            raise ValueError(str(error)) from error
        count: cython.Py_ssize_t = len(self._records)
        first: cython.longlong = self._first_timestamp if count else when
        key_size: cython.Py_ssize_t = -1 if key_bytes is None else len(key_bytes)
        value_size: cython.Py_ssize_t = -1 if value_bytes is None else len(value_bytes)
        size: cython.Py_ssize_t = record_size(record_body_size(when - first, count, key_size, value_size, len(section)))
        if count and self._size + size > self._limit:
            self._closed = True
            return None
        self._first_timestamp = first
        self._size += size
        self._records.append((when, key_bytes, value_bytes, section))
        return AppendedMetadata(count, None, size, when)

    def close(self) -> None:
        """Takes no further message."""
        self._closed = True

    def closed(self) -> bool:
        """Whether it takes no further message."""
        return self._closed

    def size(self) -> int:
        """Bytes of header and messages, before compression."""
        return self._size

    def record_count(self) -> int:
        """How many messages it has."""
        return len(self._records)


def as_bytes(what: str, given: Any) -> bytes | None:
    """A key or value as it is kept.

    Raises:
        TypeError: it is not bytes.
    """
    if given is None or type(given) is bytes:
        return given
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    raise TypeError(
        f"the {what} of a message must be bytes or None, got {type(given).__name__}; or set {what}_serializer"
    )


@cython.final
@cython.cclass
class PendingBatch:
    """A batch on its way into the buffer; used like ``forebay.producer._pending.PendingSend``.

    Args:
        path: the producer.
        topic: known to it already.
        partition: one of the topic's.
        builder: with at least one message; takes no further one.
    """

    def __init__(self, path: SendPath, topic: str, partition: cython.int, builder: BatchBuilder) -> None:
        self.path = path
        self.state: TopicState = path.accumulator.topics[topic]
        self.partition = partition
        self.builder = builder
        self.begun = path.clock.now()
        self.deadline = self.begun + path.max_block_ms

    def left(self) -> float:
        """Ms until ``max.block.ms`` is over."""
        left: float = self.deadline - self.path.clock.now()
        return left

    @cython.ccall
    def step(self, ticket: Any) -> RecordFuture | None:
        """The future of the first message, or None: the ticket is woken when it may go further.

        Raises:
            KafkaTimeoutError: ``max.block.ms`` is over.
            KafkaError: the producer takes no records.
        """
        path: SendPath = self.path
        if path._state != OPEN:
            raise path._refusal()
        now: cython.double = path.clock.now()
        path.metadata.add_topic(self.state.name, now)
        future: RecordFuture = new_future()
        size: cython.Py_ssize_t = self.builder._size
        status: cython.int = append_whole(
            path.appender, self.state, self.partition, self.builder._records, size, future, ticket, now
        )
        path.wake()
        if status & APPENDED:
            return future
        if now >= self.deadline:
            raise KafkaTimeoutError(
                f"No room for a batch of {size} bytes within {path.max_block_ms:g} ms", phase="waiting for memory"
            )
        return None

    def end(self, ticket: Any) -> None:
        """The caller does not wait any more, whatever the reason."""
        self.path.accumulator.pool.cancel(ticket)
        self.path.sensors.buffer_wait_ns.record((self.path.clock.now() - self.begun) * 1e6)
