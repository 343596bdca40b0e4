"""Delimited input: a record a line, with the key and headers that kcat or kafka-console-producer would split off.

Lines are bytes and stay as they are.  One that is longer than a record may be is reported and skipped, never held.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forebay.cli.failure import CommandError
from forebay.cli.rows import BadRow, HeaderPairs, Row, unescape

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class HeaderSyntax:
    """How headers stand at the beginning of a line: ``h1:v1,h2:v2<tab>``."""

    end: bytes = b"\t"
    between: bytes = b","
    after_key: bytes = b":"


@dataclass(frozen=True, slots=True)
class LineFormat:
    """What a line holds; the default is a value and nothing else."""

    delimiter: bytes = b"\n"
    key_delimiter: bytes | None = None
    key_required: bool = False
    """A line without the delimiter is bad (kafka-console-producer), and not a value without a key (kcat)."""
    headers: HeaderSyntax | None = None
    null_marker: bytes | None = None
    """A field that is equal to it becomes null."""


class LineInput:
    """Lines of a binary stream."""

    def __init__(
        self, name: str, stream: Any, layout: LineFormat, *, limit: int, size: int | None = None, owned: bool = False
    ) -> None:
        self.name = name
        self.size = size
        self._owned = owned
        self._stream = stream
        self._format = layout
        self._limit = limit
        self._read = 0

    def position(self) -> int:
        """Bytes read so far."""
        return self._read

    def close(self) -> None:
        """Closes the stream where it is ours: standard input is not."""
        if self._owned:
            self._stream.close()

    def rows(self) -> Iterator[Row | BadRow]:
        """A row a line."""
        layout = self._format
        simple = layout.headers is None and layout.null_marker is None and not layout.key_required
        key_delimiter = layout.key_delimiter
        for number, line in self.lines():
            if line is None:
                yield BadRow(number, f"the line is longer than max.request.size ({self._limit} bytes)")
            elif not simple:
                yield _fields(number, line, layout)
            elif key_delimiter is None:
                yield Row(number, line)
            else:
                key, found, value = line.partition(key_delimiter)
                yield Row(number, value, key) if found else Row(number, line)

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Each line and its number; None in place of one that is too long."""
        delimiter, limit = self._format.delimiter, self._limit
        number, too_long = 0, False
        rest = bytearray()
        # read1, so that a line typed or piped in slowly is sent when it is there.
        while chunk := self._stream.read1(CHUNK):
            self._read += len(chunk)
            searched = max(0, len(rest) - len(delimiter) + 1)
            rest += chunk
            if rest.find(delimiter, searched) >= 0:
                *complete, last = bytes(rest).split(delimiter)
                rest = bytearray(last)
                for line in complete:
                    number += 1
                    yield number, None if too_long or len(line) > limit else line
                    too_long = False
            if len(rest) > limit + len(delimiter) - 1:  # its end may be a delimiter's beginning
                too_long = True
                del rest[: len(rest) - len(delimiter) + 1]
        if rest or too_long:
            yield number + 1, None if too_long or len(rest) > limit else bytes(rest)


def _fields(number: int, line: bytes, layout: LineFormat) -> Row | BadRow:
    headers: HeaderPairs = ()
    if layout.headers is not None:
        text, found, line = line.partition(layout.headers.end)
        if not found:
            return BadRow(number, f"no headers: {layout.headers.end!r} is not in the line")
        parsed = _headers(text, layout.headers, layout.null_marker)
        if isinstance(parsed, str):
            return BadRow(number, parsed)
        headers = parsed
    key: bytes | None = None
    if layout.key_delimiter is not None:
        before, found, after = line.partition(layout.key_delimiter)
        if found:
            key, line = before, after
        elif layout.key_required:
            return BadRow(number, f"no key: {layout.key_delimiter!r} is not in the line")
    marker = layout.null_marker
    return Row(number, None if line == marker else line, None if key == marker else key, headers)


def _headers(text: bytes, syntax: HeaderSyntax, marker: bytes | None) -> HeaderPairs | str:
    """The headers, or what is wrong with them."""
    if not text or text == marker:
        return ()
    pairs: list[tuple[str, bytes | None]] = []
    for part in text.split(syntax.between):
        name, found, value = part.partition(syntax.after_key)
        if not found:
            return f"header {part!r} has no {syntax.after_key!r}"
        if name == marker:
            return "a header's name cannot be null"
        try:
            pairs.append((name.decode(), None if value == marker else value))
        except UnicodeDecodeError:
            return f"the header's name {name!r} is not UTF-8"
    return pairs


CONSOLE_PROPERTIES = {
    "parse.key": "false",
    "key.separator": r"\t",
    "parse.headers": "false",
    "headers.delimiter": r"\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": "",
    "ignore.error": "false",
}
"""kafka-console-producer's reader properties and their defaults."""


def console_format(given: Mapping[str, str], base: LineFormat) -> tuple[LineFormat, bool]:
    """``base`` with kafka-console-producer's reader properties, and whether bad lines are passed over.

    Raises:
        CommandError: an unknown property, or a value that cannot be.
    """
    for name in given:
        if name not in CONSOLE_PROPERTIES:
            near = difflib.get_close_matches(name, CONSOLE_PROPERTIES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(CONSOLE_PROPERTIES)}"
            raise CommandError(f"--property {name!r}: unknown; {hint}")
    values = {**CONSOLE_PROPERTIES, **given}
    flags = {name: _flag(name, values[name]) for name in ("parse.key", "parse.headers", "ignore.error")}
    fields = {name: unescape(values[name], f"--property {name}") for name in values if "separator" in name}
    end = unescape(values["headers.delimiter"], "--property headers.delimiter")
    layout = LineFormat(
        base.delimiter,
        fields["key.separator"] if flags["parse.key"] else base.key_delimiter,
        flags["parse.key"],
        HeaderSyntax(end, fields["headers.separator"], fields["headers.key.separator"])
        if flags["parse.headers"]
        else None,
        values["null.marker"].encode() or None,
    )
    return layout, flags["ignore.error"]


def _flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise CommandError(f"--property {name}={value!r}: write true or false")
    return value.lower() == "true"
