from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.fetch import AbortedTransaction, FetchResponse, decode_fetch, encode_fetch
from forebay._protocol.list_offsets import READ_COMMITTED, READ_UNCOMMITTED
from forebay.errors import ProtocolError, UnsupportedVersionError
from forebay.model import TopicPartition

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(4, 13)
WHERE = TopicPartition("t", 3)
offset = st.integers(-1, 2**63 - 1)
responses = st.builds(
    FetchResponse,
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 1, 3, 6]),
    offset,
    offset,
    offset,
    st.lists(st.builds(AbortedTransaction, offset, offset), max_size=3).map(tuple),
    st.binary(max_size=100),
)


def by_kio(version: int, said: FetchResponse, *, partitions: int = 1, no_list: bool = False, whole: int = 0) -> bytes:
    """``whole`` is the error of the response itself; kio takes records as bytes-like objects."""
    module = schema("fetch", version, "response")
    aborted = tuple(
        make(module, "AbortedTransaction", producer_id=one.producer_id, first_offset=one.first_offset)
        for one in said.aborted
    )
    one = make(
        module,
        "PartitionData",
        partition_index=3,
        error_code=ErrorCode(said.error_code),
        high_watermark=said.high_watermark,
        last_stable_offset=said.last_stable_offset,
        log_start_offset=said.log_start_offset,
        aborted_transactions=None if no_list else aborted,
        preferred_read_replica=-1,
        records=said.records or None,
    )
    topic = make(module, "FetchableTopicResponse", topic="t", partitions=(one,) * partitions)
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(
        make(
            module,
            "FetchResponse",
            throttle_time=throttle,
            error_code=ErrorCode(whole),
            session_id=0,
            responses=(topic,) if partitions else (),
        )
    )


@given(st.sampled_from(VERSIONS), responses, st.booleans())
def test_responses_by_kio(version: int, said: FetchResponse, no_list: bool) -> None:
    if version < 5:
        said = said._replace(log_start_offset=-1)
    if no_list:
        said = said._replace(aborted=())
    payload = by_kio(version, said, no_list=no_list)
    assert decode_fetch(version, payload) == said
    assert decode_fetch(version, memoryview(payload)) == said


@given(
    st.sampled_from(VERSIONS),
    st.builds(TopicPartition, st.text(max_size=20), st.integers(0, 2**31 - 1)),
    st.integers(0, 2**63 - 1),
    st.sampled_from([READ_COMMITTED, READ_UNCOMMITTED]),
)
def test_requests_are_read_by_kio(version: int, where: TopicPartition, at: int, isolation: int) -> None:
    body = encode_fetch(version, where, at, isolation=isolation, max_bytes=4096, max_wait_ms=250)
    found = decode(schema("fetch", version, "request").FetchRequest, b"".join(body))
    assert (found.replica_id, found.isolation_level) == (-1, isolation)
    assert (found.max_wait, found.min_bytes, found.max_bytes) == (timedelta(milliseconds=250), 1, 4096)
    if version >= 7:
        assert (found.session_id, found.session_epoch, found.forgotten_topics_data) == (0, -1, ())
    assert version < 11 or found.rack_id == ""
    (topic,) = found.topics
    (one,) = topic.partitions
    assert TopicPartition(topic.topic, one.partition) == where
    assert (one.fetch_offset, one.partition_max_bytes) == (at, 4096)
    assert version < 5 or one.log_start_offset == -1
    assert version < 9 or one.current_leader_epoch == -1
    assert version < 12 or one.last_fetched_epoch == -1


def test_bytes_by_hand() -> None:
    assert encode_fetch(4, WHERE, 9, isolation=READ_COMMITTED, max_bytes=16, max_wait_ms=5)[0].hex(" ") == (
        "ff ff ff ff 00 00 00 05 00 00 00 01 00 00 00 10 01 "
        "00 00 00 01 00 01 74 00 00 00 01 00 00 00 03 00 00 00 00 00 00 00 09 00 00 00 10"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_of_the_whole_response_needs_no_partition(version: int) -> None:
    payload = by_kio(version, FetchResponse(9, 0), partitions=0, whole=70)
    if version < 7:
        with pytest.raises(ProtocolError, match="0 partitions for the one"):
            decode_fetch(version, payload)
    else:
        assert decode_fetch(version, payload) == FetchResponse(9, 70)


def test_one_partition_has_one_answer() -> None:
    with pytest.raises(ProtocolError, match="2 partitions for the one"):
        decode_fetch(12, by_kio(12, FetchResponse(0, 0), partitions=2))


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    aborted = (AbortedTransaction(5, 2), AbortedTransaction(6, 3))
    payload = by_kio(version, FetchResponse(7, 0, 10, 9, 0, aborted, b"these are no records"))
    refuses_every_cut(lambda data: decode_fetch(version, data), payload)
    survives_single_bytes(lambda data: decode_fetch(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=80))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_fetch(version, data), payload)


@pytest.mark.parametrize("version", [3, 13])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="Fetch v"):
        encode_fetch(version, WHERE, 0, isolation=READ_COMMITTED, max_bytes=1, max_wait_ms=0)
    with pytest.raises(UnsupportedVersionError, match="Fetch v"):
        decode_fetch(version, b"")
