from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.add_partitions_to_txn import (
    AddPartitionsToTxnResponse,
    decode_add_partitions_to_txn,
    encode_add_partitions_to_txn,
)
from forebay._protocol.partitions import by_topic
from forebay.errors import UnsupportedVersionError
from forebay.model import TopicPartition

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(4)
int16 = st.integers(-(2**15), 2**15 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
partitions = st.builds(TopicPartition, st.sampled_from(["a", "topic", "ü"]), st.integers(0, 2**31 - 1))


def by_kio(version: int, said: AddPartitionsToTxnResponse) -> bytes:
    module = schema("add_partitions_to_txn", version, "response")

    def answer(topic: str, number: int) -> object:
        code = ErrorCode(said.errors[TopicPartition(topic, number)])
        return make(module, "AddPartitionsToTxnPartitionResult", partition_index=number, partition_error_code=code)

    topics = tuple(
        make(
            module,
            "AddPartitionsToTxnTopicResult",
            name=topic,
            results_by_partition=tuple(answer(topic, number) for number in numbers),
        )
        for topic, numbers in by_topic(said.errors).items()
    )
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(
        make(module, "AddPartitionsToTxnResponse", throttle_time=throttle, results_by_topic_v3_and_below=topics)
    )


@given(
    st.sampled_from(VERSIONS),
    st.integers(0, 2**31 - 1),
    st.dictionaries(partitions, st.sampled_from([0, 3, 29, 51, 55]), max_size=6),
)
def test_responses_by_kio(version: int, throttle: int, errors: dict[TopicPartition, int]) -> None:
    said = AddPartitionsToTxnResponse(throttle, errors)
    payload = by_kio(version, said)
    assert decode_add_partitions_to_txn(version, payload) == said
    assert decode_add_partitions_to_txn(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.text(max_size=20), int64, int16, st.lists(partitions, max_size=6, unique=True))
def test_requests_are_read_by_kio(
    version: int, transactional_id: str, producer_id: int, epoch: int, asked: list[TopicPartition]
) -> None:
    body = encode_add_partitions_to_txn(version, transactional_id, producer_id, epoch, asked)
    module = schema("add_partitions_to_txn", version, "request")
    found = decode(module.AddPartitionsToTxnRequest, b"".join(body))
    assert found.v3_and_below_transactional_id == transactional_id
    assert (found.v3_and_below_producer_id, found.v3_and_below_producer_epoch) == (producer_id, epoch)
    topics = found.v3_and_below_topics
    assert {topic.name: list(topic.partitions) for topic in topics} == by_topic(asked)
    assert len(topics) == len({topic for topic, _ in asked})


def test_bytes_by_hand() -> None:
    asked = [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 2)]
    assert encode_add_partitions_to_txn(0, "t", 5, 1, asked)[0].hex(" ") == (
        "00 01 74 00 00 00 00 00 00 00 05 00 01 00 00 00 02 "
        "00 01 61 00 00 00 02 00 00 00 01 00 00 00 02 00 01 62 00 00 00 01 00 00 00 00"
    )
    assert encode_add_partitions_to_txn(3, "t", 5, 1, asked)[0].hex(" ") == (
        "02 74 00 00 00 00 00 00 00 05 00 01 03 02 61 03 00 00 00 01 00 00 00 02 00 02 62 02 00 00 00 00 00 00"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    errors = {TopicPartition("a", 0): 0, TopicPartition("a", 1): 51, TopicPartition("b", 0): 3}
    payload = by_kio(version, AddPartitionsToTxnResponse(7, errors))
    refuses_every_cut(lambda data: decode_add_partitions_to_txn(version, data), payload)
    survives_single_bytes(lambda data: decode_add_partitions_to_txn(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_add_partitions_to_txn(version, data), payload)


@pytest.mark.parametrize("version", [-1, 4])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="AddPartitionsToTxn v"):
        encode_add_partitions_to_txn(version, "t", 0, 0, [])
    with pytest.raises(UnsupportedVersionError, match="AddPartitionsToTxn v"):
        decode_add_partitions_to_txn(version, b"")
