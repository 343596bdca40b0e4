"""Values that do not show themselves: a password as it is, a placeholder for it, or a callable that gives it.

Text may also be a secret that stands at the wrong place: a key where a path belongs, a login in a URL, a password that
lost its name.  ``described`` tells the length of such text and nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from forebay.errors import ConfigError
from forebay.model._wire import NOT_UTF8, is_utf8

HIDDEN = "[hidden]"
PEM_MARK = "-----"
LONGEST_PATH = 1024
LONGEST_NAME = 60
_PEM_IN_BASE64 = re.compile(r"\s*(?:MI[A-Za-z]|LS0t)[A-Za-z0-9+/=\s]{60,}")
"""DER, or PEM once more in base64, as Kubernetes keeps it."""
_TELLING = re.compile(
    r"-----|LoginModule|[\r\n]|:\S*@|(?:passw|secret|token|signature|key)[\w.-]*\s*=",
    re.IGNORECASE,
)
"""Marks of text that holds a key, a login module, a login in an address, or a secret with its name."""
_NAME = re.compile(r"[a-z]+(?:[._-][a-z0-9]+)*|[A-Z]+(?:[._-][A-Z0-9]+)*", re.ASCII)


def tells(value: Any) -> bool:
    """Whether a value, or one of a list, may hold a secret although its option does not ask for one."""
    if isinstance(value, (list, tuple)):
        return any(tells(each) for each in value)
    if isinstance(value, Secret):
        return True
    if isinstance(value, (bytes, bytearray)):
        return tells(value.decode("latin-1"))
    return isinstance(value, str) and (_TELLING.search(value) or _PEM_IN_BASE64.match(value)) is not None


def path_fault(text: str) -> str | None:
    """Why a text is no path, in words without the text; None if it may be one."""
    if PEM_MARK in text:
        return f"it is PEM text of {len(text)} characters, and not the path of a file"
    if "\n" in text or "\r" in text:
        return f"it is text of several lines ({len(text)} characters), and not the path of a file"
    if _PEM_IN_BASE64.match(text):
        return f"it is a key or a certificate in base64 ({len(text)} characters), and not the path of a file"
    return f"it has {len(text)} characters, which no path has" if len(text) > LONGEST_PATH else None


def described(value: Any) -> str:
    """What a message says of a value that may be a secret: how long it is, or its type."""
    value = value._value if isinstance(value, Secret) else value
    if isinstance(value, (list, tuple)):
        return f"[hidden: a list of {len(value)}]"
    return f"[hidden: {len(value)} characters]" if isinstance(value, str) else f"[hidden: {type(value).__name__}]"


def shown_value(value: Any) -> str:
    """A value for a message: itself, unless it may hold a secret."""
    return described(value) if tells(value) else repr(value)


def shown_name(name: Any, given: Any = "") -> str:
    """The name of something unknown for a message: itself, if it is like a name and not like a value without one.

    Args:
        given: what it was given.  A word without a value may be a value that lost its name.
    """
    if not isinstance(name, str):
        return f"[hidden: {type(name).__name__}]"
    text = given.reveal() if type(given) is Secret else given
    is_alone = isinstance(text, str) and not text and not re.search("[._]", name)
    return repr(name) if len(name) <= LONGEST_NAME and _NAME.fullmatch(name) and not is_alone else described(name)


class Secret:
    """Holds a password: printed, formatted or logged it is ``[hidden]``.

    It pickles with its value, for a worker process needs it; keep such pickles where passwords may be.
    """

    __slots__ = ("_value",)

    deferred = False
    """Whether ``reveal`` looks the value up each time, which may block."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def is_text(self) -> bool:
        """Whether it holds text, and not something else that was given in its place."""
        return isinstance(self._value, str)

    def reveal(self) -> str:
        """The password itself; for the code that sends it, nothing else.

        Raises:
            ConfigError: it is deferred, and cannot be had.
        """
        return str(self._value)

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


class Called(Secret):
    """A callable that gives the password; asked at each login, on the helper thread."""

    __slots__ = ()

    deferred = True

    def __init__(self, value: Callable[[], str]) -> None:
        import inspect  # who gives a password as it is does without

        if inspect.iscoroutinefunction(value):
            raise ConfigError(
                f"{value!r} is a coroutine function; it is called by a thread without an event loop, so it must be a "
                "function"
            )
        super().__init__(value)

    def reveal(self) -> str:
        """See ``Secret.reveal``; raises what the callable raises."""
        given = self._value()
        if isinstance(given, Secret):
            return given.reveal()
        if not isinstance(given, str):
            raise ConfigError(f"{self!r} must give a string, it gave {type(given).__name__}")
        if not is_utf8(given):
            raise ConfigError(f"{self!r}: {NOT_UTF8}")
        return given

    def __repr__(self) -> str:
        return f"<what {getattr(self._value, '__qualname__', type(self._value).__qualname__)} gives>"
