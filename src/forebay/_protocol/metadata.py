"""Metadata v0 to v13: the brokers, and the leaders of the partitions of the topics asked for.

A plain copy of the response.  ``forebay._network.metadata`` decides what to believe (epochs, errors, brokers without
an address).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from forebay._protocol.primitives import UUID_SIZE, Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.errors import UnsupportedVersionError
from forebay.errors._base import printable
from forebay.model import Node

UNKNOWN = -1
NOT_TOLD = -(2**31)
"""Instead of operations that a client may do: before v8, or where the request did not ask."""
MAX_HOST = 255
"""Characters of a host's name; no name has more."""
NO_TOPIC_ID = bytes(UUID_SIZE)

# error, partition, leader; from v7 on the leader's epoch
_PARTITION = Struct(">hii")
_PARTITION_WITH_EPOCH = Struct(">hiii")

# Partition numbers begin at 0, and memory is allocated up to the highest.  A broker may leave some out, but a number
# far above the count of listed partitions comes from damaged bytes.
_MOST_LEFT_OUT = 1000


class MetadataPartition(NamedTuple):
    """A partition; ``leader_id`` is -1 while it has no leader, ``leader_epoch`` -1 before v7."""

    error_code: int
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class MetadataTopic(NamedTuple):
    """A topic; ``topic_id`` is its 16 bytes, None before v10 or when the topic does not exist.

    ``name`` is None only in v12 and later, for topics that were asked for by id, which forebay never does.
    ``operations`` has a bit for each of Kafka's AclOperation that this client may do (KIP-430), or is ``NOT_TOLD``.
    """

    error_code: int
    name: str | None
    topic_id: bytes | None
    is_internal: bool
    partitions: tuple[MetadataPartition, ...]
    operations: int = NOT_TOLD


class MetadataResponse(NamedTuple):
    """The cluster as one broker knows it; ``error_code`` is v13's, such as 129 REBOOTSTRAP_REQUIRED (KIP-1102)."""

    throttle_time_ms: int
    brokers: tuple[Node, ...]
    cluster_id: str | None
    controller_id: int
    topics: tuple[MetadataTopic, ...]
    error_code: int


def encode_metadata(
    version: int,
    topics: Sequence[str] | None,
    *,
    allow_auto_topic_creation: bool = True,
    topic_operations: bool = False,
) -> list[bytes]:
    """The request's body.

    Args:
        topics: names; None asks for all topics, an empty sequence for the brokers only.
        allow_auto_topic_creation: before v4 the broker's own setting counts.
        topic_operations: what this client may do to each topic, too; before v8 no broker tells.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or cannot say what is asked.
    """
    require(ApiKey.METADATA, version)
    if version == 0 and topics is not None and not topics:
        raise UnsupportedVersionError("Metadata v0 cannot ask for the brokers only, it would answer with all topics")
    if version < 4 and not allow_auto_topic_creation:
        raise UnsupportedVersionError(f"Metadata v{version} cannot switch off topic creation, v4 and later can")
    writer = Writer(flexible=is_flexible(ApiKey.METADATA, version))
    if topics is None:
        writer.count(0 if version == 0 else -1)
    else:
        writer.count(len(topics))
        for topic in topics:
            if version >= 10:
                writer.raw(NO_TOPIC_ID)
            writer.string(topic)
            writer.tags()
    if version >= 4:
        writer.boolean(allow_auto_topic_creation)
    if 8 <= version <= 10:
        writer.boolean(False)
    if version >= 8:
        writer.boolean(topic_operations)
    writer.tags()
    return [writer.take()]


def decode_metadata(version: int, payload: bytes | memoryview) -> MetadataResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.METADATA, version)
    return _Parse(version, payload).response()


class _Parse:
    """One response, field by field."""

    __slots__ = ("_flexible", "_reader", "_version")

    def __init__(self, version: int, payload: bytes | memoryview) -> None:
        self._version = version
        self._flexible = is_flexible(ApiKey.METADATA, version)
        self._reader = Reader(payload, what=f"Metadata v{version} response", flexible=self._flexible)

    def response(self) -> MetadataResponse:
        reader, version = self._reader, self._version
        throttle = reader.int32() if version >= 3 else 0
        brokers = reader.array(self._broker, 10)
        cluster_id = reader.nullable_string() if version >= 2 else None
        controller_id = reader.int32() if version >= 1 else UNKNOWN
        topics = reader.array(self._topic, 4 if self._flexible else 8)
        if 8 <= version <= 10:
            reader.int32()
        error_code = reader.int16() if version >= 13 else 0
        reader.tags()
        return MetadataResponse(throttle, brokers, cluster_id, controller_id, topics, error_code)

    def _broker(self) -> Node:
        reader = self._reader
        node_id = reader.int32()
        host = printable(reader.string(), MAX_HOST)
        port = reader.int32()
        rack = reader.nullable_string() if self._version >= 1 else None
        reader.tags()
        return Node(node_id, host, port, rack)

    def _topic(self) -> MetadataTopic:
        reader, version = self._reader, self._version
        error_code = reader.int16()
        name = reader.nullable_string() if version >= 12 else reader.string()
        topic_id = reader.raw(UUID_SIZE) if version >= 10 else NO_TOPIC_ID
        is_internal = reader.boolean() if version >= 1 else False
        partitions = reader.array(self._partition, 18)
        highest = 4 * len(partitions) + _MOST_LEFT_OUT
        for found in partitions:
            if not 0 <= found.partition <= highest:
                reader.fail(f"partition {found.partition} of topic {name!r}, of which {len(partitions)} are listed")
        operations = reader.int32() if version >= 8 else NOT_TOLD
        reader.tags()
        known_id = None if topic_id == NO_TOPIC_ID else topic_id
        return MetadataTopic(error_code, name, known_id, is_internal, partitions, operations)

    def _partition(self) -> MetadataPartition:
        reader, version = self._reader, self._version
        if version >= 7:
            error_code, partition, leader_id, leader_epoch = reader.fields(_PARTITION_WITH_EPOCH)
        else:
            error_code, partition, leader_id = reader.fields(_PARTITION)
            leader_epoch = UNKNOWN
        replicas = reader.int32_array()
        in_sync = reader.int32_array()
        offline = reader.int32_array() if version >= 5 else ()
        reader.tags()
        return MetadataPartition(error_code, partition, leader_id, leader_epoch, replicas, in_sync, offline)
