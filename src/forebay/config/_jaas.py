"""``sasl.jaas.config`` as Java reads it: one login module, a flag, and options, ended by a semicolon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from forebay._runtime.files import MARK
from forebay.errors import ConfigError

MODULES = ("PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule", "Krb5LoginModule", "IAMLoginModule")
"""By their simple names, for some vendors move the classes to packages of their own."""
FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r", "v": "\v", "a": "\a"}
_OCTAL = "01234567"


class LoginModule(NamedTuple):
    """What the text says.  Its options hold passwords."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"<LoginModule {self.name} options={sorted(self.options)}>"


class _Token(NamedTuple):
    text: str
    is_word: bool
    """A word or a quoted text; else a sign."""


def parse_jaas(text: str) -> LoginModule:
    """Reads the one entry.

    Raises:
        ConfigError: it is not of that form, or names a module that is not known here; no value is in the message.
    """
    tokens = list(_tokens(text.removeprefix(MARK)))
    if not tokens:
        raise _wrong('it is empty; write: ...PlainLoginModule required username="..." password="...";')
    name = tokens[0].text.rpartition(".")[2]
    if name not in MODULES:
        raise _wrong(f"login module {tokens[0].text[:80]!r} is not known, only {', '.join(MODULES)}")
    if len(tokens) < 2 or tokens[1].text.upper() not in FLAGS:
        raise _wrong(f"{name} must be followed by a flag, as in: {name} required ...;")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != _Token(";", False):
        key = tokens[at]
        if not key.is_word:
            raise _wrong(f"there is a {key.text!r} where the name of an option should be")
        if at + 2 >= len(tokens) or tokens[at + 1] != _Token("=", False) or not tokens[at + 2].is_word:
            raise _wrong(f'option {key.text[:40]!r} has no value; write {key.text[:40]}="..."')
        options[key.text] = tokens[at + 2].text
        at += 3
    if at >= len(tokens):
        raise _wrong("it does not end with a semicolon")
    if at + 1 < len(tokens):
        raise _wrong("there is something after the semicolon; one login module is allowed")
    return LoginModule(name, options)


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"sasl.jaas.config: {what}")


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        sign = text[at]
        if sign <= " ":
            at += 1
        elif text.startswith("//", at):
            at = _line_end(text, at)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = len(text) if end < 0 else end + 2
        elif sign in "\"'":
            value, at = _quoted(text, at)
            yield _Token(value, True)
        elif _begins_word(sign):
            end = at + 1
            while end < len(text) and (_begins_word(text[end]) or text[end] in "0123456789.-"):
                end += 1
            yield _Token(text[at:end], True)
            at = end
        elif sign == "/":
            # Java's tokenizer: a comment to the line's end, and if the line ends here, to the next one's.
            at = _line_end(text, at + 2)
        else:
            yield _Token(sign, False)
            at += 1


def _line_end(text: str, at: int) -> int:
    found = [end for sign in "\r\n" if (end := text.find(sign, at)) >= 0]
    return min(found, default=len(text))


def _begins_word(sign: str) -> bool:
    # A hyphen or a digit begins a number there, which is neither a name nor a value.
    return (sign.isascii() and sign.isalpha()) or sign in "_$" or ord(sign) >= 160


def _quoted(text: str, at: int) -> tuple[str, int]:
    """The text in quotes that begins at ``at``, and where it ends; a line's end closes it too, as in Java."""
    quote, at = text[at], at + 1
    found: list[str] = []
    while at < len(text) and text[at] != quote and text[at] not in "\r\n":
        if text[at] != "\\" or at + 1 >= len(text):
            found.append(text[at])
            at += 1
            continue
        at += 1
        if text[at] in _OCTAL:
            most = 3 if text[at] <= "3" else 2
            end = at + 1
            while end < len(text) and end < at + most and text[end] in _OCTAL:
                end += 1
            found.append(chr(int(text[at:end], 8)))
            at = end
        else:
            found.append(_ESCAPES.get(text[at], text[at]))
            at += 1
    return "".join(found), at + 1 if at < len(text) and text[at] == quote else at
