"""Arrow's types by name: every format of the C data interface, as pyarrow prints it."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import pyarrow as pa
import pytest

from forebay._arrow.abi import ArrowSchema, capsule_address
from forebay._arrow.batch import ArrowBatch
from forebay._arrow.names import LONGEST, type_name
from forebay.errors import IllegalArgumentError

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
# By their formats, in the order of Arrow's own documentation of them.
TYPES: dict[str, Any] = {
    "n": pa.null(), "b": pa.bool_(), "c": pa.int8(), "C": pa.uint8(), "s": pa.int16(), "S": pa.uint16(),
    "i": pa.int32(), "I": pa.uint32(), "l": pa.int64(), "L": pa.uint64(), "e": pa.float16(), "f": pa.float32(),
    "g": pa.float64(), "z": pa.binary(), "Z": pa.large_binary(), "vz": pa.binary_view(), "u": pa.string(),
    "U": pa.large_string(), "vu": pa.string_view(), "d:19,10": pa.decimal128(19, 10),
    "d:40,-3,256": pa.decimal256(40, -3), "w:42": pa.binary(42), "tdD": pa.date32(), "tdm": pa.date64(),
    "tts": pa.time32("s"), "ttm": pa.time32("ms"), "ttu": pa.time64("us"), "ttn": pa.time64("ns"),
    "tss:": pa.timestamp("s"), "tsm:": pa.timestamp("ms"), "tsu:UTC": pa.timestamp("us", "UTC"),
    "tsn:Europe/Berlin": pa.timestamp("ns", "Europe/Berlin"), "tDs": pa.duration("s"), "tDm": pa.duration("ms"),
    "tDu": pa.duration("us"), "tDn": pa.duration("ns"), "tin": pa.month_day_nano_interval(), "+l": pa.list_(pa.int8()),
    "+L": pa.large_list(pa.field("x", pa.int8(), nullable=False)), "+vl": pa.list_view(pa.string()),
    "+vL": pa.large_list_view(pa.string()), "+w:3": pa.list_(pa.int8(), 3),
    "+s": pa.struct([("a", pa.timestamp("us", "UTC")), pa.field("b", HEADER, nullable=False)]),
    "+m": pa.map_(pa.string(), pa.large_binary()),
    "+ud:3,5": pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())], [3, 5]),
    "+us:0,1": pa.sparse_union([pa.field("a", pa.int8()), pa.field("b", pa.string())]),
    "+r": pa.run_end_encoded(pa.int32(), pa.large_string()),
}  # fmt: skip
OTHERS = [
    pa.dictionary(pa.int16(), pa.large_string()),
    pa.dictionary(pa.int8(), pa.timestamp("ns"), ordered=True),
    pa.map_(pa.string(), pa.list_(HEADER), keys_sorted=True),
    pa.run_end_encoded(pa.int64(), pa.dictionary(pa.int32(), pa.binary())),
    pa.list_(pa.list_(pa.decimal128(5, 2))),
]
# What pyarrow cannot make, or not in every version.
MADE = {
    "tiM": "month_interval",
    "tiD": "day_time_interval",
    "d:5,2,32": "decimal32(5, 2)",
    "d:15,2,64": "decimal64(15, 2)",
    "w:0": "fixed_size_binary[0]",
    "tsu:+05:30": "timestamp[us, tz=+05:30]",
    "xyz": "a type with the format 'xyz'",
    "+x": "a type with the format '+x'",
}


def schema_of(kind: Any) -> tuple[object, ArrowSchema]:
    """The schema that pyarrow exports, and what keeps it."""
    capsule = kind.__arrow_c_schema__()
    return capsule, ArrowSchema.from_address(capsule_address(capsule, b"arrow_schema"))


@pytest.mark.parametrize(("code", "kind"), TYPES.items(), ids=list(TYPES))
def test_every_format_has_the_name_that_pyarrow_prints(code: str, kind: Any) -> None:
    keep, schema = schema_of(kind)
    assert schema.format == code.encode()
    assert type_name(ctypes.addressof(schema)) == str(kind)
    assert keep is not None


@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_types_within_types(kind: Any) -> None:
    keep, schema = schema_of(kind)
    assert type_name(ctypes.addressof(schema)) == str(kind)
    assert keep is not None


@pytest.mark.parametrize(("code", "name"), MADE.items())
def test_formats_that_pyarrow_does_not_make(code: str, name: str) -> None:
    schema = ArrowSchema(format=code.encode(), name=b"", flags=2)
    assert type_name(ctypes.addressof(schema)) == name


def test_a_name_without_end_is_cut() -> None:
    kind = pa.struct([(f"field{number}", pa.int64()) for number in range(1000)])
    keep, schema = schema_of(kind)
    name = type_name(ctypes.addressof(schema))
    assert len(name) == LONGEST + 3 and name.startswith("struct<field0: int64, field1: ") and name.endswith("...")
    assert keep is not None


@pytest.mark.parametrize("kind", [*TYPES.values(), *OTHERS], ids=str)
def test_no_message_has_a_letter_for_a_type(kind: Any) -> None:
    """Each kind of column takes it or names it, or what it encodes; so does what needs rows with named columns."""
    array = pa.nulls(0, kind)
    batch = ArrowBatch(pa.RecordBatch.from_arrays([array], names=["c"]))
    parts = [getattr(kind, part) for part in ("value_type", "item_type") if hasattr(kind, part)]
    named = [str(each) for each in (kind, *parts)]
    refusals = []
    for opener in ("bytes_column", "int_column", "timestamp_column", "headers_column"):
        try:
            getattr(batch, opener)("c")
        except IllegalArgumentError as error:
            refusals.append(str(error))
    assert len(refusals) >= 2
    names = "|".join(re.escape(name) for name in named)
    for said in refusals:
        assert re.match(rf"column 'c(\.value)?': Arrow type ({names}) is not read here; allowed: ", said), said
    if not pa.types.is_struct(kind):
        with pytest.raises(IllegalArgumentError, match=f"rows with named .* an array of {re.escape(str(kind))}$"):
            ArrowBatch(array)
