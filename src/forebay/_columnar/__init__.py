"""Rows of columns into record batches, without a Python object a row.

``send_table`` is what ``KafkaProducer.send_batch`` does: ``sources`` makes pieces of open columns out of whatever it
was given, ``TableAppender`` carries their rows into the accumulator by the same rules as ``send()``, and
``BatchDelivery`` follows what becomes of them, batch by batch.  Begin with ``sources``.

A call belongs to the application's thread that makes it; then the sender's thread brings outcomes to ``BatchDelivery``,
under its lock.
"""

from __future__ import annotations

from forebay._columnar.append import append_columns
from forebay._columnar.columns import Columns, sink_columns
from forebay._columnar.deliveries import BatchDelivery, FailedRows, OffsetRun
from forebay._columnar.fingerprint import fingerprint
from forebay._columnar.grouping import key_partitions
from forebay._columnar.sources import send_table

__all__ = [
    "BatchDelivery",
    "Columns",
    "FailedRows",
    "OffsetRun",
    "append_columns",
    "fingerprint",
    "key_partitions",
    "send_table",
    "sink_columns",
]
