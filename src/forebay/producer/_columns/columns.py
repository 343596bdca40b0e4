"""Columns: the open columns of one piece of a table, from which records are made."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._runtime.primitives import MAX_INT32, bytearray_pointer, murmur2, no_bytes

from forebay._arrow.batch import ArrowBatch
from forebay._arrow.columns import BytesColumn
from forebay._arrow.headers import HeadersColumn
from forebay._arrow.numbers import IntColumn, TimestampColumn
from forebay._records.rows import RowWindow
from forebay.errors import IllegalArgumentError

NO_HEADERS: bytearray = bytearray(b"\x00")
NULL = cython.declare(cython.longlong, -1)
MOST_HEADERS = cython.declare(cython.Py_ssize_t, 1 << 20)
"""Bytes of encoded headers in a window."""


@cython.final
@cython.cclass
class Columns:
    """The columns of one piece of a table; all may be missing.

    Args:
        length: rows; a column may have more of them.
        topic: the topic of rows without a cell in a topic column; None if there must be no such row.
    """

    def __init__(
        self,
        length: cython.Py_ssize_t,
        topic: str | None,
        *,
        value: BytesColumn | None = None,
        key: BytesColumn | None = None,
        headers: HeadersColumn | None = None,
        partition: IntColumn | None = None,
        timestamp: TimestampColumn | None = None,
        topic_column: BytesColumn | None = None,
    ) -> None:
        self.length = length
        self.topic = topic
        self.values = value
        self.keys = key
        self.headers = headers
        self.partitions = partition
        self.timestamps = timestamp
        self.topics = topic_column

    def __len__(self) -> int:
        return self.length

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def fill_bytes(self, rows: RowWindow, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Fills keys, values and headers of a window from row ``at`` on.

        Returns:
            How many rows it filled, up to one whose headers cannot be encoded.
        """
        if self.keys is None:
            rows.keys.fill_with(count, no_bytes(), NULL)
        else:
            rows.keys.fill(self.keys, at, count)
        if self.values is None:
            rows.values.fill_with(count, no_bytes(), NULL)
        else:
            rows.values.fill(self.values, at, count)
        if self.headers is None:
            rows.headers.fill_with(count, bytearray_pointer(NO_HEADERS), 1)
            return count
        return rows.fill_headers(self.headers, at, count, MOST_HEADERS)

    def row(self, at: cython.Py_ssize_t) -> tuple[Any, ...]:
        """(topic, partition, timestamp in ms, key, value, encoded headers) of one row, for tools and tests."""
        name: bytes | None = None if self.topics is None else self.topics.get(at)
        topic = self.topic if name is None else name.decode("utf-8", "replace")
        partition = None if self.partitions is None or self.partitions.is_null(at) else self.partitions.value(at)
        timestamp = None if self.timestamps is None or self.timestamps.is_null(at) else self.timestamps.millis(at)
        key = None if self.keys is None else self.keys.get(at)
        value = None if self.values is None else self.values.get(at)
        headers = bytes(NO_HEADERS) if self.headers is None else self.headers.section(at)
        return topic, partition, timestamp, key, value, headers


def sink_columns(source: Any, topic: str | None = None) -> Columns:
    """The columns of one Arrow batch, with the names of Spark's Kafka sink; only ``value`` must be there.

    Args:
        source: a record batch, or anything else with ``__arrow_c_array__``.
        topic: where every row goes; None reads the column ``topic``.

    Raises:
        IllegalArgumentError: no ``value`` column, no topic either way, or a column of a type that does not fit.
    """
    batch: ArrowBatch = source if isinstance(source, ArrowBatch) else ArrowBatch(source)
    names = batch.names or ()
    value = batch.bytes_column("value")
    if topic is None and "topic" not in names:
        raise IllegalArgumentError(f"neither a topic nor a column 'topic' is given; columns: {', '.join(names)}")
    return Columns(
        batch.length,
        topic,
        value=value,
        key=batch.bytes_column("key") if "key" in names else None,
        headers=batch.headers_column("headers") if "headers" in names else None,
        partition=batch.int_column("partition") if "partition" in names else None,
        timestamp=batch.timestamp_column("timestamp") if "timestamp" in names else None,
        topic_column=batch.bytes_column("topic") if topic is None else None,
    )


def key_partitions(source: Any, partitions: cython.longlong) -> list[int]:
    """Java's default partitioner over an Arrow array of keys, text or bytes; -1 for a null key, which has none.

    Args:
        source: an array with ``__arrow_c_array__``.
        partitions: of the topic, at least 1.
    """
    column: BytesColumn = ArrowBatch(source, True).bytes_column("key")
    found: list[int] = []
    row: cython.Py_ssize_t
    for row in range(column.length):
        size: cython.Py_ssize_t = column.seek(row)
        found.append(-1 if size < 0 else (murmur2(column.found(), size) & MAX_INT32) % partitions)
    return found
