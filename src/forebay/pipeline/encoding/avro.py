"""Avro: a schema from columns, columns checked against a schema, and one row's bytes by the package fastavro.

fastavro is compiled, has no dependencies, and writes rows that are dicts, which is what Arrow gives.  The road not
taken: the package avro, which is many times slower.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import types as T

from forebay.pipeline.table import AVRO_NAME, JobError

Schema = Any
"""An Avro schema as JSON has it: text, list or dict."""

# What a column's type becomes, and then all that it fits into, as "type" or "type/logical type".
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


class AvroEncoder:
    """Rows to Avro's binary form, without a header; pickles, since tasks get it.

    Args:
        schema: as JSON has it.

    Raises:
        JobError: fastavro is not installed, or the schema is none.
    """

    name = "avro"

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._parsed = _parsed(schema)
        # fastavro writes a null boolean as false; everything else that does not fit is refused by its writer.
        self._validates = "boolean" in _plain_types(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroEncoder, (self.schema,)

    def encode(self, value: Any) -> bytes:
        """The bytes of one value.

        Raises:
            ValueError: it does not fit the schema; says which field and why.
        """
        import fastavro

        if self._validates:
            self._validate(value)
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, self._parsed, value)
        except Exception as error:
            self._validate(value)  # names the field, where the writer may not
            raise ValueError(str(error)) from error
        return out.getvalue()

    def _validate(self, value: Any) -> None:
        from fastavro.validation import ValidationError, validate

        try:
            validate(value, self._parsed, raise_errors=True)
        except ValidationError as error:
            raise ValueError("; ".join(str(one) for one in error.errors)) from None
        except Exception as error:
            raise ValueError(str(error)) from error

    def record_name(self) -> str:
        """The full name, which strategies of subjects need.

        Raises:
            JobError: the schema is no record, so it has none.
        """
        if not isinstance(self.schema, dict) or "name" not in self.schema:
            raise JobError("a schema without a name needs subject.name.strategy TopicNameStrategy")
        name: str = self.schema["name"]
        space = self.schema.get("namespace")
        return name if "." in name or not space else f"{space}.{name}"


def _parsed(schema: Schema) -> Any:
    try:
        import fastavro
    except ImportError:
        raise JobError("format 'avro' needs the package fastavro: pip install 'forebay[avro]'") from None
    try:
        return fastavro.parse_schema(schema)
    except Exception as error:  # noqa: BLE001 -- fastavro raises KeyError, TypeError and its own
        raise JobError(f"this is no Avro schema: {type(error).__name__}: {error}") from None


def from_text(text: str, part: str) -> Schema:
    """A schema as it stands in a file.

    Raises:
        JobError: it is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise JobError(f"[{part}] schema is not JSON: {error}") from None


def derived(kind: T.DataType, name: str, *, path: str = "") -> Schema:
    """The schema of a column; each field below it may be null, as each column of Spark may.

    Args:
        name: of the record; records inside it are named after their columns.

    Raises:
        JobError: Avro has no such type, or a column's name is no name in Avro.
    """
    for known, (schema, _) in SCALARS.items():
        if isinstance(kind, known):
            return schema
    if isinstance(kind, T.DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if isinstance(kind, T.ArrayType):
        return {"type": "array", "items": ["null", derived(kind.elementType, f"{name}_item", path=f"{path}[]")]}
    if isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        return {"type": "map", "values": ["null", derived(kind.valueType, f"{name}_value", path=f"{path}[]")]}
    if isinstance(kind, T.StructType):
        return {"type": "record", "name": name, "fields": [_field(field, name, path) for field in kind.fields]}
    raise JobError(f"{path or 'the column'} is {kind.simpleString()}, which Avro has not; cast it, to STRING say")


def _field(field: T.StructField, name: str, path: str) -> Schema:
    where = f"{path}.{field.name}".lstrip(".")
    if AVRO_NAME.fullmatch(field.name) is None or "." in field.name:
        raise JobError(f"column {where!r} has no name that Avro allows (letters, digits, _): rename it with AS")
    inside = derived(field.dataType, f"{name}_{field.name}", path=where)
    return {"name": field.name, "type": ["null", inside], "default": None}


def check(schema: Schema, kind: T.DataType, part: str) -> None:
    """Checks a column against a given schema, before any row is read.

    Raises:
        JobError: names the first field that does not fit, and the remedy.
    """
    _parsed(schema)
    found = next(iter(_complaints(schema, kind, part, {})), None)
    if found is not None:
        raise JobError(f"[{part}] {found}")


def _complaints(schema: Schema, kind: T.DataType, path: str, named: dict[str, Schema]) -> Iterator[str]:
    if isinstance(schema, list):
        branches = [one for one in schema if one != "null"]
        found = [list(_complaints(one, kind, path, named)) for one in branches]
        if all(found):
            yield found[0][0] if found else f"{path}: the schema allows null alone"
        return
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = schema
        named[f"{schema.get('namespace', '')}.{schema['name']}"] = schema
    word = _word(schema)
    if word == "record" and isinstance(kind, T.StructType):
        yield from _record_complaints(schema, kind, path, named)
    elif word == "array" and isinstance(kind, T.ArrayType):
        yield from _complaints(schema["items"], kind.elementType, f"{path}[]", named)
    elif word == "map" and isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        yield from _complaints(schema["values"], kind.valueType, f"{path}[]", named)
    elif not _fits(schema, word, kind):
        yield f"{path} is {kind.simpleString()}, which does not fit Avro's {word}; cast the column"


def _record_complaints(schema: Schema, kind: T.StructType, path: str, named: dict[str, Schema]) -> Iterator[str]:
    fields = {field["name"]: field for field in schema["fields"]}
    columns = {field.name: field.dataType for field in kind.fields}
    for name in columns:
        if name not in fields:
            yield f"{path}.{name} is a column, but no field of record {schema['name']}. Fields: {', '.join(fields)}"
    for name, field in fields.items():
        if name in columns:
            yield from _complaints(field["type"], columns[name], f"{path}.{name}", named)
        elif "default" not in field:
            yield (
                f"{path}.{name} is a field of record {schema['name']} without a default, but no column. "
                f"Columns: {', '.join(columns)}"
            )


def _fits(schema: Schema, word: str, kind: T.DataType) -> bool:
    if isinstance(kind, T.DecimalType):
        return (
            word in ("bytes/decimal", "fixed/decimal")
            and schema.get("scale", 0) == kind.scale
            and schema["precision"] >= kind.precision
        )
    return any(isinstance(kind, known) and word in words for known, (_, words) in SCALARS.items())


def _word(schema: Schema) -> str:
    if not isinstance(schema, dict):
        return str(schema)
    inner = schema.get("type")
    if isinstance(inner, (dict, list)):
        return _word(inner) if isinstance(inner, dict) else "union"
    logical = schema.get("logicalType")
    return f"{inner}/{logical}" if logical else str(inner)


def _plain_types(schema: Schema, *, nullable: bool = False) -> set[str]:
    """The names of types that a null cannot be in the place of."""
    if isinstance(schema, list):
        return set().union(*(_plain_types(one, nullable="null" in schema) for one in schema))
    if isinstance(schema, str):
        return set() if nullable else {schema}
    inner = [field["type"] for field in schema.get("fields", ())]
    inner += [schema[key] for key in ("items", "values") if key in schema]
    if isinstance(schema.get("type"), (dict, list)):
        inner.append(schema["type"])
    own = {schema["type"]} if isinstance(schema.get("type"), str) and not nullable else set()
    return own.union(*(_plain_types(one) for one in inner))
