"""Producer options as command lines give them: ``k=v`` pairs, Java's properties files, and flags of other tools.

All of them end in one ProducerConfig; a refusal says where the option came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from forebay.cli.failure import CommandError
from forebay.config import ProducerConfig, is_option
from forebay.config._door import door
from forebay.config._sources import config_of, read_properties
from forebay.errors import ConfigError

BROKERS = "KAFKA_BOOTSTRAP_SERVERS"
_JAVA_SERIALIZERS = "org.apache.kafka.common.serialization."


@dataclass(frozen=True, slots=True)
class Given:
    """Options by name, and where each was given; what is added later wins."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)

    def plus(self, values: Mapping[str, str], origin: str) -> Given:
        """These and ``values``; names count as the same in both spellings."""
        return self.with_lines([(origin, name, value) for name, value in values.items()])

    def with_lines(self, lines: Iterable[tuple[str, str, str]]) -> Given:
        """These and the options of a file: for each where it stands, its name and its value."""
        values, origins = {**self.values}, {**self.origins}
        for origin, name, value in lines:
            values[name.replace("_", ".")] = value
            origins[name.replace("_", ".")] = origin
        return Given(values, origins)

    def config(self, environment: Mapping[str, str] = os.environ) -> ProducerConfig:
        """The whole configuration, with the environment's brokers if none is given.

        Raises:
            ConfigError: as ProducerConfig does; the text begins with the option's origin where a single option is
                at fault.
        """
        given = self
        if "bootstrap.servers" not in self.values:
            if not environment.get(BROKERS):
                raise CommandError(f"no broker is named: give --bootstrap-server host:port, or set {BROKERS}")
            given = self.plus({"bootstrap.servers": environment[BROKERS]}, f"environment variable {BROKERS}")
        return config_of(given.values, given.origins)


@door(CommandError, wrap=False)
def pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """``name=value`` texts as options; the value may hold ``=``.

    Raises:
        CommandError: a text without ``=`` or without a name.
    """
    found: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise CommandError(f"{flag} (number {number}): {without_equals(text)}; write name=value")
        found[name.strip()] = value
    return found


def without_equals(text: str) -> str:
    """What a message says of an argument that should be ``name=value``: it may be a password that lost its name."""
    begin = re.match(r"[\w.]*", text.strip())
    name = begin.group() if begin is not None else ""
    what = f"it begins with {name} and has" if is_option(name) else "it has"
    return f"{what} {len(text)} characters, and no name before a ="


def read_lines(path: str) -> list[tuple[str, str, str]]:
    """Place, name and value of each line of a Java properties file.

    Raises:
        CommandError: no such file, unreadable, or a line without a name; with file and line.
    """
    try:
        return [(f"{path}:{number}", name, value) for number, name, value in read_properties(path)]
    except ConfigError as error:
        raise CommandError(error.message) from None


def load_properties(path: str) -> list[tuple[str, str, str]]:
    """As ``read_lines``, less serializers of Java's: commands write bytes."""
    return [
        (place, name, value)
        for place, name, value in read_lines(path)
        if not (name.endswith(".serializer") and value.startswith(_JAVA_SERIALIZERS))
    ]
