from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.describe_configs import (
    DescribeConfigsResponse,
    decode_describe_configs,
    encode_describe_configs,
)
from forebay.errors import ProtocolError, UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(1, 5)


def by_kio(version: int, said: DescribeConfigsResponse, topics: int = 1, synonyms: int = 1) -> bytes:
    module = schema("describe_configs", version, "response")
    synonym = make(module, "DescribeConfigsSynonym", name="log.retention.ms", value=None, source=5)
    more = {"config_type": 2, "documentation": "what it is"} if version >= 3 else {}
    result = make(
        module,
        "DescribeConfigsResult",
        error_code=ErrorCode(said.error_code),
        error_message=said.error_message,
        resource_type=2,
        resource_name="t",
        configs=tuple(
            make(
                module,
                "DescribeConfigsResourceResult",
                name=name,
                value=value,
                read_only=False,
                config_source=5,
                is_sensitive=value is None,
                synonyms=(synonym,) * synonyms,
                **more,
            )
            for name, value in said.configs
        ),
    )
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "DescribeConfigsResponse", throttle_time=throttle, results=(result,) * topics))


@given(
    st.sampled_from(VERSIONS),
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 3, 29, 42]),
    st.none() | st.text(max_size=20),
    st.lists(st.tuples(st.text(max_size=10), st.none() | st.text(max_size=10)), max_size=3),
    st.integers(0, 2),
)
def test_responses_by_kio(
    version: int,
    throttle: int,
    code: int,
    message: str | None,
    configs: list[tuple[str, str | None]],
    synonyms: int,
) -> None:
    said = DescribeConfigsResponse(throttle, code, message, tuple(configs))
    payload = by_kio(version, said, synonyms=synonyms)
    assert decode_describe_configs(version, payload) == said
    assert decode_describe_configs(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.text(max_size=20), st.lists(st.text(max_size=10), max_size=3))
def test_requests_are_read_by_kio(version: int, name: str, keys: list[str]) -> None:
    body = encode_describe_configs(version, name, keys)
    found = decode(schema("describe_configs", version, "request").DescribeConfigsRequest, b"".join(body))
    assert found.include_synonyms is False
    (topic,) = found.resources
    assert (topic.resource_type, topic.resource_name, topic.configuration_keys) == (2, name, tuple(keys))


def test_bytes_by_hand() -> None:
    assert encode_describe_configs(1, "t", ["a"])[0].hex(" ") == "00 00 00 01 02 00 01 74 00 00 00 01 00 01 61 00"
    assert encode_describe_configs(4, "t", ["a"])[0].hex(" ") == "02 02 02 74 02 02 61 00 00 00 00"


@pytest.mark.parametrize("topics", [0, 2])
def test_one_topic_has_one_answer(topics: int) -> None:
    payload = by_kio(4, DescribeConfigsResponse(0, 0, None, ()), topics)
    with pytest.raises(ProtocolError, match=f"{topics} topics for the one"):
        decode_describe_configs(4, payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, DescribeConfigsResponse(7, 29, "not allowed", (("cleanup.policy", "compact"),)))
    refuses_every_cut(lambda data: decode_describe_configs(version, data), payload)
    survives_single_bytes(lambda data: decode_describe_configs(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_describe_configs(version, data), payload)


@pytest.mark.parametrize("version", [0, 5])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="DescribeConfigs v"):
        encode_describe_configs(version, "t", [])
    with pytest.raises(UnsupportedVersionError, match="DescribeConfigs v"):
        decode_describe_configs(version, b"")
