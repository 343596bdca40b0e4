"""Produce v0 to v13: record batches to a broker.  What became of each is in ``produce_response``.

The body is a list of buffers for a vectored write.  Everything that is not record bytes, the 61-byte batch headers
included, is written into one scratch buffer and appears as slices of it.  Record bytes are passed on as they are, and
must stay untouched until the request is written.

From v13 on a topic goes by its id alone (KIP-516).  So a batch for a deleted topic is refused, and is not written into
a new topic of the same name.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._protocol.primitives import UUID_SIZE
from cython.cimports.forebay._protocol.versions import FIRST_PRODUCE_BY_ID, NEWEST_PRODUCE
from cython.cimports.forebay._runtime.memory import new_bytearray
from cython.cimports.forebay._runtime.piece import piece
from cython.cimports.forebay._runtime.primitives import (
    bytearray_pointer,
    bytes_pointer,
    put_int8,
    put_int16,
    put_int32,
    put_raw,
    put_varint,
)

from forebay.errors import IllegalArgumentError, UnsupportedVersionError
from forebay.model._wire import MAX_TEXT, check_text


@cython.freelist(8)
@cython.cclass
class PartitionRecords:
    """One partition's share of a request.

    Args:
        header: the 61-byte header of a v2 batch, made for this request; empty for a legacy message set.
        buffers: the records, bytes-like, in order; not copied.
        size: bytes of ``header`` and ``buffers`` together.  Trusted: a wrong one corrupts the request.
        topic_id: the topic's 16 bytes, which v13 needs.
    """

    def __init__(
        self,
        topic: str,
        partition: cython.int,
        header: bytes,
        buffers: list[Any],
        size: cython.Py_ssize_t,
        topic_id: bytes | None = None,
    ):
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.header = header
        self.buffers = buffers
        self.size = size


@cython.final
@cython.freelist(8)
@cython.cclass
class _Writer:
    """Fills the scratch buffer, and cuts it where record bytes go in between."""

    scratch: bytearray
    to: cython.p_uchar
    at: cython.Py_ssize_t
    cut: cython.Py_ssize_t
    flexible: cython.bint
    parts: list[Any]

    @cython.cfunc
    def begin(self, size: cython.Py_ssize_t, flexible: cython.bint) -> object:
        self.scratch = new_bytearray(size)
        self.to = bytearray_pointer(self.scratch)
        self.at = 0
        self.cut = 0
        self.flexible = flexible
        self.parts = []
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def count(self, value: cython.Py_ssize_t) -> cython.void:
        """An array's elements, or the size of a partition's records."""
        if self.flexible:
            self.at = put_varint(self.to, self.at, value + 1)
        else:
            self.at = put_int32(self.to, self.at, value)

    @cython.cfunc
    @cython.exceptval(check=False)
    def string(self, value: bytes | None) -> cython.void:
        size: cython.Py_ssize_t = -1 if value is None else len(value)
        if self.flexible:
            self.at = put_varint(self.to, self.at, size + 1)
        else:
            self.at = put_int16(self.to, self.at, size)
        if value is not None:
            self.at = put_raw(self.to, self.at, bytes_pointer(value), size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def tags(self) -> cython.void:
        if self.flexible:
            self.at = put_int8(self.to, self.at, 0)

    @cython.cfunc
    def flush(self) -> object:
        """Appends what was written since the last cut to the parts."""
        if self.at > self.cut:
            self.parts.append(piece(self.scratch, self.cut, self.at))
            self.cut = self.at
        return None

    @cython.cfunc
    def partition(self, entry: PartitionRecords) -> object:
        header: bytes = entry.header
        self.at = put_int32(self.to, self.at, entry.partition)
        self.count(entry.size)
        self.at = put_raw(self.to, self.at, bytes_pointer(header), len(header))
        self.flush()
        self.parts.extend(entry.buffers)
        self.tags()
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def uuid(self, value: bytes) -> cython.void:
        self.at = put_raw(self.to, self.at, bytes_pointer(value), len(value))

    @cython.cfunc
    def partitions(self, entries: list[PartitionRecords]) -> object:
        self.count(len(entries))
        for entry in entries:
            self.partition(entry)
        self.tags()
        return None


@cython.cfunc
def _id_of(entry: PartitionRecords) -> bytes:
    found: bytes | None = entry.topic_id
    if found is None or len(found) != UUID_SIZE:
        raise IllegalArgumentError(
            f"Produce v{FIRST_PRODUCE_BY_ID} and later name topics by ids of {UUID_SIZE} bytes; of {entry.topic!r} it "
            f"is {found!r}"
        )
    return found


@cython.cfunc
def _grouped(entries: list[PartitionRecords], by_id: cython.bint) -> list[list[PartitionRecords]]:
    """Groups the entries by topic, in the order of their first appearance."""
    groups: dict[Any, list[PartitionRecords]] = {}
    group: list[PartitionRecords]
    entry: PartitionRecords
    for entry in entries:
        if entry is None:
            # Compiled attribute access does not check for it.
            raise TypeError("entries must be PartitionRecords, got None")
    if len(entries) == 1:
        return [entries]
    for entry in entries:
        # By id if there is one: a deleted topic and a new one may have the same name.
        key: object = _id_of(entry) if by_id else entry.topic
        found = groups.get(key)
        if found is None:
            groups[key] = [entry]
        else:
            group = found
            group.append(entry)
    return list(groups.values())


@cython.cfunc
def _encoded(value: str, what: str) -> bytes:
    data: bytes = value.encode("utf-8")
    if len(data) > MAX_TEXT:
        check_text(what, value)
    return data


@cython.cfunc
@cython.exceptval(-1)
def _bound(txn: bytes | None, by_id: cython.bint, groups: list[list[PartitionRecords]]) -> cython.Py_ssize_t:
    """An upper bound of the bytes around the records: a count takes at most 5, the tags of a structure one."""
    group: list[PartitionRecords]
    entry: PartitionRecords
    size: cython.Py_ssize_t = 16 + (0 if txn is None else len(txn))
    for group in groups:
        entry = group[0]
        # UTF-8 has at most four bytes for a character.
        size += 9 + (UUID_SIZE if by_id else 4 * len(entry.topic))
        for entry in group:
            size += len(entry.header) + 10
    return size


@cython.cfunc
def _check(version: cython.int, transactional_id: str | None) -> object:
    if version < 0 or version > NEWEST_PRODUCE:
        raise UnsupportedVersionError(f"Produce v{version} is unknown here, only v0 to v{NEWEST_PRODUCE}")
    if version < 3 and transactional_id is not None:
        raise UnsupportedVersionError(f"Produce v{version} carries no transactional id, v3 and later do")
    return None


@cython.ccall
def encode_produce(
    version: cython.int,
    transactional_id: str | None,
    acks: cython.int,
    timeout_ms: cython.int,
    entries: list[PartitionRecords],
) -> list[Any]:
    """The request's body as a list of buffers.

    Topics and their partitions appear in the order of their first entry.

    Args:
        acks: 0, 1 or -1 (all).
        timeout_ms: how long the broker may wait for its replicas (request.timeout.ms).

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or has no room for a transactional id.
        IllegalArgumentError: a topic or transactional id of more than 32,767 bytes, or a topic without an id where
            the version needs it.
    """
    _check(version, transactional_id)
    by_id: cython.bint = version >= FIRST_PRODUCE_BY_ID
    txn: bytes | None = None if transactional_id is None else _encoded(transactional_id, "transactional id")
    groups: list[list[PartitionRecords]] = _grouped(entries, by_id)
    group: list[PartitionRecords]
    first: PartitionRecords
    writer: _Writer = _Writer.__new__(_Writer)
    writer.begin(_bound(txn, by_id, groups), version >= 9)
    if version >= 3:
        writer.string(txn)
    writer.at = put_int16(writer.to, writer.at, acks)
    writer.at = put_int32(writer.to, writer.at, timeout_ms)
    writer.count(len(groups))
    for group in groups:
        first = group[0]
        if by_id:
            writer.uuid(_id_of(first))
        else:
            writer.string(_encoded(first.topic, "topic name"))
        writer.partitions(group)
    writer.tags()
    writer.flush()
    return writer.parts
