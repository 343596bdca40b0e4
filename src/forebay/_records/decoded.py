"""Records and batches as the readers give them back: plain immutable values, sizes in bytes, times in ms."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from forebay._records.compression import CompressionType
from forebay._records.layout import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC_V0,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    increment_sequence,
)
from forebay.errors import InvalidRecordError


class TimestampType(IntEnum):
    """Who set a record's timestamp, the producer or the broker; format v0 has no timestamps."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ControlType(IntEnum):
    """The kinds of control records; later versions of Kafka may have more."""

    ABORT = 0
    COMMIT = 1


class Record(NamedTuple):
    """One record; ``sequence`` is -1 without a producer id, ``size`` counts its length prefix too."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    sequence: int = NO_SEQUENCE
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One v2 batch, one legacy message, or one legacy wrapper with its inner messages.

    ``size`` is its whole size in bytes.  ``crc`` is the checksum in its header, which the reader checked.
    ``payload_size`` is the size of the records section as it is stored, compressed or not.
    """

    magic: int
    base_offset: int
    last_offset: int
    crc: int
    attributes: int
    max_timestamp: int
    size: int
    payload_size: int
    base_timestamp: int = NO_TIMESTAMP
    leader_epoch: int = NO_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    records: tuple[Record, ...] = field(default=(), repr=False)

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def codec(self) -> CompressionType:
        return CompressionType(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == MAGIC_V0:
            return TimestampType.NONE
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When a compacted batch's tombstones may be deleted (KIP-534); it takes the place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset - self.base_offset)


class EndTransactionMarker(NamedTuple):
    """The one record of the control batch that a transaction coordinator writes."""

    type: ControlType
    coordinator_epoch: int

    def key(self) -> bytes:
        return struct.pack(">hh", 0, self.type)

    def value(self) -> bytes:
        return struct.pack(">hi", 0, self.coordinator_epoch)

    @classmethod
    def parse(cls, record: Record) -> EndTransactionMarker:
        """Reads a control batch's record.

        Raises:
            forebay.errors.InvalidRecordError: it is too short, or says neither abort nor commit.
        """
        if record.key is None or record.value is None or len(record.key) < 4 or len(record.value) < 6:
            raise InvalidRecordError(f"control record at offset {record.offset} is too short for an end of transaction")
        _, kind = struct.unpack_from(">hh", record.key)
        _, epoch = struct.unpack_from(">hi", record.value)
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            raise InvalidRecordError(
                f"control record at offset {record.offset} has type {kind}, not abort 0 or commit 1"
            )
        return cls(ControlType(kind), epoch)
