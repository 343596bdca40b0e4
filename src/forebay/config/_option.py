"""What an option is, and how a given value becomes the option's own: the only code that judges a single value.

A value may come as text (a file, a command line, Spark) or typed.  The message of a refusal names the option, the
value (never that of a password) and what is allowed.
"""

from __future__ import annotations

import enum
import importlib
import math
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from forebay._runtime.allowed import path_refusal, url_refusal
from forebay.config._placeholders import Placeholder
from forebay.config._secret import Called, Secret, described, path_fault, shown_value
from forebay.errors import ConfigError
from forebay.model._wire import MAX_TEXT, text_fault

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Type(enum.Enum):
    """The types of Kafka's own option tables."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


class Importance(enum.Enum):
    """How likely it is that somebody wants to change it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Feature(enum.Enum):
    """Machinery that an option needs; an option whose machinery is missing is refused, not ignored."""

    TRANSACTIONS = "transactions"
    TLS = "TLS"
    SASL = "SASL"
    REPORTERS = "metric reporters"
    JVM = "Java virtual machine"
    OAUTHBEARER = "SASL OAUTHBEARER"
    GSSAPI = "SASL GSSAPI (Kerberos)"


class Option(NamedTuple):
    """One option: a row of the table that ``forebay config`` prints."""

    name: str
    type: Type
    default: Any
    importance: Importance
    documentation: str
    ranges: tuple[tuple[float | None, float | None], ...] = ()
    """Closed intervals; the number must be in one of them.  None is open."""
    choices: tuple[str, ...] = ()
    any_case: bool = False
    """Choices are compared without regard to case and stored as listed."""
    not_empty: bool = False
    feature: Feature | None = None
    features_of: dict[str, tuple[Feature, ...]] | None = None
    """Where they differ by value: what each needs."""
    ours: bool = False
    """Not one of the Java client's."""
    names: dict[str, Any] | None = None
    """What well-known names (Java's classes) stand for."""
    convert: Callable[[Any], Any] | None = None
    """From the accepted value to the one that is kept, if they differ."""
    callable_too: bool = False
    """A callable may stand in place of the value; it is kept as it is."""
    placeholders: bool = False
    """``config.providers`` are asked for it at each login or connection; so are those of all passwords."""

    wire: bool = False
    """A string of the protocol itself, which has a limit."""
    path: bool = False
    """Of a file or a folder, whose name may be any bytes; FOREBAY_ALLOWED_PATHS limits it."""
    url: bool = False
    """A URL that is asked; FOREBAY_ALLOWED_URLS limits it."""
    guarded: bool = False
    """It is no password, but may hold one; messages and ``describe`` do not show it."""
    text_in: str = ""
    """For a path: the options that take the file's content as text."""

    @property
    def secret(self) -> bool:
        return self.type is Type.PASSWORD

    def allowed(self) -> str:
        """What may be given, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        kind = _KINDS[self.type] + (", or a callable" if self.callable_too else "")
        short = [name for name in self.names or () if "." not in name]
        kind += f", or one of {', '.join(short)}" if short else ""
        if self.not_empty:
            kind += " that is not empty"
        return f"{kind}, {_interval_text(self.ranges)}" if self.ranges else kind

    def parse(self, value: Any) -> Any:
        """The option's value for what a user gave.

        Raises:
            ConfigError: wrong type, out of range, or a name that cannot be found.
        """
        if isinstance(value, Placeholder) and self.placeholders:
            return value
        if self.secret:
            return self._parse_secret(value)
        if type(value) is Secret and value.is_text:
            value = value.reveal()  # it may hold a secret beside what it is: an address with a login
        if self.callable_too and callable(value):
            return value
        if self.path:
            self._check_path(value)
        if self.url:
            self.check_url(value)
        parsed = _PARSERS[self.type](self, value)
        if self.choices and self.type is not Type.LIST:
            parsed = self._choice(parsed, value)
        elif not self._in_range(parsed) or (self.not_empty and not parsed):
            raise self.refusal(value)
        return self.convert(parsed) if self.convert else parsed

    def check_text(self, value: Any) -> None:
        """Refuses text that could not be sent; each option's is judged here, whatever is made of it later.

        Raises:
            ConfigError: a lone surrogate (but in a path), or too long for the protocol.
        """
        for text in value if isinstance(value, (list, tuple)) else (value,):
            fault = text_fault(text, MAX_TEXT if self.wire else None) if isinstance(text, str) else None
            if fault is not None and not (self.path and is_path(text)):
                raise ConfigError(f"Option {self.name}: {fault}")  # without a text that may be a password, or long

    def _check_path(self, value: Any) -> None:
        for given in value if isinstance(value, (list, tuple)) else (value,):
            fault = path_fault(given) if isinstance(given, str) else None
            if fault is not None:
                raise self.refusal(Secret(given), fault + (f"; text is for {self.text_in}" if self.text_in else ""))
        if isinstance(value, (str, list, tuple)):
            for path in _list(self, value) if self.type is Type.LIST else (value,):
                self.check_place(path)

    def check_place(self, path: Any) -> None:
        """Refuses a path that the environment does not allow, of the option itself or of a placeholder in it.

        Raises:
            ConfigError: it names the option and the variable.
        """
        fault = path_refusal(path.strip()) if isinstance(path, str) and path.strip() else None
        if fault is not None:
            raise ConfigError(f"Option {self.name} may not name {shown_value(path)}: {fault}")

    def check_url(self, url: Any) -> None:
        """Refuses a URL that the environment does not allow; its text may hold a password, so it is not shown.

        Raises:
            ConfigError: it names the option and the variable.
        """
        fault = url_refusal(url.strip()) if isinstance(url, str) else None
        if fault is not None:
            raise ConfigError(f"Option {self.name} may not name this URL: {fault}")

    def _parse_secret(self, value: Any) -> Secret:
        if type(value) is Secret:
            if not value.is_text:
                raise self.refusal(value)
            return value
        if isinstance(value, Secret):
            return value
        if not callable(value):
            return Secret(_PARSERS[Type.STRING](self, value))
        try:
            return Called(value)
        except ConfigError as error:
            raise self.refusal(value, error.message) from None

    def refusal(self, value: Any, reason: str = "") -> ConfigError:
        """The error for a value that is not allowed."""
        shown = described(value) if self.secret or self.guarded else shown_value(value)
        return ConfigError(f"Invalid value {shown} for option {self.name}: {reason or 'must be ' + self.allowed()}")

    @property
    def needs(self) -> tuple[Feature, ...]:
        """What all of its values but the default need."""
        if self.features_of:
            values = [choice for choice in self.choices if choice != self.default]
            each = [self.features_of.get(value, (self.feature,)) for value in values]
            return tuple(feature for feature in each[0] if feature and all(feature in wanted for wanted in each))
        return () if self.feature is None else (self.feature,)

    def missing(self, value: Any, features: frozenset[Feature]) -> tuple[Feature, ...]:
        """What ``value`` needs that is not among ``features``; the default needs nothing."""
        if self.feature is None or value == self.default:
            return ()
        wanted = self.features_of.get(value, (self.feature,)) if self.features_of else (self.feature,)
        return tuple(feature for feature in wanted if feature not in features)

    def _in_range(self, value: Any) -> bool:
        return not self.ranges or any(_within(value, low, high) for low, high in self.ranges)

    def _choice(self, value: str, given: Any) -> str:
        for choice in self.choices:
            if value == choice or (self.any_case and value.lower() == choice.lower()):
                return choice
        raise self.refusal(given)


_KINDS = {
    Type.BOOLEAN: "true or false",
    Type.INT: "an integer",
    Type.LONG: "an integer",
    Type.DOUBLE: "a number",
    Type.STRING: "a string",
    Type.LIST: "a list of strings, or one string with commas",
    Type.CLASS: "an object, a class, or a name like package.module.Class",
    Type.PASSWORD: "a string, or a callable that gives it",
}


def is_path(text: str) -> bool:
    """Whether a file may have this name: Python keeps bytes that are no UTF-8 as surrogates of a kind of their own."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _interval_text(ranges: Iterable[tuple[float | None, float | None]]) -> str:
    texts = []
    for low, high in ranges:
        if low == high:
            texts.append(f"{low}")
        elif high is None:
            texts.append(f"at least {low}")
        else:
            texts.append(f"{low} to {high}" if low is not None else f"at most {high}")
    return " or ".join(texts)


def _boolean(option: Option, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in known:
        return known[value.strip().lower()]
    raise option.refusal(value)


def _integer(option: Option, value: Any) -> int:
    limit = INT_MAX if option.type is Type.INT else LONG_MAX
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = int(value)
    elif isinstance(value, str):
        try:
            number = int(value.strip()) if "_" not in value else None
        except ValueError:
            raise option.refusal(value) from None
    if number is None:
        raise option.refusal(value)
    if not -limit - 1 <= number <= limit:
        raise option.refusal(value, f"must fit into {32 if option.type is Type.INT else 64} bits, at most {limit}")
    return number


def _double(option: Option, value: Any) -> float:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            raise option.refusal(value) from None
        if math.isfinite(number):
            return number
    raise option.refusal(value)


def _string(option: Option, value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if option.choices and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # acks=1
    raise option.refusal(value)


def _list(option: Option, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, (list, tuple)):
        parts: list[Any] = []
        for item in value:
            parts.extend(_list(option, item) if isinstance(item, str) else (item,))
        return tuple(parts)
    raise option.refusal(value)


def _class(option: Option, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = value.strip()
    if option.names and name in option.names:
        return option.names[name]
    return load(option, name)


def load(option: Option, name: str) -> Any:
    """The object that ``package.module.Class`` or ``package.module:Class`` names.

    Raises:
        ConfigError: there is none, or importing it failed (the reason is the cause).
    """
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    if not module or not attribute:
        raise option.refusal(name)
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise option.refusal(name, f"class {name} cannot be found: {error}") from error


_PARSERS: dict[Type, Callable[[Option, Any], Any]] = {
    Type.BOOLEAN: _boolean,
    Type.INT: _integer,
    Type.LONG: _integer,
    Type.DOUBLE: _double,
    Type.STRING: _string,
    Type.LIST: _list,
    Type.CLASS: _class,
    Type.PASSWORD: _string,
}
