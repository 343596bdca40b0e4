from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.delete_topics import DeleteTopicsResponse, decode_delete_topics, encode_delete_topics
from forebay.errors import ProtocolError, UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(1, 7)


def by_kio(version: int, said: DeleteTopicsResponse, topics: int = 1) -> bytes:
    module = schema("delete_topics", version, "response")
    result = make(
        module,
        "DeletableTopicResult",
        name="t",
        topic_id=uuid.UUID(int=7),
        error_code=ErrorCode(said.error_code),
        error_message=said.error_message,
    )
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "DeleteTopicsResponse", throttle_time=throttle, responses=(result,) * topics))


@given(
    st.sampled_from(VERSIONS),
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 3, 29, 41, 73]),
    st.none() | st.text(max_size=20),
)
def test_responses_by_kio(version: int, throttle: int, code: int, message: str | None) -> None:
    said = DeleteTopicsResponse(throttle, code, message)
    payload = by_kio(version, said)
    expected = said if version >= 5 else said._replace(error_message=None)
    assert decode_delete_topics(version, payload) == expected
    assert decode_delete_topics(version, memoryview(payload)) == expected


@given(st.sampled_from(VERSIONS), st.text(min_size=1, max_size=20))
def test_requests_are_read_by_kio(version: int, name: str) -> None:
    data = b"".join(encode_delete_topics(version, name, timeout_ms=1234))
    request = decode(schema("delete_topics", version, "request").DeleteTopicsRequest, data)
    assert request.timeout == timedelta(milliseconds=1234)
    if version < 6:
        assert request.topic_names == (name,)
    else:
        (topic,) = request.topics
        assert topic.name == name and not topic.topic_id


@pytest.mark.parametrize("topics", [0, 2])
def test_any_number_of_topics_but_one_is_refused(topics: int) -> None:
    with pytest.raises(ProtocolError, match=f"{topics} topics"):
        decode_delete_topics(6, by_kio(6, DeleteTopicsResponse(0, 0, None), topics))


@pytest.mark.parametrize("version", [0, 7])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersionError):
        encode_delete_topics(version, "t", timeout_ms=1)
    with pytest.raises(UnsupportedVersionError):
        decode_delete_topics(version, b"")


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_responses(version: int) -> None:
    payload = by_kio(version, DeleteTopicsResponse(5, 29, "no"))
    refuses_every_cut(lambda data: decode_delete_topics(version, data), payload)
    survives_single_bytes(lambda data: decode_delete_topics(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_noise(version: int, data: bytes) -> None:
    parses_or_refuses(lambda noise: decode_delete_topics(version, noise), data)
