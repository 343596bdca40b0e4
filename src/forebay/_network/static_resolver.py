"""A resolver without threads and without a network: a test sets names and answers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

from forebay._network.resolver import Resolution, addresses_of
from forebay._network.transport import Address
from forebay.errors import NetworkError


class StaticResolver:
    """Answers from a table; numeric hosts resolve to themselves.

    Args:
        hosts: name to its numeric addresses, which may change at any time (``hosts`` is the live table).
        held: answers wait until ``release``, as those of a slow name server.
    """

    def __init__(self, hosts: dict[str, list[str]] | None = None, *, held: bool = False) -> None:
        self.hosts: dict[str, list[str]] = dict(hosts or {})
        self.names: dict[str, list[str]] = {}
        """Name to the canonical names of its addresses; without an entry the addresses stand for themselves."""
        self.held: bool = held
        self.asked: list[str] = []
        """Every host asked for, in order."""
        self.closed: bool = False
        self._waiting: list[Callable[[], None]] = []

    def resolve(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """As ``Resolver.resolve``."""
        resolution = Resolution(host, port)
        self.asked.append(host)

        def fill() -> None:
            numbers = self._numbers(host)
            resolution.addresses = tuple(address for number in numbers for address in _numeric(number, port))

        return self._answer(resolution, fill, ticket_wake)

    def canonical(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """As ``Resolver.canonical``."""
        resolution = Resolution(host, port)
        self.asked.append(host)

        def fill() -> None:
            resolution.names = tuple(self.names.get(host) or self._numbers(host))

        return self._answer(resolution, fill, ticket_wake)

    def close(self) -> None:
        """Answers what is held with an error, as ``Resolver.close``."""
        self.closed = True
        self.hosts.clear()
        self.names.clear()
        self.release()

    def release(self) -> None:
        """Gives the answers that are held, and holds none from now on."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer()

    def _numbers(self, host: str) -> list[str]:
        return self.hosts.get(host, [host] if _is_numeric(host) else [])

    def _answer(self, resolution: Resolution, fill: Callable[[], None], wake: Callable[[], None]) -> Resolution:
        def answer() -> None:
            fill()
            if not resolution.addresses and not resolution.names:
                resolution.error = NetworkError(f"cannot resolve {resolution.host!r}: not in the table")
            resolution.done = True

        if not self.held:
            answer()
            return resolution
        self._waiting.append(lambda: _then(answer, wake))
        return resolution


def _then(answer: Callable[[], None], wake: Callable[[], None]) -> None:
    answer()
    wake()


def _numeric(host: str, port: int) -> Iterable[Address]:
    return addresses_of(host, port, socket.getaddrinfo, flags=socket.AI_NUMERICHOST)


def _is_numeric(host: str) -> bool:
    try:
        return bool(_numeric(host, 1))
    except (OSError, UnicodeError):
        return False
