"""AddOffsetsToTxn v0 to v4: tells the coordinator that a transaction is about to commit a group's offsets.

Not needed where transactions have version 2 (KIP-890): TxnOffsetCommit does it on its own there.
"""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require


class AddOffsetsToTxnResponse(NamedTuple):
    """``error_code`` is 0 if the group's offsets belong to the transaction now."""

    throttle_time_ms: int
    error_code: int


def encode_add_offsets_to_txn(
    version: int, transactional_id: str, producer_id: int, producer_epoch: int, group_id: str
) -> list[bytes]:
    """The request's body.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.ADD_OFFSETS_TO_TXN, version)
    writer = Writer(flexible=is_flexible(ApiKey.ADD_OFFSETS_TO_TXN, version))
    writer.string(transactional_id)
    writer.int64(producer_id)
    writer.int16(producer_epoch)
    writer.string(group_id)
    writer.tags()
    return [writer.take()]


def decode_add_offsets_to_txn(version: int, payload: bytes | memoryview) -> AddOffsetsToTxnResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.ADD_OFFSETS_TO_TXN, version)
    flexible = is_flexible(ApiKey.ADD_OFFSETS_TO_TXN, version)
    reader = Reader(payload, what=f"AddOffsetsToTxn v{version} response", flexible=flexible)
    throttle, error_code = reader.int32(), reader.int16()
    reader.tags()
    return AddOffsetsToTxnResponse(throttle, error_code)
