"""Rows of Arrow columns into record batches, without a Python object a row.

``Columns`` opens the columns of one Arrow batch by the names Spark's Kafka sink uses; ``append_columns`` carries
them into the accumulator by the same way as ``send()``: same partitioner, same bounded memory, same checks.
``Deliveries`` follows what became of them batch by batch, with the rows each batch took.
"""

from __future__ import annotations

from typing import Any

import cython

from forebay.errors import IllegalArgumentError, KafkaError
from forebay.model import TopicPartition

if cython.compiled:
    from cython.cimports.forebay._arrow import ArrowBatch, BytesColumn, HeadersColumn, IntColumn, TimestampColumn
else:
    from forebay._arrow import ArrowBatch, BytesColumn, HeadersColumn, IntColumn, TimestampColumn


@cython.final
@cython.cclass
class Columns:
    """The columns of one Arrow batch that a record is made of; all but the value may be missing.

    Args:
        source: a record batch, or anything else with ``__arrow_c_array__``.
        topic: where every row goes; None reads the column ``topic``.

    Raises:
        IllegalArgumentError: no ``value`` column, no topic either way, or a column of a type that does not fit.
    """

    length: cython.Py_ssize_t
    topic: str
    topics: BytesColumn
    keys: BytesColumn
    values: BytesColumn
    headers: HeadersColumn
    partitions: IntColumn
    timestamps: TimestampColumn

    def __init__(self, source: Any, topic: str | None = None) -> None:
        batch: ArrowBatch = source if isinstance(source, ArrowBatch) else ArrowBatch(source)
        names = batch.names
        self.length = batch.length
        self.topic = topic
        self.values = batch.bytes_column("value")
        self.keys = batch.bytes_column("key") if "key" in names else None
        self.headers = batch.headers_column("headers") if "headers" in names else None
        self.partitions = batch.int_column("partition") if "partition" in names else None
        self.timestamps = batch.timestamp_column("timestamp") if "timestamp" in names else None
        self.topics = batch.bytes_column("topic") if topic is None and "topic" in names else None
        if topic is None and self.topics is None:
            raise IllegalArgumentError(f"neither a topic nor a column 'topic' is given; columns: {', '.join(names)}")

    def __len__(self) -> int:
        return self.length

    def row(self, at: cython.Py_ssize_t) -> tuple[Any, ...]:
        """(topic, partition, timestamp in ms, key, value, encoded headers) of one row, for tools and tests."""
        topic = self.topic if self.topics is None else _text(self.topics.get(at))
        partition = None if self.partitions is None or self.partitions.is_null(at) else self.partitions.value(at)
        timestamp = None if self.timestamps is None or self.timestamps.is_null(at) else self.timestamps.millis(at)
        key = None if self.keys is None else self.keys.get(at)
        headers = b"\x00" if self.headers is None else self.headers.section(at)
        return topic, partition, timestamp, key, self.values.get(at), headers


def _text(name: bytes | None) -> str | None:
    return None if name is None else name.decode()


@cython.final
@cython.cclass
class Share:
    """The rows of one caller that went into one batch."""

    result: object
    rows: cython.Py_ssize_t
    first_row: cython.Py_ssize_t
    last_row: cython.Py_ssize_t

    def __init__(self, result: Any, row: cython.Py_ssize_t) -> None:
        self.result = result
        self.rows = 1
        self.first_row = row
        self.last_row = row


@cython.final
@cython.cclass
class Deliveries:
    """What became of one caller's rows; used by that caller's thread alone.

    Holds one ``Share`` for each batch that is still open or on its way; ``collect`` folds the finished ones into
    the counts, so that memory follows what is in flight and not what was sent.
    """

    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    acknowledged = cython.declare(cython.Py_ssize_t, visibility="readonly")
    failed = cython.declare(cython.Py_ssize_t, visibility="readonly")
    batches = cython.declare(cython.Py_ssize_t, visibility="readonly")
    raw_bytes = cython.declare(cython.longlong, visibility="readonly")
    first_error = cython.declare(object, visibility="readonly")
    first_failed_row = cython.declare(cython.Py_ssize_t, visibility="readonly")
    partitions = cython.declare(dict, visibility="readonly")
    shares: list
    current: dict

    def __init__(self) -> None:
        self.rows = 0
        self.acknowledged = 0
        self.failed = 0
        self.batches = 0
        self.raw_bytes = 0
        self.first_error = None
        self.first_failed_row = -1
        self.partitions = {}
        self.shares = []
        self.current = {}

    @cython.ccall
    def track(self, result: Any, row: cython.Py_ssize_t, size: cython.Py_ssize_t) -> Any:
        """Notes that ``row``, a record of ``size`` bytes, went into the batch of ``result``."""
        share: Share = self.current.get(id(result))
        self.rows += 1
        self.raw_bytes += size
        if share is not None and share.result is result:
            share.rows += 1
            share.last_row = row
            return None
        share = Share(result, row)
        self.current[id(result)] = share
        self.shares.append(share)
        return None

    def collect(self) -> int:
        """Counts what is finished; returns how many batches are not."""
        share: Share
        still: list = []
        for share in self.shares:
            if share.result.done:  # type: ignore[attr-defined]
                self._count(share)
            else:
                still.append(share)
        self.shares = still
        self.current = {id(share.result): share for share in still}
        return len(still)

    def _count(self, share: Share) -> None:
        result: Any = share.result
        error: KafkaError | None = result.error
        self.batches += 1
        if error is None:
            where = TopicPartition(result.topic, result.partition)
            self.acknowledged += share.rows
            self.partitions[where] = self.partitions.get(where, 0) + share.rows
            return
        self.failed += share.rows
        if self.first_error is None or share.first_row < self.first_failed_row:
            self.first_error = error
            self.first_failed_row = share.first_row
