# cython: binding=True, embedsignature=False
"""The way of a message in ``Producer.produce``: its partition by librdkafka's rules, then the native ``send``.

The sender's thread gives each Message its outcome and puts it into ``Events``; ``poll`` calls the callbacks.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay.compat._librdkafka_messages import new_message
from cython.cimports.forebay.compat._librdkafka_partitioner import hash_partition
from cython.cimports.forebay.producer._frontend import (
    BATCH_OVERHEAD,
    MAX_INT32,
    MAX_RECORD_OVERHEAD,
    ProducerBatch,
    RecordPointer,
    RecordView,
    SectionRoom,
    TopicState,
    encode_headers,
    record_view,
    section_pointer,
    view_of,
    with_plain_headers,
)
from cython.cimports.forebay.producer._path import FORKED, OPEN, RETURN

from forebay.compat._librdkafka_errors import KafkaError, KafkaException, raise_first, raised
from forebay.compat._librdkafka_messages import Events, Message
from forebay.compat._librdkafka_partitioner import PARTITIONERS
from forebay.compat._librdkafka_values import (
    check_topic,
    out_of_range,
    plain_bytes,
    plain_headers,
    plain_index,
    plain_topic,
)
from forebay.errors import KafkaError as NativeError
from forebay.errors import UnknownTopicOrPartitionError
from forebay.producer._frontend import Inside
from forebay.producer._path import SendPath

CLOSED = "Producer has been closed"
FULL = "Local: Queue full: queue.buffering.max.kbytes is reached; call poll() and try again"
RANDOM = cython.declare(cython.int, PARTITIONERS["random"])
NO_HEADERS = cython.declare(bytes, b"\x00")
NO_PARTITION = cython.declare(object, -1)
NO_TIMESTAMP = cython.declare(object, 0)
MAX_INT64 = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
NO_DEADLINE = cython.declare(cython.double, -1.0)
FREE_PART = cython.declare(cython.Py_ssize_t, 16)
"""After ``queue.buffering.max.messages`` was reached, one part of so many must be free."""


@cython.cclass
class ProducePath:
    """What ``Producer.produce`` needs; Producer is its subclass.  Any thread may produce."""

    if not cython.compiled:
        _open = False

    def _bind(self, native: Any, events: Events, held: Any, options: Any) -> None:
        """To be called once, before the first ``produce``."""
        self._native = native
        self._events = events
        self._held = held
        self._held_topics = held.topics
        self._batches = Inside(native).batches
        self._kind = PARTITIONERS[options.partitioner]
        self._draw = options.draw
        self._is_sticky = options.is_sticky
        self._for_all = options.error_cb is not None
        self._is_silent = not self._for_all and events.default_callback is None
        self._keyless_sticks = self._is_sticky and hash_partition(self._kind, None, 1) == -1
        self._limit = options.most_messages
        self._room = 0
        self._is_full = False
        self._open = True

    def _shut(self) -> None:
        self._open = False

    @cython.annotation_typing(False)
    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Takes a message and returns at once; the callback is called by ``poll`` or ``flush``.

        Args:
            topic: its name.
            value: bytes, or str (as UTF-8).
            key: as the value; decides the partition where none is given (``partitioner``).
            partition: -1 lets the partitioner choose.
            callback: called as ``callback(err, msg)``; ``on_delivery`` is the same.
            timestamp: Unix ms; 0 for now.
            headers: a list of pairs or a dict, of str and str, bytes or None.

        Raises:
            BufferError: ``queue.buffering.max.messages`` or ``queue.buffering.max.kbytes`` is reached: call ``poll``.
            KafkaException: the message is too large, its partition does not exist, or the transaction is not there.
            TypeError: a value, key, header, partition or timestamp of another type.
            ValueError: text that has no bytes in UTF-8, or a topic's name with a zero in it.
            OverflowError: a partition of more than 32 bits, or a timestamp of more than 64.
            RuntimeError: the producer was closed.
        """
        if not self._open:
            raise RuntimeError(CLOSED)
        if type(topic) is not str:
            topic = plain_topic(topic)
        number: cython.int = -1
        when: cython.longlong = 0
        if partition is not NO_PARTITION:
            number = number_of("partition", partition, MAX_INT32)
        if timestamp is not NO_TIMESTAMP:
            when = number_of("timestamp", timestamp, MAX_INT64)
        if value is not None and type(value) is not bytes:
            value = plain_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = plain_bytes("key", key)
        if headers is not None and not are_plain(headers):
            headers = plain_headers(headers)
        if self._room <= 0:
            self._count_room()
        self._room -= 1
        wanted: Any = None
        if callback is not None or on_delivery is not None or not self._is_silent:
            wanted = self._message_for(topic, key, value, headers, on_delivery if callback is None else callback)
        self._go(topic, value, key, headers, number, when, wanted, False)

    @cython.final
    @cython.cfunc
    def _message_for(self, topic: Any, key: Any, value: Any, headers: Any, function: Any) -> object:
        if function is None:
            function = self._events.default_callback
        elif not callable(function):
            raise TypeError(f"callback must be callable, got {type(function).__name__}")
        return new_message(self._events, topic, key, value, headers, function)

    def _go_held(self, topic: str, arguments: tuple[Any, ...]) -> None:
        """Sends a message that was held."""
        value, key, headers, number, timestamp, wanted = arguments
        self._go(topic, value, key, headers, number, timestamp, wanted, True)

    @cython.final
    @cython.cfunc
    def _go(
        self,
        topic: Any,
        value: bytes | None,
        key: bytes | None,
        headers: Any,
        number: cython.int,
        timestamp: cython.longlong,
        wanted: Any,
        was_held: cython.bint,
    ) -> object:
        # A message that is counted.  All that needs no metadata is judged before the topic is looked at, so a message
        # whose topic is not known yet is refused in the same call and in the same words as any other.
        native: SendPath = self._native
        if native._state != OPEN:
            raise raised(native._refusal())  # in a forked child, above all
        if native.appender.refuses():
            raise raised(native.appender.refusal())  # above all outside a transaction
        when: cython.longlong = native.clock.wall() if timestamp == 0 else timestamp
        record: RecordView = record_view(when, key, value, NO_HEADERS)
        room: SectionRoom
        if not cython.compiled:
            room = SectionRoom()
        if headers is not None and not with_plain_headers(view_of(record), section_pointer(room), headers):
            section: bytes = section_of(headers)
            record = record_view(when, key, value, section)
        # As in SendPath.append_record: at least what check_size counts.
        size: cython.Py_ssize_t = record.key_size + record.value_size + record.headers_size + 1
        if size + BATCH_OVERHEAD + MAX_RECORD_OVERHEAD > native.max_record_size:
            self.refuse_large(view_of(record))
        state: TopicState | None = self.state_of(topic, was_held)
        if state is None:
            self._hold(topic, (value, key, headers, number, timestamp, wanted))
            return None
        if number == -1:
            if key is not None or not self._keyless_sticks:
                number = self.number_for(state, key)
        elif not 0 <= number < state.partition_count:
            raise unknown_partition(topic, number, state.partition_count)
        self.append(state, number, view_of(record), wanted)
        return None

    @cython.final
    @cython.cfunc
    def state_of(self, topic: Any, was_held: cython.bint) -> TopicState | None:
        # None: the topic is not known.  Else no message that is held stands before its next one.
        native: SendPath = self._native
        state: TopicState | None = native.recent
        if state is None or state.name is not topic:
            state = native.known(topic)
        if state is None or state.partition_count == 0 or state.missing:
            return None
        if not was_held and len(self._held_topics) > 0 and not self._held.release(topic):
            raise BufferError(FULL)
        return state

    def _hold(self, topic: str, arguments: tuple[Any, ...]) -> None:
        """Keeps a message until its topic is known."""
        check_topic(topic)
        value, key, headers, *others = arguments
        copied = None if headers is None else list(headers)  # the caller may change its list
        self._held.add(topic, (value, key, copied, *others))

    @cython.cfunc
    def refuse_large(self, record: RecordPointer) -> object:
        native: SendPath = self._native
        try:
            native.check_size(record)
        except NativeError as error:
            raise raised(error) from error
        return None

    @cython.final
    @cython.cfunc
    def append(self, state: TopicState, number: cython.int, record: RecordPointer, wanted: Any) -> object:
        # As SendPath.dispatch, for what is bytes already and has its partition; -1 is the sticky one.
        native: SendPath = self._native
        sent: Any = None
        try:
            sent = native.append_record(state, number, record, wanted, RETURN, NO_DEADLINE)
        except NativeError as error:
            raise raised(error) from error
        if sent is None:
            self._room = 0
            raise BufferError(FULL)
        return None

    @cython.cfunc
    @cython.exceptval(-2)
    def number_for(self, state: TopicState, key: bytes | None) -> cython.int:
        # -1: the native sticky partition, as for librdkafka's with its sticky.partitioning.linger.ms.
        number: cython.int = hash_partition(self._kind, key, state.partition_count)
        if number == -1 and (not self._is_sticky or (key is not None and self._kind == RANDOM)):
            # A key of the partitioner "random", or no sticky partitions at all.
            cluster: Any = state.cluster
            available = cluster.available_partitions(state.name)
            drawn = self._draw()
            number = available[drawn % len(available)] if available else drawn % state.partition_count
        return number

    def _serve(self) -> int:
        """Calls the callbacks of the messages that have their outcome; how many it called."""
        taken: Any
        message: Message
        callback: Any
        count: cython.int = 0
        # As many as there are now: callbacks that produce could keep this going for ever.
        for _ in range(self._events.size()):
            if self._native._state == FORKED:
                break  # the parent serves them; a callback may have forked, too
            taken = self._events.taken()
            if taken is None:
                break  # another thread serves, too
            if type(taken) is not Message:
                self._tell_broker_error(taken)
                continue
            message = taken
            callback = message._callback
            message._callback = None
            try:
                if self._for_all:
                    self._tell_error(message.error())
            finally:  # error_cb may raise
                if callback is not None:
                    count += 1
                    callback(message.error() if message._failure is not None else None, message)
        self._events.forget()
        return count

    def _serve_into(self, heard: list[BaseException]) -> None:
        """As ``_serve``, whatever callbacks raise; that goes to the list.

        Raises:
            BaseException: the first that is no Exception, such as Ctrl-C, once all are served.
        """
        stops = False
        for _ in range(self._events.size() + 1):  # each that raises has taken one
            try:
                self._serve()
                break
            except Exception as error:  # noqa: BLE001 - the caller raises it
                heard.append(error)
            except BaseException as error:  # noqa: BLE001 - raised below
                heard.insert(0, error)
                stops = True
        if stops:
            raise_first(heard)

    def _serve_all(self, heard: list[BaseException]) -> None:
        """As ``_serve_into``, until there is none."""
        while self._events.size() > 0 and self._native._state != FORKED:
            self._serve_into(heard)

    def _tell_error(self, error: KafkaError | None) -> None:
        """For ``error_cb``, of a message's outcome; of Producer."""

    def _tell_broker_error(self, error: KafkaError) -> None:
        """For ``error_cb``; of Producer."""

    def _count_room(self) -> None:
        # To count is dear while many messages wait.  So a full queue is full until a part of it is free, which pays for
        # the next count.
        left = self._limit - len(self)
        self._is_full = left <= 0 or (self._is_full and left < self._limit // FREE_PART)
        if self._is_full:
            raise BufferError("Local: Queue full: queue.buffering.max.messages is reached; call poll() and try again")
        self._room = left

    def __len__(self) -> int:
        """Messages that wait to be sent or acknowledged, and events that were not served."""
        if not self._open:
            return 0
        records: cython.Py_ssize_t = 0
        batch: ProducerBatch
        for batch in self._batches():
            if not batch.result.done:
                records += batch.record_count
        other: cython.Py_ssize_t = self._events.size() + self._held.count()
        return records + other

    def __bool__(self) -> bool:
        return True


@cython.cfunc
@cython.exceptval(-1)
def are_plain(headers: Any) -> cython.bint:
    """Whether they are a list of pairs of str and bytes already."""
    if type(headers) is not list:
        return False
    for pair in headers:
        if type(pair) is not tuple or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not bytes:
            return False
    return True


@cython.cfunc
@cython.exceptval(-2, check=True)
def number_of(what: str, given: Any, most: cython.longlong) -> cython.longlong:
    """An argument as a number from ``-most - 1`` to ``most``."""
    if type(given) is not int:
        given = plain_index(what, given)
    try:
        number: cython.longlong = given
    except OverflowError:
        raise out_of_range(what, given, most) from None
    if not -most - 1 <= number <= most:
        raise out_of_range(what, given, most)
    return number


@cython.cfunc
def section_of(headers: list[Any]) -> bytes:
    try:
        return encode_headers(headers) if headers else NO_HEADERS
    except NativeError as error:
        raise raised(error) from error


def unknown_partition(topic: str, partition: int, count: int) -> Exception:
    """The error of a partition that a topic has not."""
    words = f"topic {topic} has {count} partitions, not {partition}"
    error = KafkaError(KafkaError._UNKNOWN_PARTITION, f"Local: Unknown partition: {words}")
    error.native = UnknownTopicOrPartitionError(words)
    return KafkaException(error)
