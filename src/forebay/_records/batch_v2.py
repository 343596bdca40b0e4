"""The writer of record format v2: records into a buffer, and the header that goes before them.

Records are appended as they come, uncompressed.  The batch's header is a buffer of its own, made anew for each request,
so the records of a closed batch never change.  A record's headers arrive encoded (``encode_headers``), because encoding
looks at the user's objects and must not happen under a lock.  Sizes are exact.  Callers check the room before they
write; nothing here does.  Null keys and values have size -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cython
from cython.cimports.forebay._records.layout import (
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V2,
    SIZE_AT,
    V2_ATTRIBUTES_AT,
    V2_BASE_SEQUENCE_AT,
    V2_BASE_TIMESTAMP_AT,
    V2_COUNT_AT,
    V2_CRC_AT,
    V2_LAST_OFFSET_DELTA_AT,
    V2_LEADER_EPOCH_AT,
    V2_MAX_TIMESTAMP_AT,
    V2_PRODUCER_EPOCH_AT,
    V2_PRODUCER_ID_AT,
)
from cython.cimports.forebay._runtime.primitives import (
    SECTION_ROOM,
    RecordPointer,
    RecordView,
    SectionRoom,
    bytearray_pointer,
    bytes_at,
    bytes_of,
    crc32c,
    finished_bytes,
    optional_pointer,
    optional_size,
    put_checked,
    put_int8,
    put_int16,
    put_int32,
    put_int64,
    put_plain_header,
    put_raw,
    put_varint,
    record_view,
    section_pointer,
    utf8_pointer,
    utf8_size,
    varint_size,
    view_of,
    writable_pointer,
    zigzag,
)
from cython.cimports.forebay.model._arguments import checked_headers

MOST_COUNTED = cython.declare(cython.Py_ssize_t, 63)
"""At most so many headers have a count of one byte, which can be written after them."""

NO_HEADERS = b"\x00"
"""The encoded header section of a record without headers."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def record_body_size(
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
    key_size: cython.Py_ssize_t,
    value_size: cython.Py_ssize_t,
    headers_size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = 1 + headers_size
    size += varint_size(zigzag(timestamp_delta)) + varint_size(zigzag(offset_delta))
    size += varint_size(zigzag(key_size)) + varint_size(zigzag(value_size))
    if key_size > 0:
        size += key_size
    if value_size > 0:
        size += value_size
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def record_size(body_size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    return body_size + varint_size(zigzag(body_size))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_record(
    to: cython.p_uchar,
    at: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    record: RecordPointer,
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
) -> cython.Py_ssize_t:
    """Writes the record to ``to`` at ``at``.

    Returns:
        Its size in bytes; minus its size if that is above ``room``, and then nothing is written.
    """
    body_size: cython.Py_ssize_t = record_body_size(
        timestamp_delta, offset_delta, record.key_size, record.value_size, record.headers_size
    )
    size: cython.Py_ssize_t = record_size(body_size)
    if size > room:
        return -size
    at = _put_start(to, at, body_size, record, timestamp_delta, offset_delta)
    if record.value_size > 0:
        at = put_raw(to, at, record.value, record.value_size)
    _put_headers(to, at, record)
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_large_record(to: cython.p_uchar, record: RecordPointer) -> cython.longlong:
    """As ``put_record``, of a batch's first record at the beginning of ``to``, where there is room; its CRC-32C."""
    body_size: cython.Py_ssize_t = record_body_size(0, 0, record.key_size, record.value_size, record.headers_size)
    at: cython.Py_ssize_t = _put_start(to, 0, body_size, record, 0, 0)
    checksum: cython.longlong = put_checked(to, at, record.value, record.value_size, crc32c(0, to, 0, at))
    at += record.value_size
    _put_headers(to, at, record)
    return crc32c(checksum, to, at, record_size(body_size) - at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_start(
    to: cython.p_uchar,
    at: cython.Py_ssize_t,
    body_size: cython.Py_ssize_t,
    record: RecordPointer,
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
) -> cython.Py_ssize_t:
    """All before the value."""
    at = put_varint(to, at, zigzag(body_size))
    at = put_int8(to, at, 0)
    at = put_varint(to, at, zigzag(timestamp_delta))
    at = put_varint(to, at, zigzag(offset_delta))
    at = put_varint(to, at, zigzag(record.key_size))
    if record.key_size > 0:
        at = put_raw(to, at, record.key, record.key_size)
    return put_varint(to, at, zigzag(record.value_size))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_headers(to: cython.p_uchar, at: cython.Py_ssize_t, record: RecordPointer) -> cython.void:
    if record.headers_size > 1:
        put_raw(to, at, record.headers, record.headers_size)
    else:
        put_int8(to, at, 0)  # a section of one byte counts no headers


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_header_value(to: cython.p_uchar, at: cython.Py_ssize_t, value: Any) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = optional_size(value)
    at = put_varint(to, at, zigzag(size))
    if size > 0:
        at = put_raw(to, at, optional_pointer(value), size)
    return at


@cython.ccall
def encode_headers(headers: Any) -> bytes:
    """Encodes what ``send()`` takes as headers: their count, then the key and the value of each.

    Raises:
        TypeError, IllegalArgumentError: as ``checked_headers``.
    """
    room: SectionRoom
    if not cython.compiled:
        room = SectionRoom()
    short: cython.Py_ssize_t = put_plain_headers(section_pointer(room), headers)
    if short > 0:
        return bytes_at(section_pointer(room), 0, short)
    headers = checked_headers(headers)
    section: bytes = bytes_of(headers_size(headers))
    to: cython.p_uchar = writable_pointer(section)
    at: cython.Py_ssize_t = put_varint(to, 0, zigzag(len(headers)))
    for key, value in headers:
        key_size: cython.Py_ssize_t = utf8_size(key)
        at = put_varint(to, at, zigzag(key_size))
        at = put_raw(to, at, utf8_pointer(key), key_size)
        at = put_header_value(to, at, value)
    return finished_bytes(section)


@cython.cfunc
@cython.exceptval(check=False)
def put_plain_headers(to: cython.p_uchar, headers: Any) -> cython.Py_ssize_t:
    """Encodes most headers in one pass: a list or tuple of pairs of ASCII text and bytes, together short.

    Args:
        to: has SECTION_ROOM bytes.

    Returns:
        The section's size in bytes; 0 if these headers need ``encode_headers``.
    """
    if type(headers) is not list and type(headers) is not tuple:
        return 0
    at: cython.Py_ssize_t = 1
    count: cython.Py_ssize_t = 0
    for pair in headers:
        at = put_plain_header(to, at, SECTION_ROOM, pair)
        if at < 0:
            return 0
        count += 1
    if count > MOST_COUNTED:
        return 0
    put_varint(to, 0, zigzag(count))
    return at


@cython.cfunc
@cython.exceptval(check=False)
def with_plain_headers(record: RecordPointer, to: cython.p_uchar, headers: Any) -> cython.bint:
    """Gives the record its headers, if ``put_plain_headers`` can encode them to ``to``; else False."""
    size: cython.Py_ssize_t = put_plain_headers(to, headers)
    if size == 0:
        return False
    record.headers = to
    record.headers_size = size
    return True


@cython.cfunc
@cython.exceptval(-1)
def headers_size(headers: Any) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = varint_size(zigzag(len(headers)))
    for key, value in headers:
        size += header_size(utf8_size(key), optional_size(value))
    return size


@cython.cfunc
@cython.exceptval(check=False)
def header_size(key_size: cython.Py_ssize_t, value_size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = varint_size(zigzag(key_size)) + key_size + varint_size(zigzag(value_size))
    return size + max(value_size, 0)


def exact_record_size(
    timestamp_delta: int, offset_delta: int, key_size: int, value_size: int, headers: bytes | bytearray = NO_HEADERS
) -> int:
    """Bytes of one record, its length prefix included; sizes are -1 for null."""
    return record_size(record_body_size(timestamp_delta, offset_delta, key_size, value_size, len(headers)))


def append_record(
    to: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> int:
    """Appends one record to ``to``, which grows, and returns the record's size.  For builders and tools."""
    section: bytes = encode_headers(headers)
    record: RecordView = record_view(0, key, value, section)
    size: cython.Py_ssize_t = exact_record_size(
        timestamp_delta, offset_delta, record.key_size, record.value_size, section
    )
    written: bytearray = bytearray(size)
    put_record(bytearray_pointer(written), 0, size, view_of(record), timestamp_delta, offset_delta)
    to += written
    return size


def batch_header(
    *,
    payload: Sequence[bytes | bytearray | memoryview],
    attributes: int,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """A batch's header, with the checksum of the header and ``payload``.

    Args:
        payload: the records section as it will be sent (compressed or not), in pieces.
        attributes: codec in bits 0-2, timestamp type bit 3, transactional bit 4, control bit 5.
        base_timestamp: the first record's timestamp in ms; deltas refer to it.  It need not be the smallest.
    """
    size: cython.Py_ssize_t = BATCH_OVERHEAD
    for piece in payload:
        size += len(piece)
    header: bytearray = bytearray(BATCH_OVERHEAD)
    to: cython.p_uchar = bytearray_pointer(header)
    fill_header(
        to,
        size,
        attributes,
        record_count,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        base_offset,
        leader_epoch,
    )
    checksum: cython.longlong = crc32c(0, to, V2_ATTRIBUTES_AT, BATCH_OVERHEAD - V2_ATTRIBUTES_AT)
    for piece in payload:
        checksum = _continue_checksum(checksum, piece)
    put_int32(to, V2_CRC_AT, checksum)
    return header


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def fill_header(
    to: cython.p_uchar,
    size: cython.longlong,
    attributes: cython.int,
    record_count: cython.int,
    base_timestamp: cython.longlong,
    max_timestamp: cython.longlong,
    producer_id: cython.longlong,
    producer_epoch: cython.int,
    base_sequence: cython.int,
    base_offset: cython.longlong,
    leader_epoch: cython.int,
) -> cython.void:
    """Writes the header without its checksum; ``size`` is the size of the whole batch."""
    put_int64(to, 0, base_offset)
    put_int32(to, SIZE_AT, size - LOG_OVERHEAD)
    put_int32(to, V2_LEADER_EPOCH_AT, leader_epoch)
    put_int8(to, MAGIC_AT, MAGIC_V2)
    put_int16(to, V2_ATTRIBUTES_AT, attributes)
    put_int32(to, V2_LAST_OFFSET_DELTA_AT, record_count - 1)
    put_int64(to, V2_BASE_TIMESTAMP_AT, base_timestamp)
    put_int64(to, V2_MAX_TIMESTAMP_AT, max_timestamp)
    put_int64(to, V2_PRODUCER_ID_AT, producer_id)
    put_int16(to, V2_PRODUCER_EPOCH_AT, producer_epoch)
    put_int32(to, V2_BASE_SEQUENCE_AT, base_sequence)
    put_int32(to, V2_COUNT_AT, record_count)


@cython.cfunc
def _continue_checksum(checksum: cython.longlong, piece: Any) -> cython.longlong:
    view: cython.const_uchar[::1] = piece  # type: ignore[type-arg, valid-type]
    size: cython.Py_ssize_t = len(piece)
    if size == 0:
        return checksum
    data: cython.p_const_uchar = cython.address(view[0]) if cython.compiled else view
    return crc32c(checksum, data, 0, size)


def checksum(data: Any, crc: int = 0) -> int:
    """CRC-32C (unsigned) of contiguous bytes-like ``data``; ``crc`` is the CRC of the bytes before it."""
    return _continue_checksum(crc, data)
