"""The calls of transactions, as coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from forebay._runtime.event_loop import LoopTicket, running_loop
from forebay.errors import ForkedProducerError, KafkaError, KafkaTimeoutError, ProducerClosedError
from forebay.model import TopicPartition, TransactionIdentity
from forebay.producer._transactional import Call

if TYPE_CHECKING:
    from forebay._runtime.times import Seconds
    from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata
    from forebay.producer.threads import KafkaProducer


class AsyncTransactionalCalls:
    """A base of AsyncKafkaProducer."""

    _producer: KafkaProducer

    @property
    def transactional_id(self) -> str | None:
        """As ``KafkaProducer.transactional_id``."""
        return self._producer.transactional_id

    @property
    def producer_id(self) -> int:
        """The id that batches are stamped with; -1 while there is none."""
        return self._producer.producer_id

    @property
    def producer_epoch(self) -> int:
        """The epoch of the id; -1 while there is none."""
        return self._producer.producer_epoch

    @property
    def transaction_version(self) -> int:
        """As ``KafkaProducer.transaction_version``."""
        return self._producer.transaction_version

    async def init_transactions(
        self, timeout: Seconds | None = None, *, identity: TransactionIdentity | None = None
    ) -> None:
        """As ``KafkaProducer.init_transactions``."""
        await self._await(self._producer._init_call(timeout, identity))

    def begin_transaction(self) -> None:
        """As ``KafkaProducer.begin_transaction``; it waits for nothing."""
        self._producer.begin_transaction()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | Iterable[Any],
        group: ConsumerGroupMetadata | str | object,
        timeout: Seconds | None = None,
    ) -> None:
        """As ``KafkaProducer.send_offsets_to_transaction``; an AIOKafkaConsumer may be given as the group."""
        if (call := self._producer._send_offsets_call(offsets, group, timeout)) is not None:
            await self._await(call)

    async def commit_transaction(self, timeout: Seconds | None = None) -> None:
        """As ``KafkaProducer.commit_transaction``.

        After a KafkaTimeoutError, or if it was cancelled, the transaction may still be committed: call it again.
        """
        await self._await(self._producer._commit_call(timeout))

    async def abort_transaction(self, timeout: Seconds | None = None) -> None:
        """As ``KafkaProducer.abort_transaction``."""
        await self._await(self._producer._abort_call(timeout))

    def detach_transaction(self) -> TransactionIdentity:
        """As ``KafkaProducer.detach_transaction``; it waits for nothing."""
        return self._producer.detach_transaction()

    def set_transactional_id(self, transactional_id: str) -> None:
        """As ``KafkaProducer.set_transactional_id``; it waits for nothing."""
        self._producer.set_transactional_id(transactional_id)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """``async with producer.transaction():`` begins, and commits at the end of the block.

        If the block raises or is cancelled, the transaction is aborted and the same exception goes on.

        Raises:
            IllegalStateError: a transaction is open.
            KafkaError: as ``commit_transaction``.
        """
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            await self._abort_after(error)
            raise
        try:
            await self.commit_transaction()
        except KafkaTimeoutError:
            raise  # undecided: the same call again is what decides
        except KafkaError as error:
            await self._abort_after(error)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        try:
            if (call := self._producer._abort_call_after_error()) is not None:
                await self._await(call)
        except (ProducerClosedError, ForkedProducerError):
            pass  # closing aborts it, and in a forked child it is the parent's
        except KafkaError as failure:
            error.add_note(f"The transaction could not be aborted: {failure!r}")

    async def _await(self, call: Call) -> None:
        ticket = LoopTicket(running_loop())
        try:
            try:
                is_known = call.result.subscribe(ticket) or await ticket.wait(call.limit)
            finally:
                call.result.unsubscribe(ticket)
            if is_known:
                call.result.acknowledged = True
            self._producer._check_outcome(call, is_known)
        finally:
            self._producer._note_time(call.sensor, call.begun)
