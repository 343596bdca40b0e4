"""What a broker demands of a batch besides that it can be read, and numbers of the wire read alone."""

from __future__ import annotations

from forebay._records.decoded import Batch, TimestampType
from forebay._records.layout import DELETE_HORIZON_BIT, MAGIC_V2, NO_PRODUCER_ID, NO_SEQUENCE
from forebay._records.reader import _Cursor
from forebay.errors import InvalidRecordError


def read_varint(data: bytes, at: int = 0, *, bits: int = 32) -> tuple[int, int]:
    """A zig-zag number of at most ``bits`` bits and the position behind it.

    Raises:
        forebay.errors.InvalidRecordError: cut short, over-long or too large.
    """
    cursor = _Cursor(data)
    cursor.at = at
    value = cursor.varint(bits)
    return value, cursor.at


def check_produced(batch: Batch) -> None:
    """Checks what a broker demands of a v2 batch in a produce request, besides that it can be read.

    Raises:
        forebay.errors.InvalidRecordError: the first rule that is broken.
    """
    rules = {
        "magic number 2": batch.magic == MAGIC_V2,
        "at least one record": batch.count > 0,
        "no control batch": not batch.is_control,
        "create time": batch.timestamp_type == TimestampType.CREATE_TIME,
        "no delete horizon": not batch.attributes & DELETE_HORIZON_BIT,
        "base offset 0": batch.base_offset == 0,
        "offsets 0 to count-1": [record.offset for record in batch.records] == list(range(batch.last_offset + 1)),
        "the largest timestamp in the header": batch.max_timestamp
        == max((record.timestamp for record in batch.records), default=None),
        "a base sequence exactly with a producer id": (batch.producer_id == NO_PRODUCER_ID)
        == (batch.base_sequence == NO_SEQUENCE),
        "a producer id for a transaction": batch.producer_id != NO_PRODUCER_ID or not batch.is_transactional,
    }
    for rule, kept in rules.items():
        if not kept:
            raise InvalidRecordError(f"a broker refuses this batch, it wants {rule}: {batch}")
