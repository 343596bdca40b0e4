"""testing.mock_cluster: partitions by topic, where a record goes, and what transactions leave."""

from __future__ import annotations

import pytest

from forebay.errors import IllegalArgumentError, UnknownTopicOrPartitionError
from forebay.model import OffsetAndMetadata, ProducerRecord, TopicPartition
from forebay.testing import ReadRecord
from forebay.testing.mock_cluster import MockCluster, Sent


def test_topics_by_name_or_all_alike() -> None:
    named = MockCluster({"a": 2}, None, ignore_keys=False)
    assert [part.partition for part in named.partitions("a")] == [0, 1]
    assert MockCluster(3, None, ignore_keys=False).count("any") == 3
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'b'; there are a"):
        named.count("b")
    with pytest.raises(IllegalArgumentError, match="at least 1, not {'a': 0}"):
        MockCluster({"a": 0}, None, ignore_keys=False)


def test_a_record_goes_by_its_partition_then_by_its_key() -> None:
    topics = MockCluster(1000, None, ignore_keys=False)
    assert topics.partition_of(ProducerRecord("t", b"", partition=7), b"abc", b"") == 7
    # Of Java: murmur2(b"abc") is 479470107.
    assert topics.partition_of(ProducerRecord("t", b""), b"abc", b"") == 479470107 % 1000
    assert topics.partition_of(ProducerRecord("t", b""), None, b"") == 0
    assert MockCluster(1000, None, ignore_keys=True).partition_of(ProducerRecord("t", b""), b"abc", b"") == 0
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic t has 1000 partitions, none is 1000"):
        topics.partition_of(ProducerRecord("t", b"", partition=1000), None, b"")


def test_a_transaction_is_sent_once_it_is_committed() -> None:
    cluster = MockCluster(1, None, ignore_keys=False)
    where = TopicPartition("t", 0)
    sent = Sent(ProducerRecord("t", b"v"), ReadRecord("t", 0, cluster.next_offset(where), 1, None, b"v"))
    for commit in (False, True):
        cluster.uncommitted.append(sent)
        cluster.uncommitted_offsets["group"] = {where: OffsetAndMetadata(5)}
        cluster.end_transaction(commit=commit)
    assert cluster.sent == [sent] and cluster.offsets == [{"group": {where: OffsetAndMetadata(5)}}]
    assert (cluster.uncommitted, cluster.uncommitted_offsets) == ([], {})
    cluster.clear()
    assert (cluster.sent, cluster.offsets) == ([], []) and cluster.next_offset(where) == 1
