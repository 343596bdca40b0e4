"""The bytes that brokers answer with, and what they read in requests: Kafka's formats, from the other side.

Requests come from our own encoders, so they are read without checks.  What they may be is in ``VERSIONS``, which is
what the answer to ApiVersions offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from forebay._protocol.metadata import NO_TOPIC_ID, NOT_TOLD
from forebay._protocol.primitives import UUID_SIZE, Reader, Writer
from forebay._protocol.versions import ApiKey
from forebay.model import Node

VERSIONS: Mapping[int, int] = {
    ApiKey.PRODUCE: 13,
    ApiKey.METADATA: 13,
    ApiKey.API_VERSIONS: 4,
    ApiKey.INIT_PRODUCER_ID: 5,
}
"""The one version of each API that these brokers speak: each is flexible, with tagged fields in its header."""
PRODUCE = int(ApiKey.PRODUCE)
UNKNOWN_TOPIC, NOT_LEADER, UNKNOWN_TOPIC_ID = 3, 6, 100

_HEAD = Struct(">ihhih")
_START = Struct(">ii")
_ACKS = Struct(">hi")
_PART = Struct(">ihqqq")
_COUNT_AT = 57
"""Of a batch: the number of its records."""
_INT32 = Struct(">i")
_NO_ERRORS = b"\x01\x00\x00"
"""No errors of records, no message, no tags."""


class Request(NamedTuple):
    """The header of a request, and where its body begins in ``data``."""

    api_key: int
    correlation_id: int
    size: int
    data: bytes
    at: int


class Part(NamedTuple):
    """A batch in a produce request."""

    topic_id: bytes
    partition: int
    size: int
    records: int


class PartAnswer(NamedTuple):
    """What became of a batch."""

    part: Part
    error: int
    base_offset: int


def requests_in(data: bytes) -> list[Request]:
    """The requests in what was written to a connection: whole ones, one behind the other."""
    found: list[Request] = []
    at = 0
    while at < len(data):
        size, api_key, _version, correlation_id, name = _HEAD.unpack_from(data, at)
        found.append(Request(api_key, correlation_id, size + 4, data, at + _HEAD.size + max(name, 0) + 1))
        at += size + 4
    return found


def parts_of(request: Request) -> tuple[int, list[Part]]:
    """``acks`` of a produce request, and its batches."""
    data = request.data
    size, at = _uvarint(data, request.at)
    at += max(size - 1, 0)
    acks, _timeout = _ACKS.unpack_from(data, at)
    topics, at = _uvarint(data, at + _ACKS.size)
    found: list[Part] = []
    for _ in range(topics - 1):
        topic_id = data[at : at + UUID_SIZE]
        count, at = _uvarint(data, at + UUID_SIZE)
        for _ in range(count - 1):
            partition = _INT32.unpack_from(data, at)[0]
            size, at = _uvarint(data, at + 4)
            found.append(Part(topic_id, partition, size - 1, _INT32.unpack_from(data, at + _COUNT_AT)[0]))
            at += size  # the records, and the tags of the partition
        at += 1
    return acks, found


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def topics_asked_for(request: Request) -> list[str] | None:
    """Of a metadata request; None: all."""
    reader = Reader(request.data, what="Metadata request", flexible=True, at=request.at)
    count = reader.count(1)
    if count < 0:
        return None
    names: list[str] = []
    for _ in range(count):
        reader.raw(UUID_SIZE)
        names.append(reader.string())
        reader.tags()
    return names


def answer(request: Request, body: bytes) -> bytes:
    """The whole response; that to ApiVersions has the old header, because it may come before versions are known."""
    tags = b"" if request.api_key == ApiKey.API_VERSIONS else b"\x00"
    return _START.pack(4 + len(tags) + len(body), request.correlation_id) + tags + body


def api_versions() -> bytes:
    """The answer to ApiVersions."""
    writer = Writer(flexible=True)
    writer.int16(0)
    writer.count(len(VERSIONS))
    for api_key, version in VERSIONS.items():
        writer.int16(api_key)
        writer.int16(version)
        writer.int16(version)
        writer.tags()
    writer.int32(0)
    writer.tags()
    return writer.take()


def init_producer_id(producer_id: int) -> bytes:
    """The answer to InitProducerId."""
    writer = Writer(flexible=True)
    writer.int32(0)
    writer.int16(0)
    writer.int64(producer_id)
    writer.int16(0)
    writer.tags()
    return writer.take()


class TopicAnswer(NamedTuple):
    """A topic in an answer to Metadata; ``leaders`` has the leader's id and epoch of each partition."""

    name: str
    topic_id: bytes
    leaders: Sequence[tuple[int, int]]


def metadata(nodes: Iterable[Node], topics: Iterable[TopicAnswer | str]) -> bytes:
    """The answer to Metadata; a topic that does not exist is given by its name."""
    writer = Writer(flexible=True)
    writer.int32(0)
    brokers = list(nodes)
    writer.count(len(brokers))
    for node in brokers:
        writer.int32(node.id)
        writer.string(node.host)
        writer.int32(node.port)
        writer.string(node.rack)
        writer.tags()
    writer.string("simulated")
    writer.int32(brokers[0].id if brokers else -1)
    described = list(topics)
    writer.count(len(described))
    for topic in described:
        _topic(writer, topic)
    writer.int16(0)
    writer.tags()
    return writer.take()


def _topic(writer: Writer, topic: TopicAnswer | str) -> None:
    known = TopicAnswer(topic, NO_TOPIC_ID, ()) if isinstance(topic, str) else topic
    writer.int16(UNKNOWN_TOPIC if isinstance(topic, str) else 0)
    writer.string(known.name)
    writer.raw(known.topic_id)
    writer.boolean(False)
    writer.count(len(known.leaders))
    for partition, (leader, epoch) in enumerate(known.leaders):
        writer.int16(0)
        writer.int32(partition)
        writer.int32(leader)
        writer.int32(epoch)
        for _replicas in ("all", "in sync"):
            writer.count(1)
            writer.int32(leader)
        writer.count(0)
        writer.tags()
    writer.int32(NOT_TOLD)
    writer.tags()


def produced(parts: Sequence[PartAnswer], throttle_ms: int) -> bytes:
    """The answer to Produce; batches of a topic stand behind each other, as they do in the request."""
    topics: dict[bytes, list[bytes]] = {}
    for (topic_id, partition, _size, _records), error, base_offset in parts:
        piece = _PART.pack(partition, error, base_offset, -1, 0 if error == 0 else -1)
        topics.setdefault(topic_id, []).append(piece)
    pieces = [_compact(len(topics))]
    for topic_id, found in topics.items():
        pieces += (topic_id, _compact(len(found)), _NO_ERRORS.join(found), _NO_ERRORS, b"\x00")
    pieces.append(_INT32.pack(throttle_ms) + b"\x00")
    return b"".join(pieces)


def _compact(count: int) -> bytes:
    writer = Writer(flexible=True)
    writer.count(count)
    return writer.take()
