"""``broker.address.map``: brokers that are reached at other addresses than they say (tunnels, forwarded ports)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forebay.config._bootstrap import HostPort, parse_address
from forebay.config._secret import described, shown_value, tells
from forebay.errors import ConfigError

AddressMap = Callable[[str, int], tuple[str, int]]
"""From the host and the port that a broker advertises to those to connect to."""
ALL_OTHERS = "*"
OPTION = "broker.address.map"
_HOW = "write advertised-host:port=real-host:port, or *=real-host:port for all other brokers"


class Addresses:
    """The pairs of the option; itself an ``AddressMap``."""

    def __init__(self, pairs: dict[HostPort, HostPort], others: HostPort | None) -> None:
        self._pairs = pairs
        self._others = others

    def __call__(self, host: str, port: int) -> tuple[str, int]:
        return self._pairs.get(HostPort(host.lower(), port), self._others or HostPort(host, port))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Addresses) and (self._pairs, self._others) == (other._pairs, other._others)

    def __hash__(self) -> int:
        return hash((tuple(self._pairs.items()), self._others))

    def __repr__(self) -> str:
        pairs = [f"{advertised}={real}" for advertised, real in self._pairs.items()]
        return ",".join([*pairs, *([] if self._others is None else [f"{ALL_OTHERS}={self._others}"])])


def parse_address_map(entries: Sequence[Any]) -> AddressMap | None:
    """Reads the pairs; None if there are none.

    Raises:
        ConfigError: names the entry and what is wrong with it.
    """
    pairs: dict[HostPort, HostPort] = {}
    others: HostPort | None = None
    for entry in entries:
        if not isinstance(entry, str) or entry.count("=") != 1:
            raise ConfigError(f"Invalid entry {shown_value(entry)} in {OPTION}: {_HOW}")
        advertised, real = (part.strip() for part in entry.split("="))
        address = parse_address(real, OPTION)
        if advertised == ALL_OTHERS:
            known, others = others, address
        else:
            name = parse_address(advertised, OPTION)
            key = HostPort(name.host.lower(), name.port)
            known = pairs.get(key)
            pairs[key] = address
        if known is not None:
            shown = described(advertised) if tells(entry) else advertised
            raise ConfigError(f"Invalid entry {shown_value(entry)} in {OPTION}: {shown} is there twice")
    return Addresses(pairs, others) if entries else None
