"""EndTxn v0 to v5: commits or aborts a transaction.

The coordinator looks at the ids and the epoch, not at the connection, so another process may end a transaction.
v5 is for transactions of version 2 (KIP-890): every end gives the producer a new epoch.
"""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


class EndTxnResponse(NamedTuple):
    """``producer_id`` and ``producer_epoch`` are for the next transaction (v5); -1 before v5 and after an error."""

    throttle_time_ms: int
    error_code: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


def encode_end_txn(
    version: int, transactional_id: str, producer_id: int, producer_epoch: int, committed: bool
) -> list[bytes]:
    """The request's body; ``committed`` False aborts.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.END_TXN, version)
    writer = Writer(flexible=is_flexible(ApiKey.END_TXN, version))
    writer.string(transactional_id)
    writer.int64(producer_id)
    writer.int16(producer_epoch)
    writer.boolean(committed)
    writer.tags()
    return [writer.take()]


def decode_end_txn(version: int, payload: bytes | memoryview) -> EndTxnResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.END_TXN, version)
    flexible = is_flexible(ApiKey.END_TXN, version)
    reader = Reader(payload, what=f"EndTxn v{version} response", flexible=flexible)
    throttle, error_code = reader.int32(), reader.int16()
    producer_id, producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
    if version >= 5:
        producer_id, producer_epoch = reader.int64(), reader.int16()
    reader.tags()
    return EndTxnResponse(throttle, error_code, producer_id, producer_epoch)
