"""The response to Produce v0 to v13: what became of each batch.

The reader checks each length and count against the bytes that are left, so memory stays in proportion to what was
received.  It ignores bytes after the last known field, as Java does.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._protocol.primitives import UUID_SIZE
from cython.cimports.forebay._protocol.versions import FIRST_PRODUCE_BY_ID, NEWEST_PRODUCE
from cython.cimports.forebay._runtime.primitives import bytes_at, bytes_pointer, get_int16, get_int32, get_int64

from forebay.errors import ProtocolError, UnsupportedVersionError
from forebay.model import Node


@cython.freelist(8)
@cython.cclass
class PartitionResponse:
    """What became of one partition's batch.

    ``topic`` is empty while only ``topic_id`` is known (v13); the sender fills it in.
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
        topic_id: bytes | None = None,
    ):
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@cython.freelist(8)
@cython.cclass
class ProduceResponse:
    """``partitions`` in the broker's order; ``node_endpoints`` the brokers that leader hints name (v10)."""

    def __init__(self, throttle_time_ms: cython.int, partitions: list[PartitionResponse], node_endpoints: list[Node]):
        self.throttle_time_ms = throttle_time_ms
        self.partitions = partitions
        self.node_endpoints = node_endpoints


@cython.final
@cython.freelist(8)
@cython.cclass
class _Reader:
    """A position in a response; it checks each step forward."""

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
        """The number of an array's elements, each of at least ``smallest`` bytes; a null array is refused."""
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
        text: Any = None
        reason: str = ""
        try:
            text = self.data[at : at + size].decode("utf-8")
        except UnicodeDecodeError as error:
            reason = error.reason
        return self.fail(f"string is not UTF-8 ({reason})") if text is None else text

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
    def uuid(self) -> bytes:
        return bytes_at(self.source, self.forward(UUID_SIZE), UUID_SIZE)

    @cython.cfunc
    def partition(self, topic: str, topic_id: bytes | None, fixed: cython.Py_ssize_t) -> PartitionResponse:
        """Reads ``fixed`` bytes of numbers, then the fields that newer versions added."""
        at: cython.Py_ssize_t = self.forward(fixed)
        found: PartitionResponse = PartitionResponse.__new__(PartitionResponse)
        found.topic = topic
        found.topic_id = topic_id
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
        payload: the response after its header.  It is copied if it is not ``bytes``: responses are small, and the
            result keeps nothing of the network's buffer.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    if version < 0 or version > NEWEST_PRODUCE:
        raise UnsupportedVersionError(f"Produce v{version} is unknown here, only v0 to v{NEWEST_PRODUCE}")
    by_id: cython.bint = version >= FIRST_PRODUCE_BY_ID
    reader: _Reader = _Reader.__new__(_Reader)
    reader.begin(version, payload if type(payload) is bytes else bytes(payload))
    fixed: cython.Py_ssize_t = 30 if version >= 5 else (22 if version >= 2 else 14)
    partitions: list[PartitionResponse] = []
    # A topic has at least the length of its name or its id, a count, and tags.
    topics: cython.Py_ssize_t = reader.count(UUID_SIZE + 2 if by_id else (3 if version >= 9 else 6))
    left: cython.Py_ssize_t
    topic: str = ""
    topic_id: bytes | None = None
    while topics > 0:
        if by_id:
            topic_id = reader.uuid()
        else:
            topic = reader.required()
        left = reader.count(fixed)
        while left > 0:
            partitions.append(reader.partition(topic, topic_id, fixed))
            left -= 1
        reader.skip_tags()
        topics -= 1
    throttle: cython.int = get_int32(reader.source, reader.forward(4)) if version >= 1 else 0
    # The constructor's arguments would cost more than it does.
    response: ProduceResponse = ProduceResponse.__new__(ProduceResponse)
    response.throttle_time_ms = throttle
    response.partitions = partitions
    response.node_endpoints = reader.response_tags()
    return response
