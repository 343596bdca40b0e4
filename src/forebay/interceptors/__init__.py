"""Interceptors of records (``interceptor.classes``): what one has; ``_chain`` calls them in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from forebay.model import ProducerRecord, RecordMetadata

__all__ = ["ProducerInterceptor"]


def __dir__() -> list[str]:
    return sorted(__all__)


@runtime_checkable
class ProducerInterceptor(Protocol):
    """What an interceptor has; each method may be left out.  Called by several threads."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Called once for an interceptor given as a class; an instance is used as it is."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to send in place of ``record``; on the thread that sends, before serialization."""

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        """The record's end, before its callback; on the sender's thread (or the sending one, for early errors).

        With a third parameter it also gets the record's headers as they were sent, a tuple of pairs, which is empty
        where send() failed before there was a record (KIP-512): ``def on_acknowledgement(self, metadata, error,
        headers=())``.  Two parameters remain enough.
        """

    def close(self) -> None:
        """Called once when the producer is closed."""
