from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.metadata import (
    NOT_TOLD,
    MetadataPartition,
    MetadataResponse,
    MetadataTopic,
    decode_metadata,
    encode_metadata,
)
from forebay.errors import IllegalArgumentError, ProtocolError, UnsupportedVersionError
from forebay.errors._base import printable
from forebay.model import Node

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(14)
int32 = st.integers(-(2**31), 2**31 - 1)
errors = st.sampled_from([0, 3, 5, 9, 17, 29, 129]).filter(lambda code: code in set(ErrorCode))
nodes = st.lists(int32, max_size=4).map(tuple)
numbers = st.integers(0, 1000)
partitions = st.builds(MetadataPartition, errors, numbers, int32, int32, nodes, nodes, nodes)
topics = st.builds(
    MetadataTopic,
    errors,
    st.none() | st.text(max_size=20),
    st.none() | st.binary(min_size=16, max_size=16).filter(any),
    st.booleans(),
    st.lists(partitions, max_size=4).map(tuple),
    int32,
)
brokers = st.builds(Node, int32, st.text(max_size=20), int32, st.none() | st.text(max_size=5))
responses = st.builds(
    MetadataResponse,
    st.integers(0, 2**31 - 1),
    st.lists(brokers, max_size=4).map(tuple),
    st.none() | st.text(max_size=10),
    int32,
    st.lists(topics, max_size=4).map(tuple),
    errors,
)


def kio_topic(module: Any, topic: MetadataTopic) -> Any:
    found = [
        make(
            module,
            "MetadataResponsePartition",
            error_code=ErrorCode(part.error_code),
            partition_index=part.partition,
            leader_id=part.leader_id,
            leader_epoch=part.leader_epoch,
            replica_nodes=part.replicas,
            isr_nodes=part.in_sync_replicas,
            offline_replicas=part.offline_replicas,
        )
        for part in topic.partitions
    ]
    return make(
        module,
        "MetadataResponseTopic",
        error_code=ErrorCode(topic.error_code),
        name=topic.name,
        topic_id=topic.topic_id and uuid.UUID(bytes=topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(found),
        topic_authorized_operations=topic.operations,
    )


def by_kio(version: int, said: MetadataResponse) -> bytes:
    module = schema("metadata", version, "response")
    found = [
        make(module, "MetadataResponseBroker", node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in said.brokers
    ]
    return encode(
        make(
            module,
            "MetadataResponse",
            throttle_time=timedelta(milliseconds=said.throttle_time_ms),
            brokers=tuple(found),
            cluster_id=said.cluster_id,
            controller_id=said.controller_id,
            topics=tuple(kio_topic(module, topic) for topic in said.topics),
            cluster_authorized_operations=3,
            error_code=ErrorCode(said.error_code),
        )
    )


def as_seen(version: int, said: MetadataResponse) -> MetadataResponse:
    """``said`` with what ``version`` cannot carry at its default."""

    def partition(part: MetadataPartition) -> MetadataPartition:
        return part._replace(
            leader_epoch=part.leader_epoch if version >= 7 else -1,
            offline_replicas=part.offline_replicas if version >= 5 else (),
        )

    def topic(found: MetadataTopic) -> MetadataTopic:
        return found._replace(
            topic_id=found.topic_id if version >= 10 else None,
            is_internal=found.is_internal if version >= 1 else False,
            partitions=tuple(partition(part) for part in found.partitions),
            operations=found.operations if version >= 8 else NOT_TOLD,
        )

    return MetadataResponse(
        throttle_time_ms=said.throttle_time_ms if version >= 3 else 0,
        brokers=tuple(
            node._replace(host=printable(node.host), rack=node.rack if version >= 1 else None) for node in said.brokers
        ),
        cluster_id=said.cluster_id if version >= 2 else None,
        controller_id=said.controller_id if version >= 1 else -1,
        topics=tuple(topic(found) for found in said.topics),
        error_code=said.error_code if version >= 13 else 0,
    )


@given(st.sampled_from(VERSIONS), responses)
def test_responses_by_kio(version: int, said: MetadataResponse) -> None:
    if version < 12:
        named = tuple(topic._replace(name=topic.name or "") for topic in said.topics)
        said = said._replace(topics=named)
    payload = by_kio(version, said)
    assert decode_metadata(version, payload) == as_seen(version, said)
    assert decode_metadata(version, memoryview(payload)) == as_seen(version, said)


@given(st.sampled_from(VERSIONS), st.none() | st.lists(st.text(max_size=20), max_size=5), st.booleans(), st.booleans())
def test_requests_are_read_by_kio(version: int, names: list[str] | None, auto_create: bool, operations: bool) -> None:
    if version == 0 and names is not None and not names:
        names = ["t"]
    if version < 4:
        auto_create = True
    body = b"".join(encode_metadata(version, names, allow_auto_topic_creation=auto_create, topic_operations=operations))
    found = decode(schema("metadata", version, "request").MetadataRequest, body)
    if version == 0 and names is None:
        assert found.topics == ()
    else:
        assert (None if found.topics is None else [topic.name for topic in found.topics]) == names
    if version >= 4:
        assert found.allow_auto_topic_creation == auto_create
    if version >= 8:
        assert found.include_topic_authorized_operations is operations
    if version >= 10:
        assert all(topic.topic_id is None for topic in found.topics or ())


def test_version_0_cannot_ask_for_no_topics() -> None:
    with pytest.raises(UnsupportedVersionError, match="all topics"):
        encode_metadata(0, [])
    assert b"".join(encode_metadata(1, [])) == bytes(4)


@pytest.mark.parametrize("version", range(4))
def test_old_versions_cannot_switch_off_topic_creation(version: int) -> None:
    """M testUnsupportedVersionDuringInternalMetadataRequest: no auto creation with v3 at most."""
    with pytest.raises(UnsupportedVersionError, match=f"Metadata v{version} cannot switch off topic creation"):
        encode_metadata(version, ["t"], allow_auto_topic_creation=False)


def test_a_topic_name_too_long_for_the_wire() -> None:
    with pytest.raises(IllegalArgumentError, match="at most 32767"):
        encode_metadata(12, ["x" * 32768])


def test_rebootstrap_is_reported_at_the_top() -> None:
    nobody = MetadataResponse(0, (), None, -1, (), 0)
    payload = bytearray(by_kio(13, nobody))
    payload[-3:-1] = (129).to_bytes(2, "big")
    assert decode_metadata(13, bytes(payload)).error_code == 129


SAMPLE = MetadataResponse(
    5,
    (Node(1, "one", 9092, "a"), Node(2, "two", 9093)),
    "cluster",
    2,
    (
        MetadataTopic(0, "t", bytes(range(16)), False, (MetadataPartition(0, 0, 1, 7, (1, 2), (1,), (2,)),)),
        MetadataTopic(3, "u", None, False, ()),
    ),
    0,
)


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, SAMPLE)
    refuses_every_cut(lambda data: decode_metadata(version, data), payload)
    survives_single_bytes(lambda data: decode_metadata(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=300))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_metadata(version, data), payload)


@pytest.mark.parametrize("version", [1, 12])
def test_a_huge_count_costs_nothing(version: int) -> None:
    count = b"\xff\xff\xff\xff\x07" if version == 12 else b"\x7f\xff\xff\xff"
    start = bytes(4) if version == 12 else b""
    with pytest.raises(ProtocolError, match=r"Metadata v\d+ response: array of \d+ elements of at least 10 bytes"):
        decode_metadata(version, start + count + bytes(50))
    parses_or_refuses(lambda data: decode_metadata(version, data), start + count + bytes(50))


@pytest.mark.parametrize(("number", "listed"), [(-1, 1), (-(2**31), 3), (2**31 - 1, 1), (1005, 1), (5000, 2)])
def test_a_partition_that_cannot_be(number: int, listed: int) -> None:
    """Memory is set aside up to the highest partition: one damaged number must not ask for 2^31 of them."""
    last = MetadataPartition(0, number, 1, 7, (1,), (1,), ())
    parts = (*(last._replace(partition=index) for index in range(listed - 1)), last)
    said = SAMPLE._replace(topics=(MetadataTopic(0, "t", None, False, parts),))
    with pytest.raises(ProtocolError, match=rf"partition {number} of topic 't', of which {listed} are listed"):
        decode_metadata(12, by_kio(12, said))


def test_a_broker_may_leave_partitions_out() -> None:
    last = MetadataPartition(0, 1004, 1, 7, (1,), (1,), ())
    said = SAMPLE._replace(topics=(MetadataTopic(0, "t", None, False, (last,)),))
    assert decode_metadata(12, by_kio(12, said)).topics[0].partitions[0].partition == 1004


@pytest.mark.parametrize("version", [-1, 14])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="Metadata v"):
        encode_metadata(version, None)
    with pytest.raises(UnsupportedVersionError, match="Metadata v"):
        decode_metadata(version, b"")
