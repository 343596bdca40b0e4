# cython: binding=True, embedsignature=False
"""RecordMetadata, where a record went, and DeliveryReport, what became of it.

Each delivery callback gets a report, and most callbacks read little of it.  So the metadata holds C numbers, and makes
Python objects of them when they are read.  Objects that no callback kept are used for the next record.  Metadata
unpacks and compares as a named tuple does.  The road not taken is a named tuple, which takes several times as long to
make.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._runtime.memory import is_unshared

if TYPE_CHECKING:
    from forebay.errors import KafkaError


# Not tracked by the garbage collector: a string and five numbers close no cycle.
@cython.final
@cython.no_gc
@cython.freelist(64)
@cython.cclass
class RecordMetadata:
    """Where a record went; unpacks, compares and sorts as a tuple of its fields, and cannot be changed.

    ``offset`` is -1 when the broker does not tell it (acks=0, or a duplicate that was acknowledged before);
    ``timestamp`` is the broker's append time for such topics, else the record's own, in ms; sizes are in bytes,
    -1 for a null key or value.  For a failed record offset, timestamp and sizes are -1 and ``partition`` is -1
    if it was not known yet.
    """

    __match_args__ = ("topic", "partition", "offset", "timestamp", "serialized_key_size", "serialized_value_size")
    _fields = __match_args__

    def __init__(
        self,
        topic: Any,  # a str or a subclass of it, which compiled code would refuse as a str
        partition: cython.int,
        offset: cython.longlong,
        timestamp: cython.longlong,
        serialized_key_size: cython.longlong,
        serialized_value_size: cython.longlong,
    ) -> None:
        self._topic = topic if type(topic) is str else str.__str__(topic)
        self._partition = partition
        self._offset = offset
        self._timestamp = timestamp
        self._key_size = serialized_key_size
        self._value_size = serialized_value_size

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._topic

    @property
    def partition(self) -> int:
        """The partition's number, or -1."""
        return self._partition

    @property
    def offset(self) -> int:
        """The record's offset in its partition, or -1."""
        return self._offset

    @property
    def timestamp(self) -> int:
        """Unix ms, or -1."""
        return self._timestamp

    @property
    def serialized_key_size(self) -> int:
        """Bytes, -1 for a null key."""
        return self._key_size

    @property
    def serialized_value_size(self) -> int:
        """Bytes, -1 for a null value."""
        return self._value_size

    @property
    def has_offset(self) -> bool:
        """Whether the broker named the offset."""
        return self._offset != -1

    @property
    def has_timestamp(self) -> bool:
        """Whether there is a timestamp."""
        return self._timestamp != -1

    @cython.ccall
    def as_tuple(self) -> tuple[Any, ...]:
        """The fields in their order, named in ``_fields``."""
        return (self._topic, self._partition, self._offset, self._timestamp, self._key_size, self._value_size)

    def _asdict(self) -> dict[str, Any]:
        """The fields by name, as of a named tuple."""
        return dict(zip(RecordMetadata._fields, self.as_tuple(), strict=True))

    def _replace(self, **changes: Any) -> RecordMetadata:
        """A copy with other values, as of a named tuple."""
        return RecordMetadata(**{**self._asdict(), **changes})

    def __replace__(self, **changes: Any) -> RecordMetadata:
        """As ``_replace``, for ``copy.replace`` (Python 3.13)."""
        return self._replace(**changes)

    def __len__(self) -> int:
        return len(RecordMetadata._fields)

    def __getitem__(self, at: Any) -> Any:
        return self.as_tuple()[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.as_tuple())

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __eq__(self, other: object) -> Any:
        theirs = fields_of(other)
        return NotImplemented if theirs is None else self.as_tuple() == theirs

    def __lt__(self, other: object) -> Any:
        theirs = fields_of(other)
        return NotImplemented if theirs is None else self.as_tuple() < theirs

    def __le__(self, other: object) -> Any:
        theirs = fields_of(other)
        return NotImplemented if theirs is None else self.as_tuple() <= theirs

    def __gt__(self, other: object) -> Any:
        theirs = fields_of(other)
        return NotImplemented if theirs is None else self.as_tuple() > theirs

    def __ge__(self, other: object) -> Any:
        theirs = fields_of(other)
        return NotImplemented if theirs is None else self.as_tuple() >= theirs

    def __reduce__(self) -> Any:
        return RecordMetadata, self.as_tuple()

    def __str__(self) -> str:
        return f"{self._topic}-{self._partition}@{self._offset}"

    def __repr__(self) -> str:
        return f"RecordMetadata({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"


# Tracked by the garbage collector: a callback may raise the error, and its traceback refers to the report.
@cython.final
@cython.freelist(64)
@cython.cclass
class DeliveryReport:
    """What became of a record: the one argument of ``on_delivery``.

    It unpacks into nothing and has no order of its own, so that metadata and error cannot be confused.  To know which
    of your records it is, bind what you need: ``on_delivery=partial(delivered, order)``.
    """

    __match_args__ = ("metadata", "error")

    def __init__(self, metadata: RecordMetadata, error: KafkaError | None = None) -> None:
        self._metadata = metadata
        self._error = error

    @property
    def metadata(self) -> RecordMetadata:
        """Where the record went; of one that failed, its topic and its partition if that was chosen, and else -1."""
        return self._metadata

    @property
    def error(self) -> KafkaError | None:
        """Why it failed; None if it was acknowledged."""
        return self._error

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, DeliveryReport):
            return NotImplemented
        return (self._metadata, self._error) == (other.metadata, other.error)

    def __hash__(self) -> int:
        return hash(self._metadata)

    def __reduce__(self) -> Any:
        return DeliveryReport, (self._metadata, self._error)

    def __repr__(self) -> str:
        return f"<DeliveryReport of {self._metadata}: {'acknowledged' if self._error is None else repr(self._error)}>"


@cython.cfunc
def fields_of(other: object) -> Any:
    """The tuple that ``other`` compares by; None if it is no metadata and no tuple."""
    if isinstance(other, RecordMetadata):
        return other.as_tuple()
    return other if isinstance(other, tuple) else None


@cython.cfunc
def new_metadata(topic: str, partition: cython.int) -> RecordMetadata:
    """Metadata without offset, timestamp and sizes: of a record that failed, or to be filled in."""
    metadata: RecordMetadata = RecordMetadata.__new__(RecordMetadata)
    metadata._topic = topic
    metadata._partition = partition
    metadata._offset = metadata._timestamp = metadata._key_size = metadata._value_size = -1
    return metadata


@cython.cfunc
def new_report(metadata: RecordMetadata, error: Any) -> DeliveryReport:
    report: DeliveryReport = DeliveryReport.__new__(DeliveryReport)
    report._metadata = metadata
    report._error = error
    return report


@cython.cfunc
def next_report(before: DeliveryReport | None, topic: str, partition: cython.int, error: Any) -> DeliveryReport:
    """A report of the next record of a batch; what no callback kept of the one before is used again.

    Args:
        before: that one, with the same error; the caller has the only reference of its own.
    """
    if before is None or not is_unshared(before):
        return new_report(new_metadata(topic, partition), error)
    metadata: RecordMetadata = before._metadata
    before._metadata = None  # type: ignore[assignment]  # so that there is one reference
    if not is_unshared(metadata):
        metadata = new_metadata(topic, partition)
    before._metadata = metadata
    return before
