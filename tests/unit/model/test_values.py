"""Plain values: how they print, pickle and refuse."""

from __future__ import annotations

import pickle

import pytest

from forebay import model
from forebay.model import (
    ConsumerGroupMetadata,
    Node,
    OffsetAndMetadata,
    PartitionInfo,
    ProducerRecord,
    RecordMetadata,
    TailRecord,
    TopicPartition,
    TransactionDescription,
    TransactionIdentity,
    TransactionListing,
)
from forebay.model import _inputs as _inputs


def test_values_print_as_kafka_prints_them() -> None:
    assert str(TopicPartition("topic", 3)) == "topic-3"
    assert str(Node(1, "a", 9092)) == "a:9092 (id 1)"


@pytest.mark.parametrize(
    "value",
    [
        TopicPartition("t", 0),
        Node(1, "a", 9092, "rack"),
        PartitionInfo("t", 0, None),
        RecordMetadata("t", 0, 1, 2, 3, 4),
        ProducerRecord("t", b"v", headers=[("h", None)], timestamp=0),
        OffsetAndMetadata(5, 1, "m"),
        ConsumerGroupMetadata("g", 3, "member", "instance"),
        TransactionIdentity("tx", 5, 1, 2),
        TransactionDescription("Ongoing", 5, 1, 60_000, 0, (TopicPartition("t", 0),), 1),
        TransactionListing("tx", 5, "Ongoing"),
        TailRecord(1, 2, None, b"v", (("h", None),)),
    ],
)
def test_they_pickle_and_compare(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_what_users_make_has_its_public_home_here_and_nothing_else_is_made_up() -> None:
    for name in ("ConsumerGroupMetadata", "OffsetAndMetadata", "ProducerRecord"):
        kind = getattr(model, name)
        assert kind is getattr(_inputs, name) and kind.__module__ == "forebay.model"
    assert not hasattr(model, "ConsumerRecord")
