"""The columns of an Arrow batch by the names that Spark's Kafka sink uses."""

from __future__ import annotations

from typing import Any

import cython

from forebay.errors import IllegalArgumentError

if cython.compiled:
    from cython.cimports.forebay._arrow import ArrowBatch
else:
    from forebay._arrow import ArrowBatch

NO_HEADERS: bytearray = bytearray(b"\x00")


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
        topic: Any = self.topic if self.topics is None else self.topics.get(at)
        partition = None if self.partitions is None or self.partitions.is_null(at) else self.partitions.value(at)
        timestamp = None if self.timestamps is None or self.timestamps.is_null(at) else self.timestamps.millis(at)
        key = None if self.keys is None else self.keys.get(at)
        headers = bytes(NO_HEADERS) if self.headers is None else self.headers.section(at)
        return (
            topic.decode() if type(topic) is bytes else topic,
            partition,
            timestamp,
            key,
            self.values.get(at),
            headers,
        )
