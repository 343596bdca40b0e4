"""Values of confluent-kafka's programs, and its functions of keys."""

from __future__ import annotations

import pytest

from forebay._protocol.metadata import MetadataPartition, MetadataResponse, MetadataTopic
from forebay.compat._librdkafka_values import (
    TopicPartition,
    as_cluster,
    consistent,
    fnv1a,
    murmur2,
    plain_bytes,
    plain_headers,
)
from forebay.model import Node


def test_partition_functions_judge_their_arguments() -> None:
    with pytest.raises(ValueError, match="partition_count must be > 0"):
        murmur2(b"k", 0)
    with pytest.raises(TypeError, match="key must be bytes"):
        fnv1a("k", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="partition_count must be an int"):
        consistent(b"k", "1")  # type: ignore[arg-type]


def test_partitions_of_topics() -> None:
    assert TopicPartition("t", 1) == TopicPartition("t", 1, 5) != TopicPartition("t", 2)
    assert repr(TopicPartition("t", 1, 5)) == "TopicPartition{topic=t,partition=1,offset=5}"


def test_a_metadata_answer() -> None:
    part = MetadataPartition(0, 0, 1, 5, (1, 2), (1,), ())
    topics = (MetadataTopic(0, "t", None, False, (part,)), MetadataTopic(3, "absent", None, False, ()))
    cluster = as_cluster(MetadataResponse(0, (Node(1, "h", 9092),), "c", 1, topics, 0))
    assert cluster.brokers[1] == (1, "h", 9092) and (cluster.cluster_id, cluster.controller_id) == ("c", 1)
    assert cluster.topics["t"].partitions[0] == (0, 1, [1, 2], [1], None) and cluster.topics["t"].error is None
    error = cluster.topics["absent"].error
    assert error is not None and error.name() == "UNKNOWN_TOPIC_OR_PART"


def test_values() -> None:
    assert plain_bytes("value", "ä") == "ä".encode()
    for wrong in (1, bytearray(b"x"), memoryview(b"x")):  # those that can be written to the original refuses, too
        with pytest.raises(TypeError, match=f"key must be bytes, str or None, got {type(wrong).__name__}"):
            plain_bytes("key", wrong)


def test_headers() -> None:
    assert plain_headers({"a": "ä", "b": None}) == [("a", "ä".encode()), ("b", None)]
    assert plain_headers([("a", b"1"), ("a", "")]) == [("a", b"1"), ("a", b"")]
    assert plain_headers([(1, b"x"), (None, b"x"), (b"a", b"x")]) == [("1", b"x"), ("None", b"x"), ("b'a'", b"x")]
    for wrong in (("a", "b"), ["a"], {"a": 1}, [("a", "b", "c")], "ab", [("a", bytearray(b"b"))]):
        with pytest.raises(TypeError):
            plain_headers(wrong)
