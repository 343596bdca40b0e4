"""The checks of ``send()``'s arguments: what cannot be is refused at once, and says which, what and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import cython

from forebay._runtime.hints import old_spelling
from forebay._runtime.times import unix_ms
from forebay.errors import IllegalArgumentError
from forebay.model._wire import check_text

if TYPE_CHECKING:
    from forebay.model import ProducerRecord


class IfThere(str):
    """The name of a column that may be missing: the default of an argument of ``send_batch``."""

    __slots__ = ()


def as_record(topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp: Any) -> ProducerRecord:
    """The arguments of send() as one record; ``topic`` may be a record already."""
    # Only those who have records or interceptors import it.
    from forebay.model._inputs import ProducerRecord

    if isinstance(topic, ProducerRecord):
        if any(other is not None for other in (value, key, headers, partition, timestamp)):
            raise IllegalArgumentError("send(record) takes no further value, key, headers, partition or timestamp")
        return topic
    if not isinstance(topic, str):
        raise TypeError(f"topic must be a str or a ProducerRecord, got {type(topic).__name__}")
    return ProducerRecord(
        topic, value, key, headers=() if headers is None else headers, partition=partition, timestamp=timestamp
    )


def fields_of(record: ProducerRecord) -> tuple[Any, ...]:
    """What ``as_record`` makes this record of."""
    return record.topic, record.value, record.key, record.headers, record.partition, record.timestamp


def not_callable(on_delivery: object) -> TypeError:
    """The error of a callback that could not be called: at once, not when its batch is done and nobody looks."""
    return TypeError(
        f"on_delivery must be a callable(report) or None, got {type(on_delivery).__name__}: {on_delivery!r}"
    )


def wrong_call(call: str, old: tuple[Any, ...], timestamp_ms: object, on_delivery: object) -> TypeError:
    """The error of a call in an old spelling, or with a callback that cannot be called."""
    return old_spelling(call, timestamp_ms) if old or timestamp_ms is not None else not_callable(on_delivery)


@cython.cfunc
def plain_name(topic: Any) -> str:
    # A member of a str enumeration stands for its value.
    return topic if type(topic) is str else str.__str__(topic)


@cython.ccall
@cython.exceptval(-1)
def checked_partition(partition: Any) -> cython.int:
    """A partition number that can be one."""
    if isinstance(partition, bool) or not isinstance(partition, int):
        raise TypeError(f"partition must be an int or None, got {type(partition).__name__}")
    if not 0 <= partition <= 0x7FFFFFFF:
        raise IllegalArgumentError(
            f"Invalid partition: {partition}. Partition number should always be non-negative or None."
        )
    return partition


@cython.ccall
@cython.exceptval(-1)
def checked_timestamp(timestamp: Any) -> cython.longlong:
    """A timestamp that a record can carry."""
    if isinstance(timestamp, bool) or not isinstance(timestamp, int):
        return checked_timestamp(unix_ms(timestamp))
    if not 0 <= timestamp <= 0x7FFFFFFFFFFFFFFF:
        raise IllegalArgumentError(
            f"Invalid timestamp: {timestamp}. Timestamp should always be non-negative or None, and fit 64 bits."
        )
    return timestamp


@cython.ccall
def listed_headers(headers: Any) -> list[Any]:
    """Headers as a list of its own, a mapping's items among them; what is in it is not looked at.

    Raises:
        TypeError: nothing that could hold pairs.
    """
    if isinstance(headers, (dict, Mapping)):
        return list(headers.items())
    if not isinstance(headers, Iterable) or isinstance(headers, (str, bytes)):
        kind = type(headers).__name__
        raise TypeError(f"headers must be pairs of str and bytes (or None), or a mapping, got {kind}")
    return list(headers)


@cython.ccall
def checked_headers(headers: Any) -> list[Any]:
    """Headers as plain pairs of str and bytes or None; a mapping's items, named tuples and enumerated keys will do.

    Raises:
        TypeError: anything else, named.
        IllegalArgumentError: a key that cannot be encoded (a lone surrogate).
    """
    pairs: list[Any] = listed_headers(headers)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"header {index} must be a pair (str, bytes or None), got {pair!r}")
        key, value = pair
        if not isinstance(key, str):
            raise TypeError(f"the key of header {index} must be a str, got {type(key).__name__}")
        if not key.isascii():
            check_text(f"the key of header {index}", key, most=None)
        if type(value) is not bytes and value is not None:
            if not isinstance(value, (bytes, bytearray, memoryview)):
                raise TypeError(f"the value of header {key!r} must be bytes or None, got {type(value).__name__}")
            value = bytes(value)
        # Of these types and not their subclasses, as compiled code reads them without asking again.
        pairs[index] = (str.__str__(key), value)
    return pairs
