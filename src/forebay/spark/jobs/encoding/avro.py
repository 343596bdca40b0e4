"""The types of Spark's columns as Avro has them; what a job says of Avro schemas, and what is wrong with it.

The encoder is that of ``forebay.serializers.rows.avro``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from forebay._runtime.extras import of_extra

with of_extra(__name__, "spark"):
    from pyspark.sql import types as T

from forebay._arrow.checks import check_once
from forebay.errors import IllegalArgumentError, KafkaError
from forebay.serializers.rows import avro
from forebay.serializers.rows.avro import Kind, Schema
from forebay.spark.jobs.table import JobError

# What a column's type becomes, and then all that it fits into.
SCALARS: Mapping[type, tuple[Schema, tuple[str, ...]]] = {
    T.BooleanType: ("boolean", ("boolean",)),
    T.ByteType: ("int", ("int", "long", "float", "double")),
    T.ShortType: ("int", ("int", "long", "float", "double")),
    T.IntegerType: ("int", ("int", "long", "double")),
    T.LongType: ("long", ("long",)),
    T.FloatType: ("float", ("float", "double")),
    T.DoubleType: ("double", ("double",)),
    T.StringType: ("string", ("string", "string/uuid", "enum")),
    T.BinaryType: ("bytes", ("bytes", "fixed")),
    T.DateType: ({"type": "int", "logicalType": "date"}, ("int/date",)),
    T.TimestampType: (
        {"type": "long", "logicalType": "timestamp-micros"},
        ("long/timestamp-micros", "long/timestamp-millis"),
    ),
    T.TimestampNTZType: (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        ("long/local-timestamp-micros", "long/local-timestamp-millis"),
    ),
}


def kind_of(kind: T.DataType) -> Kind:
    """A column's type."""
    shown = kind.simpleString()
    if isinstance(kind, T.DecimalType):
        return avro.decimal_kind(shown, kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        return Kind(shown, items=kind_of(kind.elementType))
    if isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        return Kind(shown, values=kind_of(kind.valueType))
    if isinstance(kind, T.StructType):
        return Kind(shown, fields={field.name: kind_of(field.dataType) for field in kind.fields})
    for known, (schema, fits) in SCALARS.items():
        if isinstance(kind, known):
            return Kind(shown, schema, fits)
    return Kind(shown)


def from_text(text: str, part: str) -> Schema:
    """A schema as it stands in a file.

    Raises:
        JobError: it is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise JobError(f"[{part}] schema is not JSON: {error}") from None


def check_names(kind: T.DataType, path: str) -> None:
    """Refuses two fields of one name in a struct: one of them would be lost.

    Raises:
        JobError: names the field.
    """
    if isinstance(kind, T.StructType):
        try:
            check_once((f"{path}.{name}" for name in kind.fieldNames()), "field")
        except IllegalArgumentError as error:
            raise JobError(f"[{path.partition('.')[0]}] {error}, in [map]") from None
        for field in kind.fields:
            check_names(field.dataType, f"{path}.{field.name}")
    elif isinstance(kind, T.ArrayType):
        check_names(kind.elementType, f"{path}[]")
    elif isinstance(kind, T.MapType):
        check_names(kind.keyType, f"{path} (key)")
        check_names(kind.valueType, f"{path}[]")


def cut_times(schema: Schema, kind: T.DataType, part: str) -> list[str]:
    """The columns whose microseconds the schema has no room for."""
    return list(avro.cut_times(schema, kind_of(kind), part))


def derived(kind: T.DataType, name: str, *, path: str = "") -> Schema:
    """The schema of a column; each field below it may be null, as each column of Spark may.

    Args:
        name: of the record; records inside it are named after their columns.

    Raises:
        JobError: Avro has no such type, or a column's name is no name in Avro.
    """
    try:
        return avro.derived(kind_of(kind), name, path=path)
    except IllegalArgumentError as error:
        raise JobError(f"{error}, in [map] by CAST or AS") from None


def check(schema: Schema, kind: T.DataType, part: str) -> None:
    """Checks a column against a given schema, before any row is read.

    Raises:
        JobError: it is no schema, fastavro is not installed, or names the first field that does not fit, and the
            remedy.
    """
    try:
        avro.AvroEncoder(schema)
    except KafkaError as error:
        raise JobError(f"[{part}] {error}") from None
    found = next(avro.complaints(schema, kind_of(kind), part), None)
    if found is not None:
        raise JobError(f"[{part}] {found}")


def record_name(schema: Any) -> str:
    """The full name, which strategies of subjects need.

    Raises:
        JobError: the schema is no record, so it has none.
    """
    if not isinstance(schema, dict) or "name" not in schema:
        raise JobError("a schema without a name needs subject.name.strategy TopicNameStrategy")
    name: str = schema["name"]
    space = schema.get("namespace")
    return name if "." in name or not space else f"{space}.{name}"
