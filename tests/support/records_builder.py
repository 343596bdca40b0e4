"""Builds one batch of any format in memory, with all checks, as Java's MemoryRecordsBuilder does.

It makes logs for readers and brokers of tests.  ``send()`` has checks of its own and writes straight into pooled chunks
(``batch_v2``).  ``close`` compresses the raw records once, and ``build`` gives the bytes.  One thread at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forebay._records.batch_legacy import write_message, write_wrapper
from forebay._records.batch_v2 import append_record, batch_header, checksum, encode_headers, exact_record_size
from forebay._records.compression import CompressionType, Compressor
from forebay._records.decoded import EndTransactionMarker, TimestampType
from forebay._records.layout import (
    BATCH_OVERHEAD,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LEGACY_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_V0,
    MAGIC_V1,
    MAGIC_V2,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    V2_ATTRIBUTES_AT,
    V2_BASE_TIMESTAMP_AT,
    V2_CRC_AT,
    V2_LAST_OFFSET_DELTA_AT,
    wrap64,
)
from forebay._records.ratio import ESTIMATION_FACTOR
from forebay.errors import IllegalArgumentError, IllegalStateError

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHead:
    """What a batch says of itself besides its records.

    Raises:
        forebay.errors.IllegalArgumentError: the format has no place for a field.
    """

    magic: int = MAGIC_V2
    base_offset: int = 0
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    log_append_time: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    transactional: bool = False
    control: bool = False
    leader_epoch: int = NO_LEADER_EPOCH
    delete_horizon_ms: int | None = None

    def __post_init__(self) -> None:
        if self.magic not in (MAGIC_V0, MAGIC_V1, MAGIC_V2):
            raise IllegalArgumentError(f"magic number {self.magic} is unknown, allowed: 0 to 2")
        if self.magic > MAGIC_V0 and self.timestamp_type == TimestampType.NONE:
            raise IllegalArgumentError(f"TimestampType must be set for magic {self.magic}")
        if self.magic < MAGIC_V2:
            newer = {
                "Transactional records": self.transactional,
                "Control records": self.control,
                "A delete horizon": self.delete_horizon_ms is not None,
            }
            for what, wanted in newer.items():
                if wanted:
                    raise IllegalArgumentError(f"{what} not supported for magic {self.magic}")

    @property
    def attributes(self) -> int:
        return (
            LOG_APPEND_TIME_BIT * (self.timestamp_type == TimestampType.LOG_APPEND_TIME)
            | TRANSACTIONAL_BIT * self.transactional
            | CONTROL_BIT * self.control
            | DELETE_HORIZON_BIT * (self.delete_horizon_ms is not None)
        )

    def check_producer_state(self) -> None:
        if self.transactional and self.producer_id == NO_PRODUCER_ID:
            raise IllegalArgumentError("Cannot write transactional messages without a valid producer ID")
        if self.producer_id == NO_PRODUCER_ID:
            return
        if self.producer_epoch < 0:
            raise IllegalArgumentError(f"Invalid negative producer epoch {self.producer_epoch}")
        if self.base_sequence < 0 and not self.control:
            raise IllegalArgumentError(f"Invalid negative sequence number {self.base_sequence}")
        if self.magic < MAGIC_V2:
            raise IllegalArgumentError(f"Idempotent messages are not supported for magic {self.magic}")


def message_size(magic: int, key: bytes | None, value: bytes | None) -> int:
    """Bytes of a log entry with this key and value, offset and size included."""
    return LOG_OVERHEAD + LEGACY_OVERHEAD[magic] + len(key or b"") + len(value or b"")


class RecordsBuilder:
    """Collects records with ascending offsets; ``build`` gives the batch's bytes.

    Args:
        head: format and header fields.
        compressor: the codec.
        write_limit: estimated bytes from which the batch counts as full; the first record always has room.
        estimated_ratio: the expected compressed size divided by raw size (CompressionRatioEstimator).

    Raises:
        forebay.errors.IllegalArgumentError: zstd below format v2.
    """

    def __init__(
        self, head: BatchHead, compressor: Compressor, *, write_limit: int = 16384, estimated_ratio: float = 1.0
    ) -> None:
        if compressor.type == CompressionType.ZSTD and head.magic < MAGIC_V2:
            raise IllegalArgumentError(f"ZStandard compression is not supported for magic {head.magic}")
        self._head = head
        self._compressor = compressor
        self._write_limit = write_limit
        self._estimated_ratio = estimated_ratio
        self._v2_records = bytearray()
        self._legacy_entries: list[bytes] = []
        self._base_timestamp = NO_TIMESTAMP if head.delete_horizon_ms is None else head.delete_horizon_ms
        self._largest_timestamp = NO_TIMESTAMP
        self._offset_of_largest = -1
        self._open = True
        self._aborted = False
        self._built: bytes | None = None
        self.count = 0
        self.uncompressed_size = 0
        """Bytes of the records as written, with each legacy entry's offset and size."""
        self.last_offset: int | None = None
        self.compression_ratio = 1.0
        """Compressed size divided by raw size, once closed."""

    def append(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        """Appends a record, also one that has no room: the caller asks ``has_room_for`` first.

        Raises:
            forebay.errors.IllegalArgumentError: offset not above the last one, timestamp below -1, headers below
                format v2, or an ordinary record for a control batch.
            forebay.errors.IllegalStateError: closed or aborted.
        """
        if self._head.control:
            raise IllegalArgumentError(
                "Control records can only be appended to control batches, and nothing else to those"
            )
        self._append(offset, timestamp, key, value, headers)

    def append_next(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()) -> None:
        """Appends a record at the offset after the last one; raises as ``append``."""
        self.append(self._next_offset(), timestamp, key, value, headers)

    def append_end_transaction(self, timestamp: int, marker: EndTransactionMarker) -> None:
        """Appends a coordinator's commit or abort marker.

        Raises:
            forebay.errors.IllegalArgumentError: the batch is not a transactional control batch with a producer id.
            forebay.errors.IllegalStateError: closed or aborted.
        """
        if not self._head.control:
            raise IllegalArgumentError("Control records can only be appended to control batches")
        if not self._head.transactional or self._head.producer_id == NO_PRODUCER_ID:
            raise IllegalArgumentError("An end of transaction needs a transactional batch with a valid producer ID")
        self._append(self._next_offset(), timestamp, marker.key(), marker.value(), ())

    def _next_offset(self) -> int:
        return self._head.base_offset if self.last_offset is None else self.last_offset + 1

    def _append(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self._check_open()
        if self.last_offset is not None and offset <= self.last_offset:
            raise IllegalArgumentError(
                f"Illegal offset {offset} following previous offset {self.last_offset} "
                "(Offsets must increase monotonically)."
            )
        if offset < self._head.base_offset:
            raise IllegalArgumentError(
                f"Illegal offset {offset} below the batch's base offset {self._head.base_offset}"
            )
        if timestamp < NO_TIMESTAMP:
            raise IllegalArgumentError(f"Invalid negative timestamp {timestamp}")
        if self._head.magic < MAGIC_V2 and headers:
            raise IllegalArgumentError(f"Magic v{self._head.magic} does not support record headers")
        if self._head.magic == MAGIC_V2:
            size = self._append_v2(offset, timestamp, key, value, headers)
        else:
            size = self._append_legacy(offset, timestamp, key, value)
        self.count += 1
        self.uncompressed_size += size
        self.last_offset = offset
        if self._head.magic != MAGIC_V0 and timestamp > self._largest_timestamp:
            self._largest_timestamp, self._offset_of_largest = timestamp, offset

    def _append_v2(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        if not self.count and self._head.delete_horizon_ms is None:
            self._base_timestamp = timestamp
        offset_delta = offset - self._head.base_offset
        if offset_delta > 0x7FFFFFFF:
            raise IllegalArgumentError(f"Illegal offset {offset}: more than 2147483647 above the base offset")
        return append_record(
            self._v2_records, wrap64(timestamp - self._base_timestamp), offset_delta, key, value, headers
        )

    def _append_legacy(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> int:
        compressed = self._compressor.type != CompressionType.NONE
        inner = offset - self._head.base_offset if compressed and self._head.magic == MAGIC_V1 else offset
        stamp = timestamp
        attributes = 0
        if self._logs_append_time:
            stamp, attributes = self._head.log_append_time, LOG_APPEND_TIME_BIT
        entry = write_message(self._head.magic, inner, stamp, key, value, attributes=attributes)
        self._legacy_entries.append(entry)
        return len(entry)

    @property
    def _logs_append_time(self) -> bool:
        return self._head.magic != MAGIC_V0 and self._head.timestamp_type == TimestampType.LOG_APPEND_TIME

    def has_room_for(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()) -> bool:
        """Whether the record fits within the limit even if it does not compress at all."""
        if self.is_full:
            return False
        if not self.count:
            return True
        if self._head.magic < MAGIC_V2:
            size = message_size(self._head.magic, key, value)
        else:
            size = exact_record_size(
                wrap64(timestamp - self._base_timestamp),
                self._next_offset() - self._head.base_offset,
                -1 if key is None else len(key),
                -1 if value is None else len(value),
                encode_headers(headers),
            )
        return self._write_limit >= self._estimated_bytes() + size

    @property
    def is_full(self) -> bool:
        return not self._open or (self.count > 0 and self._write_limit <= self._estimated_bytes())

    @property
    def estimated_size(self) -> int:
        """The batch's size in bytes: exact once built, before that estimated with the ratio."""
        return self._estimated_bytes() if self._built is None else len(self._built)

    def _estimated_bytes(self) -> int:
        if self._compressor.type == CompressionType.NONE:
            return self._header_size + self.uncompressed_size
        return self._header_size + int(self.uncompressed_size * self._estimated_ratio * ESTIMATION_FACTOR)

    @property
    def _header_size(self) -> int:
        if self._head.magic == MAGIC_V2:
            return BATCH_OVERHEAD
        if self._compressor.type == CompressionType.NONE:
            return 0
        return LOG_OVERHEAD + LEGACY_OVERHEAD[self._head.magic]

    @property
    def max_timestamp(self) -> int:
        """The header's maximum timestamp: the broker's append time or the largest of the records; -1 in format v0."""
        return self._head.log_append_time if self._logs_append_time else self._largest_timestamp

    @property
    def shallow_offset_of_max_timestamp(self) -> int:
        """The offset for ``max_timestamp`` that a reader sees without a look into the batch; -1 for none."""
        if self.max_timestamp == NO_TIMESTAMP or self.last_offset is None:
            return -1
        if self._head.magic == MAGIC_V2 or self._compressor.type != CompressionType.NONE:
            return self.last_offset
        return self._head.base_offset if self._logs_append_time else self._offset_of_largest

    def _check_open(self) -> None:
        if self._aborted:
            raise IllegalStateError("Tried to append a record, but RecordsBuilder has been aborted")
        if not self._open:
            raise IllegalStateError("Tried to append a record, but RecordsBuilder is closed for record appends")

    def close_for_appends(self) -> None:
        """Takes no more records.  It does not check the header's fields yet."""
        self._open = False

    def abort(self) -> None:
        """Drops the records; nothing can be built any more."""
        self._open = False
        self._aborted = True
        self._v2_records.clear()
        self._legacy_entries.clear()

    def close(self) -> None:
        """Compresses the records and computes the checksum.  A second call changes nothing.

        Raises:
            forebay.errors.IllegalStateError: aborted.
            forebay.errors.IllegalArgumentError: producer id, epoch and sequence do not fit each other or the format.
        """
        if self._aborted:
            raise IllegalStateError("Cannot close RecordsBuilder as it has already been aborted")
        if self._built is not None:
            return
        self._head.check_producer_state()
        self._open = False
        if not self.count:
            self._built = b""
        else:
            self._built = self._close_v2() if self._head.magic == MAGIC_V2 else self._close_legacy()
            if self._compressor.type != CompressionType.NONE:
                self.compression_ratio = (len(self._built) - self._header_size) / self.uncompressed_size

    def build(self) -> bytes:
        """Closes, and gives the bytes, the same each time: none without records.  Raises as ``close``."""
        if self._aborted:
            raise IllegalStateError("Attempting to build an aborted record batch")
        self.close()
        return self._built or b""

    def _close_v2(self) -> bytes:
        payload = self._compressor.compress([self._v2_records])
        header = batch_header(
            payload=[payload],
            attributes=self._head.attributes | self._compressor.type,
            record_count=self.count,
            base_timestamp=self._base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=self._head.producer_id,
            producer_epoch=self._head.producer_epoch,
            base_sequence=self._head.base_sequence,
            base_offset=self._head.base_offset,
            leader_epoch=self._head.leader_epoch,
        )
        last_delta = (self.last_offset or 0) - self._head.base_offset
        if last_delta != self.count - 1:
            # The writer knows only producers' batches, whose offsets have no gaps.
            header[V2_LAST_OFFSET_DELTA_AT:V2_BASE_TIMESTAMP_AT] = last_delta.to_bytes(4, "big")
            crc = checksum(payload, checksum(header[V2_ATTRIBUTES_AT:]))
            header[V2_CRC_AT:V2_ATTRIBUTES_AT] = crc.to_bytes(4, "big")
        return bytes(header) + payload

    def _close_legacy(self) -> bytes:
        if self._compressor.type == CompressionType.NONE:
            return b"".join(self._legacy_entries)
        return write_wrapper(
            self._legacy_entries,
            self._compressor,
            magic=self._head.magic,
            last_offset=self.last_offset or 0,
            timestamp=self.max_timestamp,
            log_append=self._logs_append_time,
        )
