"""The encoder: what does not fit is refused by name, and it pickles."""

from __future__ import annotations

import io
import pickle
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from forebay.errors import IllegalArgumentError
from forebay.serializers.rows.avro import AvroEncoder, Kind, complaints, decimal_kind, derived


def record(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}


@pytest.mark.parametrize(
    ("types", "value", "message"),
    [
        ({"a": "string"}, {"a": None}, r"R.a.* is None expected string"),
        ({"a": "boolean"}, {"a": None}, r"R.a.* is None expected boolean"),
        ({"a": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}}, {"a": "Z"}, r"R.a"),
        ({"a": {"type": "fixed", "name": "F", "size": 2}}, {"a": b"abc"}, r"R.a"),
        (
            {"a": {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}},
            {"a": Decimal("123.4")},
            "prec",
        ),
        ({"a": {"type": "array", "items": "string"}}, {"a": ["x", None]}, r"R.a.* is None expected string"),
        ({"a": {"type": "array", "items": "boolean"}}, {"a": [True, None]}, r"R.a.* is None expected boolean"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(types: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AvroEncoder(record(**types)).encode(value)


def test_an_encoder_pickles_and_writes_behind_what_is_there() -> None:
    encoder = pickle.loads(pickle.dumps(AvroEncoder(record(a="long"))))
    out = io.BytesIO(b"__")
    out.seek(2)
    encoder.write(out, {"a": 3})
    assert out.getvalue() == b"__" + encoder.encode({"a": 3})
    assert fastavro.schemaless_reader(io.BytesIO(out.getvalue()[2:]), record(a="long"), None) == {"a": 3}


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="this is no Avro schema: .*nonsense"):
        AvroEncoder({"type": "nonsense"})


LONG = Kind("int64", "long", ("long", "double"))


def test_a_schema_is_derived_from_kinds() -> None:
    kind = Kind(
        "struct",
        fields={"a": LONG, "b": Kind("list", items=decimal_kind("decimal", 4, 1)), "c": Kind("map", values=LONG)},
    )
    made = derived(kind, "R")
    assert made["name"] == "R" and [field["name"] for field in made["fields"]] == ["a", "b", "c"]
    assert all(field["type"][0] == "null" and field["default"] is None for field in made["fields"])
    assert list(complaints(made, kind, "t")) == []
    for bad, message in ((Kind("odd"), "R.x is odd, which Avro has not"), (LONG, "'x y' has no name")):
        name = "x y" if bad is LONG else "x"
        with pytest.raises(IllegalArgumentError, match=message.removeprefix("R.")):
            derived(Kind("struct", fields={name: bad}), "R")


def test_what_does_not_fit_is_told_field_by_field() -> None:
    kind = Kind("struct", fields={"a": LONG, "b": decimal_kind("decimal(4, 1)", 4, 1)})
    schema = record(a="string", b={"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, c="int")
    assert list(complaints(schema, kind, "t")) == [
        "t.a is int64, which does not fit Avro's string; cast the column",
        "t.b is decimal(4, 1), which does not fit Avro's bytes/decimal; cast the column",
        "t.c is a field of record R without a default, but no column. Columns: a, b",
    ]
