"""Where a record went: plain numbers that behave as a tuple of the fields."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from forebay.errors import RecordTooLargeError
from forebay.model import DeliveryReport, RecordMetadata

FIELDS = ("topic", "partition", "offset", "timestamp", "serialized_key_size", "serialized_value_size")
VALUES = ("topic", 3, 42, 1_700_000_000_000, -1, 1)


def made(*changed: Any) -> RecordMetadata:
    return RecordMetadata(*(*changed, *VALUES[len(changed) :]))


def test_the_fields_by_name_by_place_and_all_together() -> None:
    metadata = made()
    assert tuple(getattr(metadata, name) for name in FIELDS) == VALUES
    assert (tuple(metadata), len(metadata), metadata[2], metadata[-1], metadata[:2]) == (VALUES, 6, 42, 1, VALUES[:2])
    topic, partition, *_ = metadata
    assert (topic, partition, 42 in metadata, 41 in metadata) == ("topic", 3, True, False)
    assert (metadata._fields, metadata._asdict()) == (FIELDS, dict(zip(FIELDS, VALUES, strict=True)))
    assert RecordMetadata(**metadata._asdict()) == metadata
    with pytest.raises(IndexError):
        metadata[6]


def test_it_can_be_matched() -> None:
    match made():
        case RecordMetadata("topic", partition, offset=offset):
            assert (partition, offset) == (3, 42)
        case _:
            pytest.fail("no match")


def test_it_compares_as_its_tuple() -> None:
    one, other, later = made(), made(), made("topic", 3, 43)
    assert one == other == VALUES
    assert (one != other, one != later) == (False, True)
    assert one < later and one <= other and later > one and later >= one and not later < one
    assert sorted([later, one]) == [one, later]
    assert (hash(one) == hash(other) == hash(VALUES), len({one, other, later})) == (True, 2)
    assert one != "topic" and one != None  # noqa: E711 - what == makes of it is the question
    with pytest.raises(TypeError):
        one < 5  # noqa: B015 - raises


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_equal(again: Any) -> None:
    assert again(made()) == made()


def test_it_cannot_be_changed_but_replaced() -> None:
    metadata = made()
    for name in FIELDS:
        with pytest.raises(AttributeError):
            setattr(metadata, name, 1)
    assert metadata._replace(offset=7) == made("topic", 3, 7)
    assert metadata.__replace__(offset=7) == made("topic", 3, 7)
    assert metadata == VALUES
    with pytest.raises(TypeError):
        metadata._replace(unknown=1)


def test_it_takes_the_whole_range_of_each_number_and_nothing_else() -> None:
    largest = RecordMetadata("t", 2**31 - 1, 2**63 - 1, 2**63 - 1, 2**31 - 1, 2**31 - 1)
    assert tuple(largest) == ("t", 2**31 - 1, 2**63 - 1, 2**63 - 1, 2**31 - 1, 2**31 - 1)
    with pytest.raises(TypeError):
        RecordMetadata("t", 0)  # type: ignore[call-arg]


def test_a_topic_that_is_a_kind_of_str_is_kept_as_a_plain_one() -> None:
    class Name(str):
        """As an enumeration's member is."""

    metadata = RecordMetadata(Name("t"), 0, 1, 2, 3, 4)
    assert type(metadata.topic) is str and metadata == ("t", 0, 1, 2, 3, 4)
    for other in (None, 5, b"t"):
        with pytest.raises(TypeError):
            RecordMetadata(other, 0, 1, 2, 3, 4)


def test_it_prints_as_kafka_prints_it() -> None:
    assert str(made()) == "topic-3@42"
    assert repr(made()) == (
        "RecordMetadata(topic='topic', partition=3, offset=42, timestamp=1700000000000, serialized_key_size=-1, "
        "serialized_value_size=1)"
    )


def test_metadata_knows_whether_the_broker_told_an_offset_and_a_timestamp() -> None:
    """I RecordMetadataTest: -1 stands for an offset or a timestamp that is not known, 0 does not."""
    unknown = RecordMetadata("t", 0, -1, -1, -1, -1)
    known = RecordMetadata("t", 0, 0, 0, 0, 0)
    assert (unknown.has_offset, unknown.has_timestamp) == (False, False)
    assert (known.has_offset, known.has_timestamp) == (True, True)


def test_a_report_has_the_metadata_and_the_error() -> None:
    error = RecordTooLargeError("no")
    good, bad = DeliveryReport(made()), DeliveryReport(made(), error)
    assert (good.metadata, good.error, bad.metadata, bad.error) == (made(), None, made(), error)
    assert (good == DeliveryReport(made()), good == bad, good != made(), len({good, bad})) == (True, False, True, 2)
    assert repr(good) == "<DeliveryReport of topic-3@42: acknowledged>"
    assert repr(bad) == "<DeliveryReport of topic-3@42: RecordTooLargeError('no')>"
    match bad:
        case DeliveryReport(metadata, RecordTooLargeError()):
            assert metadata.offset == 42
        case _:
            pytest.fail("no match")


def test_a_report_cannot_be_taken_for_metadata_and_error() -> None:
    """A callback that unpacks it fails at once; nothing is taken for the other."""
    report: Any = DeliveryReport(made())
    with pytest.raises(TypeError):
        _, _ = report
    with pytest.raises(AttributeError):
        report.error = None


def test_a_report_can_be_pickled() -> None:
    report = pickle.loads(pickle.dumps(DeliveryReport(made(), RecordTooLargeError("no"))))
    assert (report.metadata, str(report.error)) == (made(), "no")
