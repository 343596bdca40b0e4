"""JSON lines: each line is a value as it stands, or (an envelope) an object that names all parts of a record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from forebay.cli.input.blocks import Block, gathered
from forebay.cli.input.lines import LineInput
from forebay.cli.input.rows import BadRow, HeaderPairs, Row, as_bytes

ENVELOPE = ("key", "value", "headers", "partition", "timestamp")


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Where a record's parts are in the line's object."""

    key_field: str | None = None
    envelope: bool = False


class _Wrong(ValueError):
    """Why a line makes no record."""


def _no_constant(name: str) -> None:
    raise _Wrong(f"not JSON: {name} is no value in JSON (null is, and text in quotes)")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Wrong(f"not readable JSON: the number {text[:60]} is too large")
    return number


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in document if names.count(name) > 1)
        raise _Wrong(f"not readable JSON: an object has the field {twice!r} twice")
    return document


_CHECK = json.JSONDecoder(parse_constant=_no_constant)
"""For lines that stay as they are."""
_READ = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_named_once)
"""For lines of which parts are written anew: what would be lost in that is refused."""


class JsonInput:
    """The rows of JSON lines; blank lines are passed over."""

    def __init__(self, lines: LineInput, layout: JsonFormat) -> None:
        self.name: str = lines.name
        self.size: int | None = lines.size
        self.position: Callable[[], int] = lines.position
        self.close: Callable[[], None] = lines.close
        self._lines = lines
        self._format = layout

    def blocks(self) -> Iterator[Block | BadRow]:
        """A record a line; the line must be JSON whatever is done with it."""
        for run in self._lines.runs():
            if isinstance(run, BadRow):
                yield run  # a line that is too long is the same bad row as elsewhere
            else:
                yield from gathered(
                    self._row(number, line)
                    for number, line in zip(run.numbers, run.lines, strict=True)
                    if line and not line.isspace()
                )

    def _row(self, number: int, line: bytes) -> Row | BadRow:
        try:
            if self._format.envelope:
                return _from_envelope(number, _READ.decode(line.decode()))
            if self._format.key_field is None:
                _CHECK.decode(line.decode())
                return Row(number, line)
            return Row(number, line, _key(_READ.decode(line.decode()), self._format.key_field))
        except json.JSONDecodeError as error:
            return BadRow(number, f"not JSON: {error.msg} (column {error.colno})")
        except UnicodeDecodeError as error:
            return BadRow(number, f"not UTF-8 (byte {error.start + 1})")
        except RecursionError:
            return BadRow(number, "not readable JSON: nested too deeply")
        except _Wrong as error:
            return BadRow(number, str(error))
        except UnicodeEncodeError as error:
            return BadRow(number, f"cannot be written as UTF-8: {error}")
        except ValueError as error:  # a number of thousands of digits
            return BadRow(number, f"not readable JSON: {error}")


def _key(document: Any, name: str) -> bytes | None:
    if not isinstance(document, dict):
        raise _Wrong(f"not an object, so it has no key field {name!r}")
    if name not in document:
        raise _Wrong(f"no key field {name!r}; there are {_shown(document)}")
    return as_bytes(document[name])


def _shown(document: dict[str, Any]) -> str:
    names = ", ".join(list(document)[:10])
    return f"{names}, ..." if len(document) > 10 else names or "none"


def _from_envelope(number: int, document: Any) -> Row:
    if not isinstance(document, dict):
        raise _Wrong(f"not an object with some of {', '.join(ENVELOPE)}")
    for name in document:
        if name not in ENVELOPE:
            raise _Wrong(f"unknown field {name!r}; there are {', '.join(ENVELOPE)}")
    if "value" not in document:
        raise _Wrong("no field 'value'; write null for a tombstone")
    return Row(
        number,
        as_bytes(document["value"]),
        as_bytes(document.get("key")),
        _headers(document.get("headers")),
        _integer(document, "partition", 2**31 - 1),
        _integer(document, "timestamp", 2**63 - 1),
    )


def _integer(document: dict[str, Any], name: str, limit: int) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        unit = ", in ms since 1970" if name == "timestamp" else ""
        raise _Wrong(f"{name} must be an integer from 0 to {limit}{unit}, not {json.dumps(value)[:60]}")
    return value


def _headers(value: Any) -> HeaderPairs:
    pairs = list(value.items()) if isinstance(value, dict) else value
    if pairs is None:
        return ()
    if not isinstance(pairs, list):
        raise _Wrong("headers must be an object, or a list of [name, value] pairs")
    found: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise _Wrong(f"header {json.dumps(pair)[:60]} is not a pair [name, value]")
        pair[0].encode()  # a ValueError if the producer could not write it
        found.append((pair[0], as_bytes(pair[1])))
    return found
