"""What a column can be for, and how it is opened: by its name in a table, or given directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from forebay._arrow.batch import ArrowBatch
from forebay._columnar import objects


class Role(NamedTuple):
    """One part of a record: the argument's name, and how a column of it is opened."""

    name: str
    of_arrow: Callable[[ArrowBatch, str], Any]
    of_objects: Callable[[str, Any], Any]
    takes_int: bool = False


ROLES = (
    Role("value", ArrowBatch.bytes_column, objects.bytes_of),
    Role("key", ArrowBatch.bytes_column, objects.bytes_of),
    Role("headers", ArrowBatch.headers_column, objects.headers_of),
    Role("partition", ArrowBatch.int_column, objects.ints_of, True),
    Role("timestamp", ArrowBatch.timestamp_column, objects.timestamps_of, True),
    Role("topic_column", ArrowBatch.bytes_column, objects.bytes_of),
)
