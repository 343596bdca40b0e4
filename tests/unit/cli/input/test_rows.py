"""cli.input.rows: delimiters, and cells as bytes."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.cli.failure import CommandError
from forebay.cli.input.rows import as_bytes, to_json, unescape


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":", b":"),
        (r"\n", b"\n"),
        (r"\t\r\0", b"\t\r\0"),
        (r"a\\n", b"a\\n"),
        (r"\x1e|\xFF", b"\x1e|\xff"),
        ("ä", "ä".encode()),
        ("\udcff", b"\xff"),
    ],
)
def test_unescape(text: str, expected: bytes) -> None:
    assert unescape(text, "-D") == expected


@pytest.mark.parametrize("text", ["", r"\q", r"a\x1"])
def test_a_delimiter_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="^-D"):
        unescape(text, "-D")


def test_cells_as_bytes() -> None:
    assert as_bytes(None) is None
    assert as_bytes(b"\xff") == b"\xff"
    assert as_bytes("ä") == "ä".encode()
    assert as_bytes(5) == b"5"
    assert as_bytes(True) == b"true"
    assert as_bytes({"a": [1, None]}) == b'{"a":[1,null]}'


def test_json_of_what_json_has_no_form_for() -> None:
    row = {
        "when": dt.datetime(2024, 1, 2, 3, 4, 5),
        "day": dt.date(2024, 1, 2),
        "money": decimal.Decimal("1.50"),
        "took": dt.timedelta(seconds=90),
        "raw": b"\x00\xff",
    }
    assert json.loads(to_json(row)) == {
        "when": "2024-01-02T03:04:05",
        "day": "2024-01-02",
        "money": "1.50",
        "took": "0:01:30",
        "raw": "AP8=",
    }
    numbers = {"a": math.nan, "b": [math.inf, (-math.inf, 1.5)], "c": {"d": math.nan}}
    assert json.loads(to_json(numbers)) == {"a": "NaN", "b": ["Infinity", ["-Infinity", 1.5]], "c": {"d": "NaN"}}


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        as_bytes("\ud800")
    with pytest.raises(ValueError, match="surrogates"):
        to_json(["\ud800"])


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_json_round_trip(value: object) -> None:
    assert json.loads(to_json(value)) == value
