from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.get_telemetry_subscriptions import (
    NO_INSTANCE,
    GetTelemetrySubscriptionsResponse,
    decode_get_telemetry_subscriptions,
    encode_get_telemetry_subscriptions,
)
from forebay.errors import ProtocolError, UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

INT32 = st.integers(-(2**31), 2**31 - 1)
IDS = st.binary(min_size=16, max_size=16)
SAID = st.builds(
    GetTelemetrySubscriptionsResponse,
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 42, 89, 117]),
    IDS,
    INT32,
    st.lists(st.integers(-128, 127), max_size=5).map(tuple),
    INT32,
    INT32,
    st.booleans(),
    st.lists(st.text(max_size=10), max_size=3).map(tuple),
)
EXAMPLE = GetTelemetrySubscriptionsResponse(0, 0, bytes(range(16)), 7, (4, 3), 1000, 1 << 20, True, ("org.apache",))
EXAMPLE_BYTES = (
    "00 00 00 00 00 00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00 00 00 07 03 04 03 00 00 03 e8 00 10 00 00 01 "
    "02 0b 6f 72 67 2e 61 70 61 63 68 65 00"
)
"""By hand, out of Kafka's definition of the message."""


def by_kio(said: GetTelemetrySubscriptionsResponse) -> bytes:
    return encode(
        make(
            schema("get_telemetry_subscriptions", 0, "response"),
            "GetTelemetrySubscriptionsResponse",
            throttle_time=timedelta(milliseconds=said.throttle_time_ms),
            error_code=ErrorCode(said.error_code),
            client_instance_id=uuid.UUID(bytes=said.instance_id),
            subscription_id=said.subscription_id,
            accepted_compression_types=said.compression_types,
            push_interval=timedelta(milliseconds=said.push_interval_ms),
            telemetry_max_bytes=said.max_bytes,
            delta_temporality=said.delta,
            requested_metrics=said.requested_metrics,
        )
    )


@given(SAID)
def test_responses_by_kio(said: GetTelemetrySubscriptionsResponse) -> None:
    payload = by_kio(said)
    assert decode_get_telemetry_subscriptions(0, payload) == said
    assert decode_get_telemetry_subscriptions(0, memoryview(payload)) == said


@given(IDS)
def test_requests_are_read_by_kio(instance_id: bytes) -> None:
    kind = schema("get_telemetry_subscriptions", 0, "request").GetTelemetrySubscriptionsRequest
    found = decode(kind, b"".join(encode_get_telemetry_subscriptions(0, instance_id))).client_instance_id
    assert (NO_INSTANCE if found is None else found.bytes) == instance_id


def test_bytes_by_hand() -> None:
    assert decode_get_telemetry_subscriptions(0, bytes.fromhex(EXAMPLE_BYTES)) == EXAMPLE
    assert by_kio(EXAMPLE).hex(" ") == EXAMPLE_BYTES
    assert encode_get_telemetry_subscriptions(0, bytes(range(16)))[0].hex() == "000102030405060708090a0b0c0d0e0f00"


def test_cut_or_corrupted_responses() -> None:
    payload = by_kio(EXAMPLE)
    refuses_every_cut(lambda data: decode_get_telemetry_subscriptions(0, data), payload)
    survives_single_bytes(lambda data: decode_get_telemetry_subscriptions(0, data), payload)


def test_more_prefixes_than_bytes_are_refused() -> None:
    payload = bytes(26) + b"\x01" + bytes(9) + b"\xff\xff\xff\xff\x0f"
    with pytest.raises(ProtocolError, match="GetTelemetrySubscriptions v0 response: array of 4294967294 elements"):
        decode_get_telemetry_subscriptions(0, payload)


@given(st.binary(max_size=80))
def test_any_bytes(payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_get_telemetry_subscriptions(0, data), payload)


@pytest.mark.parametrize("version", [-1, 1])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="GetTelemetrySubscriptions v"):
        encode_get_telemetry_subscriptions(version, NO_INSTANCE)
    with pytest.raises(UnsupportedVersionError, match="GetTelemetrySubscriptions v"):
        decode_get_telemetry_subscriptions(version, b"")
