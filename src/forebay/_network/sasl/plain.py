"""SASL PLAIN (RFC 4616): user and password as they are, which needs TLS around them."""

from __future__ import annotations

from typing import Any

from forebay._network.sasl.mechanism import Exchange, Mechanism
from forebay.errors import ConfigError

NUL = "\0"


class Plain(Mechanism):
    """See the module's text.

    Args:
        username: not secret.
        password: a ``Secret``.

    Raises:
        ConfigError: a NUL character, which separates the two on the wire.
    """

    name = "PLAIN"

    def __init__(self, username: str, password: Any) -> None:
        if NUL in username or NUL in password.reveal():
            raise ConfigError("SASL PLAIN: neither username nor password may hold a NUL character")
        self._username = username
        self._password = password

    @property
    def who(self) -> str:
        return f"user {self._username!r}"

    def __repr__(self) -> str:
        return f"<Plain {self.who}>"

    def exchange(self, host: str) -> Exchange:
        """One token, and whatever the broker says to it."""
        yield f"{NUL}{self._username}{NUL}{self._password.reveal()}".encode()
