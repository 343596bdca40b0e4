"""cli.input.jsonl: JSON lines as values, with a key field, and as envelopes."""

from __future__ import annotations

import io

import pytest

from forebay.cli.input.jsonl import JsonFormat, JsonInput
from forebay.cli.input.lines import LineFormat, LineInput
from forebay.cli.input.rows import BadRow, Row
from tests.unit.cli.fakes import rows_of


def rows(data: bytes, layout: JsonFormat | None = None) -> list[Row | BadRow]:
    lines = LineInput("x", io.BytesIO(data), LineFormat(), limit=1_000_000, size=len(data))
    source = JsonInput(lines, layout or JsonFormat())
    assert (source.name, source.size) == ("x", len(data))
    return rows_of(source.blocks())


def reason(line: bytes, layout: JsonFormat | None = None) -> str:
    (bad,) = rows(line, layout)
    assert isinstance(bad, BadRow) and bad.number == 1
    return bad.reason


def test_a_line_is_the_value_as_it_stands_and_blank_ones_are_none() -> None:
    assert rows(b'{"a": 1 }\n\n  \r\n5\r\n') == [Row(1, b'{"a": 1 }'), Row(4, b"5\r")]


def test_the_key_is_text_as_it_is_or_json() -> None:
    layout = JsonFormat(key_field="id")
    assert [
        row.key for row in rows(b'{"id":"x"}\n{"id":7}\n{"id":null}\n{"id":{"a":1}}', layout) if isinstance(row, Row)
    ] == [
        b"x",
        b"7",
        None,
        b'{"a":1}',
    ]


def test_an_envelope_names_every_part() -> None:
    layout = JsonFormat(envelope=True)
    full = (
        b'{"key":"k","value":{"a":"\xc3\xa4"},"headers":{"h":"1","n":null},"partition":2,"timestamp":1700000000000}\n'
        b'{"value":null}\n{"value":"text","headers":[["h","1"],["h",2]]}'
    )
    assert rows(full, layout) == [
        Row(1, '{"a":"ä"}'.encode(), b"k", [("h", b"1"), ("n", None)], 2, 1_700_000_000_000),
        Row(2, None),
        Row(3, b"text", None, [("h", b"1"), ("h", b"2")]),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a":', "not JSON: Expecting value (column 6)"),
        (b'"\xff"', "not UTF-8 (byte 2)"),
        (b"[" * 100_000, "not readable JSON: nested too deeply"),
        (b"9" * 5000, "not readable JSON: Exceeds the limit"),
        *(
            (shape % word, f"not JSON: {word.decode()} is no value in JSON")
            for word in (b"NaN", b"Infinity", b"-Infinity")
            for shape in (b"%s", b'{"a": %s}', b'[1,{"b":[%s]}]', b'{"value":%s}', b'{"id":%s}')
        ),
        *(
            (line, "not JSON: ")
            for line in (
                *(b"nan", b"-NaN", b"inf", b"+1", b".5", b"1.", b"01", b"0x10", b"1_0", b"True", b"None", b"undefined"),
                *(
                    b"{'a':1}",
                    b"{a:1}",
                    b"[1,]",
                    b'{"a":1,}',
                    b"1 2",
                    b"{}{}",
                    b"// x",
                    b'"a\tb"',
                    b'"\\x41"',
                    b"\x0c1",
                ),
            )
        ),
    ],
)
@pytest.mark.parametrize("layout", [JsonFormat(), JsonFormat("id"), JsonFormat(envelope=True)], ids=str)
def test_what_is_not_json(line: bytes, expected: str, layout: JsonFormat) -> None:
    assert reason(line, layout).startswith(expected)


@pytest.mark.parametrize(
    "line", [b'{"value":{"a":1,"a":2}}', b'{"value":1,"id":1,"id":2}', b'{"value":1e999,"id":[-1e999]}']
)
def test_what_would_be_lost_in_a_part_that_is_written_anew(line: bytes) -> None:
    for layout in (JsonFormat("id"), JsonFormat(envelope=True)):
        assert reason(line, layout).startswith("not readable JSON: ")
    assert rows(line) == [Row(1, line)]  # JSON's grammar has it


def test_a_missing_key_field_is_told_with_those_there_are() -> None:
    layout = JsonFormat(key_field="id")
    assert reason(b'{"a":1,"b":2}', layout) == "no key field 'id'; there are a, b"
    assert reason(b"[1]", layout) == "not an object, so it has no key field 'id'"
    assert reason(b'{"id":"\\ud800"}', layout).startswith("cannot be written as UTF-8")
    many = b"{" + b",".join(b'"f%d":1' % number for number in range(20)) + b"}"
    assert reason(many, layout).endswith("f9, ...")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"5", "not an object with some of key, value"),
        (b"{}", "no field 'value'"),
        (b'{"value":1,"offset":2}', "unknown field 'offset'; there are key, value"),
        (b'{"value":1,"partition":-1}', "partition must be an integer from 0 to 2147483647, not -1"),
        (b'{"value":1,"partition":true}', "partition must be an integer"),
        (b'{"value":1,"timestamp":"now"}', 'in ms since 1970, not "now"'),
        (b'{"value":1,"headers":5}', "headers must be an object, or a list"),
        (b'{"value":1,"headers":[["h"]]}', 'header ["h"] is not a pair'),
    ],
)
def test_an_envelope_that_is_none(line: bytes, expected: str) -> None:
    assert expected in reason(line, JsonFormat(envelope=True))
