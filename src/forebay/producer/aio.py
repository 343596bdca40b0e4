"""AsyncKafkaProducer: the producer for asyncio.

It is a KafkaProducer with other waits.  Records, memory, order and errors are the same, and the sender has its own
thread.  A coroutine that waits for memory stands in the same line as threads do.  Nothing here holds the event loop:
what waits is awaited, and a cancelled wait gives its place back.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self, Unpack

from forebay._delivery.future import RecordFuture
from forebay._metrics.registry import MetricsSnapshot
from forebay._runtime.event_loop import LoopCallback, LoopTicket, handover_of, is_there, on_own_thread, running_loop
from forebay._runtime.hints import ASYNC_PRODUCER, hinted, old_spelling, shown_as, without_hints
from forebay._runtime.times import seconds
from forebay._sender.lifecycle import time_left
from forebay.config import ProducerConfig
from forebay.config._door import door
from forebay.config._sources import FromSources
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.model import Headers, PartitionInfo, ProducerRecord, RecordMetadata
from forebay.model._arguments import IfThere, as_record
from forebay.producer import KafkaProducer
from forebay.producer._aio_transactional import AsyncTransactionalCalls
from forebay.producer._columns import BatchDelivery
from forebay.producer._pending import PendingSend, pending_send
from forebay.producer._refusals import send_and_wait_shape, send_shape
from forebay.producer._sender_calls import Warming

if TYPE_CHECKING:
    import os

    from forebay._insight.advising import LiveAdvice
    from forebay._insight.values import ProducerDescription
    from forebay._runtime.times import Seconds, Timestamp
    from forebay.config._typed import ProducerOptions
    from forebay.model import DeliveryCallback

__all__ = ["AsyncKafkaProducer"]


def __dir__() -> list[str]:
    return sorted(__all__)


_log = logging.getLogger("forebay.producer")

SENDS_BETWEEN_LOOKS = 16
"""How many sends go by between two looks at the loop's clock."""
LONGEST_HOLD_S = 0.001
"""How long sends that need not wait may go on before the loop's other tasks get their turn."""


@hinted(ASYNC_PRODUCER)
class AsyncKafkaProducer(AsyncTransactionalCalls, FromSources):
    """A Kafka producer for asyncio and uvloop; used by the tasks of any event loop of the process.

    ::

        async with AsyncKafkaProducer(bootstrap_servers="localhost:9092") as producer:
            sent = await producer.send("events", b"value", key=b"key")
            metadata = await sent

    Arguments, errors and guarantees are those of ``KafkaProducer``; what differs is said at each method.  A cancelled
    call has taken nothing, or has taken all of it: a record that is in the buffer is delivered.

    Args:
        config: options by Kafka's names (``{"bootstrap.servers": "localhost:9092"}``); a ProducerConfig will do.
        options: the same as keywords (``bootstrap_servers=...``).

    Raises:
        ConfigError: an unknown option, or a value that cannot be.
        KafkaError: as ``KafkaProducer``.
    """

    @door()
    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._use(KafkaProducer(config, **options))

    @classmethod
    def _around(cls, producer: KafkaProducer) -> Self:
        """An asynchronous front end of this producer, for tests."""
        made = cls.__new__(cls)
        made._use(producer)
        return made

    def _use(self, producer: KafkaProducer) -> None:
        self._producer = producer
        self._try = producer._try_send
        self._sends_left = SENDS_BETWEEN_LOOKS
        self._held_since = 0.0
        # The latest on_delivery, its event loop, and what the producer got in its place.
        self._latest: tuple[Any, Any, Any] = (None, None, None)

    @property
    def config(self) -> ProducerConfig:
        """The configuration, complete and immutable."""
        return self._producer.config

    @property
    def client_id(self) -> str:
        """``client.id``, given or generated."""
        return self._producer.client_id

    def metrics(self) -> MetricsSnapshot:
        """Every metric by the Java client's names, as of now."""
        return self._producer.metrics()

    def describe(self) -> ProducerDescription:
        """The inside of the producer; see ``KafkaProducer.describe``."""
        return self._producer.describe()

    def advise(self, *, p99_ms: float | None = None) -> LiveAdvice:
        """As ``KafkaProducer.advise``; it takes some milliseconds of the loop."""
        return self._producer.advise(p99_ms=p99_ms)

    def record_trace(self, path: str | os.PathLike[str], *, seconds: Seconds, share: float = 1.0) -> None:
        """As ``KafkaProducer.record_trace``; it waits for nothing."""
        self._producer.record_trace(path, seconds=seconds, share=share)

    async def client_instance_id(self, timeout: Seconds | None = None) -> str:
        """The id that brokers know this producer's metrics by; see ``KafkaProducer.client_instance_id``."""
        return self._producer._instance_id(await is_there(*self._producer._instance_call(timeout), running_loop()))

    @door(TypeError, KafkaError, wrap=False)
    def set_sasl_credentials(self, username: str, password: str) -> None:
        """As ``KafkaProducer.set_sasl_credentials``; it waits for nothing."""
        self._producer.set_sasl_credentials(username, password)

    async def partitions_for(self, topic: str, *, timeout: Seconds | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of ``topic``; waits for metadata ``timeout`` seconds at most, or ``max.block.ms``.

        Raises:
            KafkaTimeoutError: metadata did not come, or does not know the topic (its last error is the cause).
            KafkaError: the topic's name is invalid or it is forbidden to us; or no broker lets us in.
        """
        self._producer._check_open()
        wait_ms = None if timeout is None else seconds(timeout) * 1000
        pending = PendingSend(self._producer, ProducerRecord(topic, None), None, wait_ms)
        ticket = LoopTicket(running_loop())
        try:
            while not pending.find_topic(ticket):
                await ticket.wait(pending.left())
                self._producer._check_open()
        finally:
            pending.end(ticket)
        return self._producer._parts.metadata.cluster().partitions(topic)

    async def warm_up(self, topics: Iterable[str], *, timeout: Seconds | None = None) -> None:
        """Gets what the first records would wait for, as ``KafkaProducer.warm_up``.

        Raises:
            KafkaTimeoutError: some of it did not come in time; the message says what.
            KafkaError: a topic's name is invalid or it is forbidden to us; or no broker lets us in.
        """
        warming = Warming(self._producer, topics, timeout)
        for topic in warming.topics:
            await self.partitions_for(topic, timeout=warming.left_ms() / 1000)
        with warming.begun() as request:
            warming.check(request, await is_there(request.result, warming.left_ms(), running_loop()))

    # Records

    async def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *old: Never,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        on_delivery: DeliveryCallback | None = None,
        timestamp_ms: None = None,
    ) -> RecordFuture:
        """Takes a record into the buffer; waits for metadata and room only, at most ``max.block.ms``.

        Serializers, interceptors and a partitioner of your own run on the loop's thread.  Compression of a full batch
        does, too.

        Args:
            on_delivery: called on this event loop as ``on_delivery(report)``, a DeliveryReport.

        Returns:
            The record's future: ``await`` it for the RecordMetadata.

        Raises:
            ProducerClosedError: after ``close()``.
            SerializationError, IllegalArgumentError, TypeError: as ``KafkaProducer.send``.
        """
        if old or timestamp_ms is not None:
            raise old_spelling("send", timestamp_ms)
        self._sends_left -= 1
        if self._sends_left <= 0:
            await self._look_at_the_clock()
        if on_delivery is not None:
            on_delivery = self._on_loop(on_delivery)
        sent = self._try(topic, value, key, headers, partition, timestamp, on_delivery=on_delivery)
        if sent is not None:
            return sent
        return await self._wait_to_send(as_record(topic, value, key, headers, partition, timestamp), on_delivery)

    async def send_and_wait(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *old: Never,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        timestamp_ms: None = None,
    ) -> RecordMetadata:
        """``send``, and then the outcome.

        Raises:
            KafkaError: the record could not be delivered; and as ``send``.
        """
        more: dict[str, Any] = {"partition": partition, "timestamp": timestamp, "timestamp_ms": timestamp_ms}
        return await (await self.send(topic, value, key, *old, headers=headers, **more))

    async def _look_at_the_clock(self) -> None:
        # Sends that need no wait would keep the loop for as long as the buffer has room.
        self._sends_left = SENDS_BETWEEN_LOOKS
        loop = running_loop()
        if loop.time() - self._held_since > LONGEST_HOLD_S:
            await asyncio.sleep(0)
            self._held_since = loop.time()

    async def _wait_to_send(self, record: ProducerRecord, callback: Any) -> RecordFuture:
        pending = pending_send(self._producer, record, callback)
        ticket = LoopTicket(running_loop())
        try:
            while (sent := pending.step(ticket)) is None:
                await ticket.wait(pending.left())
            return sent
        finally:
            pending.end(ticket)

    def _on_loop(self, callback: Any) -> Any:
        loop = running_loop()
        known, known_loop, wrapped = self._latest
        if known is callback and known_loop is loop:
            return wrapped
        if not callable(callback) or inspect.iscoroutinefunction(callback):
            raise TypeError(
                "on_delivery takes a plain function(report), which the event loop calls; to await an outcome, "
                f"await the future that send() gives.  Got {callback!r}"
            )
        wrapped = LoopCallback(handover_of(loop), callback)
        self._latest = (callback, loop, wrapped)
        return wrapped

    async def send_batch(
        self,
        topic: str | None,
        table: Any,
        *,
        value: Any = "value",
        key: Any = IfThere("key"),  # noqa: B008 - a constant
        headers: Any = IfThere("headers"),  # noqa: B008
        partition: Any = IfThere("partition"),  # noqa: B008
        timestamp: Any = IfThere("timestamp"),  # noqa: B008
        topic_column: Any = None,
    ) -> BatchDelivery:
        """Takes every row of a table into the buffer, as ``KafkaProducer.send_batch``, on a thread of its own.

        If the call is cancelled, the thread goes on and takes the rows that are left: a table is not cut in two.

        Returns:
            What becomes of the rows: ``await`` it for the offsets.

        Raises:
            KafkaError, TypeError: as ``KafkaProducer.send_batch``.
        """
        columns = {"value": value, "key": key, "headers": headers, "partition": partition, "timestamp": timestamp}
        call = partial(self._producer.send_batch, topic, table, topic_column=topic_column, **columns)
        return await on_own_thread(call, "forebay-send-batch")

    # Flush and close

    async def flush(self, timeout: Seconds | None = None) -> None:
        """Sends everything that was accepted so far, and waits until each record has its outcome.

        Args:
            timeout: seconds; None waits as long as it takes (``delivery.timeout.ms`` at most).

        Raises:
            KafkaTimeoutError: records were still without an outcome; the message counts them.
        """
        steps = self._producer._flush_steps(timeout)
        loop = running_loop()
        try:
            result, left = next(steps)
            while True:
                result, left = steps.send(await is_there(result, left, loop))
        except StopIteration:
            pass
        finally:
            steps.close()

    async def purge(self, *, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Drops records that were accepted, as ``KafkaProducer.purge``.

        Raises:
            IllegalStateError: called with ``blocking`` on the sender's thread.
        """
        dropped = self._producer._begin_purge(in_queue, in_flight, blocking)
        if blocking:
            await is_there(dropped, None, running_loop())

    async def close(self, timeout: Seconds | None = None) -> None:
        """Sends what was accepted, waits for the outcomes, and ends the producer; repeating it does no harm.

        Args:
            timeout: seconds after which it ends by force; see ``KafkaProducer.close``.

        If the call is cancelled, the producer ends all the same, and no thread of the loop's pool waits for it.

        Raises:
            KafkaTimeoutError: it ended by force; the message counts the records that failed.
            KafkaError: as ``KafkaProducer.close``.
        """
        loop, thread = running_loop(), self._producer._thread
        steps = self._producer._close_steps(timeout)
        with suppress(StopIteration):
            left = next(steps)
            while True:
                await is_there(thread, None if left == math.inf else left, loop)
                left = steps.send(thread.join(0))

    async def __aenter__(self) -> Self:
        running_loop()
        self._producer._check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes; what was accepted is delivered, also when the block raised."""
        # As KafkaProducer.__exit__.
        told = self._producer._thread.sender.forced
        try:
            await self.close(0 if told else time_left())
        except KafkaError as failure:
            if told and isinstance(failure, KafkaTimeoutError):
                return
            if error is None:
                raise
            _log.exception("While closing a producer after the error that ended its with block")

    def __dir__(self) -> list[str]:
        return without_hints(type(self), super().__dir__())

    def __repr__(self) -> str:
        return f"<AsyncKafkaProducer of {self._producer!r}>"


shown_as(send_shape, AsyncKafkaProducer.send)
shown_as(send_and_wait_shape, AsyncKafkaProducer.send_and_wait)
