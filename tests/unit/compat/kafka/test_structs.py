"""kafka-python's named tuples, beside the original's own."""

from __future__ import annotations

import kafka.structs
from kafka.producer.future import RecordMetadata as TheirMetadata

from forebay import model
from forebay._transactions.offsets import checked_group, checked_offsets
from forebay.compat.kafka import structs


def test_fields_and_defaults_are_the_originals() -> None:
    for name in ("TopicPartition", "OffsetAndMetadata", "ConsumerGroupMetadata"):
        here, there = getattr(structs, name), getattr(kafka.structs, name)
        assert (here._fields, here._field_defaults) == (there._fields, there._field_defaults)
    assert structs.RecordMetadata._fields == TheirMetadata._fields


def test_they_compare_with_the_originals() -> None:
    assert structs.TopicPartition("t", 1) == kafka.structs.TopicPartition("t", 1)
    assert str(structs.TopicPartition("t", 1)) == str(kafka.structs.TopicPartition("t", 1))


def test_the_native_producer_takes_them() -> None:
    where = structs.TopicPartition("t", 1)
    expected = {model.TopicPartition("t", 1): model.OffsetAndMetadata(5, 2, "note")}
    assert checked_offsets({where: structs.OffsetAndMetadata(5, "note", 2)}) == expected
    group = checked_group(structs.ConsumerGroupMetadata("g", 3, "member"))
    assert (group.group_id, group.generation_id, group.member_id) == ("g", 3, "member")
