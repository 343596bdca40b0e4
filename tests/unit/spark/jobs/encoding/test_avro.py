"""Avro: what a column becomes, what fits it, and bytes that another library reads."""

from __future__ import annotations

import datetime as dt
import io
import json
import pickle
from decimal import Decimal
from typing import Any

import avro.io
import avro.schema
import pytest
from pyspark.sql import types as T

from forebay.serializers.rows.avro import AvroEncoder
from forebay.spark.jobs.encoding.avro import check, check_names, cut_times, derived, from_text, record_name
from forebay.spark.jobs.table import JobError
from tests.support.ddl import struct

ROW = struct(
    "a STRING, b BIGINT, c BOOLEAN, d DOUBLE, e BINARY, day DATE, at TIMESTAMP, price DECIMAL(9, 2), "
    "tags ARRAY<STRING>, sizes MAP<STRING, INT>, inner STRUCT<x: INT, y: STRUCT<z: FLOAT>>"
)
VALUE = {
    "a": "ä",
    "b": 2**40,
    "c": False,
    "d": 0.5,
    "e": b"\0\1",
    "day": dt.date(2013, 1, 2),
    "at": dt.datetime(2013, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC),
    "price": Decimal("12345.67"),
    "tags": ["x", None],
    "sizes": {"s": 1, "m": None},
    "inner": {"x": None, "y": {"z": 0.25}},
}


def read(schema: Any, data: bytes) -> Any:
    """Reads with Apache's own library, which shares nothing with the writer."""
    parsed = avro.schema.parse(json.dumps(schema))
    return avro.io.DatumReader(parsed).read(avro.io.BinaryDecoder(io.BytesIO(data)))


def test_a_schema_of_columns_carries_every_type() -> None:
    schema = derived(ROW, "flights")
    check(schema, ROW, "value")
    assert read(schema, AvroEncoder(schema).encode(VALUE)) == VALUE
    empty = dict.fromkeys(VALUE)
    assert read(schema, AvroEncoder(schema).encode(empty)) == empty


def test_an_encoder_pickles() -> None:
    encoder = AvroEncoder(derived(ROW, "flights"))
    assert pickle.loads(pickle.dumps(encoder)).encode(VALUE) == encoder.encode(VALUE)


def test_a_key_that_is_no_struct_has_a_schema_too() -> None:
    assert derived(T.LongType(), "k") == "long"
    assert read("string", AvroEncoder("string").encode("AA")) == "AA"


def record(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}


@pytest.mark.parametrize(
    ("schema", "columns", "message"),
    [
        (record(a="string"), "a STRING, b INT", r"value.b is a column, but no field of record R. Fields: a"),
        (record(a="string", b="int"), "a STRING", "value.b is a field of record R without a default, but no column"),
        (record(a="int"), "a BIGINT", r"value.a is bigint, which does not fit Avro's int; cast the column"),
        (record(a="string"), "a INT", "value.a is int, which does not fit Avro's string"),
        (record(a=["null", "int"]), "a STRING", "value.a is string, which does not fit Avro's int"),
        (record(a={"type": "array", "items": "int"}), "a ARRAY<STRING>", r"value.a\[\] is string, which does not"),
        (record(a={"type": "map", "values": "int"}), "a MAP<STRING, DATE>", r"value.a\[\] is date, which does not"),
        (record(a={**record(x="int"), "name": "I"}), "a STRUCT<x: STRING>", "value.a.x is string"),
        (record(a="long"), "a TIMESTAMP", "value.a is timestamp, which does not fit Avro's long"),
        (
            record(a={"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}),
            "a DECIMAL(9, 2)",
            r"value.a is decimal\(9,2\), which does not fit Avro's bytes/decimal",
        ),
        ("string", "a INT", "value is struct<a:int>, which does not fit Avro's string"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_any_row(schema: Any, columns: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        check(schema, struct(columns), "value")


def test_columns_that_fit_are_taken() -> None:
    named = {**record(x="int"), "name": "I"}
    schema = record(a=["null", "long"], b={"type": "enum", "name": "E", "symbols": ["X"]}, c=named, d=["null", "I"])
    schema["fields"].append({"name": "later", "type": "string", "default": "-"})
    kind = struct("a INT, b STRING, c STRUCT<x: SMALLINT>, d STRUCT<x: INT>")
    check(schema, kind, "value")
    made = AvroEncoder(schema).encode({"a": 1, "b": "X", "c": {"x": 2}, "d": None})
    assert read(schema, made) == {"a": 1, "b": "X", "c": {"x": 2}, "d": None, "later": "-"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("`a b` INT", "column 'a b' has no name that Avro allows .*AS"),
        ("a INTERVAL", "a is interval day to second, which Avro has not; cast it, say to text"),
        ("a MAP<INT, INT>", r"a is map<int,int>, which Avro has not"),
    ],
)
def test_what_avro_has_not_is_told_with_the_column(columns: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        derived(struct(columns), "R")


def test_a_bad_schema_is_one_line() -> None:
    with pytest.raises(JobError, match=r"\[value\] schema is not JSON"):
        from_text("record", "value")
    with pytest.raises(JobError, match=r"\[value\] this is no Avro schema: .*nonsense"):
        check({"type": "nonsense"}, T.LongType(), "value")


def test_a_records_full_name() -> None:
    assert record_name({**record(a="int"), "namespace": "n.s"}) == "n.s.R"
    assert record_name({**record(a="int"), "name": "x.R"}) == "x.R"
    with pytest.raises(JobError, match="a schema without a name needs"):
        record_name("string")


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}


@pytest.mark.parametrize(
    ("schema", "columns", "cut"),
    [
        (
            record(a=MILLIS, b=LOCAL),
            "a TIMESTAMP, b TIMESTAMP_NTZ",
            ["value.a (timestamp-millis)", "value.b (local-timestamp-millis)"],
        ),
        (record(a=["null", MILLIS]), "a TIMESTAMP", ["value.a (timestamp-millis)"]),
        (record(a={"type": "array", "items": MILLIS}), "a ARRAY<TIMESTAMP>", ["value.a[] (timestamp-millis)"]),
        (
            record(a={"type": "map", "values": ["null", MILLIS]}),
            "a MAP<STRING, TIMESTAMP>",
            ["value.a[] (timestamp-millis)"],
        ),
        (
            record(a={**record(x=MILLIS), "name": "I"}, b="I"),
            "a STRUCT<x: TIMESTAMP>, b STRUCT<x: TIMESTAMP>",
            ["value.a.x (timestamp-millis)", "value.b.x (timestamp-millis)"],
        ),
        (
            record(a={**MILLIS, "logicalType": "timestamp-micros"}, d={"type": "int", "logicalType": "date"}),
            "a TIMESTAMP, d DATE",
            [],
        ),
    ],
)
def test_times_that_lose_their_microseconds_are_known_before_any_row(schema: Any, columns: str, cut: Any) -> None:
    check(schema, struct(columns), "value")
    assert cut_times(schema, struct(columns), "value") == cut


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ("a INT, a INT", "value.a"),
        ("s STRUCT<a: INT, a: INT>", "value.s.a"),
        ("l ARRAY<STRUCT<a: INT, a: INT>>", r"value.l\[\].a"),
        ("m MAP<STRING, STRUCT<a: INT, a: INT>>", r"value.m\[\].a"),
    ],
)
def test_two_fields_of_one_name_are_refused(columns: str, name: str) -> None:
    with pytest.raises(JobError, match=rf"\[value\] field '{name}' is there more than once; rename one"):
        check_names(struct(columns), "value")
