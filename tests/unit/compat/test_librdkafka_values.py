"""Values of confluent-kafka's programs, and its functions of keys."""

from __future__ import annotations

import pickle

import confluent_kafka
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
    for fields in (("t", 1, 5), ("t",), ("t", 1, 5, "m", 3)):
        assert repr(TopicPartition(*fields)) == repr(confluent_kafka.TopicPartition(*fields))
    parts = [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 1, 9), TopicPartition("a", 1, 3)]
    assert [(part.topic, part.partition, part.offset) for part in sorted(parts)] == [
        ("a", 1, 9), ("a", 1, 3), ("a", 2, -1001), ("b", 1, -1001),
    ]  # fmt: skip
    assert TopicPartition("a", 1) <= TopicPartition("a", 1) and pickle.loads(pickle.dumps(parts)) == parts
    for wrong in ((1,), ("t", "x"), ("t", 0, "x")):
        with pytest.raises(TypeError):
            TopicPartition(*wrong)
    with pytest.raises(TypeError):
        assert TopicPartition("a") < 1


def test_a_metadata_answer() -> None:
    part = MetadataPartition(0, 0, 1, 5, (1, 2), (1,), ())
    topics = (MetadataTopic(0, "t", None, False, (part,)), MetadataTopic(3, "absent", None, False, ()))
    cluster = as_cluster(MetadataResponse(0, (Node(1, "h", 9092),), "c", 1, topics, 0))
    assert cluster.brokers[1] == (1, "h", 9092) and (cluster.cluster_id, cluster.controller_id) == ("c", 1)
    assert cluster.topics["t"].partitions[0] == (0, 1, [1, 2], [1], None) and cluster.topics["t"].error is None
    shown = (cluster, cluster.brokers[1], cluster.topics["t"], cluster.topics["t"].partitions[0])
    assert [str(each) for each in shown] == ["c", "h:9092/1", "t", "0"]
    assert repr(cluster) == "ClusterMetadata(c)" and repr(cluster.brokers[1]) == "BrokerMetadata(1, h:9092)"
    assert repr(cluster.topics["t"]) == "TopicMetadata(t, 1 partitions)"
    assert repr(cluster.topics["t"].partitions[0]) == "PartitionMetadata(0)"
    assert repr(cluster.topics["absent"]).startswith("TopicMetadata(absent, 0 partitions, KafkaError{code=UNKNOWN_")
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
