"""InitProducerId v0 to v6: the producer id and epoch of an idempotent or transactional producer's batches."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.errors import UnsupportedVersionError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMEOUT = 0x7FFFFFFF
"""What a producer without transactions sends as its transaction timeout."""


class InitProducerIdResponse(NamedTuple):
    """``producer_id`` and ``producer_epoch`` are valid if ``error_code`` is 0.

    The ``ongoing_txn_`` pair (v6, KIP-939) is -1 unless a prepared transaction was kept.
    """

    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int = NO_PRODUCER_ID
    ongoing_txn_producer_epoch: int = NO_PRODUCER_EPOCH


def encode_init_producer_id(
    version: int,
    transactional_id: str | None = None,
    transaction_timeout_ms: int = NO_TIMEOUT,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> list[bytes]:
    """The request's body.

    Args:
        transactional_id: None for a producer that is idempotent only.
        producer_id: together with ``producer_epoch`` asks to bump that epoch (v3 and later, KIP-360).

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or too old to bump an epoch.
    """
    require(ApiKey.INIT_PRODUCER_ID, version)
    if version < 3 and (producer_id, producer_epoch) != (NO_PRODUCER_ID, NO_PRODUCER_EPOCH):
        raise UnsupportedVersionError(
            f"InitProducerId v{version} cannot bump the epoch of a producer, v3 and later can"
        )
    writer = Writer(flexible=is_flexible(ApiKey.INIT_PRODUCER_ID, version))
    writer.string(transactional_id)
    writer.int32(transaction_timeout_ms)
    if version >= 3:
        writer.int64(producer_id)
        writer.int16(producer_epoch)
    if version >= 6:
        # No two-phase commit, and no prepared transaction to keep (KIP-939).
        writer.boolean(False)
        writer.boolean(False)
    writer.tags()
    return [writer.take()]


def decode_init_producer_id(version: int, payload: bytes | memoryview) -> InitProducerIdResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.INIT_PRODUCER_ID, version)
    flexible = is_flexible(ApiKey.INIT_PRODUCER_ID, version)
    reader = Reader(payload, what=f"InitProducerId v{version} response", flexible=flexible)
    throttle, error_code = reader.int32(), reader.int16()
    producer_id, producer_epoch = reader.int64(), reader.int16()
    ongoing_id, ongoing_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
    if version >= 6:
        ongoing_id, ongoing_epoch = reader.int64(), reader.int16()
    reader.tags()
    if error_code == 0 and (producer_id < 0 or producer_epoch < 0):
        # A broker would take batches with this stamp for batches without an id, and a retry could write them twice.
        reader.fail(f"producer id {producer_id} with epoch {producer_epoch} and no error")
    return InitProducerIdResponse(throttle, error_code, producer_id, producer_epoch, ongoing_id, ongoing_epoch)
