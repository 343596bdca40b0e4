from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
    decode_push_telemetry,
    encode_push_telemetry,
)
from forebay.errors import UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

EXAMPLE = PushTelemetryRequest(bytes(range(16)), -2, True, 4, b"abc")


def by_kio(said: PushTelemetryResponse) -> bytes:
    throttle, code = timedelta(milliseconds=said.throttle_time_ms), ErrorCode(said.error_code)
    module = schema("push_telemetry", 0, "response")
    return encode(make(module, "PushTelemetryResponse", throttle_time=throttle, error_code=code))


@given(st.builds(PushTelemetryResponse, st.integers(0, 2**31 - 1), st.sampled_from([0, 42, 87, 89, 117, 118])))
def test_responses_by_kio(said: PushTelemetryResponse) -> None:
    payload = by_kio(said)
    assert decode_push_telemetry(0, payload) == said
    assert decode_push_telemetry(0, memoryview(payload)) == said


@given(
    st.builds(
        PushTelemetryRequest,
        st.binary(min_size=16, max_size=16).filter(any),
        st.integers(-(2**31), 2**31 - 1),
        st.booleans(),
        st.integers(0, 4),
        st.binary(max_size=300),
    )
)
def test_requests_are_read_by_kio(said: PushTelemetryRequest) -> None:
    body = encode_push_telemetry(0, said)
    assert body[1] is said.metrics
    found = decode(schema("push_telemetry", 0, "request").PushTelemetryRequest, b"".join(body))
    assert (found.client_instance_id.bytes, found.subscription_id, found.terminating) == said[:3]
    assert (found.compression_type, found.metrics) == said[3:]


def test_bytes_by_hand() -> None:
    assert b"".join(encode_push_telemetry(0, EXAMPLE)).hex(" ") == (
        "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f ff ff ff fe 01 04 04 61 62 63 00"
    )
    assert decode_push_telemetry(0, bytes.fromhex("00 00 00 07 00 75 00")) == PushTelemetryResponse(7, 117)


def test_cut_or_corrupted_responses() -> None:
    payload = by_kio(PushTelemetryResponse(7, 118))
    refuses_every_cut(lambda data: decode_push_telemetry(0, data), payload)
    survives_single_bytes(lambda data: decode_push_telemetry(0, data), payload)


@given(st.binary(max_size=20))
def test_any_bytes(payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_push_telemetry(0, data), payload)


@pytest.mark.parametrize("version", [-1, 1])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="PushTelemetry v"):
        encode_push_telemetry(version, EXAMPLE)
    with pytest.raises(UnsupportedVersionError, match="PushTelemetry v"):
        decode_push_telemetry(version, b"")
