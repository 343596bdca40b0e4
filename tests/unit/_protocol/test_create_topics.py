from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.create_topics import (
    BROKER_DEFAULT,
    CreateTopicsResponse,
    decode_create_topics,
    encode_create_topics,
)
from forebay.errors import ProtocolError, UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(2, 8)


def by_kio(version: int, said: CreateTopicsResponse, topics: int = 1, configs: int = 2) -> bytes:
    module = schema("create_topics", version, "response")
    entries = tuple(
        make(module, "CreatableTopicConfigs", name="cleanup.policy", value=None, read_only=False, is_sensitive=False)
        for _ in range(configs if version >= 5 else 0)
    )
    result = make(
        module,
        "CreatableTopicResult",
        name="t",
        topic_id=uuid.UUID(int=7),
        error_code=ErrorCode(said.error_code),
        error_message=said.error_message,
        topic_config_error_code=29,
        num_partitions=3,
        replication_factor=1,
        configs=entries if configs >= 0 else None,
    )
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "CreateTopicsResponse", throttle_time=throttle, topics=(result,) * topics))


@given(
    st.sampled_from(VERSIONS),
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 36, 37, 38, 41, 89]),
    st.none() | st.text(max_size=20),
    st.integers(-1, 3),
)
def test_responses_by_kio(version: int, throttle: int, code: int, message: str | None, configs: int) -> None:
    said = CreateTopicsResponse(throttle, code, message)
    payload = by_kio(version, said, configs=configs)
    assert decode_create_topics(version, payload) == said
    assert decode_create_topics(version, memoryview(payload)) == said


@given(
    st.sampled_from(VERSIONS),
    st.text(max_size=20),
    st.integers(1, 2**31 - 1),
    st.integers(1, 2**15 - 1),
    st.dictionaries(st.text(max_size=10), st.none() | st.text(max_size=10), max_size=3),
)
def test_requests_are_read_by_kio(
    version: int, name: str, partitions: int, replicas: int, configs: dict[str, str | None]
) -> None:
    body = encode_create_topics(version, name, partitions, replicas, configs=configs, timeout_ms=1234)
    found = decode(schema("create_topics", version, "request").CreateTopicsRequest, b"".join(body))
    assert (found.timeout, found.validate_only) == (timedelta(milliseconds=1234), False)
    (topic,) = found.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (name, partitions, replicas)
    assert topic.assignments == ()
    assert {config.name: config.value for config in topic.configs} == configs


def test_bytes_by_hand() -> None:
    configs: dict[str, str | None] = {"a": "b"}
    assert encode_create_topics(2, "t", 1, 3, configs=configs, timeout_ms=5)[0].hex(" ") == (
        "00 00 00 01 00 01 74 00 00 00 01 00 03 00 00 00 00 00 00 00 01 00 01 61 00 01 62 00 00 00 05 00"
    )
    assert encode_create_topics(7, "t", BROKER_DEFAULT, -1, configs=configs, timeout_ms=5)[0].hex(" ") == (
        "02 02 74 ff ff ff ff ff ff 01 02 02 61 02 62 00 00 00 00 00 05 00 00"
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("partitions", "replicas"), [(-1, 1), (1, -1)])
def test_old_versions_know_no_defaults(version: int, partitions: int, replicas: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"CreateTopics v{version} knows no broker defaults"):
        encode_create_topics(version, "t", partitions, replicas, configs={}, timeout_ms=5)


@pytest.mark.parametrize("topics", [0, 2])
def test_one_topic_has_one_answer(topics: int) -> None:
    payload = by_kio(7, CreateTopicsResponse(0, 0, None), topics)
    with pytest.raises(ProtocolError, match=f"{topics} topics for the one"):
        decode_create_topics(7, payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, CreateTopicsResponse(7, 36, "there is one"))
    refuses_every_cut(lambda data: decode_create_topics(version, data), payload)
    survives_single_bytes(lambda data: decode_create_topics(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_create_topics(version, data), payload)


@pytest.mark.parametrize("version", [1, 8])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="CreateTopics v"):
        encode_create_topics(version, "t", 1, 1, configs={}, timeout_ms=0)
    with pytest.raises(UnsupportedVersionError, match="CreateTopics v"):
        decode_create_topics(version, b"")
