"""Produce responses, v0 to v13, in both forms: by kio and aiokafka, byte for byte, and damaged in every way."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from aiokafka.protocol import produce as aiokafka
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay.errors import ProtocolError, UnsupportedVersionError
from forebay.model import Node

from .forms import RESPONSE_FORMS
from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import encode, make, schema

VERSIONS = range(14)
OLD = range(3)
"""Versions kio does not have; aiokafka judges them."""
BY_ID = 13
IDS = {name: uuid.UUID(int=number) for number, name in enumerate(("orders", "ünï.côdé", "", "t", "u"), 1)}
"""The ids of the topics here; kio has None for 0."""

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
both_forms = pytest.mark.parametrize("form", RESPONSE_FORMS, ids=["imported", "interpreted"])


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
    topic_id: bytes | None = None


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
        st.none(),
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
        make(module, "TopicProduceResponse", name=topic, topic_id=IDS[topic], partition_responses=tuple(parts))
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
    seen = [one._replace(**missing) for one in ordered]
    return seen if version < BY_ID else [one._replace(topic="", topic_id=IDS[one.topic].bytes) for one in seen]


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
        (13, "02 0102030405060708090a0b0c0d0e0f 02 00", "array of 1 elements of at least 18 bytes, but 17 bytes left"),
        (13, "02 0102030405060708090a0b0c0d0e0f10 02 00", "array of 1 elements of at least 30 bytes, but 1 bytes left"),
        (13, "02 0102030405060708090a0b0c0d0e0f10 00 00", "array of -1 elements"),
        (13, "ffffffff0f", "array of 4294967294 elements of at least 18 bytes, but 0 bytes left"),
        (10, "01 00000000 01 00 01 7f 00", "array of 126 elements of at least 11 bytes, but 0 bytes left"),
    ],
)
def test_errors_name_the_problem(form: ModuleType, version: int, wire: str, problem: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        form.decode_produce(version, bytes.fromhex(wire))
    assert f"Produce v{version} response: " in str(caught.value)
    assert problem in str(caught.value)


@both_forms
@pytest.mark.parametrize("version", [-1, 14])
def test_versions_out_of_range(form: ModuleType, version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"Produce v{version} is unknown here, only v0 to v13"):
        form.decode_produce(version, b"")


@both_forms
def test_unknown_tagged_fields_are_skipped_everywhere(form: ModuleType) -> None:
    numbers = "00000003 0000 0000000000000009 ffffffffffffffff 0000000000000001"
    unknown = "07 02 abcd"
    leader = f"00 0d 00000002 00000005 01 {unknown}"
    partition = f"{numbers} 02 00000001 00 01 {unknown} 00 02 {leader} {unknown}"
    endpoint = f"00000002 0474776f 00002384 00 01 {unknown}"
    rest = f"02 {partition} 01 {unknown} 00000000 02 00 13 02 {endpoint} {unknown}"
    want = Outcome("t", 3, 0, 9, -1, 1, [(1, None)], None, 2, 5)
    found = form.decode_produce(12, bytes.fromhex(f"02 0274 {rest}"))
    assert plain(found) == (0, [want], [Node(2, "two", 9092)])
    topic_id = bytes(range(16))
    found = form.decode_produce(13, bytes.fromhex(f"02 {topic_id.hex()} {rest}"))
    assert plain(found) == (0, [want._replace(topic="", topic_id=topic_id)], [Node(2, "two", 9092)])


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
    for version in (12, 13):
        received = bytearray(sample(version))
        found = form.decode_produce(version, memoryview(received))
        received[:] = bytes(len(received))
        received.clear()
        assert plain(found)[1] == as_seen(version, SAMPLE)


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
    imported, interpreted = (outcome_of(form, version, damaged) for form in RESPONSE_FORMS)
    assert imported == interpreted


@both_forms
def test_responses_can_be_made_for_tests_of_others(form: ModuleType) -> None:
    part = form.PartitionResponse("t", 1, 6, -1, leader_id=3, leader_epoch=4)
    response = form.ProduceResponse(7, [part], [Node(3, "h", 1)])
    assert plain(response) == (7, [Outcome("t", 1, 6, -1, leader_id=3, leader_epoch=4)], [Node(3, "h", 1)])
