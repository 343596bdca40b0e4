"""AddPartitionsToTxn v0 to v3: tells the coordinator which partitions a transaction is about to write.

Version 4 and later are spoken between brokers only (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from forebay._protocol.partitions import by_topic, read_partition_errors
from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.model import TopicPartition


class AddPartitionsToTxnResponse(NamedTuple):
    """``errors`` has a code for each partition, 0 for those that were added."""

    throttle_time_ms: int
    errors: dict[TopicPartition, int]


def encode_add_partitions_to_txn(
    version: int, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]
) -> list[bytes]:
    """The request's body.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.ADD_PARTITIONS_TO_TXN, version)
    writer = Writer(flexible=is_flexible(ApiKey.ADD_PARTITIONS_TO_TXN, version))
    writer.string(transactional_id)
    writer.int64(producer_id)
    writer.int16(producer_epoch)
    grouped = by_topic(partitions)
    writer.count(len(grouped))
    for topic, numbers in grouped.items():
        writer.string(topic)
        writer.count(len(numbers))
        for number in numbers:
            writer.int32(number)
        writer.tags()
    writer.tags()
    return [writer.take()]


def decode_add_partitions_to_txn(version: int, payload: bytes | memoryview) -> AddPartitionsToTxnResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.ADD_PARTITIONS_TO_TXN, version)
    flexible = is_flexible(ApiKey.ADD_PARTITIONS_TO_TXN, version)
    reader = Reader(payload, what=f"AddPartitionsToTxn v{version} response", flexible=flexible)
    throttle = reader.int32()
    errors = read_partition_errors(reader, flexible=flexible)
    reader.tags()
    return AddPartitionsToTxnResponse(throttle, errors)
