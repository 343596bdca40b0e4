"""Values with aiokafka's fields in its order."""

from __future__ import annotations

from aiokafka import structs as original

from forebay.compat.aiokafka import structs
from forebay.model import TopicPartition


def test_the_fields_are_those_of_the_original() -> None:
    for name in structs.__all__:
        assert getattr(structs, name)._fields == getattr(original, name)._fields


def test_partitions_are_keys_for_both() -> None:
    ours = {structs.TopicPartition("t", 1): "found"}
    assert ours[original.TopicPartition("t", 1)] == "found"
    assert ours[TopicPartition("t", 1)] == "found"  # type: ignore[index]
