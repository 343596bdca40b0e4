"""What the transactional calls need: ``async with producer.transaction()``, and offsets as they are sent."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self

from forebay.model import OffsetAndMetadata, TopicPartition
from forebay.producer._frontend import State


class Transactional(Protocol):
    """The calls of a producer that a context makes."""

    async def begin_transaction(self) -> None: ...
    async def commit_transaction(self) -> None: ...
    async def abort_transaction(self) -> None: ...
    def _state(self) -> State: ...


class TransactionContext:
    """What ``AIOKafkaProducer.transaction`` gives."""

    def __init__(self, producer: Transactional) -> None:
        self._producer = producer

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            await self._producer.commit_transaction()
        elif self._producer._state() is not State.FATAL_ERROR:
            await self._producer.abort_transaction()


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """A consumer's positions, checked.

    Raises:
        ValueError: there are none, or a negative one.
        TypeError: a key is no TopicPartition, or a text no str.
    """
    if not offsets or not isinstance(offsets, dict):
        raise ValueError(f"offsets must be a dict with at least one offset, got {offsets!r}")
    checked = {}
    for where, given in offsets.items():
        if not isinstance(where, tuple) or not hasattr(where, "topic") or not hasattr(where, "partition"):
            raise TypeError(f"Key should be TopicPartition instance, got {where!r}")
        offset, text = (given, "") if isinstance(given, int) else given
        if not isinstance(text, str):
            raise TypeError(f"Metadata should be a string, got {text!r}")
        checked[TopicPartition(where.topic, where.partition)] = OffsetAndMetadata(offset, metadata=text)
    return checked
