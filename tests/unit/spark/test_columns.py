"""Which DataFrames the sink takes."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from forebay.errors import ConfigError
from forebay.spark.columns import ROLES, check, with_times

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_all_columns_with_others_between_them() -> None:
    everything = schema(
        extra=DoubleType(),
        value=BinaryType(),
        key=StringType(),
        topic=StringType(),
        headers=HEADERS,
        partition=IntegerType(),
        timestamp=TimestampType(),
    )
    assert check(everything, None) == ("key", "value", "topic", "headers", "partition", "timestamp")


def test_a_value_is_enough_when_the_option_names_the_topic() -> None:
    assert check(schema(value=StringType()), "t") == ("value",)


def test_a_timestamp_may_be_milliseconds() -> None:
    assert check(schema(value=StringType(), timestamp=LongType()), "t") == ("value", "timestamp")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("partition", LongType()),
        ("timestamp", TimestampNTZType()),
        ("timestamp", DateType()),
        ("headers", MapType(StringType(), BinaryType())),
    ],
    ids=str,
)
def test_what_can_be_cast_safely_is_taken(name: str, kind: DataType) -> None:
    assert check(schema(**{"value": StringType(), name: kind}), "t") == ("value", name)


def test_days_become_milliseconds_and_anything_else_stays() -> None:
    values = pa.array([b"a", b"b"])
    days = pa.array([dt.date(1970, 1, 2), None], pa.date32())
    batch = with_times(pa.record_batch({"timestamp": days, "value": values}))
    assert batch.column(0).cast(pa.int64()).to_pylist() == [86_400_000, None]
    for same in ({"value": values}, {"value": values, "timestamp": pa.array([1, 2])}):
        given = pa.record_batch(same)
        assert with_times(given) is given


def test_a_missing_value_names_the_columns_there_are() -> None:
    with pytest.raises(ConfigError, match="Required attribute 'value' not found. Columns: a, Value"):
        check(schema(a=StringType(), Value=StringType()), "t")


def test_a_topic_must_come_from_somewhere() -> None:
    with pytest.raises(ConfigError, match="topic option required when no 'topic' attribute is present"):
        check(schema(value=StringType()), None)


WRONG: dict[str, DataType] = {
    "key": IntegerType(),
    "value": DoubleType(),
    "topic": BinaryType(),
    "headers": MapType(StringType(), StringType()),
    "partition": DoubleType(),
    "timestamp": StringType(),
}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_wrong_type_is_refused_with_the_remedy(role: object) -> None:
    name = role.name  # type: ignore[attr-defined]
    columns: dict[str, DataType] = {"value": StringType()} | {name: WRONG[name]}
    with pytest.raises(ConfigError) as caught:
        check(schema(**columns), "t")
    text = str(caught.value)
    assert f"{name} attribute unsupported type {WRONG[name].simpleString()}" in text
    assert f"Remedy: {role.remedy}" in text  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "entry",
    [
        StructType([StructField("key", StringType()), StructField("value", StringType())]),
        StructType([StructField("value", BinaryType()), StructField("key", StringType())]),
        StructType([StructField("key", StringType())]),
        StringType(),
    ],
    ids=["text value", "order", "one field", "no struct"],
)
def test_headers_of_another_shape_are_refused(entry: DataType) -> None:
    with pytest.raises(ConfigError, match="headers attribute unsupported type array<"):
        check(schema(value=StringType(), headers=ArrayType(entry)), "t")


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = StructType([StructField("value", StringType()), StructField("value", StringType())])
    with pytest.raises(ConfigError, match="value attribute is there 2 times"):
        check(twice, "t")
