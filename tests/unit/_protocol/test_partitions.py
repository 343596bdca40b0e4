"""Partitions by topic, in requests and in answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._protocol.partitions import by_topic, read_partition_errors
from forebay._protocol.primitives import Reader
from forebay.errors import ProtocolError
from forebay.model import TopicPartition

partitions = st.lists(st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 5)))


@given(partitions)
def test_grouping_keeps_every_partition_and_the_order_of_topics(given_partitions: list[TopicPartition]) -> None:
    grouped = by_topic(given_partitions)
    assert list(grouped) == list(dict.fromkeys(topic for topic, _ in given_partitions))
    for topic, numbers in grouped.items():
        assert numbers == [number for name, number in given_partitions if name == topic]


def test_codes_are_read_for_each_partition_of_each_topic() -> None:
    reader = Reader(
        bytes.fromhex("00000002 000161 00000002 00000000 0000 00000001 0003 000162 00000000"),
        what="answer",
        flexible=False,
    )
    assert read_partition_errors(reader, flexible=False) == {TopicPartition("a", 0): 0, TopicPartition("a", 1): 3}


def test_a_null_array_is_refused() -> None:
    with pytest.raises(ProtocolError, match="answer: null where an array is required"):
        read_partition_errors(Reader(b"\x00", what="answer", flexible=True), flexible=True)
