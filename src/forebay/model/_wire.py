"""Text on the wire: what it can carry, and which names a topic can have; the one place that judges both.

Each string of the protocol has its length in an int16, the compact ones too (as in Java), and is UTF-8.  A text is
judged where a user gives it, so that no request is refused by its own encoder, which other callers wait for, too.
"""

from __future__ import annotations

from collections.abc import Sized

from forebay.errors import IllegalArgumentError, InvalidTopicError

MAX_TEXT = 0x7FFF
"""Bytes of a string in UTF-8."""
MAX_TOPIC = 249
"""Characters of a topic's name: with a partition's number behind it, it is the name of a folder."""
NOT_UTF8 = "it is no text in UTF-8: it holds a lone surrogate, such as Python makes of other bytes in the environment"
_TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_SHOWN = 40
_LONGEST_SCHEME = 8


def is_utf8(text: str) -> bool:
    """Whether a text has bytes at all."""
    return text_fault(text, None) is None


def text_fault(text: str, most: int | None = MAX_TEXT) -> str | None:
    """Why the wire cannot carry a text, in words without the text itself; None if it can.

    Args:
        most: bytes; None for text whose length has 32 bits.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return NOT_UTF8
    return None if most is None or size <= most else f"it has {size} bytes in UTF-8, at most {most} are allowed"


def topic_fault(name: str) -> str | None:
    """Why Kafka has no topic of this name, in words without the name itself; None if it may have."""
    if not name:
        return "it is empty"
    if len(name) > MAX_TOPIC:
        return f"it has {len(name)} characters, at most {MAX_TOPIC} are allowed"
    if name in (".", ".."):
        return f"it is {name!r}"
    strange = next((sign for sign in name if sign not in _TOPIC_CHARACTERS), None)
    if strange is not None:
        return f"it has {strange!r} in it, allowed are ASCII letters, digits, '.', '_' and '-'"
    return None


def shown(text: str) -> str:
    """A text as messages show it: in one line, not too long, and with escapes for what has no bytes."""
    return repr(text[:_SHOWN])[1:-1] + ("..." if len(text) > _SHOWN else "")


def shown_record(kind: str, value: object, key: object, headers: object, **facts: object) -> str:
    """A record as ``repr`` shows it: at most 60 bytes of what it carries, as logs are no place for the rest."""
    count = len(headers) if isinstance(headers, Sized) else "some"
    told = ", ".join(f"{name}={fact!r}" for name, fact in facts.items() if fact is not None)
    return f"{kind}({told}, key={_shown_part(key, 20)}, value={_shown_part(value, 40)}, {count} headers)"


def _shown_part(part: object, most: int) -> str:
    if isinstance(part, (bytes, bytearray, memoryview, str)):
        return repr(part[:most] if isinstance(part, str) else bytes(part[:most])) + (
            f"... of {len(part)}" if len(part) > most else ""
        )
    text = repr(part)
    return text[:most] + ("..." if len(text) > most else "")


def shown_url(url: str) -> str:
    """An address as messages show it: without a login before its host, and without what follows its path."""
    scheme, sign, rest = url.partition(":")
    # All up to the last @ is the login: a password may hold the other signs as they are.
    place = rest.removeprefix("//").rpartition("@")[2].partition("?")[0].partition("#")[0]
    if not sign or not scheme.isascii() or not scheme.isalnum() or len(scheme) > _LONGEST_SCHEME:
        return f"[hidden: {len(url)} characters]"
    return f"{scheme}:{'//' if rest.startswith('//') else ''}{shown_all(place)}"


def shown_all(text: str) -> str:
    """As ``shown``, and not shortened."""
    return repr(text)[1:-1]


def check_text(what: str, text: str, most: int | None = MAX_TEXT) -> None:
    """Refuses a text that the wire cannot carry.

    Args:
        what: the argument, for the message.
        most: see ``text_fault``.

    Raises:
        IllegalArgumentError: too long, or a lone surrogate.
    """
    fault = text_fault(text, most)
    if fault is not None:
        raise IllegalArgumentError(f"{what} '{shown(text)}' cannot be sent: {fault}")


def encoded(what: str, text: str) -> bytes:
    """A text's bytes in a message.

    Raises:
        IllegalArgumentError: as ``check_text``.
    """
    check_text(what, text)
    return text.encode()


def check_topic(name: str) -> None:
    """Refuses a name that no topic can have, before a broker is asked for it.

    Raises:
        InvalidTopicError: Kafka forbids the name.
    """
    fault = topic_fault(name)
    if fault is not None:
        raise InvalidTopicError(f"No topic can be named '{shown(name)}': {fault}")
