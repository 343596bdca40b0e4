"""ApiVersions v0 to v4: what a broker supports; the first request on every connection (KIP-511, KIP-584).

Version 4 is sent first.  A broker that does not know it answers UNSUPPORTED_VERSION in the layout of version 0, which
may list the versions that it knows.  ``fallback_version`` says which one to send next.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
from types import MappingProxyType
from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, Range, is_flexible, require
from forebay.errors import ProtocolError

UNSUPPORTED_VERSION = 35
UNKNOWN_EPOCH = -1

_ENTRY = Struct(">hhh")

_NO_FEATURES: Mapping[str, Range] = MappingProxyType({})
_KEPT = 16
"""Answers, and requests, that are not decoded or encoded again: those of a cluster's brokers are mostly the same, and a
process may have many connections."""
_KEPT_SIZE = 4096
"""Bytes of an answer; a longer one is no broker's of today, and is decoded each time."""


class ApiVersionsResponse(NamedTuple):
    """What a broker supports.

    ``api_versions`` are ``(oldest, newest)`` by API key; ``supported_features`` ``(min, max)`` version by name;
    ``finalized_features`` ``(min, max)`` version level by name, valid if ``finalized_features_epoch`` is not -1.
    """

    error_code: int
    api_versions: Mapping[int, Range]
    throttle_time_ms: int = 0
    supported_features: Mapping[str, Range] = _NO_FEATURES
    finalized_features_epoch: int = UNKNOWN_EPOCH
    finalized_features: Mapping[str, Range] = _NO_FEATURES


def encode_api_versions(version: int, software_name: str, software_version: str) -> list[bytes]:
    """The request's body.

    Args:
        software_name: of this client, in the broker's metrics from v3 on.  Characters that a broker would refuse (all
            but letters, digits, ``-`` and ``.``) are replaced by ``-``, also in ``software_version``.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.API_VERSIONS, version)
    return [_request(version, software_name, software_version)]


def decode_api_versions(version: int, payload: bytes | memoryview) -> ApiVersionsResponse:
    """Read the response to a request of ``version``, also UNSUPPORTED_VERSION in the layout of version 0.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.API_VERSIONS, version)
    if version > 0 and bytes(payload[:2]) == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        return _decode_unsupported(version, payload)
    return _decode_once(version, bytes(payload)) if len(payload) <= _KEPT_SIZE else _decode(version, payload)


def fallback_version(response: ApiVersionsResponse, sent: int) -> int | None:
    """The version of the next request, after ``response`` to one of version ``sent``.

    Returns:
        The newest version that the broker listed, or 0 if it listed none; None if nothing is left to try.  It is always
        below ``sent``, so the requests end.
    """
    if response.error_code != UNSUPPORTED_VERSION or sent == 0:
        return None
    listed = response.api_versions.get(ApiKey.API_VERSIONS)
    return max(0, min(listed[1], sent - 1)) if listed else 0


def _decode_unsupported(version: int, payload: bytes | memoryview) -> ApiVersionsResponse:
    # KIP-511 promises the layout of v0.  Some brokers (and librdkafka's mock) mix it with the layout of the request.
    # So only the list is believed, and no throttle time.  The error alone is enough to send v0 next.
    for layout in (0, version):
        try:
            return ApiVersionsResponse(UNSUPPORTED_VERSION, _decode(layout, payload).api_versions)
        except ProtocolError:
            continue
    return ApiVersionsResponse(UNSUPPORTED_VERSION, {})


@lru_cache(_KEPT)
def _request(version: int, software_name: str, software_version: str) -> bytes:
    writer = Writer(flexible=is_flexible(ApiKey.API_VERSIONS, version))
    if version >= 3:
        writer.string(_acceptable(software_name))
        writer.string(_acceptable(software_version))
    writer.tags()
    return writer.take()


def _acceptable(text: str) -> str:
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-.") else "-" for letter in text)
    return kept.strip("-.") or "unknown"


@lru_cache(_KEPT)
def _decode_once(version: int, payload: bytes) -> ApiVersionsResponse:
    return _decode(version, payload)


def _decode(version: int, payload: bytes | memoryview) -> ApiVersionsResponse:
    flexible = is_flexible(ApiKey.API_VERSIONS, version)
    reader = Reader(payload, what=f"ApiVersions v{version} response", flexible=flexible)

    def entry() -> tuple[int, Range]:
        key, oldest, newest = reader.fields(_ENTRY)
        reader.tags()
        return key, (oldest, newest)

    error_code = reader.int16()
    api_versions = dict(reader.array(entry, 7 if flexible else 6))
    throttle = reader.int32() if version >= 1 else 0
    features = _Features(reader)
    reader.tags({0: features.read_supported, 1: features.read_epoch, 2: features.read_finalized})
    return ApiVersionsResponse(
        error_code,
        MappingProxyType(api_versions),
        throttle,
        MappingProxyType(features.supported),
        features.epoch,
        MappingProxyType(features.finalized),
    )


class _Features:
    """The tagged fields of v3 and later."""

    __slots__ = ("_reader", "epoch", "finalized", "supported")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.supported: dict[str, Range] = {}
        self.epoch = UNKNOWN_EPOCH
        self.finalized: dict[str, Range] = {}

    def read_supported(self) -> None:
        self.supported = dict(self._reader.array(self._feature, 6))

    def read_epoch(self) -> None:
        self.epoch = self._reader.int64()

    def read_finalized(self) -> None:
        # The protocol has the maximum first here.
        found = self._reader.array(self._feature, 6)
        self.finalized = {name: (lowest, highest) for name, (highest, lowest) in found}

    def _feature(self) -> tuple[str, Range]:
        name = self._reader.string()
        levels = (self._reader.int16(), self._reader.int16())
        self._reader.tags()
        return name, levels
