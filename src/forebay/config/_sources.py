"""Options from a properties file and from environment variables; a refusal names the line or the variable."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from forebay._runtime.files import NoTextError, without_mark
from forebay.config._properties import HALF, EscapeError, properties
from forebay.config._secret import is_utf8
from forebay.errors import ConfigError

if TYPE_CHECKING:
    from forebay.config import ProducerConfig

OF_THE_PACKAGE = frozenset({"INTERPRETED", "DEBUG"})
"""``FOREBAY_`` variables that are no options."""
OF_A_SERVICE = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)", re.ASCII
)
"""What Kubernetes sets for each service, after a prefix that is the service's name: ``KAFKA_PORT=tcp://10.0.0.1:9092``."""


class FromSources:
    """A base of what is made of options: ``from_properties`` and ``from_env``."""

    __slots__ = ()

    @classmethod
    def from_properties(cls, path: str | os.PathLike[str], /, **overrides: Any) -> Self:
        """Made of the options in a Java properties file.

        Class names of Java's serializers are taken for the built-in ones.  Placeholders (``${env:NAME}``, with
        ``config.providers``) stay placeholders: they are filled in when the option is used.

        Args:
            path: the file; UTF-8, else Latin-1 as in Java.
            overrides: more options, as keywords; they win over the file.

        Raises:
            ConfigError: the file cannot be read, or an option is refused; names the file and the line.
        """
        values: dict[str, str] = {}
        origins: dict[str, str] = {}
        for number, name, value in read_properties(path):
            values[name] = value
            origins[name] = f"{os.fspath(path)}:{number}"
        return cls(config_of(values, origins, overrides))  # type: ignore[call-arg]

    @classmethod
    def from_env(cls, prefix: str = "FOREBAY_", /, environ: Mapping[str, str] | None = None, **overrides: Any) -> Self:
        """Made of the environment variables that begin with ``prefix``.

        The rest of a name is the option's, in capitals with ``_`` for ``.``: ``FOREBAY_BOOTSTRAP_SERVERS`` is
        ``bootstrap.servers``.  An empty variable counts as not set.  The variables that Kubernetes sets for a service
        (``KAFKA_PORT``, ``KAFKA_SERVICE_HOST``) are left alone.

        Args:
            prefix: with its underscore, such as ``KAFKA_``.
            environ: in the place of ``os.environ``.
            overrides: more options, as keywords; they win over the environment.

        Raises:
            ConfigError: an option is refused, or there is none of the name; names the variable.
            ValueError: the prefix is empty.
        """
        if not prefix:
            raise ValueError("from_env needs a prefix: without one, each variable of the process would be an option")
        values: dict[str, str] = {}
        origins: dict[str, str] = {}
        for variable, value in sorted((os.environ if environ is None else environ).items()):
            if variable.startswith(prefix) and value and not _is_other(prefix, variable.removeprefix(prefix)):
                name = variable.removeprefix(prefix).lower().replace("_", ".")
                values[name] = value
                origins[name] = f"environment variable {variable}"
        return cls(config_of(values, origins, overrides))  # type: ignore[call-arg]


def _is_other(prefix: str, name: str) -> bool:
    return OF_A_SERVICE.fullmatch(name) is not None or (prefix == "FOREBAY_" and name in OF_THE_PACKAGE)


def read_properties(path: str | os.PathLike[str]) -> list[tuple[int, str, str]]:
    """Line number, name and value of each option in a properties file; of a name given twice the last, as in Java.

    Raises:
        ConfigError: no such file, unreadable, a line without a name, or one that Java refuses; with file and line.
    """
    shown = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = without_mark(file.read())
    except OSError as error:
        raise ConfigError(f"properties file {shown!r} cannot be read: {error.strerror}") from None
    except NoTextError as error:
        raise ConfigError(f"properties file {shown!r} {error}") from None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # what Java takes such files for
    found: dict[str, tuple[int, str, str]] = {}
    try:
        for number, name, value in properties(text):
            if not name:
                raise ConfigError(f"{shown}:{number}: no option's name in this line; write name=value")
            if not is_utf8(name + value):
                raise ConfigError(f"{shown}:{number}: {HALF}")
            found[name] = (number, name, value)
    except EscapeError as error:
        raise ConfigError(f"{shown}:{error.number}: {error}") from None
    return list(found.values())


def config_of(
    values: Mapping[str, str], origins: Mapping[str, str], overrides: Mapping[str, Any] | None = None
) -> ProducerConfig:
    """A configuration of ``values``, in whose place come ``overrides``.

    Args:
        origins: where each value was given, by its name.

    Raises:
        ConfigError: as ProducerConfig; begins with the origin where a single value is at fault.
    """
    from forebay.config import ProducerConfig, kafka_name

    replaced = {kafka_name(name) for name in overrides or ()}
    kept = {name: value for name, value in values.items() if kafka_name(name) not in replaced}
    try:
        return ProducerConfig(kept, **(overrides or {}))
    except ConfigError as error:
        # Alone, an option is refused in the same words; what only clashes with others has no single origin.
        for name, value in kept.items():
            if _refusal(name, value) == error.message:
                raise ConfigError(f"{origins[name]}: {error.message}") from error
        raise


def _refusal(name: str, value: str) -> str | None:
    from forebay.config import ProducerConfig

    try:
        ProducerConfig({"bootstrap.servers": "localhost:9092"} | {name: value})
    except ConfigError as error:
        return error.message
    return None
