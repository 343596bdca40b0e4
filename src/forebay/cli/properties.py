"""Producer options as command lines give them: ``k=v`` pairs, Java's properties files, and flags of other tools.

All of them end in one ProducerConfig; a refusal says where the option came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from forebay.cli.failure import CommandError
from forebay.config import ProducerConfig, properties
from forebay.errors import ConfigError

_JAVA_SERIALIZERS = "org.apache.kafka.common.serialization."


@dataclass(frozen=True, slots=True)
class Given:
    """Options by name, and where each was given; what is added later wins."""

    values: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def plus(self, values: Mapping[str, str], origin: str) -> Given:
        """These and ``values``; names count as the same in both spellings."""
        added = {name.replace("_", "."): value for name, value in values.items()}
        return Given({**self.values, **added}, {**self.origins, **dict.fromkeys(added, origin)})

    def config(self) -> ProducerConfig:
        """The whole configuration.

        Raises:
            ConfigError: as ProducerConfig does; the text begins with the option's origin where a single option is
                at fault.
        """
        if "bootstrap.servers" not in self.values:
            raise CommandError("no broker is named: give --bootstrap-server host:port")
        try:
            return ProducerConfig(self.values)
        except ConfigError as error:
            # Alone, an option is refused in the same words; what only clashes with others has no single origin.
            for name, value in self.values.items():
                if _refusal(name, value) == error.message:
                    raise ConfigError(f"{self.origins[name]}: {error.message}") from error
            raise


def _refusal(name: str, value: str) -> str | None:
    try:
        ProducerConfig({"bootstrap.servers": "localhost:9092"} | {name: value})
    except ConfigError as error:
        return error.message
    return None


def pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """``name=value`` texts as options; the value may hold ``=``.

    Raises:
        CommandError: a text without ``=`` or without a name.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            # The text is not shown whole: it may be a password that lost its name.
            raise CommandError(f"{flag} {name.strip()[:60]!r}: write name=value")
        found[name.strip()] = value
    return found


def load_properties(path: str) -> dict[str, str]:
    """The options of a Java properties file, less serializers of Java's: commands write bytes.

    Raises:
        CommandError: no such file, unreadable, or a line without a name; with file and line.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"properties file {path!r} cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # what Java takes such files for
    found: dict[str, str] = {}
    for number, name, value in properties(text):
        if not name:
            raise CommandError(f"{path}:{number}: no option's name in this line; write name=value")
        found[name] = value
    return {
        name: value
        for name, value in found.items()
        if not (name.endswith(".serializer") and value.startswith(_JAVA_SERIALIZERS))
    }
