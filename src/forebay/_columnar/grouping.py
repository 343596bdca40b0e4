"""The partition that the producer will choose for each key of a column, told before anything is sent."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._arrow.columns import BytesColumn
from cython.cimports.forebay._runtime.primitives import MAX_INT32, murmur2

from forebay._arrow.batch import ArrowBatch


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
