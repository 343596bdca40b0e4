"""PushTelemetry v0: a client's metrics for the cluster (KIP-714)."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require


class PushTelemetryRequest(NamedTuple):
    """``metrics`` is OpenTelemetry's MetricsData, compressed as ``compression_type`` says.

    ``terminating``: it is the client's last one.
    """

    instance_id: bytes
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes


class PushTelemetryResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int


def encode_push_telemetry(version: int, request: PushTelemetryRequest) -> list[bytes]:
    """The request's body; the metrics are a piece of their own, which is not copied.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.PUSH_TELEMETRY, version)
    flexible = is_flexible(ApiKey.PUSH_TELEMETRY, version)
    writer, end = Writer(flexible=flexible), Writer(flexible=flexible)
    writer.raw(request.instance_id)
    writer.int32(request.subscription_id)
    writer.boolean(request.terminating)
    writer.int8(request.compression_type)
    writer.count(len(request.metrics))  # bytes have the same length before them as an array
    end.tags()
    return [writer.take(), request.metrics, end.take()]


def decode_push_telemetry(version: int, payload: bytes | memoryview) -> PushTelemetryResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.PUSH_TELEMETRY, version)
    flexible = is_flexible(ApiKey.PUSH_TELEMETRY, version)
    reader = Reader(payload, what=f"PushTelemetry v{version} response", flexible=flexible)
    found = PushTelemetryResponse(reader.int32(), reader.int16())
    reader.tags()
    return found
