"""Avro: a schema from types of columns, columns checked against one, and one row's bytes by the package fastavro.

fastavro is compiled, has no dependencies, and writes rows that are dicts, which is what Arrow gives.  The roads not
taken: the package avro, which is many times slower, and an encoder of our own for whole columns.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from forebay.errors import IllegalArgumentError, KafkaError
from forebay.serializers.rows.avro_values import NEVER, Changes, with_defaults
from forebay.serializers.rows.tables import reason
from forebay.serializers.rows.values import Refused

Schema = Any
"""An Avro schema as JSON has it: text, list or dict."""
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Kind(NamedTuple):
    """The type of a column, whoever has it: one that stands alone, or a struct, a list or a map."""

    shown: str
    """In the words of who has it, for errors."""
    schema: Schema = None
    """What it becomes; None: Avro has no such type."""
    fits: tuple[str, ...] = ()
    """All that it fits into, as ``type`` or ``type/logical type``."""
    decimal: tuple[int, int] | None = None
    """Precision and scale."""
    fields: Mapping[str, Kind] | None = None
    """Of a struct."""
    items: Kind | None = None
    """Of a list."""
    values: Kind | None = None
    """Of a map from text."""


def decimal_kind(shown: str, precision: int, scale: int) -> Kind:
    """The kind of a decimal number; Avro has none of a scale below 0."""
    if scale < 0:
        return Kind(shown)
    schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    return Kind(shown, schema, decimal=(precision, scale))


class AvroEncoder:
    """Rows to Avro's binary form, without a header; pickles, since tasks get it.

    Days, times and timestamps are numbers, as ``values_of`` has them.

    Args:
        schema: as JSON has it.
        kind: of the column that is written, so that each union has the one branch that the column fits; None takes the
            first branch that the value fits.
        exact_times: refuses a timestamp that would lose its microseconds, in place of dropping them.

    Raises:
        KafkaError: fastavro is not installed.
        IllegalArgumentError: the schema is none.
    """

    name = "avro"

    def __init__(self, schema: Schema, kind: Kind | None = None, *, exact_times: bool = False) -> None:
        self.schema = schema
        self._given = kind, exact_times
        named: dict[str, Any] = {}
        self._parsed = parsed(schema, named)
        with_defaults(named)
        self._change = Changes(named, exact_times).of(self._parsed)
        if kind is not None:
            self._parsed = {**narrowed(self._parsed, kind, named)} if isinstance(self._parsed, dict) else self._parsed
        # fastavro writes a null boolean as false; everything else that does not fit is refused by its writer.
        self._validates = "boolean" in _plain_types(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        kind, exact_times = self._given
        return partial(AvroEncoder, exact_times=exact_times), (self.schema, kind)

    def encode(self, value: Any) -> bytes:
        """The bytes of one value.

        Raises:
            ValueError: it does not fit the schema; says which field and why.
        """
        out = io.BytesIO()
        self.write(out, value)
        return out.getvalue()

    def write(self, out: BinaryIO, value: Any) -> None:
        """As ``encode``, to the end of ``out``."""
        import fastavro

        if isinstance(value, Refused):
            raise ValueError(str(value))
        if self._change is not None:
            value = self._change(value)
        if self._validates:
            self._validate(value)
        try:
            fastavro.schemaless_writer(out, self._parsed, value)
        except Exception as error:
            self._validate(value)  # names the field, where the writer may not
            raise ValueError(f"{self._culprit(value)}{reason(error)}") from error

    def _validate(self, value: Any) -> None:
        from fastavro.validation import ValidationError, validate

        try:
            validate(value, self._parsed, raise_errors=True)
        except ValidationError as error:
            raise ValueError("; ".join(str(one) for one in error.errors)) from None
        except Exception as error:
            raise ValueError(f"{self._culprit(value)}{reason(error)}") from error

    def _culprit(self, value: Any) -> str:
        """The field that fastavro cannot write, where its error does not say it: each is written once more, alone."""
        import fastavro

        fields = self._parsed.get("fields", ()) if isinstance(self._parsed, dict) else ()
        for field in fields:
            try:
                fastavro.schemaless_writer(io.BytesIO(), {**self._parsed, "fields": [field]}, value)
            except Exception:  # noqa: BLE001 -- whatever it was
                return f"{field['name']}: "
        return ""


def parsed(schema: Schema, named: dict[str, Any] | None = None) -> Any:
    """The schema as fastavro has it.

    Args:
        named: gets the schemas that have names.

    Raises:
        KafkaError: fastavro is not installed.
        IllegalArgumentError: it is no schema.
    """
    try:
        import fastavro
    except ImportError:
        raise KafkaError("Avro needs the package fastavro: pip install 'forebay[avro]'") from None
    try:
        return fastavro.parse_schema(schema, named_schemas=named)
    except Exception as error:  # noqa: BLE001 -- fastavro raises KeyError, TypeError and its own
        raise IllegalArgumentError(f"this is no Avro schema: {type(error).__name__}: {error}") from None


def narrowed(schema: Any, kind: Kind, named: Mapping[str, Any]) -> Any:
    """The schema for the values of this column alone: of a union only what the column fits can be written."""
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    if isinstance(schema, list):
        fits = [one == "null" or not any(complaints(one, kind, "", dict(named))) for one in schema]
        if sum(fits) == len(fits):
            return [narrowed(one, kind, named) for one in schema]
        return [narrowed(one, kind, named) if fit else NEVER for one, fit in zip(schema, fits, strict=True)]
    if not isinstance(schema, dict):
        return schema
    if kind.fields is not None and "fields" in schema:
        fields = [
            {**field, "type": narrowed(field["type"], kind.fields[field["name"]], named)}
            if field["name"] in kind.fields
            else field
            for field in schema["fields"]
        ]
        return {**schema, "fields": fields}
    for key, inner in (("items", kind.items), ("values", kind.values)):
        if inner is not None and key in schema:
            return {**schema, key: narrowed(schema[key], inner, named)}
    return schema


def cut_times(schema: Schema, kind: Kind, path: str, named: dict[str, Schema] | None = None) -> Iterator[str]:
    """The columns whose microseconds a schema has no room for, as ``complaints`` names them."""
    named = {} if named is None else named
    if isinstance(schema, list):
        for one in schema:
            if not any(complaints(one, kind, path, dict(named))):
                yield from cut_times(one, kind, path, named)
        return
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict):
        return
    _note_name(schema, named)
    for inner, of, where in _below(schema, kind):
        yield from cut_times(inner, of, f"{path}{where}", named)
    word = _word(schema)
    if word.endswith("-millis") and f"{word.removesuffix('millis')}micros" in kind.fits:
        yield f"{path} ({word.partition('/')[2]})"


def _below(schema: dict[str, Any], kind: Kind) -> Iterator[tuple[Schema, Kind, str]]:
    """What is in a schema, beside what is in its column, and how that is called."""
    columns = kind.fields or {}
    for field in schema.get("fields", ()):
        if field["name"] in columns:
            yield field["type"], columns[field["name"]], f".{field['name']}"
    for key, inner in (("items", kind.items), ("values", kind.values)):
        if inner is not None and key in schema:
            yield schema[key], inner, "[]"


def derived(kind: Kind, name: str, *, path: str = "") -> Schema:
    """The schema of a column; each field below it may be null.

    Args:
        name: of the record; records inside it are named after their columns.

    Raises:
        IllegalArgumentError: Avro has no such type, or a column's name is no name in Avro.
    """
    if kind.fields is not None:
        fields = [_field(field, inner, name, path) for field, inner in kind.fields.items()]
        return {"type": "record", "name": name, "fields": fields}
    if kind.items is not None:
        return {"type": "array", "items": ["null", derived(kind.items, f"{name}_item", path=f"{path}[]")]}
    if kind.values is not None:
        return {"type": "map", "values": ["null", derived(kind.values, f"{name}_value", path=f"{path}[]")]}
    if kind.schema is None:
        raise IllegalArgumentError(f"{path or 'the column'} is {kind.shown}, which Avro has not; cast it, say to text")
    return kind.schema


def _field(field: str, kind: Kind, name: str, path: str) -> Schema:
    where = f"{path}.{field}".lstrip(".")
    if NAME.fullmatch(field) is None:
        raise IllegalArgumentError(
            f"column {where!r} has no name that Avro allows (letters, digits, _; no digit first): rename it"
        )
    return {"name": field, "type": ["null", derived(kind, f"{name}_{field}", path=where)], "default": None}


def complaints(schema: Schema, kind: Kind, path: str, named: dict[str, Schema] | None = None) -> Iterator[str]:
    """What of a column does not fit a schema, field by field, with the remedy.

    Args:
        path: what the column is called.
        named: the schemas that were met before, by name.
    """
    named = {} if named is None else named
    if isinstance(schema, list):
        branches = [one for one in schema if one != "null"]
        found = [list(complaints(one, kind, path, named)) for one in branches]
        if all(found):
            yield found[0][0] if found else f"{path}: the schema allows null alone"
        return
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    _note_name(schema, named)
    word = _word(schema)
    if word == "record" and kind.fields is not None:
        yield from _record_complaints(schema, kind.fields, path, named)
    elif word == "array" and kind.items is not None:
        yield from complaints(schema["items"], kind.items, f"{path}[]", named)
    elif word == "map" and kind.values is not None:
        yield from complaints(schema["values"], kind.values, f"{path}[]", named)
    elif not _fits(schema, word, kind):
        yield f"{path} is {kind.shown}, which does not fit Avro's {word}; cast the column"


def _note_name(schema: Schema, named: dict[str, Schema]) -> None:
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = schema
        named[f"{schema.get('namespace', '')}.{schema['name']}"] = schema


def _record_complaints(
    schema: Schema, columns: Mapping[str, Kind], path: str, named: dict[str, Schema]
) -> Iterator[str]:
    fields = {field["name"]: field for field in schema.get("fields", ())}
    for name in columns:
        if name not in fields:
            yield f"{path}.{name} is a column, but no field of record {schema['name']}. Fields: {', '.join(fields)}"
    for name, field in fields.items():
        if name in columns:
            yield from complaints(field["type"], columns[name], f"{path}.{name}", named)
        elif "default" not in field:
            yield (
                f"{path}.{name} is a field of record {schema['name']} without a default, but no column. "
                f"Columns: {', '.join(columns)}"
            )


def _fits(schema: Schema, word: str, kind: Kind) -> bool:
    if kind.decimal is not None:
        precision, scale = kind.decimal
        return (
            word in ("bytes/decimal", "fixed/decimal")
            and schema.get("scale", 0) == scale
            and schema["precision"] >= precision
        )
    return word in kind.fits


def _word(schema: Schema) -> str:
    if not isinstance(schema, dict):
        return str(schema)
    inner = schema.get("type")
    if isinstance(inner, (dict, list)):
        return _word(inner) if isinstance(inner, dict) else "union"
    logical = schema.get("logicalType")
    return f"{inner}/{logical}" if logical else str(inner)


def _plain_types(schema: Schema, *, nullable: bool = False) -> set[str]:
    """The names of types that a null cannot be in place of."""
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
