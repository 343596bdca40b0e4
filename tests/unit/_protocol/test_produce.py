from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from aiokafka.protocol import produce as aiokafka
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.errors import IllegalArgumentError, ProtocolError, UnsupportedVersionError
from forebay.model import Node

from .forms import FORMS, imported, interpreted
from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(13)
OLD = range(3)
"""Versions kio does not have; aiokafka judges them."""

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
both_forms = pytest.mark.parametrize("form", FORMS, ids=["imported", "interpreted"])


class Entry(NamedTuple):
    topic: str
    partition: int
    header: bytes
    buffers: list[Any]

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
    records = [form.PartitionRecords(*entry, len(entry.records)) for entry in entries]
    parts: list[Any] = form.encode_produce(version, txn, -1, 30_000, records)
    return parts


def grouped(entries: list[Entry]) -> list[tuple[str, list[tuple[int, bytes]]]]:
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for entry in entries:
        topics.setdefault(entry.topic, []).append((entry.partition, entry.records))
    return list(topics.items())


@both_forms
@given(st.sampled_from(VERSIONS[3:]), st.none() | st.text(max_size=20), entries_)
def test_requests_are_read_by_kio(form: ModuleType, version: int, txn: str | None, entries: list[Entry]) -> None:
    body = b"".join(map(bytes, encode_with(form, version, txn, entries)))
    found = decode(schema("produce", version, "request").ProduceRequest, body)
    assert (found.transactional_id, found.acks, found.timeout) == (txn, -1, timedelta(seconds=30))
    topics = [(topic.name, [(part.index, part.records) for part in topic.partition_data]) for topic in found.topic_data]
    assert topics == grouped(entries)


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
    want = {0: f"{start} 00000002 {old}", 3: f"0002 7478 {start} 00000002 {old}", 9: f"03 7478 {start} 03 {new}"}
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
@pytest.mark.parametrize("version", [-1, 13])
def test_versions_out_of_range(form: ModuleType, version: int) -> None:
    assert SUPPORTED[ApiKey.PRODUCE] == (0, 12)
    with pytest.raises(UnsupportedVersionError, match=f"Produce v{version} is unknown here, only v0 to v12"):
        form.encode_produce(version, None, 1, 1000, [])
    with pytest.raises(UnsupportedVersionError, match=f"Produce v{version}"):
        form.decode_produce(version, b"")


@both_forms
def test_names_too_long_for_the_wire(form: ModuleType) -> None:
    with pytest.raises(IllegalArgumentError, match="transactional id of 32768 bytes"):
        form.encode_produce(3, "x" * 32768, 1, 1000, [])
    with pytest.raises(IllegalArgumentError, match="topic name of 32768 bytes"):
        form.encode_produce(3, None, 1, 1000, [form.PartitionRecords("ä" * 16384, 0, b"", [], 0)])
    longest = encode_with(form, 9, "x" * 32767, [Entry("y" * 32767, 2**31 - 1, bytes(61), [])])
    assert sum(map(len, longest)) > 2 * 32767


@both_forms
def test_none_is_refused_rather_than_followed(form: ModuleType) -> None:
    with pytest.raises(TypeError):
        form.encode_produce(9, None, 1, 1000, [None])
    with pytest.raises(TypeError):
        form.encode_produce(9, None, 1, 1000, None)


class Outcome(NamedTuple):
    """A partition's response as plain values."""

    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_append_time: int = -1
    log_start_offset: int = -1
    record_errors: list[tuple[int, str | None]] | None = None
    error_message: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1


outcomes = st.lists(
    st.builds(
        Outcome,
        st.sampled_from(["orders", "ünï.côdé", ""]),
        int32,
        st.sampled_from([0, 6, 10, 45, 87]),
        int64,
        st.just(-1) | st.integers(0, 4_102_444_800_000),
        int64,
        st.none() | st.lists(st.tuples(int32, st.none() | st.text(max_size=20)), min_size=1, max_size=3),
        st.none() | st.text(max_size=200),
        int32,
        int32,
    ),
    max_size=6,
)
endpoints = st.lists(st.builds(Node, int32, st.text(max_size=10), int32, st.none() | st.text(max_size=5)), max_size=3)


def kio_partition(module: Any, outcome: Outcome) -> Any:
    appended = outcome.log_append_time
    extra: dict[str, Any] = {}
    if hasattr(module, "BatchIndexAndErrorMessage"):
        extra["record_errors"] = tuple(
            make(module, "BatchIndexAndErrorMessage", batch_index=index, batch_index_error_message=message)
            for index, message in outcome.record_errors or ()
        )
    if hasattr(module, "LeaderIdAndEpoch"):
        extra["current_leader"] = make(
            module, "LeaderIdAndEpoch", leader_id=outcome.leader_id, leader_epoch=outcome.leader_epoch
        )
    return make(
        module,
        "PartitionProduceResponse",
        index=outcome.partition,
        error_code=ErrorCode(outcome.error_code),
        base_offset=outcome.base_offset,
        log_append_time=None if appended < 0 else datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=appended),
        log_start_offset=outcome.log_start_offset,
        error_message=outcome.error_message,
        **extra,
    )


def by_kio(version: int, throttle: int, said: list[Outcome], nodes: list[Node]) -> bytes:
    module = schema("produce", version, "response")
    topics: dict[str, list[Any]] = {}
    for outcome in said:
        topics.setdefault(outcome.topic, []).append(kio_partition(module, outcome))
    found = [
        make(module, "TopicProduceResponse", name=topic, partition_responses=tuple(parts))
        for topic, parts in topics.items()
    ]
    extra: dict[str, Any] = {}
    if hasattr(module, "NodeEndpoint"):
        extra["node_endpoints"] = tuple(
            make(module, "NodeEndpoint", node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes
        )
    pause = timedelta(milliseconds=throttle)
    return encode(make(module, "ProduceResponse", responses=tuple(found), throttle_time=pause, **extra))


def by_aiokafka(version: int, throttle: int, said: list[Outcome]) -> bytes:
    topics: dict[str, list[Any]] = {}
    for one in said:
        times = (one.log_append_time,) if version >= 2 else ()
        topics.setdefault(one.topic, []).append((one.partition, one.error_code, one.base_offset, *times))
    fields = (list(topics.items()),) if version == 0 else (list(topics.items()), throttle)
    encoded: bytes = getattr(aiokafka, f"ProduceResponse_v{version}").SCHEMA.encode(fields)
    return encoded


def as_seen(version: int, said: list[Outcome]) -> list[Outcome]:
    """``said`` in the order of the wire, with what ``version`` cannot carry at its default."""
    ordered = [one for topic in dict.fromkeys(o.topic for o in said) for one in said if one.topic == topic]
    since = {
        "log_append_time": 2,
        "log_start_offset": 5,
        "record_errors": 8,
        "error_message": 8,
        "leader_id": 10,
        "leader_epoch": 10,
    }
    missing = {name: Outcome._field_defaults[name] for name, first in since.items() if version < first}
    return [one._replace(**missing) for one in ordered]


def plain(response: Any) -> tuple[int, list[Outcome], list[Node]]:
    parts = [Outcome(*(getattr(part, name) for name in Outcome._fields)) for part in response.partitions]
    return response.throttle_time_ms, parts, response.node_endpoints


@both_forms
@given(st.sampled_from(VERSIONS), st.integers(0, 2**31 - 1), outcomes, endpoints)
def test_responses_by_kio_and_aiokafka(
    form: ModuleType, version: int, throttle: int, said: list[Outcome], nodes: list[Node]
) -> None:
    old = version in OLD
    payload = by_aiokafka(version, throttle, said) if old else by_kio(version, throttle, said, nodes)
    want = (throttle if version >= 1 else 0, as_seen(version, said), nodes if version >= 10 else [])
    assert plain(form.decode_produce(version, payload)) == want
    assert plain(form.decode_produce(version, memoryview(payload))) == want


SAMPLE = [
    Outcome("t", 0, 0, 1234567890123, 1_700_000_000_000, 5),
    Outcome("t", 1, 87, -1, -1, 5, [(0, "bad"), (3, None)], "invalid", 2, 7),
    Outcome("u", 0, 6, -1, leader_id=3, leader_epoch=8),
]
ENDPOINTS = [Node(2, "two", 9092, "r"), Node(3, "three", 9093)]


def sample(version: int) -> bytes:
    return by_aiokafka(version, 9, SAMPLE) if version in OLD else by_kio(version, 9, SAMPLE, ENDPOINTS)


@both_forms
@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(form: ModuleType, version: int) -> None:
    payload = sample(version)
    refuses_every_cut(lambda data: form.decode_produce(version, data), payload)
    survives_single_bytes(lambda data: form.decode_produce(version, data), payload)


@both_forms
@given(st.sampled_from(VERSIONS), st.binary(max_size=200))
def test_any_bytes(form: ModuleType, version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: form.decode_produce(version, data), payload)


@both_forms
@pytest.mark.parametrize(
    ("version", "wire", "problem"),
    [
        (0, "ffffffff", "array of -1 elements at byte 4 of 4"),
        (8, "80000000", "array of -2147483648 elements"),
        (0, "7fffffff 0000", "array of 2147483647 elements of at least 6 bytes, but 2 bytes left"),
        (9, "00", "array of -1 elements"),
        (9, "ffffffff0f", "array of 4294967294 elements of at least 3 bytes, but 0 bytes left"),
        (9, "ffffffff10", "has more than 32 bits"),
        (9, "8080808080", "varint of more than five bytes"),
        (8, "00000001 ffff 00000000", "null where a string is required"),
        (8, "00000001 fffd 00000000", "string of length -3"),
        (8, "00000001 0009 61000000", "9 bytes expected, 4 left"),
        (8, "00000001 0002 c328 00000000", "string is not UTF-8"),
        (9, "02 00 01 00", "null where a string is required"),
        (9, "02 03 c328 01 00", "string is not UTF-8"),
        (9, "02 02 61 ffffffff0f", "array of 4294967294 elements of at least 30 bytes"),
        (9, "01 00000000 7f", "127 tagged fields, but 0 bytes left"),
        (9, "01 00000000 01 00 05 aaaa", "5 bytes expected, 2 left"),
        (10, "01 00000000 01 00 01 00 00", "array of -1 elements"),
        (10, "01 00000000 01 00 01 7f 00", "array of 126 elements of at least 11 bytes, but 0 bytes left"),
    ],
)
def test_errors_name_the_problem(form: ModuleType, version: int, wire: str, problem: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        form.decode_produce(version, bytes.fromhex(wire))
    assert f"Produce v{version} response: " in str(caught.value)
    assert problem in str(caught.value)


@both_forms
def test_unknown_tagged_fields_are_skipped_everywhere(form: ModuleType) -> None:
    numbers = "00000003 0000 0000000000000009 ffffffffffffffff 0000000000000001"
    unknown = "07 02 abcd"
    leader = f"00 0d 00000002 00000005 01 {unknown}"
    partition = f"{numbers} 02 00000001 00 01 {unknown} 00 02 {leader} {unknown}"
    endpoint = f"00000002 0474776f 00002384 00 01 {unknown}"
    wire = f"02 0274 02 {partition} 01 {unknown} 00000000 02 00 13 02 {endpoint} {unknown}"
    found = form.decode_produce(12, bytes.fromhex(wire))
    want = Outcome("t", 3, 0, 9, -1, 1, [(1, None)], None, 2, 5)
    assert plain(found) == (0, [want], [Node(2, "two", 9092)])


@both_forms
def test_a_leader_hint_is_read_within_its_own_bytes(form: ModuleType) -> None:
    payload = by_kio(12, 0, [Outcome("t", 0, 6, -1, leader_id=3, leader_epoch=8)], [])
    hint = bytes.fromhex("00 09 00000003 00000008 00")
    assert payload.count(hint) == 1
    with pytest.raises(ProtocolError, match="8 bytes expected, 4 left"):
        form.decode_produce(12, payload.replace(hint, bytes.fromhex("00 04 00000003")))


@both_forms
def test_bytes_after_the_last_field_are_ignored(form: ModuleType) -> None:
    for version in VERSIONS:
        assert plain(form.decode_produce(version, sample(version) + b"??")) == plain(
            form.decode_produce(version, sample(version))
        )


@both_forms
def test_nothing_of_the_networks_buffer_is_kept(form: ModuleType) -> None:
    received = bytearray(sample(12))
    found = form.decode_produce(12, memoryview(received))
    received[:] = bytes(len(received))
    received.clear()
    assert plain(found)[1] == as_seen(12, SAMPLE)


def outcome_of(form: ModuleType, version: int, payload: bytes) -> Any:
    try:
        return plain(form.decode_produce(version, payload))
    except ProtocolError as error:
        return str(error)


@given(st.sampled_from(VERSIONS), st.data())
def test_both_forms_agree_on_damaged_responses_errors_included(version: int, data: st.DataObject) -> None:
    payload = bytearray(sample(version))
    for at, value in data.draw(
        st.dictionaries(st.integers(0, len(payload) - 1), st.integers(0, 255), max_size=4)
    ).items():
        payload[at] = value
    damaged = bytes(payload[: data.draw(st.integers(0, len(payload)))])
    assert outcome_of(imported, version, damaged) == outcome_of(interpreted, version, damaged)


@both_forms
def test_responses_can_be_made_for_tests_of_others(form: ModuleType) -> None:
    part = form.PartitionResponse("t", 1, 6, -1, leader_id=3, leader_epoch=4)
    response = form.ProduceResponse(7, [part], [Node(3, "h", 1)])
    assert plain(response) == (7, [Outcome("t", 1, 6, -1, leader_id=3, leader_epoch=4)], [Node(3, "h", 1)])
