"""The DataFrame's columns against what a Kafka record has, judged on the driver from the schema alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from forebay.errors import ConfigError


class Role(NamedTuple):
    """One column of the sink: what it may be, and how to make it so."""

    name: str
    fits: Callable[[DataType], bool]
    wanted: str
    remedy: str


def _is_text_or_bytes(kind: DataType) -> bool:
    return isinstance(kind, (StringType, BinaryType))


def _is_headers(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, BinaryType)
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    if [field.name for field in fields] != ["key", "value"]:
        return False
    return isinstance(fields[0].dataType, StringType) and isinstance(fields[1].dataType, BinaryType)


ROLES = (
    Role("key", _is_text_or_bytes, "STRING or BINARY", "CAST(key AS STRING)"),
    Role("value", _is_text_or_bytes, "STRING or BINARY", "to_json(struct(*)) AS value, or CAST(value AS STRING)"),
    Role("topic", lambda kind: isinstance(kind, StringType), "STRING", "CAST(topic AS STRING)"),
    Role(
        "headers",
        _is_headers,
        "ARRAY<STRUCT<key: STRING, value: BINARY>> or MAP<STRING, BINARY>",
        "array(named_struct('key', 'name', 'value', CAST('text' AS BINARY)))",
    ),
    Role("partition", lambda kind: isinstance(kind, IntegralType), "INT or BIGINT", "CAST(partition AS INT)"),
    Role(
        "timestamp",
        lambda kind: isinstance(kind, (TimestampType, TimestampNTZType, DateType, LongType)),
        "TIMESTAMP, TIMESTAMP_NTZ or DATE (both taken as UTC), or BIGINT milliseconds since 1970",
        "CAST(timestamp AS TIMESTAMP)",
    ),
)


def check(schema: StructType, topic: str | None) -> tuple[str, ...]:
    """The names of the columns that will be read; others are ignored, as Spark's own sink does.

    Args:
        topic: the option ``topic``; it makes a topic column needless.

    Raises:
        ConfigError: a column is missing, there twice, or of a type that is no Kafka field.
    """
    names = schema.fieldNames()
    have = ", ".join(names) or "none"
    if "value" not in names:
        raise ConfigError(f"Required attribute 'value' not found. Columns: {have}. Make one, e.g. {ROLES[1].remedy}")
    if topic is None and "topic" not in names:
        raise ConfigError(
            "topic option required when no 'topic' attribute is present. "
            f"Use the option 'topic', or make a topic column. Columns: {have}"
        )
    for role in ROLES:
        _check_role(role, schema)
    return tuple(role.name for role in ROLES if role.name in names)


def _check_role(role: Role, schema: StructType) -> None:
    found = [field.dataType for field in schema.fields if field.name == role.name]
    if len(found) > 1:
        raise ConfigError(f"{role.name} attribute is there {len(found)} times; keep one column of that name")
    if found and not role.fits(found[0]):
        raise ConfigError(
            f"{role.name} attribute unsupported type {found[0].simpleString()}; "
            f"it must be {role.wanted}. Remedy: {role.remedy}"
        )


def with_times(batch: Any) -> Any:
    """The Arrow batch with a ``timestamp`` of days made milliseconds; any other as it is.

    Days are rare, so they are converted by pyarrow, which is in every Spark worker.
    """
    at = batch.schema.get_field_index("timestamp")
    if at < 0 or str(batch.schema.field(at).type) != "date32[day]":
        return batch
    import pyarrow as pa

    arrays = batch.columns
    arrays[at] = arrays[at].cast(pa.timestamp("ms"))
    # Not by set_column, which record batches of older versions of pyarrow do not have.
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
