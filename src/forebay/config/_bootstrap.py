"""``bootstrap.servers``: host:port pairs, as users write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from forebay.config._secret import described, shown_value, tells
from forebay.errors import ConfigError

_ENTRY = re.compile(r"(?:(?P<protocol>\w+)://)?(?:\[(?P<six>[^\[\]]*)\]|(?P<host>[^\[\]:/]*))(?::(?P<port>[^:\[\]]*))?")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_HOW = "write host:port, with an IPv6 address in brackets: [::1]:9092"


class HostPort(NamedTuple):
    """One bootstrap server; the host is not resolved and has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(entries: Sequence[Any]) -> tuple[HostPort, ...]:
    """Each entry once, in the order given.

    A listener's protocol before the host (``PLAINTEXT://host:9092``) is accepted, as people copy it from the
    brokers' configuration; ``security.protocol`` decides.

    Raises:
        ConfigError: names the entry and what is wrong with it; the list is empty.
    """
    if not entries:
        raise ConfigError(f"bootstrap.servers is empty: at least one server is needed; {_HOW}")
    return tuple(dict.fromkeys(parse_address(entry, "bootstrap.servers") for entry in entries))


def parse_address(entry: Any, option: str) -> HostPort:
    """One address of a list of them.

    Args:
        option: whose it is, for messages.

    Raises:
        ConfigError: names the entry and what is wrong with it.
    """
    if not isinstance(entry, str):
        raise _refusal(entry, option, f"it is not a string; {_HOW}")
    match = _ENTRY.fullmatch(entry.strip())
    if match is None:
        raise _refusal(entry, option, _HOW)
    protocol, six, host, port = match.group("protocol", "six", "host", "port")
    if protocol is not None and protocol.upper() not in _PROTOCOLS:
        raise _refusal(entry, option, f"{protocol}:// is not one of {', '.join(_PROTOCOLS)}")
    if six is not None and ":" not in six:
        raise _refusal(entry, option, "brackets are for IPv6 addresses")
    name = six or host
    if not name or any(character.isspace() for character in name):
        raise _refusal(entry, option, f"the host is missing or has spaces; {_HOW}")
    if not name.isascii():
        # The look-up needs this codec.  An import on the sender's thread could wait for an interrupted main thread.
        import encodings.idna  # noqa: F401
    if port is None:
        raise _refusal(entry, option, f"the port is missing; {_HOW}")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise _refusal(
            entry, option, f"the port {described(port) if tells(entry) else repr(port)} is not a number from 1 to 65535"
        )
    return HostPort(name, int(port))


def _refusal(entry: Any, option: str, reason: str) -> ConfigError:
    return ConfigError(f"Invalid entry {shown_value(entry)} in {option}: {reason}")
