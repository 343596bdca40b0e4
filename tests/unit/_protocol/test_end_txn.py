from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.end_txn import EndTxnResponse, decode_end_txn, encode_end_txn
from forebay.errors import UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(6)
int16 = st.integers(-(2**15), 2**15 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def by_kio(version: int, said: EndTxnResponse) -> bytes:
    return encode(
        make(
            schema("end_txn", version, "response"),
            "EndTxnResponse",
            throttle_time=timedelta(milliseconds=said.throttle_time_ms),
            error_code=ErrorCode(said.error_code),
            producer_id=said.producer_id,
            producer_epoch=said.producer_epoch,
        )
    )


@given(
    st.sampled_from(VERSIONS),
    st.builds(EndTxnResponse, st.integers(0, 2**31 - 1), st.sampled_from([0, 48, 49, 51, 90]), int64, int16),
)
def test_responses_by_kio(version: int, said: EndTxnResponse) -> None:
    if version < 5:
        said = said._replace(producer_id=-1, producer_epoch=-1)
    payload = by_kio(version, said)
    assert decode_end_txn(version, payload) == said
    assert decode_end_txn(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.text(max_size=20), int64, int16, st.booleans())
def test_requests_are_read_by_kio(
    version: int, transactional_id: str, producer_id: int, epoch: int, committed: bool
) -> None:
    body = encode_end_txn(version, transactional_id, producer_id, epoch, committed)
    found = decode(schema("end_txn", version, "request").EndTxnRequest, b"".join(body))
    assert (found.transactional_id, found.committed) == (transactional_id, committed)
    assert (found.producer_id, found.producer_epoch) == (producer_id, epoch)


def test_bytes_by_hand() -> None:
    assert encode_end_txn(2, "t", 5, 1, True)[0].hex(" ") == "00 01 74 00 00 00 00 00 00 00 05 00 01 01"
    assert encode_end_txn(5, "t", 5, 1, False)[0].hex(" ") == "02 74 00 00 00 00 00 00 00 05 00 01 00 00"


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, EndTxnResponse(7, 0, 4711, 3))
    refuses_every_cut(lambda data: decode_end_txn(version, data), payload)
    survives_single_bytes(lambda data: decode_end_txn(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=40))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_end_txn(version, data), payload)


@pytest.mark.parametrize("version", [-1, 6])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="EndTxn v"):
        encode_end_txn(version, "t", 0, 0, True)
    with pytest.raises(UnsupportedVersionError, match="EndTxn v"):
        decode_end_txn(version, b"")
