"""What users make and hand in: what is refused, and when two of them are the same."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, get_type_hints

import pytest

from forebay.errors import IllegalArgumentError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, ProducerRecord, TailRecord
from tests.fakes.names import LONE_SURROGATES, LONGEST, TOO_LONG


@pytest.mark.parametrize("topic", [None, 5, b"t"])
def test_a_record_needs_a_topic(topic: object) -> None:
    """I ProducerRecordTest: no record without a topic."""
    with pytest.raises(IllegalArgumentError, match="topic must be a str"):
        ProducerRecord(topic)  # type: ignore[arg-type]


def test_a_record_refuses_what_is_negative_and_names_it() -> None:
    """I ProducerRecordTest: negative timestamp, negative partition."""
    with pytest.raises(IllegalArgumentError, match="Invalid partition: -1"):
        ProducerRecord("t", partition=-1)
    with pytest.raises(IllegalArgumentError, match="Invalid timestamp: -1"):
        ProducerRecord("t", timestamp=-1)
    assert ProducerRecord("t", partition=0, timestamp=0).timestamp == 0


def test_records_with_the_same_fields_are_equal_and_any_field_tells_them_apart() -> None:
    """I ProducerRecordTest: equality by topic, partition, key, value, timestamp and headers."""
    one = ProducerRecord("t", "v", "k", headers=[("h", b"1")], partition=1, timestamp=7)
    assert one == ProducerRecord("t", "v", "k", headers=[("h", b"1")], partition=1, timestamp=7)
    others = [
        ProducerRecord("u", "v", "k", headers=[("h", b"1")], partition=1, timestamp=7),
        ProducerRecord("t", "w", "k", headers=[("h", b"1")], partition=1, timestamp=7),
        ProducerRecord("t", "v", "l", headers=[("h", b"1")], partition=1, timestamp=7),
        ProducerRecord("t", "v", "k", headers=[("h", b"2")], partition=1, timestamp=7),
        ProducerRecord("t", "v", "k", headers=[("h", b"1")], partition=2, timestamp=7),
        ProducerRecord("t", "v", "k", headers=[("h", b"1")], partition=1, timestamp=8),
    ]
    assert all(other != one for other in others)


def test_a_record_has_its_timestamp_in_ms_and_refuses_an_old_spelling() -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert ProducerRecord("t", timestamp=moment).timestamp == 1_767_304_800_000
    with pytest.raises(TypeError, match="timestamp must be an int"):
        ProducerRecord("t", timestamp=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes topic, value and key by position"):
        ProducerRecord("t", b"v", b"k", ())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has no timestamp_ms: write timestamp="):
        ProducerRecord("t", timestamp_ms=5)  # type: ignore[arg-type]
    assert list(inspect.signature(ProducerRecord).parameters) == [field.name for field in fields(ProducerRecord)]


def test_headers_of_a_record_are_pairs_also_where_a_mapping_was_given() -> None:
    given = {"h": b"1", "n": None}
    record = ProducerRecord("t", headers=given)
    assert record.headers == (("h", b"1"), ("n", None))
    assert record == ProducerRecord("t", headers=MappingProxyType(given))
    assert replace(record, topic="u") == ProducerRecord("u", headers=given)
    assert pickle.loads(pickle.dumps(record)) == record
    assert ProducerRecord("t", headers=[("h", b"1")]).headers == [("h", b"1")]
    assert ProducerRecord("t").headers == ()


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b"x" * 10**6, b"k" * 10**6),
        ("x" * 1000, "k" * 1000),
        ({"x": "x" * 1000}, ["k"] * 1000),
        (bytearray(b"x" * 1000), memoryview(b"k" * 1000)),
    ],
)
def test_a_record_s_repr_is_short_and_shows_little_of_what_it_carries(value: Any, key: Any) -> None:
    headers = [("h", b"secret")] * 3
    text = repr(ProducerRecord("t", value, key, headers=headers, partition=1, timestamp=5))
    assert text.startswith("ProducerRecord(topic='t', partition=1, timestamp=5, key=")
    assert text.endswith(", 3 headers)") and "secret" not in text
    assert text.count("x") <= 40 + 2 and text.count("k") <= 20 + 1
    assert len(text) < 400
    assert repr(TailRecord(7, 5, None, b"v")) == "TailRecord(offset=7, timestamp=5, key=None, value=b'v', 0 headers)"


def test_an_offset_to_commit_is_not_negative() -> None:
    assert OffsetAndMetadata(0) == OffsetAndMetadata(0, -1, "")
    with pytest.raises(IllegalArgumentError, match="Invalid negative offset: -1"):
        OffsetAndMetadata(-1)
    with pytest.raises(IllegalArgumentError, match="Invalid leader epoch: -2"):
        OffsetAndMetadata(0, -2)


@pytest.mark.parametrize("group", ["", None, 5])
def test_offsets_are_committed_for_a_group(group: object) -> None:
    with pytest.raises(IllegalArgumentError, match="group_id must be a non-empty str"):
        ConsumerGroupMetadata(group)  # type: ignore[arg-type]


def test_a_generation_is_that_of_a_member() -> None:
    """H testInvalidGenerationIdAndMemberIdCombinedInSendOffsets: generation 2 of an empty member."""
    assert ConsumerGroupMetadata("g", 0).member_id == ""
    assert ConsumerGroupMetadata("g", -1, "m").generation_id == -1
    with pytest.raises(IllegalArgumentError, match="Generation 2 of group 'g' was given without a member_id"):
        ConsumerGroupMetadata("g", 2)


@pytest.mark.parametrize("kind", [ProducerRecord, OffsetAndMetadata, ConsumerGroupMetadata])
def test_hints_are_found_by_the_module_that_the_class_names(kind: Any) -> None:
    assert list(get_type_hints(kind)) == list(kind.__dataclass_fields__)


@pytest.mark.parametrize("text", [*LONE_SURROGATES, *TOO_LONG], ids=lambda text: ascii(text)[:20])
def test_text_that_cannot_be_sent_is_refused_by_name(text: str) -> None:
    for name in ("group_id", "member_id", "group_instance_id"):
        with pytest.raises(IllegalArgumentError, match=f"^{name} '.*' cannot be sent: it "):
            ConsumerGroupMetadata(**dict[str, Any]({"group_id": "g", name: text}))
    with pytest.raises(IllegalArgumentError, match=r"^metadata '.*' cannot be sent: it "):
        OffsetAndMetadata(1, metadata=text)


@pytest.mark.parametrize("text", LONGEST, ids=lambda text: ascii(text)[:20])
def test_the_longest_text_is_taken(text: str) -> None:
    assert ConsumerGroupMetadata(text, 1, text, text).member_id == OffsetAndMetadata(1, metadata=text).metadata
