"""Columns that mean something only in the library that made them, and two of one name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from forebay._arrow.batch import ArrowBatch
from forebay._arrow.checks import PUBLIC, check_once, check_own_type, own_types
from forebay.errors import IllegalArgumentError
from forebay.serializers.rows import rows_as_avro, rows_as_json
from tests.fakes.world import World

OPAQUE = pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "bignum", "DuckDB"), pa.array([b"\x80"]))
UNKNOWN = {b"ARROW:extension:name": b"somebody.id", b"other": b"x" * 300}


def unknown(kind: Any, values: list[Any]) -> Any:
    """A column whose extension type Arrow does not know, so that it is its storage with metadata."""
    return pa.table([pa.array(values, kind)], schema=pa.schema([pa.field("value", kind, metadata=UNKNOWN)]))


pd: Any = pytest.importorskip("pandas")
BYTES, NUMBERS, NONE = ("value", "key", "topic_column"), ("partition", "timestamp"), ()
# Each with the arguments of send_batch that would take what it is in memory.
FOREIGN: dict[str, tuple[tuple[str, ...], Any]] = {
    "opaque": (BYTES, pa.table({"value": OPAQUE})),
    "bool8": (
        ("partition",),
        pa.table({"value": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))}),
    ),
    "period": (NUMBERS, pd.DataFrame({"value": pd.period_range("2024-01", periods=1, freq="M")})),
    "interval": (NONE, pd.DataFrame({"value": pd.interval_range(0, 1)})),
    "bytes": (BYTES, unknown(pa.binary(), [b"a"])),
    "fixed": (BYTES, unknown(pa.binary(2), [b"ab"])),
    "int": (NUMBERS, unknown(pa.int64(), [1])),
    "at": (("timestamp",), unknown(pa.timestamp("ms"), [1])),
    "dictionary": (BYTES, unknown(pa.dictionary(pa.int8(), pa.string()), ["a"])),
    "runs": (BYTES, unknown(pa.run_end_encoded(pa.int32(), pa.string()), ["a"])),
}


@pytest.mark.parametrize(("roles", "table"), FOREIGN.values(), ids=list(FOREIGN))
def test_an_extension_type_is_refused_by_name_everywhere(roles: tuple[str, ...], table: Any) -> None:
    world = World()
    for role in (*BYTES, *NUMBERS):
        why = r" is the extension type '[\w.]+', which only" if role in roles else ""
        given = {"value": "value"} if role == "value" else {"value": None, role: "value"}
        with pytest.raises(IllegalArgumentError, match=rf"column 'value'{why}"):
            world.producer.send_batch("test", table, **given)
    for make in (rows_as_json, rows_as_avro()):
        with pytest.raises(IllegalArgumentError, match=r"value'? is (the )?extension"):
            make(table)


def test_an_extension_type_inside_is_refused_by_its_field() -> None:
    fields = [pa.field("id", pa.int64(), metadata=UNKNOWN)]
    for kind in (pa.struct(fields), pa.list_(pa.struct(fields)), pa.map_(pa.string(), pa.struct(fields))):
        for make in (rows_as_json, rows_as_avro()):
            with pytest.raises(IllegalArgumentError, match=r"column 'value[\w.]*\.id' is the extension type"):
                make(pa.table({"value": pa.nulls(1, kind)}))
    header = pa.struct([("key", pa.string()), pa.field("value", pa.binary(), metadata=UNKNOWN)])
    batch = ArrowBatch(pa.record_batch({"headers": pa.nulls(1, pa.list_(header))}))
    with pytest.raises(IllegalArgumentError, match=r"column 'headers\.value' is the extension type"):
        batch.headers_column("headers")


def test_types_with_a_published_form_and_other_metadata_are_taken() -> None:
    assert "arrow.uuid" in PUBLIC
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
    assert ArrowBatch(pa.record_batch({"value": uuid})).bytes_column("value").get(0) == b"0" * 16
    field = pa.field("value", pa.binary(), metadata={"comment": "x"})
    batch = pa.record_batch([pa.array([b"a"])], schema=pa.schema([field]))
    assert ArrowBatch(batch).bytes_column("value").get(0) == b"a"


class Kind:
    """A type as polars and DuckDB have it."""

    def __init__(self, name: str, *children: tuple[str, Any]) -> None:
        self.id = name
        self.children = children

    def __str__(self) -> str:
        return self.id


def of(library: str, **members: Any) -> Any:
    """An object of a class of this library with an Arrow table behind it."""
    table = pa.table({"value": pa.array([b"12345678"], pa.binary(8)), "n": [1]})
    made = type(
        "Table",
        (),
        {"__module__": library, "__arrow_c_stream__": lambda self, schema=None: table.__arrow_c_stream__(schema)},
    )()
    for name, member in members.items():
        setattr(made, name, member)
    return made


BIT = Kind("bit")
TABLES = {
    "polars": of("polars.dataframe.frame", collect_schema=lambda: {"value": Kind("Object"), "n": Kind("Int64")}),
    "duckdb": of("duckdb", columns=["value", "n"], types=[BIT, Kind("integer")]),
    "struct": of("_duckdb", columns=["value", "n"], types=[Kind("struct", ("a", BIT)), Kind("integer")]),
    "array": of("_duckdb", columns=["value", "n"], types=[Kind("array", ("child", BIT), ("size", 3)), Kind("integer")]),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_a_type_that_arrow_does_not_show_is_refused_by_name(table: Any) -> None:
    assert list(own_types(table)) == ["value"]
    with pytest.raises(IllegalArgumentError, match="column 'value' is .*, which only (polars|DuckDB) can read"):
        World().producer.send_batch("test", table)
    for make in (rows_as_json, rows_as_avro()):
        with pytest.raises(IllegalArgumentError, match="column 'value' is .*, which only (polars|DuckDB) can read"):
            make(table)
    assert rows_as_json(table, columns=["n"]).to_pylist() == ['{"n":1}']
    check_own_type(table, "n")


def test_a_column_alone_is_looked_at_too() -> None:
    series = of("polars.series.series", dtype=Kind("Object"))
    for call in (
        lambda: World().producer.send_batch("test", {"value": series}),
        lambda: World().producer.send_batch("test", [b"a"], key=series),
        lambda: rows_as_json({"value": series}),
    ):
        with pytest.raises(IllegalArgumentError, match="column '(value|key)' is Object, which only polars can read"):
            call()


def test_libraries_themselves() -> None:
    """Those that are installed: the fakes above have to be like them."""
    polars: ModuleType | None = sys.modules.get("polars")
    if polars is not None:
        assert list(own_types(polars.DataFrame({"value": polars.Series([object()], dtype=polars.Object)}))) == ["value"]
    assert own_types(pd.DataFrame({"a": [1]})) == own_types(pa.table({"a": [1]})) == {}


def test_two_of_one_name() -> None:
    check_once(["a", "b"])
    with pytest.raises(IllegalArgumentError, match="field 'a' is there more than once"):
        check_once(["a", "b", "a"], "field")
