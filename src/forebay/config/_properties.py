"""Java's form of properties files, as ``java.util.Properties`` of Java 17 reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator

HALF = "it holds half of a surrogate pair, which UTF-8 cannot; write both halves, as in \\ud83d\\ude00"
_BLANKS = " \t\f"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"((?:[^\\:= \t\f]|\\.)*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class EscapeError(ValueError):
    """A ``\\u`` that Java refuses.  The message shows nothing of the line, which may hold a password."""

    def __init__(self, number: int) -> None:
        super().__init__(r"\u must be followed by four hexadecimal digits, and a backslash is written \\")
        self.number = number


def properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, name and value of each line; the name is empty where the line has none.

    Raises:
        EscapeError: names the line.
    """
    for number, line in logical_lines(text):
        match = _PAIR.fullmatch(line)
        assert match is not None, "no backslash stands at a line's end"
        yield number, _plain(match.group(1), number), _plain(match.group(2), number)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, without comments and blanks, and the number each begins on."""
    pending, begun, is_open = "", 0, False
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(_BLANKS)
        # Behind a backslash and nothing else a line may be a comment, too.
        if not pending and not line:
            continue
        begun = begun if pending else number
        is_comment = not pending and line[0] in "#!"
        is_open = not is_comment and (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pending += "" if is_comment else line[:-1] if is_open else line
        if not is_comment and not is_open:
            yield begun, pending
            pending = ""
    # A last line that is a backslash alone counts, unless CR LF ends it.
    if pending or (is_open and text.endswith(("\\", "\\\n", "\\\r"))):
        yield begun, pending


def _plain(text: str, number: int) -> str:
    def one(match: re.Match[str]) -> str:
        escape = match.group(1)
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape == "u":
            raise EscapeError(number)
        return _ESCAPES.get(escape, escape)

    if "\\" not in text:
        return text
    # A character beyond the first plane is written as the two halves that Java's strings are made of.
    return _ESCAPED.sub(one, text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
