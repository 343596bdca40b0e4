"""AIOKafkaProducer: aiokafka's producer on the native one.

The producer belongs to one event loop, as aiokafka's does, and has the thread of the native producer.
"""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from forebay.compat.aiokafka._batch import BatchBuilder, PendingBatch
from forebay.compat.aiokafka._mapping import mapped, raised, unknown_topic
from forebay.compat.aiokafka._options import FOR_EVER_MS, MISSING, AiokafkaOptions, read_options
from forebay.compat.aiokafka._send import DeliveryFuture, Origin, SendCalls
from forebay.compat.aiokafka._transactions import TransactionContext, checked_offsets
from forebay.compat.aiokafka.errors import IllegalOperation, KafkaConnectionError, ProducerClosed
from forebay.compat.aiokafka.partitioner import DefaultPartitioner
from forebay.compat.aiokafka.structs import RecordMetadata
from forebay.config._door import door
from forebay.errors import ApiError
from forebay.errors import KafkaError as NativeError
from forebay.model import TopicPartition as NativePartition
from forebay.model._inputs import ProducerRecord
from forebay.producer import KafkaProducer
from forebay.producer._frontend import Inside, LoopTicket, State, SystemClock
from forebay.producer._pending import PendingSend
from forebay.producer._transactional import Call
from forebay.producer.aio import SENDS_BETWEEN_LOOKS, AsyncKafkaProducer

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["AIOKafkaProducer"]

LOOK_MS = 20.0
"""How often ``start`` looks whether each bootstrap server has failed."""
FOR_EVER_S = FOR_EVER_MS / 1000
DEFAULT_PARTITIONER = DefaultPartitioner()


class _RaisingProducer(KafkaProducer):
    """A native producer whose ``send`` raises where it would give a future that has failed already, as aiokafka's."""

    def _refused(self, where: NativePartition, error: ApiError, callback: Any, blocking: bool) -> Any:
        Inside(self).note_refused()
        raise error


class AIOKafkaProducer(SendCalls):
    """aiokafka's AIOKafkaProducer; made and used on one event loop.

    Arguments and their defaults are aiokafka's; ``docs/from_aiokafka.md`` lists what differs.

    Raises:
        ValueError: a value that cannot be, or one whose meaning cannot be had here.
        RuntimeError: no event loop runs, and no ``loop`` is given.
    """

    _numbers = itertools.count(1)
    _closed: bool | None = None

    @door(ValueError, TypeError)
    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | Iterable[str] = "localhost",
        client_id: str | None = None,
        metadata_max_age_ms: int = 300_000,
        request_timeout_ms: int = 40_000,
        api_version: str | None = None,
        acks: Any = MISSING,
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
        compression_type: str | None = None,
        max_batch_size: int = 16_384,
        partitioner: Callable[[bytes | None, list[int], list[int]], int] = DEFAULT_PARTITIONER,
        max_request_size: int = 1_048_576,
        linger_ms: int = 0,
        retry_backoff_ms: int = 100,
        security_protocol: str = "PLAINTEXT",
        ssl_context: SSLContext | None = None,
        connections_max_idle_ms: int | None = 540_000,
        enable_idempotence: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: Any = None,
    ) -> None:
        given = dict(locals())
        for name in ("loop", "api_version"):
            if given[name] is not None:
                text = f"The `{name}` parameter is deprecated in aiokafka; here it has no other effect"
                warnings.warn(text, DeprecationWarning, stacklevel=3)
        self._loop = _running_loop() if loop is None else loop
        if client_id is None:
            given["client_id"] = f"aiokafka-producer-{next(AIOKafkaProducer._numbers)}"
        self._use(read_options(given, self._loop), key_serializer, value_serializer)

    def _use(self, options: AiokafkaOptions, key_serializer: Any, value_serializer: Any) -> None:
        self._options = options
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._serializes = key_serializer is not None or value_serializer is not None
        self._sends_left = SENDS_BETWEEN_LOOKS
        self._aio: AsyncKafkaProducer | None = None
        self._closed = False

    @classmethod
    def _around(cls, native: KafkaProducer, **options: Any) -> Self:
        """A started producer on this native one, for tests."""
        made = cls(bootstrap_servers="unused", **options)
        made._attach(native)
        return made

    # Life

    async def start(self) -> None:
        """Connects; with a ``transactional_id`` also takes over from older producers with the same one.

        Raises:
            KafkaConnectionError: none of the bootstrap servers can be reached, or lets us in.
            IllegalOperation: it was started before, or stopped.
            KafkaError: the coordinator refused.
        """
        if self._native is not None or self._closed:
            raise IllegalOperation("The producer was started before: each is started once")
        if asyncio.get_running_loop() is not self._loop:
            raise IllegalOperation("The producer belongs to another event loop: make and use it on the same one")
        with mapped(raised):
            native = _RaisingProducer(self._options.native)
        try:
            await self._connect(native)
        except BaseException:
            self._attach(None)
            with suppress(NativeError):
                await AsyncKafkaProducer._around(native).close(0)
            raise

    def _attach(self, native: KafkaProducer | None) -> None:
        if native is None:
            self._aio = None
            self._bind(None, None)
            return
        self._aio = AsyncKafkaProducer._around(native)
        self._bind(native, Origin(self._loop, self._options.has_answers))

    async def _connect(self, native: KafkaProducer) -> None:
        inside = Inside(native)
        metadata, clock = inside.metadata, inside.clock
        ticket = LoopTicket(self._loop)
        deadline = clock.now() + native.config["max.block.ms"]
        try:
            while metadata.is_bootstrap:
                if (failure := _failure(native)) or clock.now() >= deadline:
                    servers = ", ".join(native.config["bootstrap.servers"])
                    raise KafkaConnectionError(f"Unable to bootstrap from {servers}: {failure or 'no answer in time'}")
                metadata.await_version(metadata.version, ticket)
                await ticket.wait(LOOK_MS)
                metadata.forget(ticket)
        finally:
            metadata.forget(ticket)
        self._attach(native)
        if self._options.is_transactional:
            with mapped(raised):
                await self._started().init_transactions()

    async def stop(self) -> None:
        """Sends what was accepted, waits for the outcomes, and ends the producer; repeating it does no harm.

        If the call is cancelled, the producer ends all the same, and no thread of the loop's pool waits for it.
        """
        if self._closed:
            return
        self._closed = True
        if self._aio is not None:
            with mapped(raised):
                await self._aio.close()
            await self._tell_callbacks()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    def __del__(self) -> None:
        if self._closed is False:
            warnings.warn(f"Unclosed AIOKafkaProducer {self!r}", ResourceWarning, stacklevel=2, source=self)
            self._loop.call_exception_handler({"producer": self, "message": "Unclosed AIOKafkaProducer"})

    @property
    def native(self) -> KafkaProducer:
        """The producer of this package that does the work; its ``metrics()`` and ``config`` may be read."""
        return self._started()._producer

    def _started(self) -> AsyncKafkaProducer:
        if self._aio is None:
            if self._closed:
                raise ProducerClosed("The producer was stopped")
            raise IllegalOperation("The producer was not started: call `await producer.start()`, or use `async with`")
        return self._aio

    # Records

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> DeliveryFuture:
        """Takes a message into the buffer; waits for the topic and for room, each at most ``request_timeout_ms``.

        A cancelled call has taken nothing.

        Returns:
            The message's future: ``await`` it for the RecordMetadata.

        Raises:
            UnknownTopicOrPartitionError: the topic did not come in time.
            KafkaTimeoutError: there was no room in time.
            MessageSizeTooLargeError: it is larger than ``max_request_size``.
            ProducerClosed: the producer was stopped.
            IllegalOperation: it was not started, or no transaction is open.
            AssertionError: neither value nor key, or a partition that the topic does not have.
            TypeError: a value or key is not bytes.
        """
        if value is None and key is None:
            raise AssertionError("Need at least one: key or value")
        if headers is not None and type(headers) is not list:
            headers = list(headers)  # an iterator gives them once
        self._sends_left -= 1
        if self._sends_left <= 0 and self._aio is not None:
            self._sends_left = SENDS_BETWEEN_LOOKS
            await self._aio._look_at_the_clock()
        if self._serializes:
            if self._key_serializer is not None:
                key = self._key_serializer(key)
            if self._value_serializer is not None:
                value = self._value_serializer(value)
        sent = self._take(topic, value, key, partition, timestamp_ms, headers)
        if sent is not None:
            return sent
        await self._check_partition(topic, partition)
        with mapped(raised):
            record = ProducerRecord(
                topic, value, key, headers=headers or (), partition=partition, timestamp=timestamp_ms
            )
            return await self._wait_for(PendingSend(self.native, record, None))

    async def _check_partition(self, topic: str, partition: int | None) -> int:
        """Waits for the topic; the number of its partitions."""
        aio = self._started()
        with mapped(unknown_topic):
            count = len(await aio.partitions_for(topic))
        if partition is not None and not 0 <= partition < count:
            raise AssertionError(f"Unrecognized partition: topic {topic} has {count} partitions, not {partition}")
        return count

    async def _wait_for(self, pending: PendingSend | PendingBatch) -> DeliveryFuture:
        ticket = LoopTicket(self._loop)
        try:
            while (sent := pending.step(ticket)) is None:
                await ticket.wait(pending.left())
            return self._delivery(sent)
        finally:
            pending.end(ticket)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata | Any:
        """``send``, and then the outcome.

        Raises:
            KafkaError: the message could not be delivered; and as ``send``.
        """
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    def create_batch(self) -> BatchBuilder:
        """An empty batch, for ``send_batch``; it takes ``max_batch_size`` bytes."""
        limit = self._options.native["batch.size"]
        return BatchBuilder(limit, self._wall, self._key_serializer, self._value_serializer)

    def _wall(self) -> int:
        clock = SystemClock() if self._aio is None else Inside(self.native).clock
        return int(clock.wall())

    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int | None
    ) -> DeliveryFuture | asyncio.Future[Any]:
        """Takes a batch into the buffer, as one batch of the log behind all that was sent before; closes it.

        A cancelled call has taken nothing, but the batch stays closed.  Without a partition the partitioner chooses.

        Returns:
            The future of its first message, with whose fate all share; None is the outcome of an empty batch.

        Raises:
            KafkaError, IllegalOperation, AssertionError: as ``send``.
        """
        every = list(range(await self._check_partition(topic, partition)))
        if partition is None:
            partition = self._options.partitioner(None, every, every)
        batch.close()
        if batch.record_count() == 0:
            nothing: asyncio.Future[Any] = self._loop.create_future()
            nothing.set_result(None)
            return nothing
        with mapped(raised):
            return await self._wait_for(PendingBatch(self.native, topic, partition, batch))

    async def flush(self) -> None:
        """Waits until all that was accepted so far has its outcome."""
        if self._aio is not None:
            with mapped(raised):
                await self._aio.flush()
            await self._tell_callbacks()

    async def _tell_callbacks(self) -> None:
        while self._origin.ready:
            await asyncio.sleep(0)

    async def partitions_for(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions.

        Raises:
            UnknownTopicOrPartitionError: the topic did not come in time.
        """
        return set(range(await self._check_partition(topic, None)))

    # Transactions

    def _transactional(self) -> AsyncKafkaProducer:
        if not self._options.is_transactional:
            raise IllegalOperation("You need to configure transactional_id to use transactions")
        return self._started()

    def _state(self) -> State:
        return Inside(self.native).transaction_state()

    async def begin_transaction(self) -> None:
        """Opens a transaction.

        Raises:
            IllegalOperation: one is open, or there is no ``transactional_id``.
            ProducerFenced: a newer producer has the same ``transactional_id``.
        """
        aio = self._transactional()
        with mapped(raised):
            aio.begin_transaction()

    async def commit_transaction(self) -> None:
        """Sends what was accepted, and commits; goes on if the call is cancelled.

        Raises:
            IllegalOperation: no transaction is open.
            KafkaError: a message failed, or the coordinator refused: nothing is committed.
        """
        aio = self._transactional()
        await self._end(aio, aio._producer._commit_call)

    async def abort_transaction(self) -> None:
        """Ends the transaction without effect; goes on if the call is cancelled.

        Raises:
            IllegalOperation: no transaction is open.
            KafkaError: the producer cannot go on.
        """
        aio = self._transactional()
        await self._end(aio, aio._producer._abort_call)

    async def _end(self, aio: AsyncKafkaProducer, begin: Callable[[float], Call]) -> None:
        with mapped(raised):
            await asyncio.shield(self._loop.create_task(aio._await(begin(FOR_EVER_S))))

    def transaction(self) -> TransactionContext:
        """``async with producer.transaction():`` begins, and commits or, after an exception, aborts."""
        return TransactionContext(self)

    async def send_offsets_to_transaction(self, offsets: Mapping[Any, Any], group_id: str) -> None:
        """Commits a consumer group's offsets if, and only if, the transaction is committed.

        Args:
            offsets: by TopicPartition the next offset to be read, or a pair of it and a text.

        Raises:
            IllegalOperation: no transaction is open.
            ValueError: no offsets, or no group.
            TypeError: a key is no TopicPartition, or a text no str.
            KafkaError: the coordinator refused.
        """
        aio = self._transactional()
        if self._state() is not State.IN_TRANSACTION:
            raise IllegalOperation("Not in the middle of a transaction")
        if not group_id or not isinstance(group_id, str):
            raise ValueError(f"group_id must be a non-empty str, got {group_id!r}")
        checked = checked_offsets(offsets)
        with mapped(raised):
            call = aio._producer._send_offsets_call(checked, group_id, FOR_EVER_S)
            if call is not None:
                await asyncio.shield(self._loop.create_task(aio._await(call)))

    def __repr__(self) -> str:
        state = "stopped" if self._closed else "not started" if self._aio is None else repr(self._aio._producer)
        return f"<AIOKafkaProducer {self._options.native['client.id']}: {state}>"


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("The object should be created within an async function or provide loop directly.") from None


def _failure(native: KafkaProducer) -> str | None:
    """Why no bootstrap server lets us in; None while one may."""
    inside = Inside(native)
    try:
        inside.metadata.raise_if_failed()
    except NativeError as error:
        return str(error)
    failures = inside.last_errors()
    return "; ".join(map(str, failures)) if failures and None not in failures else None
