from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.api_versions import (
    ApiVersionsResponse,
    decode_api_versions,
    encode_api_versions,
    fallback_version,
)
from forebay.errors import ProtocolError, UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(5)
int16 = st.integers(-(2**15), 2**15 - 1)
ranges = st.tuples(int16, int16)
responses = st.fixed_dictionaries(
    {
        "error": st.sampled_from([0, 35, 42]),
        "apis": st.dictionaries(int16, ranges, max_size=6),
        "throttle": st.integers(0, 2**31 - 1),
        "supported": st.dictionaries(st.text(max_size=9), ranges, max_size=3),
        "epoch": st.integers(-1, 2**63 - 1),
        "finalized": st.dictionaries(st.text(max_size=9), ranges, max_size=3),
    }
)


def by_kio(version: int, said: dict[str, Any]) -> bytes:
    module = schema("api_versions", version, "response")
    apis = [make(module, "ApiVersion", api_key=k, min_version=a, max_version=b) for k, (a, b) in said["apis"].items()]
    extra: dict[str, Any] = {}
    if version >= 3:
        supported = said["supported"].items()
        finalized = said["finalized"].items()
        extra = {
            "supported_features": tuple(
                make(module, "SupportedFeatureKey", name=n, min_version=a, max_version=b) for n, (a, b) in supported
            ),
            "finalized_features": tuple(
                make(module, "FinalizedFeatureKey", name=n, min_version_level=a, max_version_level=b)
                for n, (a, b) in finalized
            ),
            "finalized_features_epoch": said["epoch"],
        }
    throttle = timedelta(milliseconds=said["throttle"])
    fields = {"error_code": ErrorCode(said["error"]), "api_keys": tuple(apis), "throttle_time": throttle, **extra}
    return encode(make(module, "ApiVersionsResponse", **fields))


def expected(version: int, said: dict[str, Any]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        said["error"],
        said["apis"],
        said["throttle"] if version >= 1 else 0,
        said["supported"] if version >= 3 else {},
        said["epoch"] if version >= 3 else -1,
        said["finalized"] if version >= 3 else {},
    )


@given(st.sampled_from(VERSIONS), responses)
def test_responses_by_kio(version: int, said: dict[str, Any]) -> None:
    if said["error"] == 35:
        said["error"] = 42
    payload = by_kio(version, said)
    assert decode_api_versions(version, payload) == expected(version, said)
    assert decode_api_versions(version, memoryview(payload)) == expected(version, said)


@given(st.sampled_from(VERSIONS), st.text(max_size=30), st.text(max_size=30))
def test_requests_are_read_by_kio(version: int, name: str, software_version: str) -> None:
    found = decode(
        schema("api_versions", version, "request").ApiVersionsRequest,
        b"".join(encode_api_versions(version, name, software_version)),
    )
    if version >= 3:
        allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
        for text in (found.client_software_name, found.client_software_version):
            assert set(text) <= allowed and text[0] not in "-." and text[-1] not in "-."


def test_what_brokers_refuse_in_software_names_is_replaced() -> None:
    body = b"".join(encode_api_versions(4, "forebay", "0.1.0.dev3+g12ab"))
    assert body == b"\x08forebay\x110.1.0.dev3-g12ab\0"
    assert b"".join(encode_api_versions(3, "++", "")) == b"\x08unknown\x08unknown\0"


@given(st.sampled_from(VERSIONS[1:]), responses)
def test_unsupported_version_is_understood_in_the_layout_of_version_0(version: int, said: dict[str, Any]) -> None:
    said["error"] = 35
    found = decode_api_versions(version, by_kio(0, said))
    assert found.error_code == 35
    assert found.api_versions == said["apis"]


def test_unsupported_version_in_the_layout_asked_for_is_understood_too() -> None:
    said = {"error": 35, "apis": {18: (0, 2)}, "throttle": 0, "supported": {}, "epoch": -1, "finalized": {}}
    for version in VERSIONS:
        assert decode_api_versions(version, by_kio(version, said)).api_versions == {18: (0, 2)}


@pytest.mark.parametrize("wire", ["0023", "0023 ff", "0023 01 0012 0000 0002 00000000", "0023 7fffffff 00"])
def test_unsupported_version_with_nothing_readable_behind_it_leads_to_version_0(wire: str) -> None:
    found = decode_api_versions(4, bytes.fromhex(wire))
    assert found == ApiVersionsResponse(35, {})
    assert found.throttle_time_ms == 0
    assert fallback_version(found, 4) == 0


def test_the_next_version_is_the_one_the_broker_listed() -> None:
    """M testUnsupportedApiVersionsRequestWithVersionProvidedByTheBroker: ApiVersions max 2 means 2 next."""
    assert fallback_version(ApiVersionsResponse(35, {18: (0, 2)}), 4) == 2


def test_without_a_listed_version_the_next_is_0() -> None:
    """M testUnsupportedApiVersionsRequestWithoutVersionProvidedByTheBroker."""
    assert fallback_version(ApiVersionsResponse(35, {}), 4) == 0


def test_falling_back_ends() -> None:
    assert fallback_version(ApiVersionsResponse(35, {18: (0, 4)}), 4) == 3
    assert fallback_version(ApiVersionsResponse(35, {18: (0, -5)}), 4) == 0
    assert fallback_version(ApiVersionsResponse(35, {18: (0, 2)}), 0) is None


def test_other_errors_have_no_next_version() -> None:
    """M testInvalidApiVersionsRequest: INVALID_REQUEST is not answered with another version."""
    assert fallback_version(ApiVersionsResponse(42, {}), 4) is None
    assert fallback_version(ApiVersionsResponse(0, {18: (0, 4)}), 4) is None


SAMPLE = {
    "error": 0,
    "apis": {0: (3, 12), 18: (0, 4)},
    "throttle": 9,
    "supported": {"kraft.version": (0, 1)},
    "epoch": 77,
    "finalized": {"transaction.version": (0, 2)},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, SAMPLE)
    refuses_every_cut(lambda data: decode_api_versions(version, data), payload)
    survives_single_bytes(lambda data: decode_api_versions(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=200))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_api_versions(version, data), payload)


def test_an_answer_that_came_before_is_not_decoded_again_and_cannot_be_changed() -> None:
    said = {"error": 0, "apis": {18: (0, 4)}, "throttle": 0, "supported": {"a": (1, 2)}, "epoch": 1, "finalized": {}}
    first, again = (decode_api_versions(4, memoryview(by_kio(4, said))) for _ in range(2))
    assert first is again
    for kept in (first.api_versions, first.supported_features, first.finalized_features):
        with pytest.raises(TypeError, match="assignment"):
            kept[1] = (0, 0)  # type: ignore[index]
    other = decode_api_versions(4, by_kio(4, {**said, "apis": {18: (0, 3)}}))
    assert (first.api_versions[18], other.api_versions[18]) == ((0, 4), (0, 3))
    requests = [encode_api_versions(4, "forebay", "1") for _ in range(2)]
    requests[0].append(b"more")
    assert requests[1] == encode_api_versions(4, "forebay", "1")


def test_errors_name_the_message() -> None:
    with pytest.raises(ProtocolError, match=r"ApiVersions v4 response: .* at byte 3 of 3"):
        decode_api_versions(4, b"\0\0\x7f")


@pytest.mark.parametrize("version", [-1, 5])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="ApiVersions v"):
        encode_api_versions(version, "a", "b")
    with pytest.raises(UnsupportedVersionError, match="ApiVersions v"):
        decode_api_versions(version, b"")
