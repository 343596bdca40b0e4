"""A record that waits for metadata or memory without a thread: what an event loop's ``send`` is made of.

``SendPath._try_send`` comes first, and is enough for nearly every record.  The steps here are those of ``send``, in the
same order and by the same methods; only the waits between them are the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._accumulator.states import APPENDED, WORTH_WAKING
from cython.cimports.forebay._delivery.future import new_future
from cython.cimports.forebay._records.batch_v2 import encode_headers
from cython.cimports.forebay._runtime.primitives import RecordView, record_view, view_of
from cython.cimports.forebay.model._arguments import checked_partition, checked_timestamp, listed_headers, plain_name
from cython.cimports.forebay.producer._path import OPEN

from forebay._accumulator.topic import TopicState
from forebay._delivery.future import RecordFuture
from forebay.errors import ApiError, IllegalArgumentError, SerializationError
from forebay.model import TopicPartition
from forebay.producer._acknowledged import Acknowledged
from forebay.producer._path import SendPath

if TYPE_CHECKING:
    from forebay.model._inputs import ProducerRecord

STICKY = cython.declare(cython.int, -1)
NO_HEADERS = cython.declare(bytes, b"\x00")


@cython.final
@cython.cclass
class PendingSend:
    """One record on its way into the buffer.  Used by one thread at a time.

    Call ``step`` until it gives the future, and wait for the ticket's wake between two calls, ``left`` at most.  Call
    ``end`` in any case: it gives back a place among the waiters, or memory that was granted.

    Args:
        path: the producer.
        record: as the interceptors left it, if there are any.
        callback: the record's ``on_delivery``.
        wait_ms: instead of ``max.block.ms``.

    Raises:
        IllegalArgumentError, TypeError: a partition or timestamp that cannot be.
    """

    def __init__(self, path: SendPath, record: ProducerRecord, callback: Any, wait_ms: float | None = None) -> None:
        self.path = path
        self.record = record
        self.callback = callback
        self.topic = plain_name(record.topic)
        self.partition = STICKY if record.partition is None else checked_partition(record.partition)
        self.timestamp = -1 if record.timestamp is None else checked_timestamp(record.timestamp)
        self.state: TopicState | None = None
        self.since = path.topics.known_since(self.topic)
        self.begun = path.clock.now()
        self.deadline = self.begun + (path.max_block_ms if wait_ms is None else wait_ms)
        self.is_serialized = False
        self.awaits_memory = False
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.section = NO_HEADERS

    def left(self) -> float:
        """Ms until ``max.block.ms`` is over."""
        left: float = self.deadline - self.path.clock.now()
        return left

    def step(self, ticket: Any) -> RecordFuture | None:
        """Goes as far as it can; None: the ticket is woken when it may go further.

        When ``max.block.ms`` is over, or the record is refused, the future that it gives has failed (see ``send``).

        Raises:
            KafkaError: as ``send``; nothing was taken.
        """
        if self.path._state != OPEN:
            raise self.path._refusal()
        refused: Any = None
        try:
            if self.state is None and not self.find_topic(ticket):
                return None
            if not self.is_serialized:
                self.prepare()
            return self.append(ticket)
        except ApiError as error:
            refused = [error]  # see SendPath.dispatch
        except Exception as error:
            if isinstance(self.callback, Acknowledged):
                self.callback.chain.on_send_error(self.record, self.callback.where, error)
            raise
        return self.path._refused(TopicPartition(self.topic, self.partition), refused.pop(), self.callback, True)

    def end(self, ticket: Any) -> None:
        """The caller does not wait any more, whatever the reason."""
        path: SendPath = self.path
        path.metadata.forget(ticket)
        if self.awaits_memory:
            path.accumulator.pool.cancel(ticket)
            path.sensors.buffer_wait_ns.record((path.clock.now() - self.begun) * 1e6)

    @cython.ccall
    @cython.exceptval(-1)
    def find_topic(self, ticket: Any) -> cython.bint:
        """The first part of ``step``, for who wants only the topic's metadata: False as long as it has to wait.

        Raises:
            TimeoutError: ``max.block.ms`` is over.
            KafkaError: metadata cannot be had, or a broker refuses the topic.
        """
        path: SendPath = self.path
        now: cython.double = path.clock.now()
        state: TopicState | None = path.topics.look_up(self.topic, self.partition, self.since, now)
        while state is None:
            above = path.topics.ask_for(self.topic)
            if now >= self.deadline:
                path.sensors.metadata_wait_ns.record((now - self.begun) * 1e6)
                raise path.topics.not_found(self.topic, self.partition, True, now - self.begun, False)
            path.metadata.forget(ticket)
            if not path.metadata.await_version(above, ticket):
                return False
            state = path.topics.look_up(self.topic, self.partition, self.since, now)
        path.sensors.metadata_wait_ns.record((now - self.begun) * 1e6)
        self.state = state
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def prepare(self) -> cython.int:
        """Serializes, and chooses the partition: once, however often memory is waited for."""
        path: SendPath = self.path
        state: Any = self.state
        record = self.record
        if self.timestamp < 0:
            self.timestamp = path.clock.wall()  # after the wait for metadata: the record is of now
        try:
            # A serializer may add headers, so it gets a list of its own.
            headers = listed_headers(record.headers)
            self.key = path.key_serializer.serialize(state.name, headers, record.key)
            self.value = path.value_serializer.serialize(state.name, headers, record.value)
            if isinstance(self.callback, Acknowledged):
                self.callback.note_headers(headers)
            if self.partition < 0:
                self.partition = path.choose_partition(state, record.key, self.key, record.value, self.value)
            if headers:
                self.section = encode_headers(headers)
        except (SerializationError, IllegalArgumentError, TypeError):
            path.sensors.record_errors.record(1)
            raise
        self.is_serialized = True
        return 0

    @cython.cfunc
    def append(self, ticket: Any) -> RecordFuture | None:
        path: SendPath = self.path
        now: cython.double = path.clock.now()
        state: Any = self.state
        view: RecordView = record_view(self.timestamp, self.key, self.value, self.section)
        path.check_size(view_of(view))
        path.metadata.add_topic(state.name, now)
        future: RecordFuture = new_future()
        self.awaits_memory = True
        status: cython.int = path.appender.append(
            state, self.partition, view_of(view), future, self.callback, ticket, now
        )
        if status & APPENDED:
            if status & WORTH_WAKING:
                path.wake()
            return future
        path.wake()
        if now >= self.deadline:
            raise path.exhausted(state, self.partition, view_of(view), now - self.begun)
        return None


def pending_send(path: SendPath, record: ProducerRecord, callback: Any) -> PendingSend:
    """The pending record of a producer, past its interceptors.

    Raises:
        IllegalArgumentError, TypeError: a partition or timestamp that cannot be.
    """
    chain = path.interceptors
    if chain is None:
        return PendingSend(path, record, callback)
    record = chain.on_send(record)
    acknowledged = Acknowledged(chain, callback, record.headers)
    try:
        return PendingSend(path, record, acknowledged)
    except Exception as error:
        chain.on_send_error(record, acknowledged.where, error)
        raise
