from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.add_offsets_to_txn import (
    AddOffsetsToTxnResponse,
    decode_add_offsets_to_txn,
    encode_add_offsets_to_txn,
)
from forebay.errors import UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(5)
int16 = st.integers(-(2**15), 2**15 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def by_kio(version: int, said: AddOffsetsToTxnResponse) -> bytes:
    return encode(
        make(
            schema("add_offsets_to_txn", version, "response"),
            "AddOffsetsToTxnResponse",
            throttle_time=timedelta(milliseconds=said.throttle_time_ms),
            error_code=ErrorCode(said.error_code),
        )
    )


@given(st.sampled_from(VERSIONS), st.integers(0, 2**31 - 1), st.sampled_from([0, 16, 47, 51, 120]))
def test_responses_by_kio(version: int, throttle: int, code: int) -> None:
    said = AddOffsetsToTxnResponse(throttle, code)
    payload = by_kio(version, said)
    assert decode_add_offsets_to_txn(version, payload) == said
    assert decode_add_offsets_to_txn(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.text(max_size=20), int64, int16, st.text(max_size=20))
def test_requests_are_read_by_kio(
    version: int, transactional_id: str, producer_id: int, epoch: int, group_id: str
) -> None:
    body = encode_add_offsets_to_txn(version, transactional_id, producer_id, epoch, group_id)
    found = decode(schema("add_offsets_to_txn", version, "request").AddOffsetsToTxnRequest, b"".join(body))
    assert (found.transactional_id, found.group_id) == (transactional_id, group_id)
    assert (found.producer_id, found.producer_epoch) == (producer_id, epoch)


def test_bytes_by_hand() -> None:
    assert encode_add_offsets_to_txn(2, "t", 5, 1, "g")[0].hex(" ") == "00 01 74 00 00 00 00 00 00 00 05 00 01 00 01 67"
    assert encode_add_offsets_to_txn(4, "t", 5, 1, "g")[0].hex(" ") == "02 74 00 00 00 00 00 00 00 05 00 01 02 67 00"


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, AddOffsetsToTxnResponse(7, 51))
    refuses_every_cut(lambda data: decode_add_offsets_to_txn(version, data), payload)
    survives_single_bytes(lambda data: decode_add_offsets_to_txn(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=40))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_add_offsets_to_txn(version, data), payload)


@pytest.mark.parametrize("version", [-1, 5])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="AddOffsetsToTxn v"):
        encode_add_offsets_to_txn(version, "t", 0, 0, "g")
    with pytest.raises(UnsupportedVersionError, match="AddOffsetsToTxn v"):
        decode_add_offsets_to_txn(version, b"")
