"""Protobuf: rows into messages by descriptor, the index of a message, and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from forebay.spark.jobs.encoding.protobuf import ProtobufEncoder, check
from forebay.spark.jobs.encoding.rows import Part, RowStep
from forebay.spark.jobs.table import JobError
from tests.support.ddl import struct
from tests.support.flight_proto import descriptor

FLIGHT = "demo.flights.Flight"
ROW: dict[str, Any] = {
    "carrier": "AA",
    "number": 2**40,
    "seats": 100,
    "late": True,
    "raw": b"\0\xff",
    "speed": 0.5,
    "at": dt.datetime(2013, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC),
    "gate": "B7",
    "kind": "PASSENGER",
    "leg": {"miles": 5},
    "legs": [{"miles": 1}, {"miles": 2}],
    "tags": ["x", "y"],
    "sizes": {"s": 1},
}


def parsed(data: bytes) -> Any:
    """By a class that is made apart from the encoder's."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(FLIGHT)).FromString(data)


def test_every_kind_of_field_arrives() -> None:
    encoder = pickle.loads(pickle.dumps(ProtobufEncoder(descriptor(), FLIGHT)))
    read = parsed(encoder.encode(ROW))
    assert (read.carrier, read.number, read.seats, read.late, read.raw) == ("AA", 2**40, 100, True, b"\0\xff")
    assert (read.speed, read.gate.value, read.kind, read.leg.miles) == (0.5, "B7", 1, 5)
    assert read.at.ToDatetime(dt.UTC) == ROW["at"]
    assert ([leg.miles for leg in read.legs], list(read.tags), dict(read.sizes)) == ([1, 2], ["x", "y"], {"s": 1})


def test_a_null_is_a_field_that_is_not_set() -> None:
    read = parsed(ProtobufEncoder(descriptor(), FLIGHT).encode(dict.fromkeys(ROW) | {"leg": {"miles": None}}))
    assert not read.HasField("gate") and not read.HasField("at") and read.carrier == ""
    assert read.HasField("leg")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seats": -1}, "^seats: .*-1"),
        ({"seats": 2**32}, "^seats: "),
        ({"kind": "CARGO"}, "^kind: 'CARGO' is no value of demo.flights.Kind: UNKNOWN, PASSENGER"),
        ({"tags": ["x", None]}, "^tags: null inside a repeated field"),
        ({"sizes": {"s": None}}, "^sizes: null inside a repeated field"),
        ({"legs": [{"miles": "far"}]}, "^legs: miles: "),
        ({"number": 2**63}, "^number: "),
        ({"leg": {"miles": 2**31}}, "^leg: miles: "),
        ({"sizes": {"s": -(2**31) - 1}}, "^sizes: "),
        ({"carrier": b"\xff"}, "^carrier: "),
        ({"at": 253_402_300_800_000_000}, "^at: .* are outside the years 1 to 9999"),
        ({"at": -62_135_596_800_000_001}, "^at: .* are outside the years 1 to 9999"),
        ({"at": 2**63 - 1}, "^at: "),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProtobufEncoder(descriptor(), FLIGHT).encode(ROW | change)


def test_the_index_and_the_files_for_a_registry() -> None:
    flight = ProtobufEncoder(descriptor(), FLIGHT)
    assert flight.index() == b"\2\2"  # one number, which is 1; both as zigzag
    assert ProtobufEncoder(descriptor(), "demo.flights.Other").index() == b"\0"
    assert ProtobufEncoder(descriptor(), "demo.flights.Flight.Leg").index() == b"\4\2\0"
    assert flight.record_name() == FLIGHT
    assert flight.file().imports == ("common.proto",)
    assert descriptor_pb2.FileDescriptorProto.FromString(flight.file("common.proto").content).name == "common.proto"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "carrier STRING, gote STRING",
            r"value.gote is a column, but no field of message demo.flights.Flight. Fields: c",
        ),
        ("seats DOUBLE", "value.seats is double, which does not fit uint32; cast the column"),
        ("leg STRUCT<miles: BIGINT>", "value.leg.miles is bigint, which does not fit int32"),
        ("at STRING", "value.at is string, but the field is a Timestamp"),
        ("gate INT", "value.gate is int, which does not fit string"),
        ("tags STRING", r"value.tags is string, but the field is repeated: array\(...\)"),
        ("tags ARRAY<INT>", r"value.tags\[\] is int, which does not fit string"),
        ("sizes ARRAY<INT>", "value.sizes is array<int>, but the field is a map"),
        ("sizes MAP<STRING, STRING>", r"value.sizes\[\] is string, which does not fit int32"),
        ("legs ARRAY<INT>", r"value.legs\[\] is int, but message demo.flights.Flight.Leg needs a struct"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_any_row(columns: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        check(ProtobufEncoder(descriptor(), FLIGHT), struct(columns), "value")


def test_columns_that_fit_are_taken() -> None:
    columns = (
        "carrier STRING, number INT, seats BIGINT, at TIMESTAMP, gate STRING, kind STRING, leg STRUCT<miles: INT>, "
        "legs ARRAY<STRUCT<miles: INT>>, sizes MAP<STRING, INT>, speed FLOAT"
    )
    check(ProtobufEncoder(descriptor(), FLIGHT), struct(columns), "value")


def test_a_bad_descriptor_and_an_unknown_message_are_one_line() -> None:
    with pytest.raises(JobError, match="the descriptor is no set of files with all imports"):
        ProtobufEncoder(b"\xff\xff", FLIGHT)
    with pytest.raises(JobError, match="message 'Flight' is not in the descriptor, which has: .*demo.flights.Flight"):
        ProtobufEncoder(descriptor(), "Flight")


EXTREMES: dict[str, tuple[Any, ...]] = {
    "number": (2**63 - 1, -(2**63), 0),
    "seats": (2**32 - 1, 0),
    "late": (True, False),
    "raw": (b"", bytes(range(256))),
    "carrier": ("", "\0\U0010ffff"),
    "speed": (1.7976931348623157e308, 5e-324, float("inf"), float("-inf")),
    "tags": ([], ["", "\U0001f600"]),
    "sizes": ({}, {"": 2**31 - 1, "\0": -(2**31)}),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in EXTREMES.items() for value in values])
def test_extremes_read_back(name: str, value: Any) -> None:
    found = getattr(parsed(ProtobufEncoder(descriptor(), FLIGHT).encode({name: value})), name)
    assert (list(found) if name == "tags" else dict(found) if name == "sizes" else found) == value


@pytest.mark.parametrize("micros", [0, -1, 253_402_300_799_999_999, -62_135_596_800_000_000])
def test_microseconds_are_a_timestamp(micros: int) -> None:
    at = parsed(ProtobufEncoder(descriptor(), FLIGHT).encode({"at": micros})).at
    assert at.seconds * 10**6 + at.nanos // 1000 == micros and 0 <= at.nanos < 10**9
    assert at.ToDatetime(dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC) == dt.timedelta(microseconds=micros)


def test_a_row_of_arrow_that_does_not_fit_is_a_dead_letter() -> None:
    """The last second of 9999 in New York, which is in 10000 in UTC; and text that is none."""
    late = pa.array([253_402_318_799], pa.timestamp("s", "America/New_York")).cast(
        pa.timestamp("us", "America/New_York")
    )
    broken = pa.array([b"\xff"], pa.binary()).view(pa.string())
    headers = pa.array([None], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    for field, column, why in (("at", late, "outside the years 1 to 9999"), ("carrier", broken, "no text in UTF-8")):
        value = pa.StructArray.from_arrays([column], [field])
        rows = pa.record_batch({"value": value, "topic": ["t"], "headers": headers})
        part = Part("value", ProtobufEncoder(descriptor(), FLIGHT))
        good, dead = RowStep((part,), "job", dead_letters="dead")([rows])
        assert (good.num_rows, dead.num_rows) == (0, 1)
        said = dead.column("headers").to_pylist()[0][0]["value"].decode()
        assert said.startswith(f"its value cannot be encoded as protobuf: {field}: ") and why in said
