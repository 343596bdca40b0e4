"""Delimited input: a record a line, with the key and headers that kcat or kafka-console-producer would split off.

Lines are bytes and stay as they are, but for the byte order mark that may stand before the first.  One that is longer
than a record may be is reported and skipped, never held.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from forebay._runtime.files import NoTextError, may_be_mark, without_mark
from forebay.cli.failure import FAILED, CommandError
from forebay.cli.input.blocks import Block, gathered
from forebay.cli.input.rows import BadRow, HeaderPairs, Row, unescape

CHUNK = 1 << 20


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
    lenient: bool = False
    """Where a delimiter is missing, there are no headers, no key, or a header without a value (ignore.error)."""
    text: bool = False
    """Lines end as Java's reader ends them, at a line feed, a carriage return, or both.  They are UTF-8, or bad: that
    reader would put other characters in place of such bytes."""
    skip_empty: bool = False
    """Empty lines are no records (kcat)."""


class Run(NamedTuple):
    """Adjacent lines, the number of each, and the bytes of all of them without their ends."""

    numbers: Sequence[int]
    lines: list[bytes]
    size: int

    @classmethod
    def of(cls, first: int, lines: list[bytes], size: int) -> Run:
        """Lines from the one with the number ``first`` on."""
        return cls(range(first, first + len(lines)), lines, size)

    def without_empty(self) -> Run:
        """The same without empty lines; the others keep their numbers."""
        if b"" not in self.lines:
            return self
        numbers = [number for number, line in zip(self.numbers, self.lines, strict=True) if line]
        return Run(numbers, [line for line in self.lines if line], self.size)


NO_TEXT = "not UTF-8: kafka-console-producer would replace those bytes; `forebay produce` sends them as they are"


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def too_long(what: str, limit: int) -> str:
    """Why ``what`` is no record."""
    return f"the {what} is longer than max.request.size ({limit} bytes)"


class StreamInput:
    """A binary stream that is read to its end.  ``limit`` is the most bytes that a record may have."""

    is_text = True
    """Whether it may begin with a byte order mark, which is not part of it."""

    def __init__(self, name: str, stream: Any, *, limit: int, size: int | None = None, owned: bool = False) -> None:
        self.name = name
        self.size = size
        self._owned = owned
        self._stream = stream
        self._limit = limit
        self._read = 0
        self._begun = not self.is_text

    def chunk(self) -> bytes:
        """What is there of the stream, without a wait for more; empty at its end.

        Raises:
            CommandError: it cannot be read any further, or is text in another encoding.
        """
        data = self._next_bytes()
        if self._begun:
            return data
        while data and may_be_mark(data) and (more := self._next_bytes()):
            data += more
        self._begun = True
        try:
            # Behind a mark alone there may be more: nothing would be the end.
            return without_mark(data) or (data and self._next_bytes())
        except NoTextError as error:
            raise CommandError(f"{self.name} {error}", FAILED) from None

    def _next_bytes(self) -> bytes:
        try:
            data: bytes = self._stream.read1(CHUNK)
        except OSError as error:
            raise CommandError(f"{self.name}: cannot be read: {error.strerror or error}", FAILED) from None
        self._read += len(data)
        return data

    def position(self) -> int:
        """Bytes read so far, of a compressed file those of the file."""
        return self._read if self.size is None else int(self._stream.tell())

    def close(self) -> None:
        """Closes the stream where it is ours: standard input is not."""
        if self._owned:
            self._stream.close()


class LineInput(StreamInput):
    """Lines of a binary stream."""

    def __init__(self, name: str, stream: Any, layout: LineFormat, **reading: Any) -> None:
        super().__init__(name, stream, **reading)
        self._format = layout
        self._after_return = False

    def _next(self) -> bytes:
        """The next chunk, with line feeds where lines of text end."""
        data = self.chunk()
        while self._format.text and data:
            if self._after_return and data.startswith(b"\n"):
                # The line ended with the chunk before, which nobody waited behind.
                data = data[1:]
                self._after_return = False
                data = data or self.chunk()
                continue
            self._after_return = data.endswith(b"\r")
            return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def blocks(self) -> Iterator[Block | BadRow]:
        """The records of each read; what was typed or piped in slowly is not held."""
        layout = self._format
        simple = layout.headers is None and layout.null_marker is None and not layout.key_required
        for run in self._checked():
            if not isinstance(run, BadRow) and layout.skip_empty:
                run = run.without_empty()
            if isinstance(run, BadRow):
                yield run
            elif not simple:
                pairs = zip(run.numbers, run.lines, strict=True)
                yield from gathered(_fields(number, line, layout) for number, line in pairs)
            elif not run.lines:
                pass
            elif layout.key_delimiter is None:
                yield Block(run.numbers, run.lines, run.size)
            else:
                yield _keyed(run, layout.key_delimiter)

    def _checked(self) -> Iterator[Run | BadRow]:
        for run in self.runs():
            if isinstance(run, BadRow) or not self._format.text or is_text(b"\n".join(run.lines)):
                yield run
                continue
            for fits, group in groupby(zip(run.numbers, run.lines, strict=True), lambda pair: is_text(pair[1])):
                pairs = list(group)
                if fits:
                    yield Run.of(pairs[0][0], [line for _, line in pairs], sum(len(line) for _, line in pairs))
                else:
                    yield from (BadRow(number, NO_TEXT) for number, _ in pairs)

    def runs(self) -> Iterator[Run | BadRow]:
        """The complete lines of each read; a BadRow in place of one that is too long."""
        delimiter, limit = self._format.delimiter, self._limit
        number, skipping = 1, False
        rest = bytearray()
        while chunk := self._next():
            held = len(rest)
            lines = _cut(rest, chunk, delimiter)
            if lines:
                size = held + len(chunk) - len(rest) - len(delimiter) * len(lines)
                if skipping:
                    yield self._too_long(number)
                    number, size, skipping = number + 1, size - len(lines.pop(0)), False
                yield from self._fitting(number, lines, size)
                number += len(lines)
            if len(rest) > limit + len(delimiter) - 1:  # its end may be a delimiter's beginning
                skipping = True
                del rest[: len(rest) - len(delimiter) + 1]
        if skipping or len(rest) > limit:
            yield self._too_long(number)
        elif rest:
            yield Run.of(number, [bytes(rest)], len(rest))

    def _fitting(self, number: int, lines: list[bytes], size: int) -> Iterator[Run | BadRow]:
        # Of lines that are no longer together, none is too long.
        if size <= self._limit or max(map(len, lines)) <= self._limit:
            if lines:
                yield Run.of(number, lines, size)
            return
        for fits, group in groupby(enumerate(lines, number), lambda pair: len(pair[1]) <= self._limit):
            pairs = list(group)
            if fits:
                yield Run.of(pairs[0][0], [line for _, line in pairs], sum(len(line) for _, line in pairs))
            else:
                yield from (self._too_long(at) for at, _ in pairs)

    def _too_long(self, number: int) -> BadRow:
        return BadRow(number, too_long("line", self._limit))


def _cut(rest: bytearray, chunk: bytes, delimiter: bytes) -> list[bytes]:
    """The complete lines of ``rest`` and ``chunk``; what follows the last one is left in ``rest``."""
    if len(delimiter) > 1:
        # A delimiter may begin in ``rest``.
        searched = max(0, len(rest) - len(delimiter) + 1)
        rest += chunk
        if rest.find(delimiter, searched) < 0:
            return []
        lines = bytes(rest).split(delimiter)
    else:
        # Without a copy of the chunk, whose fresh memory would cost more than the split.
        lines = chunk.split(delimiter)
        if len(lines) > 1:
            lines[0] = bytes(rest + lines[0])
        else:
            rest += chunk
            return []
    rest[:] = lines.pop()
    return lines


def _keyed(run: Run, delimiter: bytes) -> Block:
    """The lines cut at the first delimiter; one without it is a value without a key."""
    parts = [line.partition(delimiter) for line in run.lines]
    keys = [before if found else None for before, found, _ in parts]
    values = [after if found else before for before, found, after in parts]
    return Block(run.numbers, values, run.size - len(delimiter) * (len(keys) - keys.count(None)), keys)


def _fields(number: int, line: bytes, layout: LineFormat) -> Row | BadRow:
    headers: HeaderPairs = ()
    if layout.headers is not None:
        text, found, rest = line.partition(layout.headers.end)
        if not found and not layout.lenient:
            return BadRow(number, f"no headers: {layout.headers.end!r} is not in the line")
        if found:
            parsed = _headers(text, layout)
            if isinstance(parsed, str):
                return BadRow(number, parsed)
            headers, line = parsed, rest
    key: bytes | None = None
    if layout.key_delimiter is not None:
        before, found, after = line.partition(layout.key_delimiter)
        if found:
            key, line = before, after
        elif layout.key_required and not layout.lenient:
            return BadRow(number, f"no key: {layout.key_delimiter!r} is not in the line")
    marker = layout.null_marker
    return Row(number, None if line == marker else line, None if key == marker else key, headers)


def _headers(text: bytes, layout: LineFormat) -> HeaderPairs | str:
    """The headers, or what is wrong with them."""
    syntax, marker = layout.headers or HeaderSyntax(), layout.null_marker
    if text == marker:
        return ()
    parts = text.split(syntax.between)
    while text and parts and not parts[-1]:  # as Java splits: nothing stands behind the last separators
        parts.pop()
    pairs: list[tuple[str, bytes | None]] = []
    for part in parts:
        name, found, value = part.partition(syntax.after_key)
        if not found and not layout.lenient:
            return f"header {part!r} has no {syntax.after_key!r}"
        if found and name == marker:
            return "a header's name cannot be null"
        try:
            pairs.append((name.decode(), value if found and value != marker else None))
        except UnicodeDecodeError:
            return f"the header's name {name!r} is not UTF-8"
    return pairs


class WholeInput(StreamInput):
    """A file that is one record, with all of its bytes; an empty one is none."""

    is_text = False

    def blocks(self) -> Iterator[Block | BadRow]:
        """The record, or the bad row of a file that is too long, which is not read to its end."""
        data = bytearray()
        while len(data) <= self._limit and (chunk := self.chunk()):
            data += chunk
        if len(data) > self._limit:
            yield BadRow(1, too_long("file", self._limit))
        elif data:
            yield Block(range(1, 2), [bytes(data)], len(data))


CONSOLE_PROPERTIES = {
    "parse.key": "false",
    "key.separator": "\t",
    "parse.headers": "false",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "ignore.error": "false",
}
"""kafka-console-producer's reader properties and their defaults; ``null.marker`` has none."""
MARKER = "null.marker"
AT_ODDS = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    (MARKER, "key.separator"),
    (MARKER, "headers.separator"),
    (MARKER, "headers.delimiter"),
    (MARKER, "headers.key.separator"),
)
"""Properties that may not be equal, whether they are used or not."""
_IN_EXPRESSIONS = frozenset(r"\.[]{}()*+?^$|")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def console_format(
    given: Mapping[str, str], base: LineFormat, origins: Mapping[str, str], *, escapes: bool = True
) -> tuple[LineFormat, bool]:
    r"""``base`` with kafka-console-producer's reader properties, and whether ``ignore.error`` is among them.

    Args:
        origins: where each property was given, for messages.
        escapes: ``\t`` and its like stand for one byte; in Kafka's tool they do not.

    Raises:
        CommandError: an unknown property, or a value that cannot be.
    """
    for name in given:
        if name not in CONSOLE_PROPERTIES and name != MARKER:
            known = [*CONSOLE_PROPERTIES, MARKER]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise CommandError(f"{origins[name]} {name!r}: unknown; {hint}")
    values = {**CONSOLE_PROPERTIES, **given}
    flags = {name: _flag(name, values[name], origins) for name in ("parse.key", "parse.headers", "ignore.error")}
    fields: dict[str, bytes] = {}
    for name in values:
        if name in flags:
            continue
        if not values[name] and name != MARKER:
            raise CommandError(f"{origins[name]} {name}: a delimiter cannot be empty")
        text = values[name]
        if name == "headers.separator" and not escapes and flags["parse.headers"]:
            text = _literal(text, origins.get(name, ""))
        fields[name] = (
            unescape(text, f"{origins[name]} {name}") if escapes and text and name in given else text.encode()
        )
    for one, other in AT_ODDS:
        if one in fields and (fields[one] == fields[other] if escapes else values[one] == values[other]):
            where = origins.get(one) or origins.get(other)
            raise CommandError(f"{where} {one} and {other} may not be equal; both are {values[one]!r}")
    layout = LineFormat(
        base.delimiter,
        fields["key.separator"] if flags["parse.key"] else base.key_delimiter,
        flags["parse.key"],
        HeaderSyntax(fields["headers.delimiter"], fields["headers.separator"], fields["headers.key.separator"])
        if flags["parse.headers"]
        else None,
        fields.get(MARKER),
        lenient=flags["ignore.error"],
        text=base.text,
    )
    return layout, flags["ignore.error"]


def _flag(name: str, value: str, origins: Mapping[str, str]) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise CommandError(f"{origins[name]} {name}={value!r}: write true or false")
    return value.strip().lower() == "true"


def _literal(text: str, origin: str) -> str:
    """What a regular expression of Java's matches, if that is one text.

    Raises:
        CommandError: it may match others.
    """
    found, signs = "", iter(text)
    for sign in signs:
        escaped = sign == "\\"
        sign = next(signs, "") if escaped else sign
        if escaped and sign in _CONTROLS:
            found += _CONTROLS[sign]
        elif (escaped and (not sign or sign.isalnum())) or (not escaped and sign in _IN_EXPRESSIONS):
            raise CommandError(
                f"{origin} headers.separator={text!r}: it is a regular expression there, and this one matches more "
                f"than one text; write a backslash before each of {''.join(sorted(_IN_EXPRESSIONS))}"
            )
        else:
            found += sign
    return found
