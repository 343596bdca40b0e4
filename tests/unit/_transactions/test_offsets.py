"""Offsets and groups, in every form that consumers have them."""

from __future__ import annotations

import re
import struct
import sys
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._transactions.offsets import checked_group, checked_offsets
from forebay.errors import CommitFailedError, IllegalArgumentError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.names import FORBIDDEN_TOPICS, LONE_SURROGATES, TOO_LONG

WHERE = TopicPartition("test", 3)


def test_a_mapping_may_hold_numbers_and_whole_values_and_any_pair_as_its_key() -> None:
    assert checked_offsets({("test", 3): 7}) == {WHERE: OffsetAndMetadata(7)}
    assert checked_offsets({WHERE: OffsetAndMetadata(7, 2, "text")}) == {WHERE: OffsetAndMetadata(7, 2, "text")}


def test_another_client_s_objects_are_read_by_their_attributes() -> None:
    plain = SimpleNamespace(topic="test", partition=3, offset=7)
    full = SimpleNamespace(topic="test", partition=4, offset=8, leader_epoch=5, metadata="text")
    empty = SimpleNamespace(topic="test", partition=5, offset=9, leader_epoch=None, metadata=None)
    assert checked_offsets([plain, full, empty]) == {
        WHERE: OffsetAndMetadata(7),
        TopicPartition("test", 4): OffsetAndMetadata(8, 5, "text"),
        TopicPartition("test", 5): OffsetAndMetadata(9),
    }


def test_what_other_clients_dicts_hold() -> None:
    """kafka-python's OffsetAndMetadata has three fields, aiokafka's two, and a bare pair will do there, too."""
    three = namedtuple("three", ["offset", "metadata", "leader_epoch"])
    two = namedtuple("two", ["offset", "metadata"])
    pair = namedtuple("pair", ["topic", "partition"])
    where = pair("test", 3)
    for value, read in (
        (three(7, "text", 5), OffsetAndMetadata(7, 5, "text")),
        (three(7, "", -1), OffsetAndMetadata(7)),
        (two(7, "text"), OffsetAndMetadata(7, -1, "text")),
        ((7, "text"), OffsetAndMetadata(7, -1, "text")),
        (7, OffsetAndMetadata(7)),
    ):
        assert checked_offsets({where: value}) == {WHERE: read}
        assert type(next(iter(checked_offsets({where: value})))) is TopicPartition


def test_a_partition_that_nothing_was_read_of_has_no_offset() -> None:
    """librdkafka's position() has -1001 there; its own producer leaves it out."""
    items = [SimpleNamespace(topic="test", partition=number, offset=offset) for number, offset in ((3, 7), (4, -1001))]
    assert checked_offsets(items) == {WHERE: OffsetAndMetadata(7)}
    assert checked_offsets(items[1:]) == {}


@pytest.mark.parametrize("offset", [True, 1.0, "7", None, (7, b"text", 1)])
def test_an_offset_is_a_whole_number(offset: Any) -> None:
    with pytest.raises(IllegalArgumentError, match="offset of test-3 must be an int"):
        checked_offsets({WHERE: offset})
    with pytest.raises(IllegalArgumentError, match="offset of test-3 must be an int"):
        checked_offsets([SimpleNamespace(topic="test", partition=3, offset=offset)])


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        (7, "Offsets must be a mapping"),
        ("test", "Offsets must be a mapping"),
        ({"ab": 7}, r"A partition has a topic \(str\) and a number \(int\), got 'ab'"),
        ({("test", True): 7}, "A partition has a topic"),
        ([7], "A partition has a topic"),
        ([SimpleNamespace(topic=lambda: "test", partition=lambda: 3, offset=lambda: 7)], "A partition has a topic"),
        ({("test", -1): 7}, "number at least 0"),
        ({("", 1): 7}, "No topic can be named ''"),
        ({WHERE: -1}, "offset of test-3 must be at least 0, got -1"),
        ([SimpleNamespace(topic="test", partition=3, offset=-2)], "offset of test-3 must be at least 0, got -2"),
        ({WHERE: (7, b"text")}, "metadata of test-3's offset must be a str"),
        ([SimpleNamespace(topic="test", partition=3, offset=7, error="gone")], "offset of test-3 has an error: gone"),
    ],
)
def test_what_is_refused_is_named(offsets: Any, words: str) -> None:
    with pytest.raises(IllegalArgumentError, match=words):
        checked_offsets(offsets)


@pytest.mark.parametrize("name", FORBIDDEN_TOPICS, ids=lambda name: ascii(name)[:20])
def test_a_partition_of_a_topic_that_cannot_be(name: str) -> None:
    for offsets in ({(name, 1): 7}, {TopicPartition(name, 1): 7}, [SimpleNamespace(topic=name, partition=1, offset=7)]):
        with pytest.raises(IllegalArgumentError, match="No topic can be named"):
            checked_offsets(offsets)


@pytest.mark.parametrize("text", [*LONE_SURROGATES, *TOO_LONG], ids=lambda text: ascii(text)[:20])
def test_text_that_cannot_be_sent(text: str) -> None:
    """In each form in which it may be given."""
    kind = namedtuple("kind", ["group_id", "generation_id", "member_id", "group_instance_id"])
    for group in (text, kind(text, 3, "m", None), kind("g", 3, text, None), kind("g", 3, "m", text)):
        with pytest.raises(IllegalArgumentError, match="cannot be sent: it "):
            checked_group(group)
    for offsets in ({WHERE: (7, text)}, [SimpleNamespace(topic="t", partition=3, offset=7, metadata=text)]):
        with pytest.raises(IllegalArgumentError, match="metadata .* cannot be sent: it "):
            checked_offsets(offsets)


def test_a_group_is_its_id_or_its_metadata() -> None:
    group = ConsumerGroupMetadata("group", 3, "member")
    assert checked_group(group) is group
    assert checked_group("group") == ConsumerGroupMetadata("group")
    with pytest.raises(IllegalArgumentError, match="or a group id; or consumer.consumer_group_metadata.*got 7"):
        checked_group(7)


def test_kafka_pythons_group() -> None:
    kind = namedtuple("kind", ["group_id", "generation_id", "member_id", "group_instance_id", "state"])
    found = checked_group(kind("g", 3, "member", "instance", "<stable>"))
    assert found == ConsumerGroupMetadata("g", 3, "member", "instance")
    assert checked_group(kind("g", -1, "", None, "<unjoined>")) == ConsumerGroupMetadata("g")
    with pytest.raises(IllegalArgumentError, match="got kind"):
        checked_group(kind(None, -1, "", None, "<unjoined>"))
    with pytest.raises(IllegalArgumentError, match="group_instance_id"):
        checked_group(kind("g", 3, "member", 7, "<stable>"))
    with pytest.raises(IllegalArgumentError, match="Generation 3 of group 'g' was given without a member_id"):
        checked_group(kind("g", 3, "", None, "<stable>"))


def test_aiokafkas_consumer() -> None:
    inner = SimpleNamespace(group_id="g", generation=3, member_id="member", _group_instance_id="instance")
    consumer = SimpleNamespace(_coordinator=inner)
    assert checked_group(consumer) == ConsumerGroupMetadata("g", 3, "member", "instance")
    inner.generation, inner.member_id = -1, ""
    with pytest.raises(CommitFailedError, match=r"no member of its group 'g' now.*assign\(\), pass the group's id"):
        checked_group(consumer)
    for other in (None, SimpleNamespace()):
        with pytest.raises(IllegalArgumentError, match="or an AIOKafkaConsumer; got"):
            checked_group(SimpleNamespace(_coordinator=other))


def serialized(group: ConsumerGroupMetadata) -> bytes:
    """As librdkafka writes it."""
    data = b"CGMDv2:" + struct.pack("=i", group.generation_id)
    data += group.group_id.encode() + b"\0" + group.member_id.encode() + b"\0"
    if group.group_instance_id is None:
        return data + b"\1"
    return data + b"\0" + group.group_instance_id.encode() + b"\0"


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
GROUPS = st.builds(
    ConsumerGroupMetadata,
    TEXT.filter(bool),
    st.integers(-1, 2**31 - 1),
    TEXT.filter(bool),
    st.none() | TEXT,
)


@given(GROUPS)
def test_librdkafkas_bytes(group: ConsumerGroupMetadata) -> None:
    data = serialized(group)
    assert checked_group(data) == checked_group(bytearray(data)) == checked_group(memoryview(data)) == group


@given(GROUPS, st.data())
def test_bytes_that_are_cut_or_go_on_are_refused(group: ConsumerGroupMetadata, data: st.DataObject) -> None:
    whole = serialized(group)
    for damaged in (whole[: data.draw(st.integers(7, len(whole) - 1))], whole + b"x", whole + b"\0"):
        with pytest.raises(IllegalArgumentError, match="makes no sense|must be a non-empty"):
            checked_group(damaged)


def test_bytes_of_a_librdkafka() -> None:
    """Bytes that confluent-kafka 2.16 gave on a little-endian machine: fresh, a member, a static member."""
    if sys.byteorder == "big":
        pytest.skip("the number is in the machine's own order")
    fresh = b"CGMDv2:\xff\xff\xff\xffg1\x00\x00\x01"
    member = b"CGMDv2:\x01\x00\x00\x00g1\x00rdkafka-38c17ce5\x00\x01"
    static = b"CGMDv2:\x01\x00\x00\x00g2\x00inst-\xc3\xa9-2349a225\x00\x00inst-\xc3\xa9\x00"
    assert checked_group(fresh) == ConsumerGroupMetadata("g1")
    assert checked_group(member) == ConsumerGroupMetadata("g1", 1, "rdkafka-38c17ce5")
    assert checked_group(static) == ConsumerGroupMetadata("g2", 1, "inst-é-2349a225", "inst-é")


@pytest.mark.parametrize("data", [b"CGMDv1:group\0", b"CGMDv3:\1\0\0\0g\0m\0\1", b"group", b""])
def test_bytes_of_another_version_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(IllegalArgumentError, match=rf"unknown version: it begins with {re.escape(repr(data[:7]))}"):
        checked_group(data)
