"""What the handshake needs of a SASL mechanism."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

Exchange = Generator[bytes, bytes, None]
"""Yields the client's tokens and gets the broker's; its end says that the client is content."""

MAX_TOKEN = 512 * 1024
"""Bytes of a broker's token that are looked at; a broker takes no larger ones either."""


class Mechanism(Protocol):
    """One way to authenticate, with the credentials of one producer."""

    @property
    def name(self) -> str:
        """As brokers name it, such as ``SCRAM-SHA-256``."""
        ...

    @property
    def who(self) -> str:
        """Who is authenticated and by which options, for messages; no secret in it."""
        ...

    def exchange(self, host: str) -> Exchange:
        """A new exchange with the broker at ``host``.

        Raises (from the generator):
            SaslAuthenticationError: the broker's token is not what the mechanism prescribes.
        """
        ...
