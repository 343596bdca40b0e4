"""Java's form of properties files (``java.util.Properties``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"((?:[^\\:=\s]|\\.)*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, name and value of each line; the name is empty where the line has none."""
    for number, line in logical_lines(text):
        match = _PAIR.fullmatch(line)
        yield (number, "", "") if match is None else (number, _plain(match.group(1)), _plain(match.group(2)))


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, without comments and blanks, and the number each begins on."""
    pending, begun = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        begun = begun if pending else number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield begun, pending + line
        pending = ""
    if pending:
        yield begun, pending


def _plain(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        escape = match.group(1)
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return _ESCAPED.sub(one, text)
