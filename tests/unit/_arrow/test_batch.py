"""Record batches and streams: their columns by name, their rows, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay._arrow.batch import ArrowBatch, batches
from forebay.errors import IllegalArgumentError

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch_of(**columns: pa.Array) -> ArrowBatch:
    return ArrowBatch(pa.RecordBatch.from_pydict(columns))


def test_an_empty_batch_has_columns_without_rows() -> None:
    batch = batch_of(value=pa.array([], pa.binary()), headers=pa.array([], HEADERS))
    assert batch.length == 0
    assert batch.names == ("value", "headers")
    assert batch.bytes_column("value").length == 0
    assert batch.headers_column("headers").length == 0


@pytest.mark.parametrize(
    ("opener", "array", "message"),
    [
        ("bytes_column", pa.array([1]), "Arrow type int64 is not read here"),
        ("bytes_column", pa.array([[b"a"]]), "Arrow type list<item: binary> is not"),
        ("int_column", pa.array(["a"]), "Arrow type string is not"),
        ("headers_column", pa.array([[{"key": b"a", "value": b""}]]), "column 'c.key'.*Arrow type binary is not"),
        ("int_column", pa.array([1.5]), "Arrow type double is not"),
        ("timestamp_column", pa.array([1], pa.int32()), "Arrow type int32 is not"),
        ("timestamp_column", pa.array([1], pa.date32()), r"Arrow type date32\[day\] is not"),
        ("headers_column", pa.array([["a"]]), "Arrow type list<item: string> is not"),
        ("headers_column", pa.array([[{"k": "a", "v": b""}]]), "named key and value"),
        ("headers_column", pa.array([[{"key": 1, "value": b""}]]), "column 'c.key'.*Arrow type int64 is not"),
    ],
)
def test_types_that_are_not_read_are_refused_by_name(opener: str, array: pa.Array, message: str) -> None:
    with pytest.raises(IllegalArgumentError, match=f"column 'c.*{message}|{message}"):
        getattr(batch_of(c=array), opener)("c")


def test_a_missing_and_a_doubled_column_are_named() -> None:
    batch = ArrowBatch(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(IllegalArgumentError, match="column 'b' is missing; columns: a, a"):
        batch.int_column("b")
    with pytest.raises(IllegalArgumentError, match="column 'a' is there twice"):
        batch.int_column("a")


def test_a_sliced_struct_array_and_its_null_rows() -> None:
    rows = pa.array([{"a": 1}, {"a": 2}, None, {"a": 4}])
    column = ArrowBatch(rows.slice(0, 2)).int_column("a")
    assert [column.value(0), column.value(1)] == [1, 2]
    assert ArrowBatch(rows.slice(3)).int_column("a").value(0) == 4
    with pytest.raises(IllegalArgumentError, match="row 1 is null as a whole"):
        ArrowBatch(rows.slice(1))


def test_streams_hand_out_every_batch() -> None:
    table = pa.table({"a": pa.chunked_array([[1, 2], [3], []], pa.int64())})
    read = [
        column.value(row)
        for batch in batches(table)
        for column in [batch.int_column("a")]
        for row in range(batch.length)
    ]
    assert read == [1, 2, 3]


def test_a_record_batch_is_a_stream_of_one() -> None:
    assert [batch.length for batch in batches(pa.RecordBatch.from_pydict({"a": [1, 2]}))] == [2]


def test_columns_of_a_stream_outlive_it() -> None:
    columns = [batch.bytes_column("a") for batch in batches(pa.table({"a": pa.chunked_array([[b"p"], [b"q" * 50]])}))]
    assert [column.get(0) for column in columns] == [b"p", b"q" * 50]


def test_a_failing_stream_says_why() -> None:
    def rows() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1]})
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), rows())
    stream = batches(reader)
    assert next(stream).length == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)


@pytest.mark.parametrize("source", [[1, 2], None, b"bytes"])
def test_what_is_not_arrow_is_refused_by_its_type(source: object) -> None:
    with pytest.raises(
        IllegalArgumentError, match=f"{type(source).__name__} does not speak the Arrow C data interface"
    ):
        list(batches(source))


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
def test_what_a_library_raises_when_it_is_asked_is_told_in_its_words(method: str) -> None:
    class OwnError(Exception):
        pass

    def refuse(self: object, schema: object = None) -> object:
        raise OwnError("no such dtype")

    source = type("Frame", (), {method: refuse})()
    with pytest.raises(IllegalArgumentError, match="Frame cannot be read as Arrow data: no such dtype") as caught:
        list(batches(source))
    assert isinstance(caught.value.__cause__, OwnError)


def test_an_array_without_names_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="named columns are needed"):
        ArrowBatch(pa.array([1]))


def test_a_slice_of_structs_ends_where_it_says() -> None:
    """Its children go on behind it: only the struct has the slice's offset and length."""
    array = pa.StructArray.from_arrays(
        [pa.array([b"%d" % row for row in range(10)]), pa.array(range(10)), pa.array([[]] * 10, HEADERS)],
        ["value", "partition", "headers"],
    )
    batch = ArrowBatch(array[2:5])
    value, partition, headers = (
        batch.bytes_column("value"),
        batch.int_column("partition"),
        batch.headers_column("headers"),
    )
    assert [column.length for column in (value, partition, headers)] == [3, 3, 3]
    assert [(value.get(row), partition.value(row)) for row in range(3)] == [(b"2", 2), (b"3", 3), (b"4", 4)]
