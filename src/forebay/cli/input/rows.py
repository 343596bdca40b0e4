"""A record to be and its place in the input, or the reason why there is none; and how cells become bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from forebay.cli.failure import CommandError
from forebay.serializers.rows.as_json import plain_text
from forebay.serializers.rows.values import finite

HeaderPairs = Sequence[tuple[str, bytes | None]]

_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}


class Row(NamedTuple):
    """One record to be, and its place in the input (a line's or row's number, from 1)."""

    number: int
    value: bytes | None
    key: bytes | None = None
    headers: HeaderPairs = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class BadRow(NamedTuple):
    """A place in the input that makes no record."""

    number: int
    reason: str


def unescape(text: str, flag: str) -> bytes:
    r"""A delimiter from a command line: ``\n``, ``\t``, ``\r``, ``\0``, ``\\`` and ``\xNN`` stand for one byte each.

    Raises:
        CommandError: empty, or an escape that is none of these.
    """
    if not text:
        raise CommandError(f"{flag}: a delimiter cannot be empty")
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPED.finditer(text):
        parts.append(_raw(text[end : match.start()]))
        escape = match.group(1)
        if len(escape) == 3:
            parts.append(bytes([int(escape[1:], 16)]))
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape].encode())
        else:
            raise CommandError(rf"{flag} {text!r}: unknown escape \{escape}; there are \n \t \r \0 \\ \xNN")
        end = match.end()
    return b"".join([*parts, _raw(text[end:])])


def _raw(text: str) -> bytes:
    """What the shell gave: arguments that are not UTF-8 arrive with surrogates."""
    return text.encode(errors="surrogateescape")


def as_bytes(value: Any) -> bytes | None:
    """A cell as a record's key or value: text and bytes as they are, None as None, anything else as JSON.

    Raises:
        ValueError: as ``to_json``.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return to_json(value)


def to_json(value: Any) -> bytes:
    """Compact JSON in UTF-8; bytes in base64, and NaN as text, as Spark's to_json has them.

    Raises:
        ValueError: text that UTF-8 cannot hold (half of a surrogate pair).
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain_text)
    except ValueError:
        text = json.dumps(_without_nan(value), ensure_ascii=False, separators=(",", ":"), default=plain_text)
    return text.encode()


def _without_nan(value: Any) -> Any:
    """NaN and the infinities as text: JSON has no numbers for them."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return value
