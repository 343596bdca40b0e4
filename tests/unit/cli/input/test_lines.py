"""cli.input.lines: lines, keys and headers as kcat and kafka-console-producer split them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.cli.failure import CommandError
from forebay.cli.input.lines import (
    CONSOLE_PROPERTIES,
    MARKER,
    NO_TEXT,
    HeaderSyntax,
    LineFormat,
    LineInput,
    WholeInput,
    console_format,
)
from forebay.cli.input.rows import BadRow, Row
from tests.unit.cli.fakes import Trickle, rows_of

AT = dict.fromkeys([*CONSOLE_PROPERTIES, MARKER, "parse.keys", "zzz"], "--property")


def rows(data: bytes, layout: LineFormat | None = None, limit: int = 1000) -> list[Row | BadRow]:
    return rows_of(LineInput("x", io.BytesIO(data), layout or LineFormat(), limit=limit).blocks())


def test_lines_stay_as_they_are_and_have_numbers() -> None:
    assert rows(b"a\n\n b\r\nlast") == [Row(1, b"a"), Row(2, b""), Row(3, b" b\r"), Row(4, b"last")]
    assert rows(b"a\n") == [Row(1, b"a")]
    assert rows(b"") == []


def test_a_key_delimiter_splits_at_its_first_place_and_may_be_missing() -> None:
    layout = LineFormat(key_delimiter=b":")
    assert rows(b"k:v:w\nv\n:v\nk:\n", layout) == [
        Row(1, b"v:w", b"k"),
        Row(2, b"v"),
        Row(3, b"v", b""),
        Row(4, b"", b"k"),
    ]


def test_a_line_is_handed_out_when_it_is_there() -> None:
    source = LineInput("stdin", Trickle(b"one\ntw", b"o\n", b"three"), LineFormat(), limit=100)
    found = source.blocks()
    assert rows_of([next(found)]) == [Row(1, b"one")]
    assert source.position() == 6
    assert rows_of(found) == [Row(2, b"two"), Row(3, b"three")]
    assert source.position() == 13


def test_empty_lines_may_be_no_records() -> None:
    assert rows(b"\n\na\n\nb\n\n", LineFormat(skip_empty=True)) == [Row(3, b"a"), Row(5, b"b")]
    assert rows(b"\n\n", LineFormat(skip_empty=True)) == []
    assert rows(b"k:v\n\n:\n", LineFormat(key_delimiter=b":", skip_empty=True)) == [
        Row(1, b"v", b"k"),
        Row(3, b"", b""),
    ]


def test_a_whole_file_is_one_record_unless_it_is_empty_or_too_long() -> None:
    def found(data: bytes) -> list[Row | BadRow]:
        return rows_of(WholeInput("x", io.BytesIO(data), limit=10).blocks())

    assert found(b"a\nb\n") == [Row(1, b"a\nb\n")]
    assert found(b"") == []
    assert found(b"x" * 11) == [BadRow(1, "the file is longer than max.request.size (10 bytes)")]
    source = WholeInput("x", Trickle(b"a", b"b"), limit=10)
    assert rows_of(source.blocks()) == [Row(1, b"ab")]
    assert source.position() == 2
    source.close()


def test_a_line_that_is_too_long_is_skipped_and_not_held() -> None:
    pieces = [b"x" * 60] * 50
    source = LineInput("stdin", Trickle(b"a\n", *pieces, b"yy\nb\n", *pieces), LineFormat(), limit=100)
    long = "the line is longer than max.request.size (100 bytes)"
    assert rows_of(source.blocks()) == [Row(1, b"a"), BadRow(2, long), Row(3, b"b"), BadRow(4, long)]


@given(
    st.lists(st.binary(max_size=40), max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"aa", b"--"]),
    st.integers(1, 7),
    st.integers(5, 60),
)
def test_any_pieces_give_the_lines_of_the_whole(texts: list[bytes], delimiter: bytes, step: int, limit: int) -> None:
    whole = delimiter.join(texts)
    pieces = [whole[at : at + step] for at in range(0, len(whole), step)]
    lines = whole.split(delimiter)
    if not lines[-1]:
        lines.pop()
    source = LineInput("x", Trickle(*pieces), LineFormat(delimiter), limit=limit)
    found = rows_of(source.blocks())
    assert [row.number for row in found] == list(range(1, len(lines) + 1))
    assert [row.value if isinstance(row, Row) else None for row in found] == [
        line if len(line) <= limit else None for line in lines
    ]


def test_console_properties_as_kafka_console_producer_has_them() -> None:
    given = {"parse.key": "true", "parse.headers": "TRUE", "null.marker": "NUL"}
    layout, ignore = console_format(given, LineFormat(), AT)
    assert layout == LineFormat(b"\n", b"\t", True, HeaderSyntax(), b"NUL")
    assert not ignore
    assert rows(b"h:v,n:NUL\tk\tv\nNUL\tNUL\tNUL\n\tk\tv\n", layout) == [
        Row(1, b"v", b"k", [("h", b"v"), ("n", None)]),
        Row(2, None, None, ()),
        BadRow(3, "header b'' has no b':'"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"v", "no headers: b'\\t' is not in the line"),
        (b"h:1\tv", "no key: b'|' is not in the line"),
        (b"h\tk|v", "header b'h' has no b':'"),
        (b"-:1\tk|v", "a header's name cannot be null"),
        (b"\xff:1\tk|v", "the header's name b'\\xff' is not UTF-8"),
    ],
)
def test_lines_that_lack_what_was_asked_for(line: bytes, reason: str) -> None:
    given = {"parse.key": "true", "key.separator": "|", "parse.headers": "true", "null.marker": "-"}
    layout, ignore = console_format(given, LineFormat(), AT)
    assert not ignore
    assert rows(line, layout) == [BadRow(1, reason)]


def test_without_console_properties_the_key_is_that_of_the_flag() -> None:
    base = LineFormat(b";", b"=")
    assert console_format({}, base, {}) == (base, False)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("parse.keys", "true", "did you mean 'parse.key'"),
        ("zzz", "1", "there are parse.key, key.separator"),
        ("parse.key", "yes", "write true or false"),
        ("key.separator", "", "cannot be empty"),
        ("headers.separator", ":", "headers.separator and headers.key.separator may not be equal"),
        ("null.marker", "\\t", "null.marker and key.separator may not be equal"),
    ],
)
def test_console_properties_that_cannot_be(name: str, value: str, reason: str) -> None:
    with pytest.raises(CommandError, match=f"^--property .*{reason}"):
        console_format({name: value}, LineFormat(), AT)


@pytest.mark.parametrize("text", ["|", ".", "a+", "[,;]", "\\d", "\\"])
def test_a_separator_that_java_takes_for_an_expression_is_refused_unless_it_is_one_text(text: str) -> None:
    given = {"parse.headers": "true", "headers.separator": text}
    with pytest.raises(CommandError, match="regular expression there, and this one matches more than one text"):
        console_format(given, LineFormat(), AT, escapes=False)
    console_format({"headers.separator": text}, LineFormat(), AT, escapes=False)  # it is not used
    for same in (r"\|", r"\.", ";", r"\t"):
        console_format({**given, "headers.separator": same, "headers.delimiter": "~"}, LineFormat(), AT, escapes=False)


READER = [json.loads(line) for line in Path(__file__).with_name("console_reader.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "case", READER, ids=lambda case: " ".join(f"{name}={value}" for name, value in case[0].items())
)
def test_each_property_of_the_reader_alone_and_in_pairs_does_what_java_s_tool_does(case: list[Any]) -> None:
    """What Kafka 4.3's LineMessageReader makes of the bytes with these properties: records, and whether it ends so."""
    properties, text, expected, fails = case
    data = text.encode("latin-1")
    try:
        layout, _ = console_format(properties, LineFormat(text=True), AT, escapes=False)
    except CommandError:
        assert fails and not expected
        return
    for step in (1, 2, len(data)):
        pieces = [data[at : at + step] for at in range(0, len(data), step)]
        found: list[Any] = []
        bad = False
        for row in rows_of(LineInput("x", Trickle(*pieces), layout, limit=1000).blocks()):
            if bad := isinstance(row, BadRow):
                break
            assert isinstance(row, Row)
            found.append([*(plain(each) for each in (row.key, row.value)), [[n, plain(v)] for n, v in row.headers]])
        assert (found, bad) == (expected, fails)


def plain(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


@pytest.mark.parametrize("bad", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\x80\r"])
def test_bytes_that_java_s_tool_would_replace_are_refused(bad: bytes) -> None:
    text = LineFormat(text=True)
    expected = [Row(1, b"one"), BadRow(2, NO_TEXT), Row(3, b"two"), BadRow(4, NO_TEXT)]
    assert rows(b"one\n" + bad + b"\ntwo\r" + bad, text) == expected
    assert rows(bad) == [Row(1, bad)]
