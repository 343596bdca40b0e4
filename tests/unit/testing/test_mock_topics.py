"""testing.mock_topics: partitions by topic, and where a record goes."""

from __future__ import annotations

import pytest

from forebay.errors import IllegalArgumentError, UnknownTopicOrPartitionError
from forebay.model import ProducerRecord
from forebay.testing.mock_topics import MockTopics


def test_topics_by_name_or_all_alike() -> None:
    named = MockTopics({"a": 2}, None, ignore_keys=False)
    assert [part.partition for part in named.partitions("a")] == [0, 1]
    assert MockTopics(3, None, ignore_keys=False).count("any") == 3
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'b'; there are a"):
        named.count("b")
    with pytest.raises(IllegalArgumentError, match="at least 1, not {'a': 0}"):
        MockTopics({"a": 0}, None, ignore_keys=False)


def test_a_record_goes_by_its_partition_then_by_its_key() -> None:
    topics = MockTopics(1000, None, ignore_keys=False)
    assert topics.partition_of(ProducerRecord("t", b"", partition=7), b"abc", b"") == 7
    # Of Java: murmur2(b"abc") is 479470107.
    assert topics.partition_of(ProducerRecord("t", b""), b"abc", b"") == 479470107 % 1000
    assert topics.partition_of(ProducerRecord("t", b""), None, b"") == 0
    assert MockTopics(1000, None, ignore_keys=True).partition_of(ProducerRecord("t", b""), b"abc", b"") == 0
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic t has 1000 partitions, none is 1000"):
        topics.partition_of(ProducerRecord("t", b"", partition=1000), None, b"")
