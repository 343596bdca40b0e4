from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.partitions import by_topic
from forebay._protocol.txn_offset_commit import (
    TxnOffsetCommitResponse,
    decode_txn_offset_commit,
    encode_txn_offset_commit,
)
from forebay.errors import UnsupportedVersionError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(6)
ANYBODY = ConsumerGroupMetadata("g")
int16 = st.integers(-(2**15), 2**15 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
partitions = st.builds(TopicPartition, st.sampled_from(["a", "topic", "ü"]), st.integers(0, 2**31 - 1))
offsets = st.dictionaries(
    partitions,
    st.builds(OffsetAndMetadata, st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1), st.text(max_size=10)),
    max_size=6,
)
groups = st.builds(
    ConsumerGroupMetadata,
    st.text(min_size=1, max_size=20),
    st.integers(-1, 2**31 - 1),
    st.text(min_size=1, max_size=20),
    st.none() | st.text(max_size=20),
)


def by_kio(version: int, said: TxnOffsetCommitResponse) -> bytes:
    module = schema("txn_offset_commit", version, "response")

    def answer(topic: str, number: int) -> object:
        code = ErrorCode(said.errors[TopicPartition(topic, number)])
        return make(module, "TxnOffsetCommitResponsePartition", partition_index=number, error_code=code)

    topics = tuple(
        make(
            module,
            "TxnOffsetCommitResponseTopic",
            name=topic,
            partitions=tuple(answer(topic, number) for number in numbers),
        )
        for topic, numbers in by_topic(said.errors).items()
    )
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "TxnOffsetCommitResponse", throttle_time=throttle, topics=topics))


@given(
    st.sampled_from(VERSIONS),
    st.integers(0, 2**31 - 1),
    st.dictionaries(partitions, st.sampled_from([0, 15, 22, 25, 82]), max_size=6),
)
def test_responses_by_kio(version: int, throttle: int, errors: dict[TopicPartition, int]) -> None:
    said = TxnOffsetCommitResponse(throttle, errors)
    payload = by_kio(version, said)
    assert decode_txn_offset_commit(version, payload) == said
    assert decode_txn_offset_commit(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.text(max_size=20), groups, int64, int16, offsets)
def test_requests_are_read_by_kio(
    version: int,
    transactional_id: str,
    group: ConsumerGroupMetadata,
    producer_id: int,
    epoch: int,
    asked: dict[TopicPartition, OffsetAndMetadata],
) -> None:
    if version < 3:
        group = ConsumerGroupMetadata(group.group_id)
    body = encode_txn_offset_commit(version, transactional_id, group, producer_id, epoch, asked)
    found = decode(schema("txn_offset_commit", version, "request").TxnOffsetCommitRequest, b"".join(body))
    assert (found.transactional_id, found.group_id) == (transactional_id, group.group_id)
    assert (found.producer_id, found.producer_epoch) == (producer_id, epoch)
    if version >= 3:
        member = (found.generation_id, found.member_id, found.group_instance_id)
        assert member == (group.generation_id, group.member_id, group.group_instance_id)
    said = {
        TopicPartition(topic.name, one.partition_index): OffsetAndMetadata(
            one.committed_offset, one.committed_leader_epoch if version >= 2 else -1, one.committed_metadata
        )
        for topic in found.topics
        for one in topic.partitions
    }
    expected = (
        asked if version >= 2 else {at: OffsetAndMetadata(one.offset, -1, one.metadata) for at, one in asked.items()}
    )
    assert said == expected


def test_bytes_by_hand() -> None:
    asked = {TopicPartition("a", 1): OffsetAndMetadata(9, 4, "m")}
    assert encode_txn_offset_commit(0, "t", ANYBODY, 5, 1, asked)[0].hex(" ") == (
        "00 01 74 00 01 67 00 00 00 00 00 00 00 05 00 01 "
        "00 00 00 01 00 01 61 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 09 00 01 6d"
    )
    assert encode_txn_offset_commit(5, "t", ANYBODY, 5, 1, asked)[0].hex(" ") == (
        "02 74 02 67 00 00 00 00 00 00 00 05 00 01 ff ff ff ff 01 00 "
        "02 02 61 02 00 00 00 01 00 00 00 00 00 00 00 09 00 00 00 04 02 6d 00 00 00"
    )


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "group",
    [
        ConsumerGroupMetadata("g", 0),
        ConsumerGroupMetadata("g", member_id="m"),
        ConsumerGroupMetadata("g", group_instance_id="i"),
    ],
)
def test_old_versions_never_leave_a_member_out(version: int, group: ConsumerGroupMetadata) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"TxnOffsetCommit v{version} cannot name a member of group 'g'"):
        encode_txn_offset_commit(version, "t", group, 5, 1, {})


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    errors = {TopicPartition("a", 0): 0, TopicPartition("a", 1): 25, TopicPartition("b", 0): 15}
    payload = by_kio(version, TxnOffsetCommitResponse(7, errors))
    refuses_every_cut(lambda data: decode_txn_offset_commit(version, data), payload)
    survives_single_bytes(lambda data: decode_txn_offset_commit(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_txn_offset_commit(version, data), payload)


@pytest.mark.parametrize("version", [-1, 6])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="TxnOffsetCommit v"):
        encode_txn_offset_commit(version, "t", ANYBODY, 0, 0, {})
    with pytest.raises(UnsupportedVersionError, match="TxnOffsetCommit v"):
        decode_txn_offset_commit(version, b"")
