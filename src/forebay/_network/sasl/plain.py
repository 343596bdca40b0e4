"""SASL PLAIN (RFC 4616): user and password as they are, which needs TLS around them."""

from __future__ import annotations

from forebay._network.sasl.login import Login, Named
from forebay._network.sasl.mechanism import Exchange, Mechanism
from forebay.errors import SaslAuthenticationError

NUL = "\0"


class Plain(Mechanism):
    """SASL PLAIN with the credentials of a ``Login``."""

    name = "PLAIN"

    def __init__(self, login: Login) -> None:
        self.login = login

    @property
    def who(self) -> str:
        return f"user {self.login.who}"

    def __repr__(self) -> str:
        return f"<Plain {self.who}>"

    def exchange(self, host: str) -> Exchange:
        """One token; the broker's answer has no meaning."""
        yield message((yield from self.login.now()))


def message(named: Named) -> bytes:
    """The client's token.

    Raises:
        SaslAuthenticationError: a NUL character, which separates the two on the wire.
    """
    if NUL in named.username or NUL in named.password.reveal():
        raise SaslAuthenticationError("SASL PLAIN: neither username nor password may hold a NUL character")
    return f"{NUL}{named.username}{NUL}{named.password.reveal()}".encode()
