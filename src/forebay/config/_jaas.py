"""``sasl.jaas.config`` as Java reads it: one login module, a flag, and options, ended by a semicolon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from forebay._runtime.files import MARK
from forebay.config._secret import Secret
from forebay.errors import ConfigError

MODULES = ("PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule", "Krb5LoginModule", "IAMLoginModule")
"""By their simple names, for some vendors move the classes to packages of their own."""
FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r", "v": "\v", "a": "\a"}
_OCTAL = "01234567"
_MODULE = re.compile(r"[a-zA-Z][\w.$]{0,120}LoginModule", re.ASCII)
_KNOWN = (
    *("username", "password", "tokenauth", "clientId", "clientSecret", "scope", "principal", "keyTab", "useKeyTab"),
    *("useTicketCache", "ticketCache", "serviceName", "awsProfileName", "awsRoleArn", "awsRoleSessionName"),
)
"""Names of options that messages may show.  Another word may be a part of a password whose quotes are wrong."""


class LoginModule(NamedTuple):
    """What the text says.  Each value may be a password."""

    name: str
    options: dict[str, Secret]

    def text(self, name: str) -> str | None:
        """The value of an option that is no secret."""
        return None if name not in self.options else self.options[name].reveal()

    def __repr__(self) -> str:
        return f"<LoginModule {self.name} with {len(self.options)} options>"


class _Token(NamedTuple):
    text: str
    is_word: bool
    """A word or a quoted text; else a sign."""
    at: int = 0
    """Its first character's number in the text, from 1."""

    def is_sign(self, sign: str) -> bool:
        return not self.is_word and self.text == sign


def parse_jaas(text: str) -> LoginModule:
    """Reads the one entry.

    Raises:
        ConfigError: it is not of that form, or names a module that is not known here.  The message tells the place,
            and of the text only names that are known: any word may be a password that lost its name or its quotes.
    """
    text = text.removeprefix(MARK)
    tokens = list(_tokens(text))
    if not tokens:
        raise _wrong(f"it is empty; write: {_FORM}")
    name = _module_name(tokens[0], len(text))
    if len(tokens) < 2 or tokens[1].text.upper() not in FLAGS:
        raise _wrong(f"{name} must be followed by a flag, as in: {name} required ...;")
    options: dict[str, Secret] = {}
    at = 2
    while at < len(tokens) and not tokens[at].is_sign(";"):
        key = tokens[at]
        where = f"at character {key.at} of {len(text)}"
        if not key.is_word:
            raise _wrong(f"{where} there is a sign where the name of an option should be; {_QUOTES}")
        if at + 2 >= len(tokens) or not tokens[at + 1].is_sign("=") or not tokens[at + 2].is_word:
            shown = repr(key.text) if key.text in _KNOWN else f"of {len(key.text)} characters"
            raise _wrong(f'option {shown} {where} has no value; write name="value"; {_QUOTES}')
        options[key.text] = Secret(tokens[at + 2].text)
        at += 3
    if at >= len(tokens):
        raise _wrong(f"it does not end with a semicolon (it has {len(text)} characters); {_QUOTES}")
    if at + 1 < len(tokens):
        raise _wrong(f"there is something after the semicolon, at character {tokens[at + 1].at}; {_ONE}; {_QUOTES}")
    return LoginModule(name, options)


_FORM = '...PlainLoginModule required username="..." password="...";'
_QUOTES = 'a value with other signs than letters and digits stands in quotes, and a quote in it is written \\"'
_ONE = "one login module is allowed"


def _module_name(token: _Token, size: int) -> str:
    name = token.text.rpartition(".")[2]
    if name in MODULES:
        return name
    if _MODULE.fullmatch(token.text):
        raise _wrong(f"login module {token.text} is not known, only {', '.join(MODULES)}")
    raise _wrong(
        f"its {size} characters do not begin with a login module, which is one of {', '.join(MODULES)}; write: {_FORM}"
    )


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
            begin = at
            value, at = _quoted(text, at)
            yield _Token(value, True, begin + 1)
        elif _begins_word(sign):
            end = at + 1
            while end < len(text) and (_begins_word(text[end]) or text[end] in "0123456789.-"):
                end += 1
            yield _Token(text[at:end], True, at + 1)
            at = end
        elif sign == "/":
            # Java's tokenizer: a comment to the line's end, and if the line ends here, to the next one's.
            at = _line_end(text, at + 2)
        else:
            at += 1
            yield _Token(sign, False, at)


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
