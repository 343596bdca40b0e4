"""Puts rows of columns into record batches, without a Python object for each row.

Begin with ``table_pieces``: ``send_table`` does the work of ``KafkaProducer.send_batch``.  It makes pieces of open
columns out of the given table.  ``TableAppender`` appends their rows to the accumulator, by the same rules as
``send()``.  ``BatchDelivery`` follows the outcomes, batch by batch.

A call belongs to the application's thread that makes it.  Later the sender's thread sets outcomes in ``BatchDelivery``,
under its lock.
"""

from __future__ import annotations

from forebay.producer._columns.batch_delivery import BatchDelivery, FailedRows, OffsetRun
from forebay.producer._columns.columns import Columns, key_partitions, sink_columns
from forebay.producer._columns.fingerprint import fingerprint
from forebay.producer._columns.table_appender import append_columns
from forebay.producer._columns.table_pieces import send_table

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
