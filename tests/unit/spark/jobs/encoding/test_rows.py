"""The step of a task: bytes and prefixes in, dead letters aside, and which row failed."""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from forebay.serializers.rows.avro import AvroEncoder
from forebay.spark.failure import HIDE
from forebay.spark.jobs.encoding.rows import EncodeError, Part, RowStep

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def batch(values: list[Any], **columns: Any) -> Any:
    arrays = {
        "key": pa.array([f"k{number}" for number in range(len(values))]),
        "value": pa.array(values, pa.struct([("a", pa.string())])),
        "topic": pa.array(["t"] * len(values)),
        "headers": pa.array([None] * len(values), HEADERS),
    }
    return pa.RecordBatch.from_pydict(arrays | columns)


def value_part(prefixes: dict[str | None, bytes] | None = None) -> Part:
    return Part("value", AvroEncoder(SCHEMA), prefixes)


def test_values_become_bytes_and_a_null_stays_null() -> None:
    step = pickle.loads(pickle.dumps(RowStep((value_part(),), "job")))
    (made,) = step([batch([{"a": "x"}, None, {"a": "yz"}])])
    assert made.column("value").to_pylist() == [b"\2x", None, b"\4yz"]
    assert made.column("key").to_pylist() == ["k0", "k1", "k2"]
    assert made.schema.field("value").type == pa.binary()


def test_a_prefix_goes_by_the_topic_of_the_row() -> None:
    step = RowStep((value_part({"t": b"T", "u": b"U"}), Part("key", None, {None: b"K"})), "job", topics=("t", "u"))
    (made,) = step([batch([{"a": "x"}] * 2, topic=pa.array(["u", "t"]))])
    assert made.column("value").to_pylist() == [b"U\2x", b"T\2x"]
    assert made.column("key").to_pylist() == [b"Kk0", b"Kk1"]


def test_a_fixed_topic_needs_no_column() -> None:
    rows = batch([{"a": "x"}]).drop_columns(["topic"])
    (made,) = RowStep((value_part({"t": b"T"}),), "job", topic="t")([rows])
    assert made.column("value").to_pylist() == [b"T\2x"]


def test_the_first_bad_row_fails_the_task_with_its_number_reason_and_content() -> None:
    step = RowStep((value_part(),), "job")
    stream = step([batch([{"a": "x"}] * 3), batch([{"a": "y"}, {"a": None}])])
    assert next(stream).num_rows == 3
    with pytest.raises(
        EncodeError, match=r"^row 4: its value cannot be encoded as avro: .*R.a.* is None expected string"
    ) as e:
        next(stream)
    assert 'The row: {"key": "k1", "value": {"a": null}, "topic": "t", "headers": null}' in str(e.value)
    assert os.environ[HIDE] == "1"


def test_bad_rows_go_to_the_other_topic_with_the_reason_and_the_rest_goes_on() -> None:
    step = RowStep((value_part(),), "job", dead_letters="dead")
    headers = pa.array([None, [{"key": "h", "value": b"1"}], None], HEADERS)
    partition = pa.array([1, 2, 3], pa.int32())
    rows = batch([{"a": "x"}, {"a": None}, {"a": "z"}], headers=headers, partition=partition)
    # A literal's column may not be null, as Spark says it.
    rows = rows.cast(rows.schema.set(2, rows.schema.field("topic").with_nullable(False)))
    good, dead = step([rows])
    assert good.column("value").to_pylist() == [b"\2x", b"\2z"]
    assert good.column("partition").to_pylist() == [1, 3]
    assert good.schema == dead.schema
    (letter,) = dead.to_pylist()
    assert (letter["topic"], letter["key"], letter["value"]) == ("dead", "k1", b'{"a": null}')
    assert letter["partition"] is None
    names = [one["key"] for one in letter["headers"]]
    assert names == ["h", "dead-letter.error", "dead-letter.topic", "dead-letter.job"]
    texts = [one["value"].decode() for one in letter["headers"]]
    assert texts[1].startswith("its value cannot be encoded as avro: ") and texts[2:] == ["t", "job"]


def test_a_batch_of_bad_rows_alone_leaves_an_empty_one() -> None:
    good, dead = RowStep((value_part(),), "job", dead_letters="dead")([batch([{"a": None}])])
    assert (good.num_rows, dead.num_rows) == (0, 1)


@pytest.mark.parametrize(
    ("topic", "message"),
    [("v", "its topic is 'v', and .* are t, u"), (None, "its topic is null"), ("", "its topic is empty")],
)
def test_a_topic_outside_the_list_is_an_error_of_the_row(topic: str | None, message: str) -> None:
    step = RowStep((), "job", topics=("t", "u"))
    rows = batch([{"a": "x"}], topic=pa.array([topic], pa.string()))
    with pytest.raises(EncodeError, match=message):
        list(step([rows]))


def test_a_long_row_is_cut_in_the_message() -> None:
    rows = batch([{"a": None}], key=pa.array(["k" * 5000]))
    with pytest.raises(EncodeError) as caught:
        list(RowStep((value_part(),), "job")([rows]))
    assert len(str(caught.value)) < 700 and str(caught.value).endswith("k...")


MOMENTS = {"type": "record", "name": "R", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "t", "type": "string"},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
]}  # fmt: skip
ID = "123e4567-e89b-12d3-a456-426614174000"
LATE = 253_402_318_799_000_000
"""The last second of 9999 in New York, as microseconds; in UTC it is in 10000."""


def moments(*rows: tuple[int, bytes, str]) -> Any:
    """A column of such structs."""
    at, texts, ids = zip(*rows, strict=True)
    moment = pa.array(at, pa.int64()).cast(pa.timestamp("us", "America/New_York"))
    value = pa.StructArray.from_arrays(
        [moment, pa.array(texts, pa.binary()).view(pa.string()), pa.array(ids)], ["at", "t", "id"]
    )
    return batch([{"a": "x"}] * len(rows), value=value)


BAD = {
    "text": ((0, b"\xff", ID), r"t: b'\\xff' is no text in UTF-8", {"t": "\ufffd"}),
    "uuid": ((0, b"x", "no"), "id: 'no' is no UUID", {"id": "no"}),
    "exact": ((LATE + 1, b"x", ID), "at: .* are no whole milliseconds", {"at": "+10000-01-01T04:59:59.000001Z"}),
    "shown": ((2**63 - 1, b"x", ID), "at: .* are no whole milliseconds", {"at": 2**63 - 1}),
}


@pytest.mark.parametrize(("row", "why", "shown"), BAD.values(), ids=list(BAD))
def test_what_arrow_or_the_logical_type_forbids_is_a_dead_letter(row: Any, why: str, shown: Any) -> None:
    part = Part("value", AvroEncoder(MOMENTS, exact_times=True))
    rows = moments((LATE, b"x", ID), row)
    good, dead = RowStep((part,), "job", dead_letters="dead")([rows])
    assert good.num_rows == dead.num_rows == 1
    (letter,) = dead.to_pylist()
    assert letter["headers"][0]["key"] == "dead-letter.error"
    assert re.search(f"its value cannot be encoded as avro: {why}", letter["headers"][0]["value"].decode())
    found = json.loads(letter["value"])
    assert {name: found[name] for name in shown} == shown
    with pytest.raises(EncodeError, match=f"^row 1: its value cannot be encoded as avro: {why}.*The row: "):
        list(RowStep((part,), "job")([rows]))


def test_text_that_is_none_in_a_topic_or_a_key_is_a_dead_letter_too() -> None:
    broken = pa.array([b"\xff"], pa.binary()).view(pa.string())
    parts = (value_part(), Part("key", None, {None: b"K"}))
    good, dead = RowStep(parts, "job", dead_letters="dead")([batch([{"a": "x"}], key=broken)])
    assert (good.num_rows, dead.column("key").to_pylist()) == (0, ["\ufffd".encode()])
    _, dead = RowStep(parts, "job", dead_letters="dead")([batch([{"a": "x"}], topic=broken)])
    assert dead.column("topic").to_pylist() == ["dead"]


def test_a_dead_letter_is_json_also_with_nan() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "x", "type": "double"}, {"name": "s", "type": "string"}],
    }
    value = pa.array([{"x": float("nan"), "s": None}], pa.struct([("x", pa.float64()), ("s", pa.string())]))
    step = RowStep((Part("value", AvroEncoder(schema)),), "job", dead_letters="dead")
    _, dead = step([batch([{"a": "x"}], value=value)])
    (text,) = dead.column("value").to_pylist()

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(text, parse_constant=no_constant) == {"x": "NaN", "s": None}
