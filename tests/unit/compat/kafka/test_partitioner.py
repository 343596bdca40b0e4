"""kafka-python's partitioners beside the original's own."""

from __future__ import annotations

import pytest
from kafka.partitioner import DefaultPartitioner as Original
from kafka.partitioner import murmur2 as their_murmur2

from forebay.compat.kafka._user_functions import ClusterView
from forebay.compat.kafka.partitioner import DefaultPartitioner, murmur2
from forebay.model import Node, PartitionInfo
from forebay.model._cluster import Cluster

BROKER = Node(1, "a", 9092)
CLUSTER = Cluster([BROKER], [PartitionInfo("t", number, BROKER if number else None) for number in range(5)])


@pytest.mark.parametrize("key", [b"", b"a", b"ab", b"abc", b"abcd", b"\xff\xfe", b"key-" * 9])
def test_keys_hash_as_the_originals(key: bytes) -> None:
    view = ClusterView(CLUSTER)
    assert murmur2(key) == their_murmur2(key)
    assert DefaultPartitioner().partition("t", None, key, None, b"", view) == Original().partition(
        "t", None, key, None, b"", view
    )


def test_no_key_goes_to_any_partition_with_a_leader() -> None:
    ours = DefaultPartitioner()
    assert {ours.partition("t", None, None, None, b"", ClusterView(CLUSTER)) for _ in range(200)} == {1, 2, 3, 4}
    without = Cluster([], [PartitionInfo("t", number, None) for number in range(2)])
    assert {ours.partition("t", None, None, None, b"", ClusterView(without)) for _ in range(100)} == {0, 1}
    with pytest.raises(ValueError, match="Topic x not found"):
        ours.partition("x", None, None, None, b"", ClusterView(CLUSTER))
