"""Who logs in by a password: read at each login, and changed by ``set_sasl_credentials``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol

from forebay._network.sasl.mechanism import Blocking
from forebay.errors import ConfigError, SaslAuthenticationError


class Named(Protocol):
    """A user's name, the password as a ``Secret``, and whether they are a delegation token's (KIP-48)."""

    @property
    def username(self) -> str: ...
    @property
    def password(self) -> Any: ...
    @property
    def token(self) -> bool: ...


class Login:
    """The credentials of one producer.

    Args:
        read: gives them; raises ConfigError if they cannot be had.
        deferred: ``read`` may block, so it runs on the helper thread.
    """

    def __init__(self, read: Callable[[], Named], deferred: bool = False) -> None:
        # One tuple: another thread may replace both while the sender's reads them.
        self._source = (read, deferred)
        self._username: str | None = None if deferred else read().username

    def __repr__(self) -> str:
        return f"<Login of {self.who}>"

    @property
    def who(self) -> str:
        """The user of the last login, for messages."""
        return "a user that was not read yet" if self._username is None else repr(self._username)

    def replace(self, given: Named) -> None:
        """Uses other credentials from the next login on; any thread."""
        self._source = (lambda: given, False)

    def now(self) -> Generator[Blocking, Any, Named]:
        """The credentials of a login that begins.

        Raises (from the generator):
            SaslAuthenticationError: they cannot be had.
        """
        read, deferred = self._source
        try:
            if deferred:
                found: Named = yield Blocking("the username and the password", read)
            else:
                found = read()
        except ConfigError as error:
            raise SaslAuthenticationError(f"the credentials cannot be read: {error.message}") from error
        self._username = found.username
        return found
