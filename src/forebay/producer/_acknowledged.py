"""The callback of a record that interceptors hear of, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._delivery.callbacks import deliver_to, hears
from cython.cimports.forebay.model._arguments import listed_headers
from cython.cimports.forebay.model._metadata import new_report

from forebay._delivery.callbacks import CompiledCallback
from forebay.errors import IllegalArgumentError
from forebay.model import TopicPartition
from forebay.model._arguments import as_record
from forebay.model._metadata import DeliveryReport, RecordMetadata

if TYPE_CHECKING:
    from forebay.model import DeliveryCallback, ProducerRecord


# Not tracked by the garbage collector, as what it is kept in.
@cython.final
@cython.no_gc
@cython.cclass
class Acknowledged(CompiledCallback):
    """A record's callback with interceptors: they are told first, then the user's callback.

    Records without a callback share one if no interceptor takes headers.
    """

    def __init__(self, chain: Any, callback: DeliveryCallback | None, headers: Any) -> None:
        self.chain = chain
        self.callback = callback
        self.where: TopicPartition | None = None
        self.headers: Any = ()
        if headers is not None:
            self.note_headers(headers)

    @cython.ccall
    def note_headers(self, headers: Any) -> object:
        """Keeps the record's headers as they are now if an interceptor takes them; a serializer may have added some."""
        if self.chain.takes_headers:
            self.headers = tuple(headers) if type(headers) is list else headers
        return None

    @cython.ccall
    def headers_of(self, headers: Any) -> object:
        """The headers that are to be sent, kept as by ``note_headers``: a list where they can be read only once.

        Raises:
            TypeError: nothing that could hold pairs.
        """
        if headers is None or not self.chain.takes_headers:
            return headers
        kept: Any = headers if type(headers) is list else listed_headers(headers)
        self.note_headers(kept)
        return kept

    def tell_failure(self, record: ProducerRecord | None, given: tuple[Any, ...], error: BaseException) -> None:
        """Tells the interceptors that ``send`` failed; not of what can be no record.

        Args:
            record: None where none was made of ``given``, the arguments of ``send`` as ``as_record`` takes them.
        """
        try:
            record = record or as_record(*given)
        except (IllegalArgumentError, TypeError):
            pass
        if record is not None:
            self.chain.on_send_error(record, self.where, error)

    @cython.cfunc
    def deliver(self, metadata: RecordMetadata, error: Any) -> object:
        self.chain.on_acknowledgement(metadata, error, self.headers)
        if self.callback is not None:
            deliver_to(self.callback, new_report(metadata, error))
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def tells_owner(self) -> cython.bint:
        return hears(self.callback)  # an interceptor is not the record's owner

    def __call__(self, report: DeliveryReport) -> None:
        self.deliver(report._metadata, report._error)


def shared_by_all(chain: Any) -> Acknowledged | None:
    """The callback of all records that have none of their own; None where each keeps its headers, or nobody is told."""
    return Acknowledged(chain, None, None) if chain.tells_ends and not chain.takes_headers else None
