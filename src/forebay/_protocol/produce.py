"""Produce v0 to v12: record batches to a broker, and what became of each.

The body is a list of buffers for a vectored write.  Everything that is not record bytes, the 61-byte batch headers
included, is written into one scratch buffer and appears as slices of it; record bytes are passed on as they are
and must stay untouched until the request is written.  Responses are read with every length and count checked
against what is left, so that memory stays in proportion to the bytes received; bytes after the last known field
are ignored, as in the Java client.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import cython

from forebay.errors import IllegalArgumentError, ProtocolError, UnsupportedVersionError
from forebay.model import Node

if cython.compiled:
    from cython.cimports.forebay._codec._prim import (
        bytearray_pointer,
        bytes_pointer,
        get_int16,
        get_int32,
        get_int64,
        put_int8,
        put_int16,
        put_int32,
        put_raw,
        put_varint,
    )
    from cython.cimports.forebay._codec.piece import piece
else:
    from forebay._codec._prim import (
        bytearray_pointer,
        bytes_pointer,
        get_int16,
        get_int32,
        get_int64,
        put_int8,
        put_int16,
        put_int32,
        put_raw,
        put_varint,
    )
    from forebay._codec.piece import piece


@cython.cclass
class PartitionRecords:
    """One partition's share of a request.

    Args:
        header: the 61-byte header of a v2 batch, made for this request; empty for a legacy message set.
        buffers: the records, bytes-like, in order; not copied.
        size: bytes of ``header`` and ``buffers`` together.  Trusted: a wrong one corrupts the request.
    """

    def __init__(self, topic: str, partition: cython.int, header: bytes, buffers: list[Any], size: cython.Py_ssize_t):
        self.topic = topic
        self.partition = partition
        self.header = header
        self.buffers = buffers
        self.size = size


@cython.cclass
class PartitionResponse:
    """What became of one partition's batch.

    ``log_append_time`` is -1 unless the topic stamps append time; ``log_start_offset`` -1 before v5;
    ``record_errors`` pairs of (index in the batch, message or None), None without any (v8, KIP-467);
    ``leader_id`` and ``leader_epoch`` the new leader's, -1 if not told (v10, KIP-951).
    """

    def __init__(
        self,
        topic: str,
        partition: cython.int,
        error_code: cython.int,
        base_offset: cython.longlong,
        *,
        log_append_time: cython.longlong = -1,
        log_start_offset: cython.longlong = -1,
        record_errors: list[Any] | None = None,
        error_message: str | None = None,
        leader_id: cython.int = -1,
        leader_epoch: cython.int = -1,
    ):
        self.topic = topic
        self.partition = partition
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@cython.cclass
class ProduceResponse:
    """``partitions`` in the broker's order; ``node_endpoints`` the brokers that leader hints name (v10)."""

    def __init__(self, throttle_time_ms: cython.int, partitions: list[PartitionResponse], node_endpoints: list[Node]):
        self.throttle_time_ms = throttle_time_ms
        self.partitions = partitions
        self.node_endpoints = node_endpoints


@cython.final
@cython.cclass
class _Writer:
    """Fills the scratch buffer and cuts it where record bytes come in between."""

    scratch: bytearray
    to: cython.p_uchar
    at: cython.Py_ssize_t
    cut: cython.Py_ssize_t
    flexible: cython.bint
    parts: list[Any]

    @cython.cfunc
    def begin(self, size: cython.Py_ssize_t, flexible: cython.bint) -> object:
        self.scratch = bytearray(size)
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
    def topic(self, name: bytes, entries: list[PartitionRecords]) -> object:
        self.string(name)
        self.count(len(entries))
        for entry in entries:
            self.partition(entry)
        self.tags()
        return None


@cython.cfunc
def _grouped(entries: list[PartitionRecords]) -> dict[str, list[PartitionRecords]]:
    groups: dict[str, list[PartitionRecords]] = {}
    group: list[PartitionRecords]
    entry: PartitionRecords
    for entry in entries:
        if entry is None:
            # Compiled attribute access does not check for it.
            raise TypeError("entries must be PartitionRecords, got None")
        found = groups.get(entry.topic)
        if found is None:
            groups[entry.topic] = [entry]
        else:
            group = found
            group.append(entry)
    return groups


@cython.cfunc
def _encoded(value: str, what: str) -> bytes:
    data: bytes = value.encode("utf-8")
    if len(data) > 0x7FFF:
        raise IllegalArgumentError(f"{what} of {len(data)} bytes, at most 32767 are allowed: {value[:40]!r}...")
    return data


@cython.cfunc
@cython.exceptval(-1)
def _bound(txn: bytes | None, topics: Collection[str], entries: list[PartitionRecords]) -> cython.Py_ssize_t:
    """At least the bytes around the records: a count takes up to 5, each structure may end with one for its tags."""
    entry: PartitionRecords
    size: cython.Py_ssize_t = 16 + (0 if txn is None else len(txn))
    for topic in topics:
        # UTF-8 has at most four bytes for a character.
        size += 4 * len(topic) + 9
    for entry in entries:
        size += len(entry.header) + 10
    return size


@cython.cfunc
def _check(version: cython.int, transactional_id: str | None) -> object:
    if version < 0 or version > 12:
        raise UnsupportedVersionError(f"Produce v{version} is unknown here, only v0 to v12")
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

    Topics appear in the order in which ``entries`` names them first, and so do their partitions.

    Args:
        acks: 0, 1 or -1 (all).
        timeout_ms: how long the broker may wait for its replicas (request.timeout.ms).

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or has no room for a transactional id.
        IllegalArgumentError: a topic or transactional id of more than 32,767 bytes.
    """
    _check(version, transactional_id)
    txn: bytes | None = None if transactional_id is None else _encoded(transactional_id, "transactional id")
    groups: dict[str, list[PartitionRecords]] = _grouped(entries)
    writer: _Writer = _Writer.__new__(_Writer)
    writer.begin(_bound(txn, groups, entries), version >= 9)
    if version >= 3:
        writer.string(txn)
    writer.at = put_int16(writer.to, writer.at, acks)
    writer.at = put_int32(writer.to, writer.at, timeout_ms)
    writer.count(len(groups))
    for topic, group in groups.items():
        writer.topic(_encoded(topic, "topic name"), group)
    writer.tags()
    writer.flush()
    return writer.parts


@cython.final
@cython.cclass
class _Reader:
    """A position in a response; every step forward is checked."""

    data: bytes
    source: cython.p_const_uchar
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    version: cython.int
    flexible: cython.bint

    @cython.cfunc
    def begin(self, version: cython.int, data: bytes) -> object:
        self.data = data
        self.source = bytes_pointer(data)
        self.at = 0
        self.end = len(data)
        self.version = version
        self.flexible = version >= 9
        return None

    @cython.cfunc
    def fail(self, problem: str) -> Any:
        raise ProtocolError(f"Produce v{self.version} response: {problem} at byte {self.at} of {len(self.data)}")

    @cython.cfunc
    @cython.exceptval(-1)
    def forward(self, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Steps over ``size`` bytes; returns where they start."""
        at: cython.Py_ssize_t = self.at
        if size > self.end - at:
            self.fail(f"{size} bytes expected, {self.end - at} left")
        self.at = at + size
        return at

    @cython.cfunc
    @cython.exceptval(-1)
    def uvarint(self) -> cython.longlong:
        value: cython.longlong = 0
        shift: cython.int = 0
        byte: cython.longlong
        at: cython.Py_ssize_t
        while shift < 35:
            at = self.forward(1)
            byte = self.source[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 32:
                    self.fail(f"varint {value} has more than 32 bits")
                return value
            shift += 7
        self.fail("varint of more than five bytes")
        return -1

    @cython.cfunc
    @cython.exceptval(-1)
    def count(self, smallest: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """An array's elements, each of at least ``smallest`` bytes; null, which none of ours may be, fails."""
        found: cython.longlong = self.uvarint() - 1 if self.flexible else get_int32(self.source, self.forward(4))
        if found < 0:
            self.fail(f"array of {found} elements")
        if found * smallest > self.end - self.at:
            self.fail(f"array of {found} elements of at least {smallest} bytes, but {self.end - self.at} bytes left")
        return found

    @cython.cfunc
    def text(self) -> Any:
        """A string, or None for null."""
        size: cython.longlong = self.uvarint() - 1 if self.flexible else get_int16(self.source, self.forward(2))
        if size < 0:
            return None if size == -1 else self.fail(f"string of length {size}")
        at: cython.Py_ssize_t = self.forward(size)
        try:
            return self.data[at : at + size].decode("utf-8")
        except UnicodeDecodeError as error:
            return self.fail(f"string is not UTF-8 ({error.reason})")

    @cython.cfunc
    def required(self) -> str:
        value: str | None = self.text()
        if value is None:
            self.fail("null where a string is required")
            return ""
        return value

    @cython.cfunc
    @cython.exceptval(-1)
    def tag_count(self) -> cython.Py_ssize_t:
        """How many tagged fields follow; each has at least its number and its size."""
        if not self.flexible:
            return 0
        found: cython.longlong = self.uvarint()
        if found * 2 > self.end - self.at:
            self.fail(f"{found} tagged fields, but {self.end - self.at} bytes left")
        return found

    @cython.cfunc
    def skip_tags(self) -> object:
        left: cython.Py_ssize_t = self.tag_count()
        while left > 0:
            self.uvarint()
            self.forward(self.uvarint())
            left -= 1
        return None

    @cython.cfunc
    def partition_tags(self, found: PartitionResponse) -> object:
        left: cython.Py_ssize_t = self.tag_count()
        tag: cython.longlong
        size: cython.longlong
        at: cython.Py_ssize_t
        outer: cython.Py_ssize_t = self.end
        while left > 0:
            tag = self.uvarint()
            size = self.uvarint()
            at = self.forward(size)
            if tag == 0 and self.version >= 10:
                self.end = self.at
                self.at = at
                at = self.forward(8)
                found.leader_id = get_int32(self.source, at)
                found.leader_epoch = get_int32(self.source, at + 4)
                self.skip_tags()
                self.at = self.end
                self.end = outer
            left -= 1
        return None

    @cython.cfunc
    def record_errors(self) -> list[Any] | None:
        left: cython.Py_ssize_t = self.count(6)
        if left == 0:
            return None
        errors: list[Any] = []
        while left > 0:
            index = get_int32(self.source, self.forward(4))
            errors.append((index, self.text()))
            self.skip_tags()
            left -= 1
        return errors

    @cython.cfunc
    def partition(self, topic: str, fixed: cython.Py_ssize_t) -> PartitionResponse:
        """``fixed`` bytes of numbers, then what newer versions added."""
        at: cython.Py_ssize_t = self.forward(fixed)
        found: PartitionResponse = PartitionResponse.__new__(PartitionResponse)
        found.topic = topic
        found.partition = cython.cast(cython.int, get_int32(self.source, at))
        found.error_code = cython.cast(cython.int, get_int16(self.source, at + 4))
        found.base_offset = get_int64(self.source, at + 6)
        found.log_append_time = found.log_start_offset = found.leader_id = found.leader_epoch = -1
        found.record_errors = found.error_message = None
        if fixed >= 22:
            found.log_append_time = get_int64(self.source, at + 14)
        if fixed >= 30:
            found.log_start_offset = get_int64(self.source, at + 22)
        if self.version >= 8:
            found.record_errors = self.record_errors()
            found.error_message = self.text()
        self.partition_tags(found)
        return found

    @cython.cfunc
    def endpoints(self) -> list[Node]:
        left: cython.Py_ssize_t = self.count(11)
        nodes: list[Node] = []
        while left > 0:
            node_id = get_int32(self.source, self.forward(4))
            host = self.required()
            port = get_int32(self.source, self.forward(4))
            nodes.append(Node(node_id, host, port, self.text()))
            self.skip_tags()
            left -= 1
        return nodes

    @cython.cfunc
    def response_tags(self) -> list[Node]:
        left: cython.Py_ssize_t = self.tag_count()
        nodes: list[Node] = []
        tag: cython.longlong
        at: cython.Py_ssize_t
        outer: cython.Py_ssize_t = self.end
        while left > 0:
            tag = self.uvarint()
            at = self.forward(self.uvarint())
            if tag == 0 and self.version >= 10:
                self.end = self.at
                self.at = at
                nodes = self.endpoints()
                self.at = self.end
                self.end = outer
            left -= 1
        return nodes


@cython.ccall
def decode_produce(version: cython.int, payload: bytes | memoryview) -> ProduceResponse:
    """Read the response to a request of ``version``.

    Args:
        payload: the response after its header.  Copied if it is not ``bytes``: responses are small, and nothing
            of the network's buffer is kept.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    _check(version, None)
    reader: _Reader = _Reader.__new__(_Reader)
    reader.begin(version, payload if type(payload) is bytes else bytes(payload))
    fixed: cython.Py_ssize_t = 30 if version >= 5 else (22 if version >= 2 else 14)
    partitions: list[PartitionResponse] = []
    topics: cython.Py_ssize_t = reader.count(3 if version >= 9 else 6)
    left: cython.Py_ssize_t
    while topics > 0:
        topic: str = reader.required()
        left = reader.count(fixed)
        while left > 0:
            partitions.append(reader.partition(topic, fixed))
            left -= 1
        reader.skip_tags()
        topics -= 1
    throttle: cython.int = get_int32(reader.source, reader.forward(4)) if version >= 1 else 0
    return ProduceResponse(throttle, partitions, reader.response_tags())
