from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.list_offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ListOffsetsResponse,
    decode_list_offsets,
    encode_list_offsets,
)
from forebay.errors import ProtocolError, UnsupportedVersionError
from forebay.model import TopicPartition

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(2, 7)
WHERE = TopicPartition("t", 3)


def by_kio(version: int, said: ListOffsetsResponse, partitions: int = 1) -> bytes:
    module = schema("list_offsets", version, "response")
    one = make(
        module,
        "ListOffsetsPartitionResponse",
        partition_index=3,
        error_code=ErrorCode(said.error_code),
        timestamp=-1,
        offset=said.offset,
        leader_epoch=said.leader_epoch,
    )
    topic = make(module, "ListOffsetsTopicResponse", name="t", partitions=(one,) * partitions)
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "ListOffsetsResponse", throttle_time=throttle, topics=(topic,)))


@given(
    st.sampled_from(VERSIONS),
    st.builds(
        ListOffsetsResponse,
        st.integers(0, 2**31 - 1),
        st.sampled_from([0, 3, 6, 78]),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**31 - 1),
    ),
)
def test_responses_by_kio(version: int, said: ListOffsetsResponse) -> None:
    if version < 4:
        said = said._replace(leader_epoch=-1)
    payload = by_kio(version, said)
    assert decode_list_offsets(version, payload) == said
    assert decode_list_offsets(version, memoryview(payload)) == said


@given(
    st.sampled_from(VERSIONS),
    st.builds(TopicPartition, st.text(max_size=20), st.integers(0, 2**31 - 1)),
    st.sampled_from([EARLIEST, LATEST, 0, 1_700_000_000_000]),
    st.sampled_from([READ_COMMITTED, READ_UNCOMMITTED]),
)
def test_requests_are_read_by_kio(version: int, where: TopicPartition, which: int, isolation: int) -> None:
    body = encode_list_offsets(version, where, which, isolation)
    found = decode(schema("list_offsets", version, "request").ListOffsetsRequest, b"".join(body))
    assert (found.replica_id, found.isolation_level) == (-1, isolation)
    (topic,) = found.topics
    (partition,) = topic.partitions
    assert TopicPartition(topic.name, partition.partition_index) == where
    assert partition.timestamp == which
    assert version < 4 or partition.current_leader_epoch == -1


def test_bytes_by_hand() -> None:
    assert encode_list_offsets(2, WHERE, LATEST, READ_COMMITTED)[0].hex(" ") == (
        "ff ff ff ff 01 00 00 00 01 00 01 74 00 00 00 01 00 00 00 03 ff ff ff ff ff ff ff ff"
    )
    assert encode_list_offsets(6, WHERE, EARLIEST, READ_UNCOMMITTED)[0].hex(" ") == (
        "ff ff ff ff 00 02 02 74 02 00 00 00 03 ff ff ff ff ff ff ff ff ff ff ff fe 00 00 00"
    )


@pytest.mark.parametrize("partitions", [0, 2])
def test_one_partition_has_one_answer(partitions: int) -> None:
    payload = by_kio(6, ListOffsetsResponse(0, 0, 5), partitions)
    with pytest.raises(ProtocolError, match=f"{partitions} partitions for the one"):
        decode_list_offsets(6, payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, ListOffsetsResponse(7, 0, 4711, 2))
    refuses_every_cut(lambda data: decode_list_offsets(version, data), payload)
    survives_single_bytes(lambda data: decode_list_offsets(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_list_offsets(version, data), payload)


@pytest.mark.parametrize("version", [1, 7])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="ListOffsets v"):
        encode_list_offsets(version, WHERE, LATEST, READ_COMMITTED)
    with pytest.raises(UnsupportedVersionError, match="ListOffsets v"):
        decode_list_offsets(version, b"")
