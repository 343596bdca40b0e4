"""Rows of a table as JSON values, by Arrow's own functions: no Python object for a row.

``send_batch(topic, table, value=rows_as_json)``.  The road not taken: a dict for each row and a JSON package, whose
dicts alone take longer than all of this.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from forebay.errors import IllegalArgumentError
from forebay.serializers.rows import times
from forebay.serializers.rows.tables import arrow, as_table, plain, reason

ESCAPED = r'[\x00-\x1f"\\]'
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def plain_text(value: Any) -> str:
    """What JSON has no form for, as text: bytes in base64, dates and times in ISO 8601, all else as ``str`` has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def rows_as_json(table: Any, *, columns: Iterable[str] | None = None) -> Any:
    """Each row as a JSON object, compact and in UTF-8; a column for ``send_batch``, or by its name as its ``value``.

    Null is ``null``.  Dates and times are ISO 8601, and a time zone is turned into UTC; years above 9999 have a plus
    sign, as in Spark's JSON.  A decimal is a number with all
    of its digits.  All rows are made at once, so give a large table in parts.

    Args:
        table: anything with Arrow's C stream or array interface (of pyarrow, polars, pandas ...), or a dict of columns.
        columns: names of those that are part of the object; None for all.

    Returns:
        A ``pyarrow.ChunkedArray`` or ``pyarrow.Array`` of text, one for each row.

    Raises:
        TypeError: it is no table.
        IllegalArgumentError: a column of a type that JSON has no form for here (binary, struct, list, map, duration);
            two of one name; or a value that has no form: NaN, infinity, a year beyond 32767, a time outside of a day,
            text that is no UTF-8.  Names the column, and the row of a value.
        KafkaError: pyarrow is not installed.
    """
    pa = arrow("rows_as_json")
    import pyarrow.compute as pc

    taken = as_table("rows_as_json", table, columns)
    pieces: list[Any] = []
    before = "{"
    for name, column in zip(taken.column_names, taken.columns, strict=True):
        text, quoted = _written(pa, pc, name, column)
        label = before + json.dumps(name, ensure_ascii=False) + ":"
        if quoted and text.null_count:
            # Its quotes are part of the value, because null has none.
            empty, quote = pa.scalar("", pa.large_string()), pa.scalar('"', pa.large_string())
            text, quoted = pc.binary_join_element_wise(quote, text, quote, empty), False
        pieces += [label + '"' * quoted, text if not text.null_count else pc.fill_null(text, "null")]
        before = '"' * quoted + ","
    pieces.append(before[:-1] + "}")
    large = [pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*large, pa.scalar("", pa.large_string()))


def _written(pa: Any, pc: Any, name: str, column: Any) -> tuple[Any, bool]:
    """A column as text, and whether it stands in quotes; all that Arrow says of it is told with its name."""
    try:
        return _text(pa, pc, name, str(column.type), plain(column))
    except pa.ArrowException as error:
        raise IllegalArgumentError(f"rows_as_json: column {name!r} is {column.type}: {reason(error)}") from error


def _text(pa: Any, pc: Any, name: str, shown: str, column: Any) -> tuple[Any, bool]:
    types, kind = pa.types, column.type
    if times.is_time(kind):
        row = times.first_unwritten(column)
        if row is not None:
            raise _refusal(name, f"{times.raw(column)[row].as_py()} as {kind}", row, times.ALLOWED)
        return times.as_text(column), True
    if types.is_string(kind) or types.is_large_string(kind):
        _check_utf8(pa, name, column)
        return _escaped(pc, column.cast(pa.large_string())), True
    if types.is_floating(kind):
        finite = pc.is_finite(column)
        if pc.all(finite).as_py() is False:
            row = pc.index(finite, False).as_py()
            raise _refusal(name, column[row].as_py(), row, "which JSON has not; make it null")
    elif not (types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind)):
        raise IllegalArgumentError(
            f"rows_as_json: column {name!r} is {shown}, which it cannot write; cast the column to text, or leave it "
            "out with columns=..."
        )
    return column.cast(pa.large_string()), False


def _refusal(name: str, value: Any, row: int, why: str) -> IllegalArgumentError:
    return IllegalArgumentError(f"rows_as_json: column {name!r} has {value} in row {row}, {why}")


def _check_utf8(pa: Any, name: str, column: Any) -> None:
    """Arrow looks at the bytes of a text only if it is asked to, and would copy any."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        for row, cell in enumerate(column.cast(pa.large_binary())):
            try:
                (cell.as_py() or b"").decode()
            except UnicodeDecodeError as error:
                raise _refusal(name, error.object[:40], row, "which is no text in UTF-8") from None
        raise


def _escaped(pc: Any, text: Any) -> Any:
    if not _has(pc, text, ESCAPED):
        return text
    for letter, written in {"\\": "\\\\", '"': '\\"', **SHORT}.items():
        text = pc.replace_substring(text, letter, written)
    if _has(pc, text, r"[\x00-\x1f]"):
        for code in range(0x20):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def _has(pc: Any, text: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())
