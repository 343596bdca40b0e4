"""Rows of a table as Avro values, with the framing of a schema registry.

``send_batch(topic, table, value=rows_as_avro(...))``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from typing import Any

from forebay.errors import IllegalArgumentError, SerializationError
from forebay.serializers.rows import avro
from forebay.serializers.rows.avro import AvroEncoder, Kind, Schema
from forebay.serializers.rows.tables import arrow, as_table, bare, named
from forebay.serializers.rows.values import is_list, values_of

FUNCTION = "rows_as_avro"
MAGIC = b"\0"
_INTEGERS = {"int8": 8, "uint8": 9, "int16": 16, "uint16": 17, "int32": 32, "uint32": 33, "int64": 64}
TEXT, BYTES = ("string", "large_string", "string_view"), ("binary", "large_binary", "binary_view")
MOST_ROWS = 65_536
"""Rows that are Python's objects at a time."""


def rows_as_avro(
    schema: str | dict[str, Any] | None = None,
    *,
    schema_id: int | Callable[[str], int] | None = None,
    name: str = "Row",
    columns: Iterable[str] | None = None,
    exact_times: bool = False,
) -> Callable[[Any], Any]:
    """A function that makes an Avro record, in binary form, of each row of a table: the ``value`` of ``send_batch``.

    Dates and times have Avro's logical types: a timestamp with a zone is ``timestamp-micros``, one without it
    ``local-timestamp-micros``.  With ``schema_id`` a zero byte and the id in 4 bytes precede each record, as
    deserializers of Confluent's and of compatible registries want it.  The function may be used for any number of
    tables, from any thread.  It takes what ``rows_as_json`` takes, and gives a ``pyarrow.ChunkedArray`` of binary
    values.  It raises TypeError for what is no table, IllegalArgumentError for a column that is missing or there twice,
    has no name or type that Avro has, or does not fit the schema, and SerializationError for a value that does not fit:
    it names the row and the field.

    Args:
        schema: Avro's JSON, as text or as a dict; a record whose fields are the columns.  None derives it from the
            columns of each table; every field may then be null.
        schema_id: the number under which a registry has the schema, or a function that gets the schema's JSON and
            returns the number, such as a call that registers it; it is called once for each schema.  None: no framing.
        name: of the record that is derived.
        columns: names of those that are part of the record; None for all.
        exact_times: refuses a timestamp with microseconds where the schema has ``timestamp-millis``; else they are
            dropped.

    Raises:
        IllegalArgumentError: the schema is no record of Avro, ``schema_id`` is no number of 4 bytes, or ``name`` is no
            name in Avro.
        KafkaError: pyarrow or fastavro is not installed.
    """
    arrow(FUNCTION)
    if schema_id is not None and not callable(schema_id):
        _prefix(schema_id)
    if avro.NAME.fullmatch(name) is None:
        raise IllegalArgumentError(f"{FUNCTION}: name {name!r} is none in Avro: letters, digits and _, no digit first")
    given = None if schema is None else _record(schema)
    if given is not None:
        avro.parsed(given)
    return AvroRows(given, schema_id, name, None if columns is None else tuple(columns), exact_times)


class AvroRows:
    """What ``rows_as_avro`` gives.

    Args:
        schema: None derives it.
        schema_id: of the framing, or a function that gives it.
        name: of a record that is derived.
        columns: that are part of the record; None for all.
        exact_times: refuses what ``timestamp-millis`` would cut.
    """

    def __init__(
        self, schema: Schema, schema_id: Any, name: str, columns: tuple[str, ...] | None, exact_times: bool
    ) -> None:
        self._schema = schema
        self._exact_times = exact_times
        self._schema_id = schema_id
        self._name = name
        self._columns = columns
        self._last: tuple[Kind, AvroEncoder] | None = None  # tables mostly come with the same columns
        self._prefixes: dict[str, bytes] = {}  # two threads may ask for the same one, which does no harm

    def __call__(self, table: Any) -> Any:
        """The records; see ``rows_as_avro``."""
        pa = arrow(FUNCTION)
        taken = as_table(FUNCTION, table, self._columns)
        kind = Kind("the table", fields={field.name: _kind_of(pa, field.type) for field in taken.schema})
        encoder = self._encoder_of(kind)
        prefix = self._prefix_of(encoder.schema)
        pieces, before = [], 0
        for batch in taken.to_batches(max_chunksize=MOST_ROWS):
            pieces.append(_encoded(pa, encoder, prefix, batch, before))
            before += batch.num_rows
        return pa.chunked_array(pieces, pa.large_binary())

    def _encoder_of(self, kind: Kind) -> AvroEncoder:
        last = self._last
        if last is not None and last[0] == kind:
            return last[1]
        schema = self._schema
        if schema is None:
            with named(FUNCTION):
                schema = avro.derived(kind, self._name)
        elif (found := next(avro.complaints(schema, kind, "table"), None)) is not None:
            raise IllegalArgumentError(f"{FUNCTION}: {found}")
        encoder = AvroEncoder(schema, kind, exact_times=self._exact_times)
        self._last = kind, encoder
        return encoder

    def _prefix_of(self, schema: Schema) -> bytes:
        given = self._schema_id
        if given is None:
            return b""
        if not callable(given):
            return _prefix(given)
        text = json.dumps(schema, separators=(",", ":"))
        if text not in self._prefixes:
            self._prefixes[text] = _prefix(given(text))
        return self._prefixes[text]


def _record(schema: str | dict[str, Any]) -> Schema:
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise IllegalArgumentError(f"{FUNCTION}: the schema is not JSON: {error}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise IllegalArgumentError(f"{FUNCTION}: the schema of a row is a record, and this is none")
    return schema


def _prefix(schema_id: Any) -> bytes:
    if type(schema_id) is not int or not 0 <= schema_id < 2**32:
        raise IllegalArgumentError(f"{FUNCTION}: schema_id is a number from 0 to {2**32 - 1}, got {schema_id!r}")
    return MAGIC + schema_id.to_bytes(4, "big")


def _encoded(pa: Any, encoder: AvroEncoder, prefix: bytes, batch: Any, before: int) -> Any:
    out = io.BytesIO()
    ends = [0]
    rows = values_of(pa.StructArray.from_arrays(batch.columns, batch.schema.names)) if batch.num_rows else ()
    for row, value in enumerate(rows):
        out.write(prefix)
        try:
            encoder.write(out, value)
        except ValueError as error:
            why = " ".join(str(error).split())
            raise SerializationError(f"{FUNCTION}: row {before + row} does not fit its schema: {why}") from error
        ends.append(out.tell())
    offsets = pa.array(ends, pa.int64()).buffers()[1]
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, offsets, pa.py_buffer(out.getbuffer())]
    )


def _kind_of(pa: Any, kind: Any) -> Kind:
    kind, types = bare(kind), pa.types
    shown = str(kind)
    if types.is_decimal(kind):
        return avro.decimal_kind(shown, kind.precision, kind.scale)
    if types.is_struct(kind):
        return Kind(shown, fields={field.name: _kind_of(pa, field.type) for field in kind})
    if is_list(kind):
        return Kind(shown, items=_kind_of(pa, kind.value_type))
    if types.is_map(kind):
        is_text = str(bare(kind.key_type)) in TEXT
        return Kind(shown, values=_kind_of(pa, kind.item_type)) if is_text else Kind(shown)
    schema, fits = _scalar(types, kind, shown)
    return Kind(shown, schema, fits)


def _scalar(types: Any, kind: Any, shown: str) -> tuple[Schema, tuple[str, ...]]:
    if shown in _INTEGERS:
        size = _INTEGERS[shown]
        wide = (("float",) if size <= 17 else ()) + (("double",) if size <= 33 else ())
        return ("int", ("int", "long", *wide)) if size <= 32 else ("long", ("long", *wide))
    if types.is_boolean(kind):
        return "boolean", ("boolean",)
    if types.is_float16(kind) or types.is_float32(kind):
        return "float", ("float", "double")
    if types.is_float64(kind):
        return "double", ("double",)
    if shown in TEXT:
        return "string", ("string", "string/uuid", "enum")
    if types.is_fixed_size_binary(kind) or shown in BYTES:
        return "bytes", ("bytes", "fixed")
    if types.is_date(kind):
        return _logical("int", "date")
    if types.is_time(kind):
        return _logical("int", "time-millis") if types.is_time32(kind) else _logical("long", "time-micros")
    if types.is_timestamp(kind):
        local = "" if kind.tz is not None else "local-"
        return _logical("long", f"{local}timestamp-micros", f"long/{local}timestamp-millis")
    return None, ()


def _logical(inner: str, logical: str, *others: str) -> tuple[Schema, tuple[str, ...]]:
    return {"type": inner, "logicalType": logical}, (f"{inner}/{logical}", *others)
