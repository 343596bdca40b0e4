# cython: binding=True, embedsignature=False
"""The way of a record in kafka-python's ``send``: serializers, its partition, the native ``send``, and its future."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import cython
from cython.cimports.forebay.compat.kafka._future_callbacks import (
    ALWAYS,
    DEEPEST,
    ON_FAILURE,
    ON_SUCCESS,
    new_call,
    record_metadata,
)
from cython.cimports.forebay.model._arguments import plain_name
from cython.cimports.forebay.producer._frontend import (
    PartitionRandom,
    RecordFuture,
    TopicState,
    added_callback,
    alike,
    bytes_pointer,
    put_added,
    repeat_added,
    utf8_size,
)
from cython.cimports.forebay.producer._frontend import murmur2 as hash_bytes
from cython.cimports.forebay.producer._path import OPEN, WAIT

from forebay.compat.kafka._future_callbacks import Call
from forebay.compat.kafka.errors import IllegalStateError, RetriableError, translated
from forebay.compat.kafka.structs import RecordMetadata
from forebay.errors import KafkaError as NativeError
from forebay.producer._path import SendPath

CLOSED = "KafkaProducer already closed!"
NO_HEADERS = cython.declare(cython.Py_ssize_t, -1)


def murmur2(data: bytes) -> int:
    """Java's murmur2 of a key's bytes, as a number of 32 bits."""
    return hash_bytes(bytes_pointer(data), len(data)) & 0xFFFFFFFF


# Not tracked by the garbage collector: it refers to the native future alone, which is not tracked, either.
@cython.final
@cython.no_gc
@cython.freelist(256)
@cython.cclass
class FutureRecordMetadata:
    """The delivery of one record; ``native`` can be awaited.

    Callbacks run on the sender's thread, at once if the outcome is there.  What they raise is logged.
    """

    if not cython.compiled:
        _sent: RecordFuture
        _header_size: int

    def __init__(self) -> None:
        raise TypeError("a FutureRecordMetadata is made by KafkaProducer.send() alone")

    @property
    def native(self) -> RecordFuture:
        """The future of this package."""
        return self._sent

    @property
    def is_done(self) -> bool:
        """True once the outcome is known."""
        return self._sent._is_visible()

    @property
    def value(self) -> RecordMetadata | None:
        """Where the record went; None while that is not known, and for a record that failed."""
        return self._metadata() if self.succeeded() else None

    @property
    def exception(self) -> BaseException | None:
        """Why the record failed; None while that is not known, and for a record that was delivered."""
        if not self._sent._is_visible():
            return None
        error = self._sent._error(0)
        return None if error is None else translated(error)

    def succeeded(self) -> bool:
        """Whether it was delivered."""
        return self._sent._is_visible() and self._sent._error(0) is None

    def failed(self) -> bool:
        """Whether it failed."""
        return self._sent._is_visible() and self._sent._error(0) is not None

    def retriable(self) -> bool:
        """Whether it failed by an error that may pass."""
        return isinstance(self.exception, RetriableError)

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Waits for the record's metadata.

        Args:
            timeout: seconds; None waits until the record is delivered or has failed (delivery_timeout_ms).

        Raises:
            KafkaTimeoutError: not known in time; the record may still be delivered.
            KafkaError: the record could not be delivered.
        """
        try:
            error = self._sent._error(timeout)
        except NativeError as late:
            raise translated(late) from late
        if error is not None:
            raise translated(error)
        return self._metadata()  # type: ignore[no-any-return]

    def add_callback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Calls ``f(*args, metadata, **kwargs)`` once the record is delivered; the future itself."""
        self._add(ON_SUCCESS, f, args, kwargs)
        return self

    def add_errback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Calls ``f(*args, error, **kwargs)`` if the record fails; the future itself."""
        self._add(ON_FAILURE, f, args, kwargs)
        return self

    def add_both(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Calls ``f`` with the metadata or the error; the future itself."""
        self._add(ALWAYS, f, args, kwargs)
        return self

    @cython.cfunc
    @cython.exceptval(-1)
    def _add(self, kind: cython.int, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> cython.int:
        if not callable(f):
            raise TypeError(f"a callback must be callable, got {type(f).__name__}")
        function: Any = partial(f, *args, **kwargs) if len(args) > 0 or len(kwargs) > 0 else f
        if not repeat_added(self._sent, kind, function, self._header_size):
            self._add_anew(kind, function)
        return 0

    @cython.cfunc
    def _add_anew(self, kind: cython.int, function: Any) -> object:
        sent: RecordFuture = self._sent
        before: Any = added_callback(sent, False)
        known: Any = added_callback(sent, True)
        found: Any = alike(known, before, kind, function, self._header_size)
        call: Call = new_call(before, kind, function, self._header_size) if found is None else found
        if call.depth >= DEEPEST or not put_added(sent, before, call, function if found is None else None):
            sent.add_done_callback(new_call(None, kind, function, self._header_size))
        return None

    def chain(self, future: Any) -> Self:
        """Hands the outcome on to another future's ``success`` or ``failure``; the future itself."""
        return self.add_callback(future.success).add_errback(future.failure)

    @cython.cfunc
    def _metadata(self) -> Any:
        return record_metadata(self._sent.metadata(), self._header_size)

    def __reduce__(self) -> Any:
        raise TypeError("a FutureRecordMetadata cannot be pickled: pickle its get()")

    def __repr__(self) -> str:
        return f"<FutureRecordMetadata of {self._sent!r}>"


@cython.cclass
class SendingPath:
    """What ``KafkaProducer.send`` needs; KafkaProducer is its subclass.  Any thread may send."""

    if not cython.compiled:
        _open = False

    def _bind(self, native: Any, key: Any, value: Any, choose: Any, draw: Any) -> None:
        """To be called once, before the first ``send``.

        Args:
            native: the native producer; its ``_refused`` raises what ``send`` raises here.
            key: a BoundSerializer; so is ``value``.
            choose: the program's partitioner as ``chooser_of`` gives it, or None.
            draw: random numbers for records without a key; None leaves them to sticky partitions.
        """
        self._native = native
        self._key_of_data, self._key_of_record = key.of_data, key.of_record
        self._value_of_data, self._value_of_record = value.of_data, value.of_record
        self._converts = any(call is not None for one in (key, value) for call in (one.of_data, one.of_record))
        self._choose = choose
        self._spreads = draw is not None and choose is None
        self._draw = draw
        self._open = True

    def _shut(self) -> None:
        self._open = False

    @cython.annotation_typing(False)
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata:
        """Takes a record into the buffer and returns at once, or waits for room at most ``max_block_ms``.

        Args:
            topic: its name.
            value: bytes or None, or whatever ``value_serializer`` takes.
            key: as the value; decides the partition where none is given.
            headers: a list of pairs of str and bytes.
            partition: its number; None lets the partitioner choose.
            timestamp_ms: Unix time in ms; None for now.

        Returns:
            The record's future.  What a broker refuses arrives in it.

        Raises:
            KafkaTimeoutError: metadata or room did not come within ``max_block_ms``.
            MessageSizeTooLargeError: the record is larger than ``max_request_size``.
            TypeError: a key or value that is not bytes, or a header of another type.
            ValueError: neither key nor value, or a partition that the topic does not have.
            IllegalStateError: the producer was closed, or a transaction is not there.
        """
        if not self._open:
            raise IllegalStateError(CLOSED)
        check_arguments(topic, value, key, headers)
        value_bytes = value
        key_bytes = key
        if self._converts:
            headers = [] if headers is None else headers  # a serializer may add some
            if self._key_of_data is not None:
                key_bytes = self._key_of_data(key)
            elif self._key_of_record is not None:
                key_bytes = self._key_of_record(topic, headers, key)
            if self._value_of_data is not None:
                value_bytes = self._value_of_data(value)
            elif self._value_of_record is not None:
                value_bytes = self._value_of_record(topic, headers, value)
        try:
            return self.send_bytes(topic, value, key, value_bytes, key_bytes, headers, partition, timestamp_ms)
        except NativeError as error:
            raise translated(error) from error

    @cython.cfunc
    def send_bytes(
        self,
        topic: Any,
        value: Any,
        key: Any,
        value_bytes: Any,
        key_bytes: Any,
        headers: Any,
        partition: Any,
        timestamp_ms: Any,
    ) -> FutureRecordMetadata:
        size: cython.Py_ssize_t = NO_HEADERS
        if headers:
            size = header_size(headers)
        native: SendPath = self._native
        if native._state != OPEN:
            raise native._refusal()  # in a forked child, above all
        state: TopicState | None = native.recent
        if state is None or state.name is not topic:
            state = native.known(topic)
        sent: RecordFuture | None = None
        if state is None or state.partition_count == 0 or state.missing:
            sent = self._await_topic(plain_name(topic))
            state = native.known(topic)
        if sent is None:
            known: TopicState = cython.cast(TopicState, state)
            number: Any = self.number_for(known, value, key, value_bytes, key_bytes, partition)
            sent = native.dispatch(topic, value_bytes, key_bytes, headers, number, timestamp_ms, None, WAIT)
        future: FutureRecordMetadata = FutureRecordMetadata.__new__(FutureRecordMetadata)
        future._sent = sent
        future._header_size = size
        return future

    def _await_topic(self, topic: Any) -> RecordFuture | None:
        """Waits until the topic is known; the failed future of a record whose topic is refused.  Of KafkaProducer."""
        raise NotImplementedError

    @cython.cfunc
    def number_for(
        self, state: TopicState, value: Any, key: Any, value_bytes: Any, key_bytes: Any, partition: Any
    ) -> Any:
        # None: by the key's hash, or the native sticky partition.
        if partition is None and self._choose is not None:
            partition = self._choose(state.name, key, key_bytes, value, value_bytes, state.cluster)
            if partition is None:
                raise ValueError(f"Partitioner did not assign a partition for topic {state.name}!")
        if partition is not None:
            if isinstance(partition, int) and not 0 <= partition < state.partition_count:
                raise ValueError(
                    f"Unrecognized partition {partition} for topic {state.name}, which has {state.partition_count}"
                )
            return partition
        if not self._spreads or key_bytes is not None or state.partition_count == 1:
            return None
        # The tuple is replaced as a whole, by new metadata.
        available: tuple[int, ...] = state.partitioner.available
        draw: PartitionRandom = self._draw
        count: cython.Py_ssize_t = len(available)
        if count == 0:
            return draw.next() % state.partition_count
        return available[draw.next() % count]


@cython.cfunc
@cython.exceptval(-1)
def check_arguments(topic: Any, value: Any, key: Any, headers: Any) -> cython.int:
    if type(topic) is not str and not isinstance(topic, str):
        raise TypeError(f"topic must be a str, got {type(topic).__name__}")
    if value is None and key is None:
        raise ValueError("Need at least one: key or value (forebay.KafkaProducer.send takes a record without both)")
    if headers is not None and type(headers) is not list:
        raise TypeError(f"headers must be a list of (str, bytes) pairs, got {type(headers).__name__}")
    return 0


@cython.cfunc
@cython.exceptval(-1)
def header_size(headers: list[Any]) -> cython.Py_ssize_t:
    """Bytes of all keys and values.

    Raises:
        TypeError: something else than pairs of str and bytes.
    """
    size: cython.Py_ssize_t = 0
    for pair in headers:
        name: Any = None
        value: Any = None
        if isinstance(pair, tuple) and len(pair) == 2:
            name, value = pair
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise TypeError(f"a header must be a pair (str, bytes), got {pair!r}")
        size += len(value) + utf8_size(name)
    return size
