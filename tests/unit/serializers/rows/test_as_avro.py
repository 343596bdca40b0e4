"""rows_as_avro read back by fastavro, by Apache's library and by confluent's deserializer."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import struct
import sys
from typing import Any

import avro.io
import avro.schema
import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import IllegalArgumentError, KafkaError, SerializationError
from forebay.serializers.rows import rows_as_avro
from tests.fakes.produce import batches_of
from tests.fakes.world import World
from tests.support.arrow_types import EXTREMES, NOT_TAKEN, REFUSED, Extreme
from tests.support.registry import serving

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | st.integers(-(2**63), 2**63 - 1),
            "f": st.none() | st.floats(allow_nan=False),
            "b": st.none() | st.booleans(),
            "t": st.none() | st.text(st.characters(codec="utf-8"), max_size=8),
            "raw": st.none() | st.binary(max_size=4),
            "tags": st.none() | st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=2), max_size=3),
            "inner": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-(2**31), 2**31 - 1)}),
        }
    ),
    max_size=6,
)
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("t", pa.string()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("x", pa.int32())])),
    ]
)
AS_AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "i", "type": ["null", "long"]},
        {"name": "f", "type": ["null", "double"]},
        {"name": "b", "type": ["null", "boolean"]},
        {"name": "t", "type": ["null", "string"]},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", "int"]}]}],
        },
    ],
}


def by_apache(schema: Any, data: bytes) -> Any:
    """Apache's own library, which shares nothing with the writer."""
    reader = avro.io.DatumReader(avro.schema.parse(json.dumps(schema)))
    return reader.read(avro.io.BinaryDecoder(io.BytesIO(data)))


def derived_and_made(table: Any) -> tuple[Any, list[bytes]]:
    """The schema that was made of the table, and the records."""
    schemas: list[str] = []
    made = rows_as_avro(schema_id=lambda text: schemas.append(text) or 7)(table).to_pylist()  # type: ignore[func-returns-value]
    return json.loads(schemas[0]), [one[5:] for one in made]


@given(ROWS)
def test_each_row_reads_back(rows: list[dict[str, Any]]) -> None:
    made = rows_as_avro(AS_AVRO)(pa.Table.from_pylist(rows, SCHEMA)).to_pylist()
    assert [by_apache(AS_AVRO, one) for one in made] == rows


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array([7], pa.int8()), "int", 7),
        (pa.array([2**32 - 1], pa.uint32()), "long", 2**32 - 1),
        (pa.array([0.5], pa.float32()), "float", 0.5),
        (pa.array([decimal.Decimal("1.50")]), "decimal", decimal.Decimal("1.50")),
        (pa.array([dt.date(2024, 1, 2)]), "date", dt.date(2024, 1, 2)),
        (pa.array([dt.date(1960, 1, 2)], pa.date64()), "date", dt.date(1960, 1, 2)),
        (pa.array([dt.time(1, 2, 3)], pa.time32("s")), "time-millis", dt.time(1, 2, 3)),
        (pa.array([dt.time(1, 2, 3, 4)], pa.time64("ns")), "time-micros", dt.time(1, 2, 3, 4)),
        (
            pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 6)], pa.timestamp("ns", "Europe/Zurich")),
            "timestamp-micros",
            dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        ),
        (
            pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 6)]),
            "local-timestamp-micros",
            dt.datetime(2024, 1, 2, 3, 4, 5, 6),
        ),
        (pa.array(["ä"]).dictionary_encode(), "string", "ä"),
        (pa.array(["ä"], pa.large_string()), "string", "ä"),
        (pa.array([b"ab"], pa.binary(2)), "bytes", b"ab"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "map", {"k": 1}),
        (
            pa.array([[dt.datetime(2024, 1, 2)]], pa.list_(pa.timestamp("ns"))),
            "array",
            [dt.datetime(2024, 1, 2)],
        ),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_types(column: Any, kind: str, expected: Any) -> None:
    schema, (one, null) = derived_and_made(pa.table({"c": pa.concat_arrays([column, pa.nulls(1, column.type)])}))
    inner = schema["fields"][0]["type"][1]
    assert kind in (inner, *(inner.values() if isinstance(inner, dict) else ()))
    for data, value in ((one, expected), (null, None)):
        assert fastavro.schemaless_reader(io.BytesIO(data), schema, None) == {"c": value}


def test_confluents_deserializer_reads_what_a_registry_has() -> None:
    with serving() as registry:
        client = SchemaRegistryClient({"url": registry.url})

        def register(text: str) -> int:
            return int(client.register_schema("orders-value", Schema(text, "AVRO")))

        make = rows_as_avro(schema_id=register, name="Order", columns=["id", "paid"])
        table = {"id": [7, 8], "paid": [True, None], "other": [1, 2]}
        made = make(table).to_pylist() + make({"id": [9], "paid": [False]}).to_pylist()
        assert list(registry.subjects) == ["orders-value"] and len(registry.subjects["orders-value"]) == 1
        context = SerializationContext("orders", MessageField.VALUE)
        read = [AvroDeserializer(client)(one, context) for one in made]
    assert read == [{"id": 7, "paid": True}, {"id": 8, "paid": None}, {"id": 9, "paid": False}]


def test_the_framing() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    plain = rows_as_avro(schema)({"a": [1]}).to_pylist()
    assert plain == [b"\x02"]
    for text in (schema, json.dumps(schema)):
        framed = rows_as_avro(text, schema_id=2**31)({"a": [1]}).to_pylist()
        assert framed == [struct.pack(">bI", 0, 2**31) + plain[0]]


def test_a_function_is_asked_once_for_each_schema() -> None:
    asked: list[str] = []

    def register(text: str) -> int:
        asked.append(text)
        return len(asked)

    make = rows_as_avro(schema_id=register)
    for table in ({"a": [1]}, {"a": [2]}, {"b": ["x"]}):
        make(table)
    assert len(asked) == 2 and json.loads(asked[1])["fields"][0]["name"] == "b"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": "{"}, "the schema is not JSON"),
        ({"schema": '"string"'}, "the schema of a row is a record"),
        ({"schema": {"type": "record", "name": "R", "fields": [{"name": "a", "type": "x"}]}}, "this is no Avro schema"),
        ({"schema": {"type": "record", "name": "R"}}, "table.a is a column, but no field of record R"),
        ({"schema_id": -1}, "schema_id is a number from 0 to 4294967295, got -1"),
        ({"schema_id": True}, "got True"),
        ({"schema_id": lambda text: "7"}, "got '7'"),
        ({"name": "a b"}, "name 'a b' is none in Avro"),
        ({"columns": ["z"]}, "column 'z' is missing; columns: a"),
        ({"schema": {**AS_AVRO, "fields": AS_AVRO["fields"][:1]}}, "table.a is a column, but no field of record Row"),
    ],
)
def test_arguments_that_cannot_be(arguments: Any, message: str) -> None:
    with pytest.raises(IllegalArgumentError, match=message):
        rows_as_avro(**arguments)({"a": [1]})


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([dt.timedelta(1)]), r"odd is duration\[us\], which Avro has not; cast it"),
        (pa.array([1], pa.uint64()), "odd is uint64, which Avro has not"),
        (pa.array([None]), "odd is null, which Avro has not"),
        (pa.array([[(1, 1)]], pa.map_(pa.int64(), pa.int64())), "odd is map<int64, int64>, which Avro has not"),
    ],
    ids=["duration", "uint64", "null", "map"],
)
def test_a_column_that_it_cannot_write_is_refused(column: Any, message: str) -> None:
    with pytest.raises(IllegalArgumentError, match=message):
        rows_as_avro()(pa.table({"odd": column}))


def test_a_naive_time_is_not_taken_for_one_of_utc() -> None:
    """fastavro would take it for a time of this machine's zone."""
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
    }
    with pytest.raises(IllegalArgumentError, match=r"table.at is timestamp\[us\], which does not fit"):
        rows_as_avro(schema)(pa.table({"at": [dt.datetime(2024, 1, 2)]}))


def test_a_value_that_does_not_fit_is_told_with_its_row_and_field() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    with pytest.raises(SerializationError, match=r"row 70000 does not fit its schema: .*R.a"):
        rows_as_avro(schema)(pa.table({"a": [*range(70_000), None]}))


def test_no_rows_and_no_table() -> None:
    assert rows_as_avro()(pa.table({"a": pa.array([], pa.int64())})).to_pylist() == []
    with pytest.raises(TypeError, match="rows_as_avro takes a table"):
        rows_as_avro()(7)


def test_without_fastavro_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(KafkaError, match=r"pip install 'forebay\[avro\]'"):
        rows_as_avro()({"a": [1]})


def test_send_batch_takes_it() -> None:
    world = World()
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    table = {"a": [1, 2], "key": ["k", None]}
    delivery = world.producer.send_batch("test", table, value=rows_as_avro(schema, columns=["a"]), partition=0)
    world.settle()
    (request,) = world.cluster.requests()
    records = [record for batch in batches_of(request).values() for record in batch.records]
    assert delivery.done() and [(r.key, r.value) for r in records] == [(b"k", b"\x02"), (None, b"\x04")]


def without_logical_types(schema: Any) -> Any:
    """The numbers of days and times as a reader gets them that has no classes for them; decimals stay."""
    if isinstance(schema, list):
        return [without_logical_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    drop = () if schema.get("logicalType") == "decimal" else ("logicalType",)
    return {key: without_logical_types(value) for key, value in schema.items() if key not in drop} | (
        {"fields": [{**field, "type": without_logical_types(field["type"])} for field in schema["fields"]]}
        if "fields" in schema
        else {}
    )


@pytest.mark.parametrize("one", EXTREMES, ids=lambda one: f"{one.kind}-{str(one.avro)[:20]}")
def test_every_type_with_its_extremes(one: Extreme) -> None:
    """Each value reads back by fastavro and by Apache's library, or is refused by its column, and by its row."""
    rest = pa.nulls(1, one.kind)
    column = pa.chunked_array([rest, one.cell])
    table = pa.table({"odd": column})
    if one.avro is NOT_TAKEN:
        with pytest.raises(IllegalArgumentError, match=r"^rows_as_avro: odd is .*, which Avro has not"):
            rows_as_avro()(table)
    elif one.avro is REFUSED:
        with pytest.raises(SerializationError, match=r"^rows_as_avro: row 1 does not fit its schema: odd\b"):
            rows_as_avro()(table)
    else:
        schema, (null, made) = derived_and_made(table)
        plain = without_logical_types(schema)
        assert fastavro.schemaless_reader(io.BytesIO(null), schema, None) == {"odd": None}
        for found in (fastavro.schemaless_reader(io.BytesIO(made), plain, None), by_apache(plain, made)):
            assert found == {"odd": one.avro}


def test_the_last_second_of_9999_in_new_york_is_written() -> None:
    at = pa.array([253_402_318_799], pa.timestamp("s", "America/New_York"))
    schema, (made,) = derived_and_made(pa.table({"at": at}))
    assert by_apache(without_logical_types(schema), made) == {"at": 253_402_318_799_000_000}


def field(kind: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "d", "type": kind, **more}],
    }


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        ("bytes", "", b""),
        (["bytes", "null"], "\u00ff", b"\xff"),
        (["null", "bytes"], None, None),
        ({"type": "fixed", "name": "F", "size": 2}, "\u00ff\u0001", b"\xff\x01"),
        (DECIMAL, "\u0001\u0000", decimal.Decimal("2.56")),
        (DECIMAL, "\u00ff", decimal.Decimal("-0.01")),
        ({**DECIMAL, "type": "fixed", "name": "D", "size": 3}, "\u0000\u0001\u0000", decimal.Decimal("2.56")),
        ({"type": "array", "items": "bytes"}, ["\u00ff"], [b"\xff"]),
        ({"type": "map", "values": "bytes"}, {"k": "\u00ff"}, {"k": b"\xff"}),
        (
            {"type": "record", "name": "I", "fields": [{"name": "b", "type": ["bytes", "null"]}]},
            {"b": "\u00ff"},
            {"b": b"\xff"},
        ),
        ("string", "\u00ff", "ÿ"),
        ({"type": "enum", "name": "E", "symbols": ["X"]}, "X", "X"),
        ({"type": "int", "logicalType": "date"}, 1, dt.date(1970, 1, 2)),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
        ("double", 1, 1.0),
    ],
)
def test_a_field_without_a_column_has_its_default(kind: Any, default: Any, expected: Any) -> None:
    schema = field(kind, default=default)
    (made,) = rows_as_avro(schema)({"a": [7]}).to_pylist()
    assert fastavro.schemaless_reader(io.BytesIO(made), schema, None) == {"a": 7, "d": expected}


@pytest.mark.parametrize(
    ("kind", "default"), [("bytes", "\u0100"), ({"type": "fixed", "name": "F", "size": 2}, "abc"), ("bytes", 7)]
)
def test_a_default_that_is_none_is_refused_before_any_row(kind: Any, default: Any) -> None:
    with pytest.raises(IllegalArgumentError, match="this is no Avro schema: .*[Dd]efault"):
        rows_as_avro(field(kind, default=default))({"a": [7]})


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def test_microseconds_are_cut_downwards_or_refused() -> None:
    table = {"a": [1, 2], "d": pa.array([1_001_000, -1], pa.timestamp("us", "UTC"))}
    for kind in (MILLIS, ["null", MILLIS]):
        schema = field(kind)
        made = rows_as_avro(schema)(table).to_pylist()
        plain = without_logical_types(schema)
        assert [by_apache(plain, one)["d"] for one in made] == [1001, -1]
        with pytest.raises(SerializationError, match=r"row 1 does not fit its schema: d: -1 microseconds are no whole"):
            rows_as_avro(schema, exact_times=True)(table)
    nested = field({"type": "array", "items": {"type": "map", "values": MILLIS}})
    kind = pa.list_(pa.map_(pa.string(), pa.timestamp("us", "UTC")))
    moments = pa.array([[[("k", 5_000_007)]]], kind)
    (one,) = rows_as_avro(nested)({"a": [1], "d": moments}).to_pylist()
    assert by_apache(without_logical_types(nested), one)["d"] == [{"k": 5000}]


def test_a_union_has_the_branch_of_the_column_s_type() -> None:
    """A number fits several, but what is a timestamp is no day."""
    day = {"type": "int", "logicalType": "date"}
    at = {"type": "long", "logicalType": "timestamp-micros"}
    schema = field(["null", day, at])
    (made,) = rows_as_avro(schema)({"a": [1], "d": pa.array([5], pa.timestamp("us", "UTC"))}).to_pylist()
    assert made == b"\2\4\x0a"
    (made,) = rows_as_avro(schema)({"a": [1], "d": pa.array([5], pa.date32())}).to_pylist()
    assert made == b"\2\2\x0a"


def test_text_that_is_no_uuid_is_refused() -> None:
    schema = field({"type": "string", "logicalType": "uuid"})
    good = "123e4567-e89b-12d3-a456-426614174000"
    assert rows_as_avro(schema)({"a": [1], "d": [good]}).to_pylist() == [b"\2" + b"\x48" + good.encode()]
    with pytest.raises(SerializationError, match="row 1 does not fit its schema: d: 'no' is no UUID"):
        rows_as_avro(schema)({"a": [1, 2], "d": [good, "no"]})


@pytest.mark.parametrize(
    "table",
    [
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        {1: [1], "1": [2]},
        pa.table({"a": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])}),
        pa.table({"a": pa.array([[None]], pa.list_(pa.struct([("x", pa.int8()), ("x", pa.int8())])))}),
        pa.table({"a": pa.array([None], pa.map_(pa.string(), pa.struct([("x", pa.int8()), ("x", pa.int8())])))}),
    ],
    ids=["table", "dict", "struct", "list", "map"],
)
def test_two_of_one_name_are_refused(table: Any) -> None:
    with pytest.raises(IllegalArgumentError, match=r"rows_as_avro: (column|field) '.*' is there more than once"):
        rows_as_avro()(table)


def test_a_decimal_beyond_its_precision_is_refused_by_row_and_field() -> None:
    """Such as a HUGEINT of DuckDB, whose digits may be one more than Arrow's type says."""
    bits = (2**127 - 1).to_bytes(16, "little")
    beyond = pa.Array.from_buffers(pa.decimal128(38, 0), 1, [None, pa.py_buffer(bits)])
    with pytest.raises(SerializationError, match=r"row 1 does not fit its schema: d: .*precision"):
        rows_as_avro()(pa.table({"d": pa.chunked_array([pa.nulls(1, beyond.type), beyond])}))
