"""GetTelemetrySubscriptions v0: the client's instance id, and which of its metrics the cluster wants (KIP-714)."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require

NO_INSTANCE = bytes(16)
"""The instance id of a client that has none yet."""


class GetTelemetrySubscriptionsResponse(NamedTuple):
    """What the broker says, unchecked.

    ``compression_types`` are codecs' numbers, the best first.  ``requested_metrics`` are prefixes of names.
    """

    throttle_time_ms: int
    error_code: int
    instance_id: bytes
    subscription_id: int
    compression_types: tuple[int, ...]
    push_interval_ms: int
    max_bytes: int
    delta: bool
    requested_metrics: tuple[str, ...]


def encode_get_telemetry_subscriptions(version: int, instance_id: bytes) -> list[bytes]:
    """The request's body.

    Args:
        instance_id: 16 bytes, ``NO_INSTANCE`` in the first request.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, version)
    writer = Writer(flexible=is_flexible(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, version))
    writer.raw(instance_id)
    writer.tags()
    return [writer.take()]


def decode_get_telemetry_subscriptions(version: int, payload: bytes | memoryview) -> GetTelemetrySubscriptionsResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, version)
    flexible = is_flexible(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, version)
    reader = Reader(payload, what=f"GetTelemetrySubscriptions v{version} response", flexible=flexible)
    throttle, error_code, instance_id = reader.int32(), reader.int16(), reader.raw(16)
    subscription_id = reader.int32()
    codecs = reader.array(lambda: int.from_bytes(reader.raw(1), signed=True), 1)
    interval, max_bytes, delta = reader.int32(), reader.int32(), reader.boolean()
    requested = reader.array(reader.string, 1)
    reader.tags()
    return GetTelemetrySubscriptionsResponse(
        throttle, error_code, instance_id, subscription_id, codecs, interval, max_bytes, delta, requested
    )
