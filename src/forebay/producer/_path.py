# cython: binding=True, embedsignature=False
"""The whole of ``send()`` up to the append, as one compiled call.

A record passes interceptors, the topic's metadata, serializers, the partitioner, the size check and the accumulator.
Two steps can wait, for metadata and for memory, together at most ``max.block.ms``.  They wait here, on a ticket that
the layer below wakes.  As in Java, errors of a broker or a limit go to the future and the callback; mistakes raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._accumulator.partitioner import key_partition
from cython.cimports.forebay._accumulator.states import APPENDED, STICKY, WORTH_WAKING
from cython.cimports.forebay._delivery.future import new_future
from cython.cimports.forebay._delivery.sender_lock import may_wait
from cython.cimports.forebay._records.batch_v2 import encode_headers, with_plain_headers
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD, MAX_RECORD_OVERHEAD
from cython.cimports.forebay._runtime.mutex import HAS_GIL
from cython.cimports.forebay._runtime.primitives import (
    RecordPointer,
    RecordView,
    SectionRoom,
    record_view,
    section_pointer,
    view_of,
)
from cython.cimports.forebay.model._arguments import checked_partition, checked_timestamp, listed_headers, plain_name

from forebay._accumulator.topic import TopicState
from forebay._delivery.future import RecordFuture, failed_future
from forebay._runtime.hints import shown_as
from forebay._runtime.threads import get_ident
from forebay._runtime.ticket import ThreadTicket
from forebay.errors import ApiError, IllegalArgumentError, KafkaError, KafkaTimeoutError, SerializationError
from forebay.model import Headers, TopicPartition
from forebay.model._arguments import as_record, fields_of, wrong_call
from forebay.producer._acknowledged import Acknowledged, shared_by_all
from forebay.producer._refusals import buffer_exhausted, not_open, record_too_large, send_shape
from forebay.producer._topics import TopicFinder

if TYPE_CHECKING:
    from typing import Never

    from forebay._assembly import Components
    from forebay._runtime.times import Timestamp
    from forebay.model import DeliveryCallback, ProducerRecord

if not cython.compiled:
    CLOSED, FORKED, OPEN = range(1, 4)
    """``SendPath._state``: the producer was closed, is a copy in a forked child, or takes records."""
    REFUSE, WAIT, RETURN = range(3)
    """What to do with a record that would have to wait: raise (send_nowait), wait (send), or return None and leave no
    trace (for who waits in another way, such as an event loop)."""

NO_DEADLINE = cython.declare(cython.double, -1.0)
NO_HEADERS = cython.declare(bytes, b"\x00")


@cython.cclass
class SendPath:
    """What ``KafkaProducer.send`` needs, and nothing else; KafkaProducer is its subclass.

    Any thread may send.  KafkaProducer sets ``_state``, in ``close`` and in a forked child.
    """

    if not cython.compiled:
        _state = 0

    def _prepare(self, parts: Components) -> None:
        """To be called once, before the first ``send``."""
        self.accumulator, self.appender, self.metadata = parts.accumulator, parts.accumulator.appender, parts.metadata
        self.wake, self.clock, self.sender_thread = parts.client.wakeup, parts.clock, parts.thread
        users, config = parts.users, parts.config
        self.key_serializer, self.value_serializer = users.key_serializer, users.value_serializer
        self.recent: TopicState | None = None
        self.plain_bytes = users.key_serializer.passes_bytes and users.value_serializer.passes_bytes
        self.interceptors, self.for_all = users.interceptors or None, shared_by_all(users.interceptors)
        self.shows_records, self.tells_ends = users.interceptors.shows_records, users.interceptors.tells_ends
        self.sensors, self.report, self.unheard = parts.metrics, parts.report, parts.sender.outcomes.unheard
        self.ignore_keys, self.max_block_ms = config["partitioner.ignore.keys"], config["max.block.ms"]
        self.max_record_size = min(config["max.request.size"], config["buffer.memory"])
        self.topics, self.partitioner = TopicFinder(parts), users.partitioner
        self.node_error, self.claim = parts.client.states.last_error, parts.client.gil_claim
        self._state = OPEN

    def _set_state(self, state: cython.int) -> None:
        self._state = state

    @cython.annotation_typing(False)  # else 1.0 and True are taken for the int 1 when compiled
    def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *old: Never,
        on_delivery: DeliveryCallback | None = None,  # keywords are looked for in this order
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        timestamp_ms: None = None,
    ) -> RecordFuture:
        """Takes a record into the buffer and returns at once, or waits for room at most ``max.block.ms``.

        Args:
            topic: its name, or a whole ProducerRecord in place of all others but ``on_delivery``.
            value: bytes or None, or whatever ``value_serializer`` takes.
            key: as the value; decides the partition (murmur2, as in Java) where none is given.
            headers: pairs of str and bytes (or None), or a mapping.
            partition: its number; None lets the partitioner choose.
            timestamp: Unix time in ms, or an aware datetime; None for now.
            on_delivery: called with a DeliveryReport (``metadata``, ``error``) on the sender's thread, in order per
                partition.  Two exceptions: a batch whose answer was lost may be confirmed later than its successor (the
                log is in order all the same); what was never sent is reported at once.  What it raises is logged.

        Returns:
            A light future (``result``, ``exception``, ``done``, ``add_done_callback``).

        An argument, a serializer, an interceptor or a partitioner of your own that fails, and a producer that takes no
        records, raise here, and nothing was taken.  Whatever a limit or a broker says arrives in the future and the
        callback: a timeout, a record that is too large, a topic that cannot be.

        Raises:
            ProducerClosedError: after ``close()``.
            ForkedProducerError: in a child of the process that made the producer.
            SerializationError: key or value are not what the serializer takes; without one, not bytes (TypeError).
            IllegalArgumentError: a partition, timestamp or header that cannot be.
            TypeError: a header or ``on_delivery`` of a type that cannot be.
        """
        if self._state != OPEN:
            raise self._refusal()
        if old or timestamp_ms is not None or (on_delivery is not None and not callable(on_delivery)):
            raise wrong_call("send", old, timestamp_ms, on_delivery)
        if self.interceptors is None and type(topic) is str:
            return self.dispatch(topic, value, key, headers, partition, timestamp, on_delivery, WAIT)
        return self.send_heard((topic, value, key, headers, partition, timestamp), on_delivery, WAIT)

    @cython.annotation_typing(False)
    def send_nowait(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *old: Never,
        on_delivery: DeliveryCallback | None = None,  # keywords are looked for in this order
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        timestamp_ms: None = None,
    ) -> RecordFuture:
        """As ``send``, but never waits.

        Raises:
            BufferExhaustedError: the buffer is full now; a BufferError and a KafkaTimeoutError too.
            KafkaTimeoutError: the topic's metadata is not there yet (asked for now: try again).
        """
        if self._state != OPEN:
            raise self._refusal()
        if old or timestamp_ms is not None or (on_delivery is not None and not callable(on_delivery)):
            raise wrong_call("send_nowait", old, timestamp_ms, on_delivery)
        if self.interceptors is None and type(topic) is str:
            return self.dispatch(topic, value, key, headers, partition, timestamp, on_delivery, REFUSE)
        return self.send_heard((topic, value, key, headers, partition, timestamp), on_delivery, REFUSE)

    @cython.annotation_typing(False)
    def _try_send(
        self, topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp: Any, *, on_delivery: Any
    ) -> RecordFuture | None:
        """As ``send``; None, and no trace, if it must wait, or ask serializers or an ``on_send`` (see PendingSend)."""
        if self._state != OPEN:
            raise self._refusal()
        if self.shows_records or type(topic) is not str or not self.is_plain(key, value):
            return None
        if self.tells_ends:
            return self.send_heard((topic, value, key, headers, partition, timestamp), on_delivery, RETURN)
        return self.dispatch(topic, value, key, headers, partition, timestamp, on_delivery, RETURN)

    @cython.cfunc
    def send_heard(self, given: tuple[Any, ...], on_delivery: Any, blocking: cython.int) -> RecordFuture:
        """``dispatch`` of what ``send`` was given, for a whole ProducerRecord and with interceptors."""
        record: Any = None
        if self.shows_records or not isinstance(given[0], str):
            record = as_record(*given) if self.interceptors is None else self.interceptors.on_send(as_record(*given))
            given = fields_of(record)
        topic, value, key, headers, partition, timestamp_ms = given
        if not self.tells_ends:
            return self.dispatch(topic, value, key, headers, partition, timestamp_ms, on_delivery, blocking)
        heard: Acknowledged | None = self.for_all if on_delivery is None and blocking != REFUSE else None
        if heard is None:
            heard = Acknowledged(self.interceptors, on_delivery, None)
        try:
            return self.dispatch(topic, value, key, heard.headers_of(headers), partition, timestamp_ms, heard, blocking)
        except Exception as error:
            heard.tell_failure(record, given, error)
            raise

    @cython.cfunc
    def dispatch(
        self,
        topic: Any,
        value: Any,
        key: Any,
        headers: Any,
        partition: Any,
        timestamp_ms: Any,
        on_delivery: Any,
        blocking: cython.int,
    ) -> RecordFuture:
        number: cython.int = STICKY if partition is None else checked_partition(partition)
        timestamp: cython.longlong = -1 if timestamp_ms is None else checked_timestamp(timestamp_ms)
        state: TopicState | None = self.recent
        if state is None or state.name is not topic:
            state = self.known(topic)
        deadline: cython.double = NO_DEADLINE
        if state is None or state.partition_count == 0 or state.missing or number >= state.partition_count:
            if blocking == RETURN:
                return None  # type: ignore[return-value]
            deadline = self.clock.now() + self.max_block_ms
            why: Any = None
            try:
                state = self._topic_for_sending(plain_name(topic), number, blocking == WAIT, deadline)
            except ApiError as error:
                why = [error]  # in a list, from which it is taken: interpreted, its traceback refers to this frame
            if state is None or why is not None:
                where = TopicPartition(plain_name(topic), number)
                return self._refused(where, why.pop(), on_delivery, blocking != REFUSE)
        timestamp = timestamp if timestamp >= 0 else self.clock.wall()  # after the wait for metadata
        if self.partitioner is None and self.is_plain(key, value):
            if number < 0 and key is not None:
                number = self.choose_partition(state, key, key, value, value)
            record: RecordView = record_view(timestamp, key, value, NO_HEADERS)
            room: SectionRoom
            if not cython.compiled:
                room = SectionRoom()
            if headers is None or with_plain_headers(view_of(record), section_pointer(room), headers):
                return self.append_record(state, number, view_of(record), on_delivery, blocking, deadline)
        return self.serialize(state, number, timestamp, key, value, headers, on_delivery, blocking, deadline)

    @cython.cfunc
    def known(self, topic: Any) -> TopicState | None:
        state: TopicState | None = self.accumulator.topics.get(plain_name(topic))
        if state is not None and type(topic) is str:
            state.name = topic  # most sends have the same string as the send before
            self.recent = state
        return state

    @cython.final
    @cython.inline
    @cython.cfunc
    @cython.exceptval(check=False)
    def is_plain(self, key: Any, value: Any) -> cython.bint:
        # True if no serializer has anything to do.
        return self.plain_bytes and (value is None or type(value) is bytes) and (key is None or type(key) is bytes)

    @cython.cfunc
    def serialize(
        self,
        state: TopicState,
        partition: cython.int,
        timestamp: cython.longlong,
        key: Any,
        value: Any,
        headers: Any,
        callback: Any,
        blocking: cython.int,
        deadline: cython.double,
    ) -> RecordFuture:
        """The record's bytes, by the serializers where they are not there yet, and its headers'."""
        key_bytes: bytes | None
        value_bytes: bytes | None
        try:
            if self.is_plain(key, value):
                key_bytes = key
                value_bytes = value
            else:
                # A serializer may add headers, so it gets a list of its own.
                headers = [] if headers is None else listed_headers(headers)
                key_bytes = self.key_serializer.serialize(state.name, headers, key)
                value_bytes = self.value_serializer.serialize(state.name, headers, value)
                if self.tells_ends:
                    callback.note_headers(headers)
            if partition < 0:
                partition = self.choose_partition(state, key, key_bytes, value, value_bytes)
            section: bytes = encode_headers(headers) if headers else NO_HEADERS
            record: RecordView = record_view(timestamp, key_bytes, value_bytes, section)
            return self.append_record(state, partition, view_of(record), callback, blocking, deadline)
        except (SerializationError, IllegalArgumentError, TypeError):
            self.sensors.record_errors.record(1)
            raise

    @cython.cfunc
    def append_record(
        self,
        state: TopicState,
        partition: cython.int,
        record: RecordPointer,
        callback: Any,
        blocking: cython.int,
        deadline: cython.double,
    ) -> RecordFuture:
        # At least check_size's, because a null's size is -1.
        size: cython.Py_ssize_t = record.key_size + record.value_size + record.headers_size + 1
        size += BATCH_OVERHEAD + MAX_RECORD_OVERHEAD
        future: RecordFuture = new_future()
        status: cython.int = 0
        if size <= self.max_record_size:
            status = self.appender.try_append(state, partition, record, future, callback)
        if not status & APPENDED:
            why: list[ApiError] | None = None
            try:
                self.check_size(record)
                status = self.append_waiting(state, partition, record, future, callback, blocking, deadline)
            except ApiError as error:
                why = [error]  # see dispatch
            if why is not None:
                return self._refused(TopicPartition(state.name, partition), why.pop(), callback, blocking != REFUSE)
            if not status & APPENDED:
                return None  # type: ignore[return-value]
        if self.claim.waiting and HAS_GIL:
            # The sender waits for the GIL and then looks at all queues, so it needs no wake.
            if self.claim.pass_by():
                self.claim.give_way(self.clock.now())
        elif status & WORTH_WAKING:
            self.wake()
        return future

    @cython.cfunc
    @cython.exceptval(-1)
    def choose_partition(
        self, state: TopicState, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None
    ) -> cython.int:
        if self.partitioner is not None:
            to: cython.int = self.partitioner.partition(state.name, key, key_bytes, value, value_bytes, state.cluster)
            return to
        if key_bytes is None or self.ignore_keys:
            return STICKY
        return key_partition(key_bytes, state.partition_count)

    @cython.cfunc
    def check_size(self, record: RecordPointer) -> cython.void:
        """Refuses what could never be sent; an estimate from above, as in Java, before any memory is taken."""
        size: cython.Py_ssize_t = BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + record.headers_size - 1
        size += max(record.key_size, 0) + max(record.value_size, 0)
        if size > self.max_record_size:
            raise record_too_large(size, self.max_record_size)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_waiting(
        self,
        state: TopicState,
        partition: cython.int,
        record: RecordPointer,
        future: RecordFuture | None,
        callback: Any,
        blocking: cython.int,
        deadline: cython.double,
    ) -> cython.int:
        """The append that may need memory for a new batch, and may wait for it in the pool."""
        now: cython.double = self.clock.now()
        self.metadata.add_topic(state.name, now)
        status: cython.int = self.appender.append(state, partition, record, future, callback, None, now)
        if not status & APPENDED and self._on_sender_thread() and self.accumulator.pool.serve_now():
            status = self.appender.append(state, partition, record, future, callback, None, now)
        if status & APPENDED:
            return status
        self.wake()
        if blocking == RETURN:
            return status
        if not self._may_block(blocking == WAIT):
            raise self.exhausted(state, partition, record, -1.0)
        begun: cython.double = now
        deadline = deadline if deadline >= 0 else now + self.max_block_ms
        ticket = ThreadTicket()
        try:
            while True:
                status = self.appender.append(state, partition, record, future, callback, ticket, now)
                if status & APPENDED:
                    return status
                if self._state != OPEN:
                    raise self._refusal()
                self.wake()
                if now >= deadline:
                    raise self.exhausted(state, partition, record, now - begun)
                ticket.wait(deadline - now)
                now = self.clock.now()
        finally:
            # After Ctrl-C or a timeout the place among the waiters, or the memory that was granted, goes back.
            self.accumulator.pool.cancel(ticket)
            self.sensors.buffer_wait_ns.record((self.clock.now() - begun) * 1e6)

    @cython.cfunc
    def exhausted(self, state: TopicState, partition: cython.int, record: RecordPointer, waited: cython.double) -> Any:
        self.sensors.buffer_exhausted.record(1)
        leader: cython.int = self.appender.queue_of(state, partition).leader_id
        size: cython.Py_ssize_t = self.appender.size_for(record, self.appender.queue_of(state, partition))
        uncaught = None if waited < 0 else self.metadata.uncaught_since(self.clock.now() - waited)
        facts: dict[str, Any] = {"waits": waited >= 0, "waited": max(waited, 0), "max_block_ms": self.max_block_ms}
        facts |= {"on_sender_thread": self._on_sender_thread(), "node_error": self.node_error, "uncaught": uncaught}
        return buffer_exhausted(self.accumulator.pool, size, leader, **facts)

    @cython.ccall
    def _topic_for_sending(
        self, topic: str, partition: cython.int, blocking: cython.bint, deadline: cython.double
    ) -> TopicState:
        """The topic, once metadata knows it (and the partition, if one is asked for)."""
        begun: cython.double = self.clock.now()
        now: cython.double = begun
        topics: TopicFinder = self.topics
        blocking, since = self._may_block(blocking), topics.known_since(topic)
        try:
            while True:
                state = topics.look_up(topic, partition, since, now)
                if state is not None:
                    return state
                above = topics.ask_for(topic)
                if not blocking or now >= deadline:
                    raise topics.not_found(topic, partition, blocking, now - begun, self._on_sender_thread())
                topics.wait_for(above, deadline - now)
                if self._state != OPEN:
                    raise self._refusal()
                now = self.clock.now()
        finally:
            self.sensors.metadata_wait_ns.record((self.clock.now() - begun) * 1e6)

    def _refused(self, where: TopicPartition, error: ApiError, callback: Any, blocking: bool) -> RecordFuture:
        """The failed future of a record that comes into no batch.  ``send_nowait`` raises what needs a wait instead."""
        try:
            if not blocking and isinstance(error, KafkaTimeoutError):
                if isinstance(callback, Acknowledged):
                    callback.where = where
                raise error
            self.sensors.record_errors.record(1)
            return failed_future(where.topic, where.partition, error, callback, self.report, self.unheard)
        finally:
            del error  # its traceback has this frame: a cycle, which would keep the caller's record

    def _on_sender_thread(self) -> bool:
        """True inside callbacks, where a wait would never end."""
        return self.sender_thread is not None and get_ident() == self.sender_thread.ident

    def _may_block(self, blocking: bool) -> bool:
        return blocking and not self._on_sender_thread() and may_wait()

    def _refusal(self) -> KafkaError:
        return not_open(is_made=self._state > 0, is_forked=self._state == FORKED)


shown_as(send_shape, SendPath.send, SendPath.send_nowait)
