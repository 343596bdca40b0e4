from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.init_producer_id import (
    NO_TIMEOUT,
    InitProducerIdResponse,
    decode_init_producer_id,
    encode_init_producer_id,
)
from forebay.errors import ProtocolError, UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(7)
int16 = st.integers(-(2**15), 2**15 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def by_kio(version: int, said: InitProducerIdResponse) -> bytes:
    return encode(
        make(
            schema("init_producer_id", version, "response"),
            "InitProducerIdResponse",
            throttle_time=timedelta(milliseconds=said.throttle_time_ms),
            error_code=ErrorCode(said.error_code),
            producer_id=said.producer_id,
            producer_epoch=said.producer_epoch,
            ongoing_txn_producer_id=said.ongoing_txn_producer_id,
            ongoing_txn_producer_epoch=said.ongoing_txn_producer_epoch,
        )
    )


@given(
    st.sampled_from(VERSIONS),
    st.builds(
        InitProducerIdResponse, st.integers(0, 2**31 - 1), st.sampled_from([0, 14, 31, 51]), int64, int16, int64, int16
    ),
)
def test_responses_by_kio(version: int, said: InitProducerIdResponse) -> None:
    if version < 6:
        said = said._replace(ongoing_txn_producer_id=-1, ongoing_txn_producer_epoch=-1)
    if said.error_code == 0:
        said = said._replace(producer_id=max(said.producer_id, 0), producer_epoch=max(said.producer_epoch, 0))
    payload = by_kio(version, said)
    assert decode_init_producer_id(version, payload) == said
    assert decode_init_producer_id(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.none() | st.text(max_size=20), st.integers(0, 2**31 - 1), int64, int16)
def test_requests_are_read_by_kio(
    version: int, transactional_id: str | None, timeout_ms: int, producer_id: int, epoch: int
) -> None:
    if version < 3:
        producer_id = epoch = -1
    body = encode_init_producer_id(version, transactional_id, timeout_ms, producer_id=producer_id, producer_epoch=epoch)
    found = decode(schema("init_producer_id", version, "request").InitProducerIdRequest, b"".join(body))
    assert found.transactional_id == transactional_id
    assert found.transaction_timeout == timedelta(milliseconds=timeout_ms)
    if version >= 3:
        assert (found.producer_id, found.producer_epoch) == (producer_id, epoch)
    if version >= 6:
        assert not found.enable2_pc
        assert not found.keep_prepared_txn


def test_an_idempotent_producer_asks_without_any_id() -> None:
    assert NO_TIMEOUT == 2**31 - 1
    assert encode_init_producer_id(1)[0].hex(" ") == "ff ff 7f ff ff ff"
    assert encode_init_producer_id(4)[0].hex(" ") == "00 7f ff ff ff ff ff ff ff ff ff ff ff ff ff 00"


@pytest.mark.parametrize("version", range(3))
def test_old_versions_cannot_bump_an_epoch(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"InitProducerId v{version} cannot bump"):
        encode_init_producer_id(version, "txn", 1000, producer_id=5, producer_epoch=1)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (7, -1), (-(2**63), -(2**15))])
def test_an_answer_without_error_and_without_an_id(producer_id: int, epoch: int) -> None:
    payload = by_kio(5, InitProducerIdResponse(0, 0, producer_id, epoch))
    with pytest.raises(ProtocolError, match=f"producer id {producer_id} with epoch {epoch} and no error"):
        decode_init_producer_id(5, payload)
    assert decode_init_producer_id(5, by_kio(5, InitProducerIdResponse(0, 31, producer_id, epoch))).error_code == 31


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, InitProducerIdResponse(0, 0, 4711, 3))
    refuses_every_cut(lambda data: decode_init_producer_id(version, data), payload)
    survives_single_bytes(lambda data: decode_init_producer_id(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=40))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_init_producer_id(version, data), payload)


@pytest.mark.parametrize("version", [-1, 7])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="InitProducerId v"):
        encode_init_producer_id(version)
    with pytest.raises(UnsupportedVersionError, match="InitProducerId v"):
        decode_init_producer_id(version, b"")
