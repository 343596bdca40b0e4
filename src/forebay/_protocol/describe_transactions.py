"""DescribeTransactions v0: what a coordinator knows about transactional ids (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.model import TopicPartition


class DescribedTransaction(NamedTuple):
    """One transactional id; all but it is valid if ``error_code`` is 0.

    ``state`` is Kafka's name of the state.  ``start_time_ms`` is a Unix time; -1 if no transaction is open.
    ``partitions`` are those of the open transaction.
    """

    transactional_id: str
    error_code: int
    state: str
    timeout_ms: int
    start_time_ms: int
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


class DescribeTransactionsResponse(NamedTuple):
    """One entry for each id that was asked for."""

    throttle_time_ms: int
    transactions: tuple[DescribedTransaction, ...]


def encode_describe_transactions(version: int, transactional_ids: Sequence[str]) -> list[bytes]:
    """The request's body.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.DESCRIBE_TRANSACTIONS, version)
    writer = Writer(flexible=is_flexible(ApiKey.DESCRIBE_TRANSACTIONS, version))
    writer.count(len(transactional_ids))
    for transactional_id in transactional_ids:
        writer.string(transactional_id)
    writer.tags()
    return [writer.take()]


def decode_describe_transactions(version: int, payload: bytes | memoryview) -> DescribeTransactionsResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.DESCRIBE_TRANSACTIONS, version)
    flexible = is_flexible(ApiKey.DESCRIBE_TRANSACTIONS, version)
    reader = Reader(payload, what=f"DescribeTransactions v{version} response", flexible=flexible)
    throttle = reader.int32()
    transactions = reader.array(lambda: _transaction(reader), 28)
    reader.tags()
    return DescribeTransactionsResponse(throttle, transactions)


def _transaction(reader: Reader) -> DescribedTransaction:
    error_code, transactional_id, state = reader.int16(), reader.string(), reader.string()
    timeout_ms, start_time_ms = reader.int32(), reader.int64()
    producer_id, producer_epoch = reader.int64(), reader.int16()
    topics = reader.array(lambda: _topic(reader), 3)
    reader.tags()
    return DescribedTransaction(
        transactional_id,
        error_code,
        state,
        timeout_ms,
        start_time_ms,
        producer_id,
        producer_epoch,
        tuple(TopicPartition(topic, partition) for topic, partitions in topics for partition in partitions),
    )


def _topic(reader: Reader) -> tuple[str, tuple[int, ...]]:
    name = reader.string()
    partitions = reader.int32_array()
    reader.tags()
    return name, partitions
