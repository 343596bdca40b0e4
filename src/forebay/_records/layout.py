"""The layout of the record formats: offsets, sizes, attribute bits and sequence arithmetic.

Writer, readers and tests take these numbers only from here.  Offsets count from the start of a batch
(v2) or of a log entry (v0 and v1, whose first two fields, offset and size, are the same as a v2 batch's).  All
integers are big-endian.  This module imports nothing.  ``layout.pxd`` has the numbers that compiled code
needs, as constants.
"""

from __future__ import annotations

MAGIC_V0 = 0
MAGIC_V1 = 1
MAGIC_V2 = 2

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

# Shared by all three formats.
OFFSET_AT = 0
SIZE_AT = 8
LOG_OVERHEAD = 12
MAGIC_AT = 16
SIZE_UP_TO_MAGIC = 17

# Format v2: one header for the whole batch.
V2_LEADER_EPOCH_AT = 12
V2_CRC_AT = 17
V2_ATTRIBUTES_AT = 21
V2_LAST_OFFSET_DELTA_AT = 23
V2_BASE_TIMESTAMP_AT = 27
V2_MAX_TIMESTAMP_AT = 35
V2_PRODUCER_ID_AT = 43
V2_PRODUCER_EPOCH_AT = 51
V2_BASE_SEQUENCE_AT = 53
V2_COUNT_AT = 57
BATCH_OVERHEAD = 61
"""Bytes of a v2 batch before its first record: its header."""

MAX_RECORD_OVERHEAD = 21
"""Most bytes of a v2 record's length, attributes, timestamp delta and offset delta together."""

V2_HEADER_FIELDS = ">qiibIhiqqqhii"
"""struct format of a v2 batch's header, in the order of the constants above (the CRC unsigned)."""

V2_MIN_RECORD_SIZE = 7
"""Length, attributes, timestamp delta, offset delta, key length, value length, header count: a byte each."""

V2_MIN_HEADER_SIZE = 2
"""A record header's key length and value length: a byte each."""

# Formats v0 and v1: every message is an entry of its own.
LEGACY_CRC_AT = 12
LEGACY_ATTRIBUTES_AT = 17
V1_TIMESTAMP_AT = 18
LEGACY_OVERHEAD = {MAGIC_V0: 14, MAGIC_V1: 22}
"""Bytes of a message besides its key and value; the entry adds LOG_OVERHEAD."""

# Attribute bits; v0 and v1 have only the first two fields, v0 only the first.
CODEC_MASK = 0x07
CODEC_ZSTD = 4
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

MAX_SEQUENCE = 0x7FFFFFFF


def increment_sequence(sequence: int, by: int) -> int:
    """The sequence number ``by`` records later; 0 follows 2147483647."""
    return (sequence + by) & MAX_SEQUENCE


def decrement_sequence(sequence: int, by: int) -> int:
    """The sequence number ``by`` records earlier; 2147483647 precedes 0."""
    return (sequence - by) & MAX_SEQUENCE


def wrap64(value: int) -> int:
    """``value`` as a signed 64-bit number: deltas are added modulo 2**64, as the writer subtracts them."""
    return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
