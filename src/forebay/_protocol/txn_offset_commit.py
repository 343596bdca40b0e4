"""TxnOffsetCommit v0 to v5: a consumer group's offsets, committed together with a transaction.

From v3 on the group's coordinator checks that the offsets come from a living member (KIP-447); v5 needs no
AddOffsetsToTxn before it (KIP-890).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from forebay._protocol.partitions import by_topic, read_partition_errors
from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.errors import UnsupportedVersionError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

_ANY_GENERATION = -1


class TxnOffsetCommitResponse(NamedTuple):
    """``errors`` has a code for each partition, 0 for those whose offset was taken."""

    throttle_time_ms: int
    errors: dict[TopicPartition, int]


def encode_txn_offset_commit(
    version: int,
    transactional_id: str,
    group: ConsumerGroupMetadata,
    producer_id: int,
    producer_epoch: int,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[bytes]:
    """The request's body.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or below v3 although ``group`` names a member.
            Without the member's name, an expelled member could commit.
    """
    require(ApiKey.TXN_OFFSET_COMMIT, version)
    _require_members_can_be_told(version, group)
    writer = Writer(flexible=is_flexible(ApiKey.TXN_OFFSET_COMMIT, version))
    writer.string(transactional_id)
    writer.string(group.group_id)
    writer.int64(producer_id)
    writer.int16(producer_epoch)
    if version >= 3:
        writer.int32(group.generation_id)
        writer.string(group.member_id)
        writer.string(group.group_instance_id)
    grouped = by_topic(offsets)
    writer.count(len(grouped))
    for topic, partitions in grouped.items():
        writer.string(topic)
        writer.count(len(partitions))
        for partition in partitions:
            _write_offset(writer, version, partition, offsets[TopicPartition(topic, partition)])
        writer.tags()
    writer.tags()
    return [writer.take()]


def decode_txn_offset_commit(version: int, payload: bytes | memoryview) -> TxnOffsetCommitResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.TXN_OFFSET_COMMIT, version)
    flexible = is_flexible(ApiKey.TXN_OFFSET_COMMIT, version)
    reader = Reader(payload, what=f"TxnOffsetCommit v{version} response", flexible=flexible)
    throttle = reader.int32()
    errors = read_partition_errors(reader, flexible=flexible)
    reader.tags()
    return TxnOffsetCommitResponse(throttle, errors)


def _require_members_can_be_told(version: int, group: ConsumerGroupMetadata) -> None:
    names_a_member = group.member_id or group.group_instance_id is not None or group.generation_id != _ANY_GENERATION
    if version < 3 and names_a_member:
        raise UnsupportedVersionError(
            f"TxnOffsetCommit v{version} cannot name a member of group {group.group_id!r}, v3 and later can"
        )


def _write_offset(writer: Writer, version: int, partition: int, offset: OffsetAndMetadata) -> None:
    writer.int32(partition)
    writer.int64(offset.offset)
    if version >= 2:
        writer.int32(offset.leader_epoch)
    writer.string(offset.metadata)
    writer.tags()
