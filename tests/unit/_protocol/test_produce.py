"""Produce requests, v0 to v13, in both forms: read by kio and aiokafka, and byte for byte."""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from aiokafka.protocol import produce as aiokafka
from hypothesis import given
from hypothesis import strategies as st

from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.errors import IllegalArgumentError, UnsupportedVersionError

from .forms import REQUEST_FORMS
from .kio_peer import decode, schema

VERSIONS = range(14)
BY_ID = 13
OLD = range(3)
"""Versions kio does not have; aiokafka judges them."""

int32 = st.integers(-(2**31), 2**31 - 1)
both_forms = pytest.mark.parametrize("form", REQUEST_FORMS, ids=["imported", "interpreted"])


class Entry(NamedTuple):
    topic: str
    partition: int
    header: bytes
    buffers: list[Any]

    @property
    def topic_id(self) -> bytes:
        """One for each name; kio has None for 16 zeros."""
        return uuid.uuid5(uuid.NAMESPACE_DNS, self.topic).bytes

    @property
    def records(self) -> bytes:
        return self.header + b"".join(map(bytes, self.buffers))


def make_buffers(chunks: list[bytes]) -> list[Any]:
    kinds = (bytes, bytearray, memoryview)
    return [kinds[at % 3](chunk) for at, chunk in enumerate(chunks)]


entries_ = st.lists(
    st.builds(
        Entry,
        st.sampled_from(["orders", "ünï.côdé", "t", "x" * 249]) | st.text(max_size=20),
        int32,
        st.just(b"") | st.binary(min_size=61, max_size=61),
        st.lists(st.binary(max_size=300), max_size=4).map(make_buffers),
    ),
    max_size=8,
)


def encode_with(form: ModuleType, version: int, txn: str | None, entries: list[Entry]) -> list[Any]:
    records = [form.PartitionRecords(*entry, len(entry.records), entry.topic_id) for entry in entries]
    parts: list[Any] = form.encode_produce(version, txn, -1, 30_000, records)
    return parts


def grouped(entries: list[Entry]) -> list[tuple[str, list[tuple[int, bytes]]]]:
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for entry in entries:
        topics.setdefault(entry.topic, []).append((entry.partition, entry.records))
    return list(topics.items())


@both_forms
@given(st.sampled_from(VERSIONS[3:BY_ID]), st.none() | st.text(max_size=20), entries_)
def test_requests_are_read_by_kio(form: ModuleType, version: int, txn: str | None, entries: list[Entry]) -> None:
    body = b"".join(map(bytes, encode_with(form, version, txn, entries)))
    found = decode(schema("produce", version, "request").ProduceRequest, body)
    assert (found.transactional_id, found.acks, found.timeout) == (txn, -1, timedelta(seconds=30))
    topics = [(topic.name, [(part.index, part.records) for part in topic.partition_data]) for topic in found.topic_data]
    assert topics == grouped(entries)


@both_forms
@given(st.none() | st.text(max_size=20), entries_)
def test_requests_by_id_are_read_by_kio(form: ModuleType, txn: str | None, entries: list[Entry]) -> None:
    body = b"".join(map(bytes, encode_with(form, BY_ID, txn, entries)))
    found = decode(schema("produce", BY_ID, "request").ProduceRequest, body)
    assert (found.transactional_id, found.acks, found.timeout) == (txn, -1, timedelta(seconds=30))
    names = {uuid.UUID(bytes=entry.topic_id): entry.topic for entry in entries}
    topics = [
        (names[topic.topic_id], [(part.index, part.records) for part in topic.partition_data])
        for topic in found.topic_data
    ]
    assert topics == grouped(entries)


@both_forms
def test_two_topics_of_one_name_stay_apart_by_their_ids(form: ModuleType) -> None:
    """Metadata that came between two drains: the partitions of one request may be meant for different topics."""
    old, new = b"o" * 16, b"n" * 16
    entries = [form.PartitionRecords("t", number, b"", [b"r"], 1, (old, new)[number % 2]) for number in range(3)]
    body = b"".join(map(bytes, form.encode_produce(BY_ID, None, -1, 0, entries)))
    found = decode(schema("produce", BY_ID, "request").ProduceRequest, body)
    topics = [(topic.topic_id.bytes, [part.index for part in topic.partition_data]) for topic in found.topic_data]
    assert topics == [(old, [0, 2]), (new, [1])]


@both_forms
@pytest.mark.parametrize("topic_id", [None, b"", b"x" * 15, b"x" * 17])
def test_an_id_that_is_none_is_refused(form: ModuleType, topic_id: bytes | None) -> None:
    entry = form.PartitionRecords("orders", 0, b"", [], 0, topic_id)
    with pytest.raises(IllegalArgumentError, match=r"ids of 16 bytes; of 'orders' it is"):
        form.encode_produce(BY_ID, None, -1, 0, [entry])
    assert form.encode_produce(BY_ID - 1, None, -1, 0, [entry])


@both_forms
@given(st.sampled_from(OLD), entries_)
def test_old_requests_are_read_by_aiokafka(form: ModuleType, version: int, entries: list[Entry]) -> None:
    body = io.BytesIO(b"".join(map(bytes, encode_with(form, version, None, entries))))
    acks, timeout, topics = getattr(aiokafka, f"ProduceRequest_v{version}").SCHEMA.decode(body)
    assert (acks, timeout) == (-1, 30_000)
    assert [(topic, list(parts)) for topic, parts in topics] == grouped(entries)
    assert body.read() == b""


@both_forms
def test_requests_byte_for_byte(form: ModuleType) -> None:
    entries = [Entry("t", 0, b"HEAD", [b"ab", b"c"]), Entry("u", 7, b"", [b"d"]), Entry("t", 1, b"", [b"e"])]
    start = "ffff 00007530"
    old = "0001 74 00000002 00000000 00000007 48454144616263 00000001 00000001 65 0001 75 00000001 00000007 00000001 64"
    new = "02 74 03 00000000 08 48454144616263 00 00000001 02 65 00 00 02 75 02 00000007 02 64 00 00 00"
    ids = [Entry(name, 0, b"", []).topic_id.hex() for name in "tu"]
    by_id = new.replace("02 74", ids[0]).replace("02 75", ids[1])
    want = {
        0: f"{start} 00000002 {old}",
        3: f"0002 7478 {start} 00000002 {old}",
        9: f"03 7478 {start} 03 {new}",
        12: f"03 7478 {start} 03 {new}",
        13: f"03 7478 {start} 03 {by_id}",
    }
    for version, wire in want.items():
        parts = encode_with(form, version, "tx" if version else None, entries)
        assert b"".join(map(bytes, parts)).hex() == bytes.fromhex(wire).hex()


@both_forms
@given(st.sampled_from(VERSIONS), entries_)
def test_record_bytes_are_passed_on_and_the_rest_is_one_buffer(
    form: ModuleType, version: int, entries: list[Entry]
) -> None:
    parts = encode_with(form, version, None, entries)
    topics = dict.fromkeys(entry.topic for entry in entries)
    given_buffers = [
        buffer for topic in topics for entry in entries if entry.topic == topic for buffer in entry.buffers
    ]
    kept = [part for part in parts if any(part is buffer for buffer in given_buffers)]
    ours = [part for part in parts if not any(part is buffer for buffer in given_buffers)]
    assert [id(part) for part in kept] == [id(buffer) for buffer in given_buffers]
    assert all(len(part) == len(memoryview(part)) > 0 for part in ours)
    assert len({id(part.obj if isinstance(part, memoryview) else part.owner) for part in ours}) == 1


@both_forms
@pytest.mark.parametrize("version", OLD)
def test_old_versions_carry_no_transactional_id(form: ModuleType, version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"Produce v{version} carries no transactional id"):
        form.encode_produce(version, "txn", 1, 1000, [])


@both_forms
@pytest.mark.parametrize("version", [-1, 14])
def test_versions_out_of_range(form: ModuleType, version: int) -> None:
    assert SUPPORTED[ApiKey.PRODUCE] == (0, 13)
    with pytest.raises(UnsupportedVersionError, match=f"Produce v{version} is unknown here, only v0 to v13"):
        form.encode_produce(version, None, 1, 1000, [])


@both_forms
def test_names_too_long_for_the_wire(form: ModuleType) -> None:
    with pytest.raises(IllegalArgumentError, match="transactional id .* it has 32768 bytes in UTF-8"):
        form.encode_produce(3, "x" * 32768, 1, 1000, [])
    with pytest.raises(IllegalArgumentError, match="topic name .* it has 32768 bytes in UTF-8"):
        form.encode_produce(3, None, 1, 1000, [form.PartitionRecords("ä" * 16384, 0, b"", [], 0)])
    longest = encode_with(form, 9, "x" * 32767, [Entry("y" * 32767, 2**31 - 1, bytes(61), [])])
    assert sum(map(len, longest)) > 2 * 32767


@both_forms
def test_none_is_refused_rather_than_followed(form: ModuleType) -> None:
    with pytest.raises(TypeError):
        form.encode_produce(9, None, 1, 1000, [None])
    with pytest.raises(TypeError):
        form.encode_produce(9, None, 1, 1000, None)
