"""Arrow arrays for the tests of columns."""

from __future__ import annotations

import pyarrow as pa

from forebay._arrow.batch import ArrowBatch

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch_of(**columns: pa.Array) -> ArrowBatch:
    """A record batch of these columns, opened."""
    return ArrowBatch(pa.RecordBatch.from_pydict(columns))


def cut(array: pa.Array, start: int, stop: int) -> pa.Array:
    """Some of the middle, which is not at the beginning of its buffers."""
    return array.slice(min(start, len(array)), max(0, stop - start))
