"""kafka-python's named tuples, beside the original's own."""

from __future__ import annotations

import subprocess
import sys

import kafka.structs
import pytest
from kafka.producer.future import RecordMetadata as TheirMetadata

from forebay import model
from forebay._transactions.offsets import checked_group, checked_offsets
from forebay.compat import kafka as ours
from forebay.compat.kafka import _own_structs, structs


def test_fields_and_defaults_are_the_originals() -> None:
    for name in ("TopicPartition", "OffsetAndMetadata", "ConsumerGroupMetadata"):
        here, there = getattr(_own_structs, name), getattr(kafka.structs, name)
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


def test_a_consumer_takes_them() -> None:
    """It asks whether they are of the very classes."""
    for name in ("TopicPartition", "OffsetAndMetadata", "ConsumerGroupMetadata"):
        assert getattr(structs, name) is getattr(ours, name) is getattr(kafka.structs, name)
    assert not hasattr(structs, "nonsense")


def test_without_kafka_python_they_are_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _own_structs.__all__:
        monkeypatch.setitem(sys.modules, "kafka.structs", None)
        assert _own_structs.shared(name) is getattr(_own_structs, name)


def test_to_send_imports_no_kafka_python() -> None:
    code = "import sys, forebay.compat.kafka as k; k.KafkaProducer, k.JsonSerializer; assert 'kafka' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
