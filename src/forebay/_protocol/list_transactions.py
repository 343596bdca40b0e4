"""ListTransactions v0 to v2: the transactional ids that a broker coordinates (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require

_ANY_DURATION = -1


class ListedTransaction(NamedTuple):
    """``state`` is Kafka's name of the state, such as ``Ongoing``."""

    transactional_id: str
    producer_id: int
    state: str


class ListTransactionsResponse(NamedTuple):
    """``unknown_states`` are states of the request that the broker does not know; it did not filter by them."""

    throttle_time_ms: int
    error_code: int
    unknown_states: tuple[str, ...]
    transactions: tuple[ListedTransaction, ...]


def encode_list_transactions(version: int, states: Sequence[str], producer_ids: Sequence[int]) -> list[bytes]:
    """The request's body.

    Args:
        states: only transactions in these; all if empty.
        producer_ids: likewise.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.LIST_TRANSACTIONS, version)
    writer = Writer(flexible=is_flexible(ApiKey.LIST_TRANSACTIONS, version))
    writer.count(len(states))
    for state in states:
        writer.string(state)
    writer.count(len(producer_ids))
    for producer_id in producer_ids:
        writer.int64(producer_id)
    if version >= 1:
        writer.int64(_ANY_DURATION)
    if version >= 2:
        # No pattern: it is a regular expression in the broker's dialect, and older brokers have none.
        writer.string(None)
    writer.tags()
    return [writer.take()]


def decode_list_transactions(version: int, payload: bytes | memoryview) -> ListTransactionsResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.LIST_TRANSACTIONS, version)
    flexible = is_flexible(ApiKey.LIST_TRANSACTIONS, version)
    reader = Reader(payload, what=f"ListTransactions v{version} response", flexible=flexible)

    def transaction() -> ListedTransaction:
        found = ListedTransaction(reader.string(), reader.int64(), reader.string())
        reader.tags()
        return found

    throttle, error_code = reader.int32(), reader.int16()
    unknown = reader.array(reader.string, 1)
    transactions = reader.array(transaction, 11)
    reader.tags()
    return ListTransactionsResponse(throttle, error_code, unknown, transactions)
