"""What a schema wants of values; ``test_as_avro.py`` has it with bytes."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import IllegalArgumentError
from forebay.serializers.rows.avro import parsed
from forebay.serializers.rows.avro_values import Changes, with_defaults

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def named(schema: Any) -> tuple[Any, dict[str, Any]]:
    found: dict[str, Any] = {}
    return parsed(schema, found), found


def record(name: str, **types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in types.items()]}


def test_a_schema_without_such_types_wants_nothing() -> None:
    schema, found = named(record("R", a="long", b=["null", {"type": "array", "items": "string"}]))
    assert Changes(found, False).of(schema) is None


def test_a_record_in_itself_is_followed() -> None:
    schema, found = named(record("R", at=MILLIS, next=["null", "R"]))
    change = Changes(found, False).of(schema)
    assert change is not None
    value = {"at": 5_999, "next": {"at": -1, "next": None}}
    assert change(value) == {"at": 5, "next": {"at": -1, "next": None}}
    assert value["at"] == 5_999  # a copy is changed
    plain, found = named(record("R", a="long", next=["null", "R"]))
    assert Changes(found, False).of(plain) is None


def test_a_value_that_is_refused_is_told_with_its_fields() -> None:
    schema, found = named(record("R", inner=["null", record("I", at=MILLIS)]))
    change = Changes(found, True).of(schema)
    assert change is not None and change({"inner": {"at": 1000}}) == {"inner": {"at": 1}}
    with pytest.raises(ValueError, match="^inner: at: 1001 microseconds are no whole milliseconds"):
        change({"inner": {"at": 1001}})


def test_defaults_of_bytes_become_bytes_in_place() -> None:
    schema, found = named(
        {"type": "record", "name": "R", "fields": [{"name": "b", "type": "bytes", "default": "\xff"}]}
    )
    with_defaults(found)
    with_defaults(found)  # a second time it is bytes already
    assert schema["fields"][0]["default"] == b"\xff"
    _, found = named({"type": "record", "name": "R", "fields": [{"name": "b", "type": "bytes", "default": "\u0100"}]})
    with pytest.raises(IllegalArgumentError, match=r"the default of R\.b: .*latin-1"):
        with_defaults(found)
