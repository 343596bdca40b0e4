"""Writes what type checkers and editors know of options: ``python -m tools.option_types [--check]``.

``config/_typed.py`` comes out of the table of options: a key with underscores for each, and for each name of another
client that is taken.  A keyword is written by hand, so its type is what the option is: a number is no text.  Text for
everything, as files have it, goes in by a mapping, which has no types.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from forebay.config import Option, Type, table
from forebay.config._aliases import ALIASES
from tools.stubs import formatted

TARGET = Path(__file__).parents[1] / "src" / "forebay" / "config" / "_typed.py"
HEAD = '''"""Options as keywords, with their types: for type checkers and editors, which alone import it.

Written by ``make generated`` from the table of options (tools/option_types.py).
"""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Literal, Protocol, TypedDict


class HasSerialize(Protocol):
    """``serialize(topic, headers, data)`` or ``serialize(topic, data)``."""

    @property
    def serialize(self) -> Callable[..., Any]: ...


class HasPartition(Protocol):
    """``partition(topic, key, key_bytes, value, value_bytes, cluster)``."""

    @property
    def partition(self) -> Callable[..., Any]: ...


class HasToken(Protocol):
    """``token()``."""

    @property
    def token(self) -> Callable[..., Any]: ...


class ProducerOptions(TypedDict, total=False):
    """Every option, and every name of another client that is taken; None counts as not given."""

'''
PLAIN = {
    Type.BOOLEAN: "bool",
    Type.INT: "int",
    Type.LONG: "int",
    Type.DOUBLE: "float",
    Type.STRING: "str",
    Type.LIST: "str | list[str] | tuple[str, ...]",
    Type.CLASS: "str | Callable[..., Any]",
    Type.PASSWORD: "str | Callable[[], str]",
}
OBJECTS = "str | list[Any] | tuple[Any, ...]"
SERIALIZER = "str | Callable[..., Any] | HasSerialize"
TOKENS = "str | Callable[..., Any] | HasToken"
SPECIAL = {
    "key.serializer": SERIALIZER,
    "value.serializer": SERIALIZER,
    "default.list.key.serde.inner": SERIALIZER,
    "default.list.value.serde.inner": SERIALIZER,
    "partitioner.class": "str | Callable[..., Any] | HasPartition",
    "interceptor.classes": OBJECTS,
    "metric.reporters": OBJECTS,
    "broker.address.map": "str | list[str] | tuple[str, ...] | Callable[[str, int], tuple[str, int]]",
    "ssl.context": "str | SSLContext",
    "sasl.login.callback.handler.class": TOKENS,
    "sasl.oauthbearer.token.provider": TOKENS,
    "sasl.oauthbearer.jwt.retriever.class": TOKENS,
}
"""Options that take objects, and which."""
SPECIAL_ALIASES = {"ssl.check.hostname": "bool | str", "oauth.cb": "Callable[..., Any]"}
"""Names of another client whose values are written otherwise than the option's."""


def type_of(option: Option) -> str:
    """What a keyword takes, as an annotation without None."""
    if option.choices and option.type is not Type.LIST:
        return f"Literal[{', '.join(choices(option))}]"
    return SPECIAL.get(option.name, PLAIN[option.type])


def choices(option: Option) -> Iterator[str]:
    """The values that can be, as literals: numbers in both forms, names in upper and lower case where case is free."""
    for choice in option.choices:
        yield repr(choice)
        if choice.removeprefix("-").isdigit():
            yield choice
        elif option.any_case:
            yield from (repr(other) for other in (choice.lower(), choice.upper()) if other != choice)


def members() -> Iterator[tuple[str, str]]:
    """Each keyword and its type."""
    by_name = {option.name: option for option in table()}
    for option in table():
        yield option.name.replace(".", "_"), type_of(option)
    for name, alias in ALIASES.items():
        yield name.replace(".", "_"), SPECIAL_ALIASES.get(name, type_of(by_name[alias.name]))


def text() -> str:
    """The module, formatted."""
    lines = (f"    {name}: {kind} | None" for name, kind in members())
    return formatted(HEAD + "\n".join(lines) + "\n", str(TARGET))


def main(arguments: list[str]) -> int:
    fresh = text()
    is_stale = not TARGET.exists() or TARGET.read_text(encoding="utf-8") != fresh
    if arguments != ["--check"]:
        TARGET.write_text(fresh, encoding="utf-8")
        return 0
    if is_stale:
        print("config/_typed.py: not what the table of options says; run `make generated`", file=sys.stderr)
    return int(is_stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
