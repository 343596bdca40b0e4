"""What a picture of the cluster answers."""

from __future__ import annotations

import pytest

from forebay.model import Node, PartitionInfo, TopicPartition
from forebay.model._cluster import Cluster

A, B = Node(1, "a", 9092), Node(2, "b", 9092)


def cluster() -> Cluster:
    infos = [
        PartitionInfo("t", 2, None),
        PartitionInfo("t", 0, A, 7),
        PartitionInfo("t", 1, B),
        PartitionInfo("u", 0, B),
    ]
    return Cluster([A, B], infos, cluster_id="c", version=3, unauthorized_topics=["x"], invalid_topics=["y"])


def test_partitions_come_in_order_of_number_whatever_order_metadata_had() -> None:
    assert [info.partition for info in cluster().partitions("t")] == [0, 1, 2]
    assert cluster().partition_count("t") == 3


def test_a_partition_without_a_leader_counts_but_is_not_available() -> None:
    assert cluster().available_partitions("t") == (0, 1)
    assert cluster().leader(TopicPartition("t", 2)) is None
    assert cluster().leader(TopicPartition("t", 0)) == A


def test_what_it_does_not_know_is_empty_and_no_error() -> None:
    known = cluster()
    assert known.partitions("z") == ()
    assert known.available_partitions("z") == ()
    assert known.partition_count("z") == 0
    assert known.partition("t", 9) is None
    assert known.partition("t", -1) is None
    assert known.leader(TopicPartition("z", 0)) is None
    assert known.node(9) is None


def test_a_partition_is_found_where_numbers_have_gaps() -> None:
    gappy = Cluster([A], [PartitionInfo("t", 0, A), PartitionInfo("t", 5, A, 2)])
    found = gappy.partition("t", 5)
    assert found is not None
    assert found.leader_epoch == 2
    assert gappy.partition("t", 1) is None


def test_topics_and_nodes_are_those_given() -> None:
    known = cluster()
    assert known.topics == {"t", "u"}
    assert known.nodes == (A, B)
    assert known.unauthorized_topics == {"x"}
    assert known.invalid_topics == {"y"}
    assert (known.cluster_id, known.version) == ("c", 3)


def test_it_cannot_be_changed_through_what_it_was_made_of() -> None:
    nodes = [A]
    known = Cluster(nodes)
    nodes.append(B)
    assert known.nodes == (A,)
    with pytest.raises(AttributeError):
        known.anything = 1  # type: ignore[attr-defined]


def test_a_topic_s_id_is_none_where_brokers_do_not_say_it() -> None:
    known = Cluster([A], [PartitionInfo("t", 0, A)], topic_ids={"t": b"i" * 16})
    assert (known.topic_id("t"), known.topic_id("z")) == (b"i" * 16, None)
    assert cluster().topic_id("t") is None


def test_a_picture_shares_what_did_not_change_with_the_one_before() -> None:
    first = cluster()
    second = Cluster([A, B], [PartitionInfo("u", 0, A)], version=4, before=first, unchanged=["t"])
    assert second.topics == {"t", "u"}
    assert second.partitions("t") is first.partitions("t")
    assert second.available_partitions("t") is first.available_partitions("t")
    assert second.leader(TopicPartition("u", 0)) == A
