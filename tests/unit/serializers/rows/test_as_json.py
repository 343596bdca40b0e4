"""rows_as_json against the standard library's json, value by value."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import IllegalArgumentError
from forebay.serializers.rows import rows_as_json
from forebay.serializers.rows.as_json import plain_text
from tests.fakes.produce import batches_of
from tests.fakes.world import World
from tests.support.arrow_types import EXTREMES, NOT_TAKEN, REFUSED, Extreme

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.text('"\\\n\t\r\x00\x1f\x7f', max_size=4)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | st.integers(-(2**63), 2**63 - 1),
            "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "b": st.none() | st.booleans(),
            "t": st.none() | TEXTS,
            'odd "name"\n': TEXTS,
        }
    ),
    min_size=1,
    max_size=6,
)
SCHEMA = pa.schema([("i", pa.int64()), ("f", pa.float64()), ("b", pa.bool_()), ("t", pa.string()), ('odd "name"\n', pa.string())])  # fmt: skip  # noqa: E501


@given(ROWS)
def test_each_row_reads_back(rows: list[dict[str, Any]]) -> None:
    made = rows_as_json(pa.Table.from_pylist(rows, SCHEMA)).to_pylist()
    assert [json.loads(one) for one in made] == rows
    assert [list(json.loads(one)) for one in made] == [SCHEMA.names] * len(rows)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([7], pa.uint64()), "7"),
        (pa.array([decimal.Decimal("1.50")]), "1.50"),
        (pa.array([dt.date(2024, 1, 2)]), '"2024-01-02"'),
        (pa.array([dt.date(2024, 1, 2)], pa.date64()), '"2024-01-02"'),
        (pa.array([dt.time(1, 2, 3)], pa.time32("s")), '"01:02:03"'),
        (pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 6)]), '"2024-01-02T03:04:05.000006"'),
        (pa.array([dt.datetime(2024, 1, 2)], pa.timestamp("ms", "Europe/Zurich")), '"2024-01-02T00:00:00.000Z"'),
        (pa.array(["ä"]).dictionary_encode(), '"ä"'),
        (pa.array(["ä"], pa.large_string()), '"ä"'),
        (pa.array([None]), "null"),
        (pa.array([None], pa.string()), "null"),
        (pa.array([dt.date(2024, 1, 2), None])[1:], "null"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_types(column: Any, expected: str) -> None:
    assert rows_as_json(pa.table({"c": column})).to_pylist() == ['{"c":' + expected + "}"]


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"a", dt.timedelta(1)], ids=["list", "struct", "binary", "duration"])
def test_a_type_that_it_cannot_write_is_refused_by_the_column_s_name(value: Any) -> None:
    table = pa.table({"id": [1], "odd": [value]})
    with pytest.raises(IllegalArgumentError, match=r"column 'odd' is .*cast the column to text, or leave it out"):
        rows_as_json(table)
    assert rows_as_json(table, columns=["id"]).to_pylist() == ['{"id":1}']


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_float_that_json_has_not_is_refused_by_column_and_row(value: float) -> None:
    with pytest.raises(IllegalArgumentError, match=rf"column 'x' has {value} in row 2, which JSON has not"):
        rows_as_json(pa.table({"x": [None, 1.0, value]}))


def test_what_is_no_table() -> None:
    for wrong in (7, [b"a"], pa.array([1])):
        with pytest.raises(TypeError, match="takes a table with named columns"):
            rows_as_json(wrong)
    with pytest.raises(IllegalArgumentError, match="no column"):
        rows_as_json(pa.table({}))
    with pytest.raises(IllegalArgumentError, match="column 'b' is missing; columns: a"):
        rows_as_json(pa.table({"a": [1]}), columns=["b"])


def written(world: World) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (record.key, record.value)
        for request in world.cluster.requests()
        for batch in batches_of(request).values()
        for record in batch.records
    ]


def test_as_the_value_of_send_batch() -> None:
    world = World()
    table = pa.table({"key": ["k", "l"], "n": [1, 2]})
    for given_table in (table, table.to_batches()[0], {"key": ["k", "l"], "n": [1, 2]}):
        delivery = world.producer.send_batch("test", given_table, value=rows_as_json, partition=0)
        world.settle()
        assert delivery.done() and delivery.taken() == [range(2)]
    assert written(world) == [(b"k", b'{"key":"k","n":1}'), (b"l", b'{"key":"l","n":2}')] * 3


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_without_a_column_for_the_key(library: str) -> None:
    world = World()
    table = pytest.importorskip(library)
    make: Any = {"pyarrow": lambda: table.table({"n": [1, 2]})}.get(library, lambda: table.DataFrame({"n": [1, 2]}))
    world.producer.send_batch("test", make(), value=rows_as_json, partition=0)
    world.settle()
    assert written(world) == [(None, b'{"n":1}'), (None, b'{"n":2}')]
    with pytest.raises(IllegalArgumentError, match="column 'id' is missing"):
        world.producer.send_batch("test", make(), value=rows_as_json, key="id")


def test_a_stream_is_refused_because_it_would_be_used_up() -> None:
    world = World()
    table = pa.table({"n": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(TypeError, match="this is a stream: read it first"):
        world.producer.send_batch("test", reader, value=rows_as_json)


def test_what_json_has_no_form_for_is_text() -> None:
    values = (b"\xff", dt.datetime(2024, 1, 2), dt.date(2024, 1, 2), decimal.Decimal("1.50"), dt.timedelta(seconds=1))
    texts = ["/w==", "2024-01-02T00:00:00", "2024-01-02", "1.50", "0:00:01"]
    assert [plain_text(value) for value in values] == texts


@pytest.mark.parametrize("one", EXTREMES, ids=lambda one: f"{one.kind}-{str(one.json)[:20]}")
def test_every_type_with_its_extremes(one: Extreme) -> None:
    """Each value reads back by ``json``, or is refused by its column, and by its row if the type has other values."""
    column = pa.concat_arrays([pa.nulls(1, one.kind), one.cell]) if one.kind.id != pa.struct([]).id else one.cell
    table = pa.table({"odd": pa.chunked_array([column])})
    if one.json is NOT_TAKEN:
        with pytest.raises(IllegalArgumentError, match=r"^rows_as_json: column 'odd' is .*, which it cannot write"):
            rows_as_json(table)
    elif one.json is REFUSED:
        with pytest.raises(IllegalArgumentError, match=r"^rows_as_json: column 'odd' has .* in row 1, which"):
            rows_as_json(table)
    else:
        null, made = rows_as_json(table).to_pylist()
        assert json.loads(null) == {"odd": None}
        assert json.loads(made, parse_float=type(one.json)) == {"odd": one.json}


@pytest.mark.parametrize(
    "table",
    [
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        {1: [1], "1": [2]},
        pa.table({"a": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])}),
    ],
    ids=["table", "batch", "dict", "struct"],
)
def test_two_of_one_name_are_refused(table: Any) -> None:
    with pytest.raises(IllegalArgumentError, match=r"rows_as_json: (column|field) '(a|1|a.x)' is there more than once"):
        rows_as_json(table)


def test_a_column_beside_the_two_of_one_name_may_be_chosen() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    assert rows_as_json(table, columns=["b"]).to_pylist() == ['{"b":3}']
    for columns in (["a"], ["b", "b"]):
        with pytest.raises(IllegalArgumentError, match="is there more than once"):
            rows_as_json(table, columns=columns)
