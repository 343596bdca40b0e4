"""The chain of interceptors: what they raise is logged and never stops a record or the sender."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from forebay.errors import ConfigError, KafkaError
from forebay.model import NO_OFFSET, NO_TIMESTAMP, UNKNOWN_PARTITION, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from forebay.model import ProducerRecord

MAX_PARTITION = 0x7FFFFFFF

_log = logging.getLogger("forebay.interceptors")


class ProducerInterceptors:
    """Interceptors in order; empty is falsy, so that the hot path can skip it."""

    __slots__ = (
        "_acknowledgement",
        "_all",
        "_failures",
        "_on_send",
        "_remaining",
        "shows_records",
        "takes_headers",
        "tells_ends",
    )

    def __init__(self, interceptors: Iterable[Any] = ()) -> None:
        self._all = tuple(interceptors)
        self._on_send = _methods(self._all, "on_send")
        self._acknowledgement = tuple(
            (name, method, _takes_headers(method)) for name, method in _methods(self._all, "on_acknowledgement")
        )
        self.shows_records: bool = bool(self._on_send)
        """Whether one has ``on_send``, for which a record is made."""
        self.tells_ends: bool = bool(self._acknowledgement)
        """Whether one has ``on_acknowledgement``."""
        self.takes_headers: bool = any(takes for _, _, takes in self._acknowledgement)
        """Whether headers have to be kept for ``on_acknowledgement``."""
        self._remaining = list(self._all)
        # Counted in one step, without a lock: a signal handler that sends may come in between.
        self._failures: dict[tuple[str, str], itertools.count[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record after all interceptors; one that raises is skipped: the next gets the last good record."""
        from forebay.model._inputs import ProducerRecord

        for name, on_send in self._on_send:
            try:
                changed = on_send(record)
                if not isinstance(changed, ProducerRecord):
                    raise TypeError(f"on_send returned {type(changed).__name__}, not a ProducerRecord")
            except Exception:  # noqa: BLE001 - the protocol's rule: an interceptor never stops a record
                self._log_failure(name, "on_send", record.topic)
            else:
                record = changed
        return record

    def on_acknowledgement(
        self, metadata: RecordMetadata | None, error: BaseException | None, headers: Any = ()
    ) -> None:
        """Tells all interceptors of a record's end."""
        pairs = _pairs(headers) if self.takes_headers else ()
        for name, on_acknowledgement, takes_headers in self._acknowledgement:
            try:
                if takes_headers:
                    on_acknowledgement(metadata, error, pairs)
                else:
                    on_acknowledgement(metadata, error)
            except Exception:  # noqa: BLE001 - the others, and the record's callback, still have to hear of it
                self._log_failure(name, "on_acknowledgement", None if metadata is None else metadata.topic)

    def on_send_error(self, record: ProducerRecord | None, where: TopicPartition | None, error: BaseException) -> None:
        """Tells all interceptors that send() failed; ``where`` is the partition if it was chosen already."""
        headers = () if record is None else record.headers
        self.on_acknowledgement(self._failed_metadata(record, where), error, headers)

    def close(self) -> None:
        """Closes all interceptors, each once; what one raises does not keep the others from it.

        Raises:
            KafkaError: one or more raised; the first is the cause.
        """
        first: Exception | None = None
        while self._remaining:
            interceptor = self._remaining.pop(0)
            close = getattr(interceptor, "close", None)
            try:
                if close is not None:
                    close()
            except Exception as error:  # noqa: BLE001 - the others are closed all the same; raised below
                _log.exception("Interceptor %s failed in close", type(interceptor).__name__)
                first = first or error
        if first is not None:
            raise KafkaError(f"Failed to close an interceptor: {first}") from first

    def _log_failure(self, name: str, method: str, topic: str | None) -> None:
        """Logs an interceptor's 1st, 2nd, 4th, 8th ... failure: it may fail on each of a million records.

        By number, as there is no time here to limit by.
        """
        number = next(self._failures.setdefault((name, method), itertools.count(1)))
        if number & (number - 1) == 0:
            _log.exception("Interceptor %s failed in %s for topic %s (failure %d)", name, method, topic, number)

    @staticmethod
    def _failed_metadata(record: ProducerRecord | None, where: TopicPartition | None) -> RecordMetadata | None:
        if where is None:
            if record is None:
                return None
            # It may be the partition that was refused.
            given = record.partition
            known = isinstance(given, int) and 0 <= given <= MAX_PARTITION
            where = TopicPartition(record.topic, given if given is not None and known else UNKNOWN_PARTITION)
        return RecordMetadata(where.topic, where.partition, NO_OFFSET, NO_TIMESTAMP, -1, -1)


def make_interceptors(given: Iterable[Any], configs: Mapping[str, Any]) -> ProducerInterceptors:
    """The chain for the objects and classes of ``interceptor.classes``; classes are made and configured here.

    Raises:
        ConfigError: an entry has none of an interceptor's methods.
        Exception: what an interceptor's constructor or configure raises, after those made before (and itself,
            if it was made) are closed.
    """
    made: list[Any] = []
    try:
        for entry in given:
            made.append(entry() if isinstance(entry, type) else entry)
            if not any(callable(getattr(made[-1], name, None)) for name in ("on_send", "on_acknowledgement")):
                raise ConfigError(
                    f"interceptor.classes: {type(made[-1]).__name__} has neither on_send nor on_acknowledgement"
                )
            if isinstance(entry, type) and hasattr(made[-1], "configure"):
                made[-1].configure(configs)
    except BaseException:
        with contextlib.suppress(KafkaError):  # logged there; the reason why we are here matters more
            ProducerInterceptors(made).close()
        raise
    return ProducerInterceptors(made)


def _methods(interceptors: Iterable[Any], name: str) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """The method of each that has it, with a name for the log that tells two of one class apart."""
    found = (
        (f"{position} ({type(interceptor).__qualname__})", getattr(interceptor, name, None))
        for position, interceptor in enumerate(interceptors, start=1)
    )
    return tuple((who, method) for who, method in found if method is not None)


def _takes_headers(method: Callable[..., Any]) -> bool:
    """Whether a third parameter is there by name or position.  ``*args`` is none: it was called with two before."""
    import inspect  # only those who have interceptors

    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # a callable of C that does not tell
        return False
    return sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters) >= 3


def _pairs(headers: Any) -> tuple[tuple[str, bytes | None], ...]:
    """The headers as nobody can change them; none if the record's are such that send() refused them."""
    try:
        return tuple(headers)
    except TypeError:
        return ()
