"""SASL OAUTHBEARER (RFC 7628, KIP-255): a token in place of a password."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay._network.sasl.mechanism import Blocking, Exchange, Mechanism
from forebay._network.tokens import Token, Tokens, check_extensions
from forebay.errors import SaslAuthenticationError

SEPARATOR = "\x01"
SHOWN = 500
"""Characters of a broker's refusal that are shown."""


class OAuthBearer(Mechanism):
    """Shows the broker a token; the sender's thread.

    Args:
        tokens: what has them.
        source: where they come from, for messages; such as ``sasl.oauthbearer.token.provider``.
        extensions: sent with each token (KIP-342); a token's own come on top.

    Raises:
        ConfigError: an extension that cannot be sent.
    """

    name = "OAUTHBEARER"

    def __init__(self, tokens: Tokens, source: str, extensions: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._source = source
        self._extensions = dict(extensions)
        check_extensions(self._extensions)

    @property
    def who(self) -> str:
        principal = self._tokens.principal
        return f"the owner of a token of {self._source}" if principal is None else f"{principal!r} by {self._source}"

    def __repr__(self) -> str:
        return f"<OAuthBearer {self.who}>"

    def exchange(self, host: str) -> Exchange:
        """One token.  An empty answer of the broker accepts it; any other says why it is refused."""
        wanted: Any = self._tokens.wanted()
        if isinstance(wanted, Blocking):
            wanted = yield wanted
            self._tokens.settle()
        token: Token = wanted
        refusal = yield first_message(token.value, {**self._extensions, **token.extensions})
        if not refusal:
            return
        # The next login asks for another token.
        self._tokens.refused(token)
        again = yield SEPARATOR.encode()  # so the broker ends the exchange, with an error of its own (RFC 7628, 3.2.3)
        said = (again or refusal)[:SHOWN].decode("utf-8", "replace")
        raise SaslAuthenticationError(f"the broker refused the token: {said!r}")

    def renewal(self, now: float) -> tuple[Blocking | None, float]:
        """See ``Mechanism.renewal``."""
        return self._tokens.renewal(now)


def first_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """The client's message."""
    pairs = "".join(f"{key}={value}{SEPARATOR}" for key, value in extensions.items())
    return f"n,,{SEPARATOR}auth=Bearer {token}{SEPARATOR}{pairs}{SEPARATOR}".encode()
