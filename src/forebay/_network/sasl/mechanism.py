"""What the handshake needs of a SASL mechanism."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from forebay.errors._base import bare

MAX_TOKEN = 512 * 1024
"""Bytes of a broker's token that are looked at; a broker takes no larger ones either."""
NEVER = float("inf")


class Blocking:
    """Work of an exchange that may block, such as fetching a token; a helper thread does it.

    ``run`` writes the result or the error once, and ``done`` last; after that any thread reads them.  Several exchanges
    may wait for the same work.

    Args:
        what: what is waited for, for messages; such as "the token of sasl.oauthbearer.token.provider".
        work: called once, on the helper thread.
    """

    __slots__ = ("_work", "begun", "done", "error", "result", "what")

    def __init__(self, what: str, work: Callable[[], Any]) -> None:
        self.what = what
        self._work: Callable[[], Any] | None = work
        self.begun = False
        """Whether a helper has it; the sender's thread."""
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False

    def run(self) -> None:
        """Does the work; never raises."""
        work, self._work = self._work, None
        try:
            if work is not None:
                self.result = work()
        except BaseException as error:  # noqa: BLE001 - raised where the result is wanted; the thread has more to do
            self.error = bare(error)  # its frames have what the work reads
        self.done = True

    def fail(self, error: BaseException) -> None:
        """It will not be run, because the helper has ended."""
        self._work, self.error, self.done = None, error, True

    def __repr__(self) -> str:
        # Not the work, whose arguments may be secret.
        return f"<Blocking: {self.what}, {'done' if self.done else 'not done'}>"


Exchange = Generator[bytes | Blocking, Any, None]
"""Yields the client's tokens and gets the broker's; yields Blocking and gets its result.  It ends when the client
needs no further token."""


class Mechanism:
    """One way to authenticate, with the credentials of one producer; the sender's thread calls it."""

    name: str
    """As brokers name it, such as ``SCRAM-SHA-256``."""

    @property
    def who(self) -> str:
        """Who is authenticated and by which options, for messages; no secret in it."""
        raise NotImplementedError

    def exchange(self, host: str) -> Exchange:
        """A new exchange with the broker at ``host``.  Work for the first token is yielded before the token.

        Raises (from the generator):
            SaslAuthenticationError: the broker's token is not what the mechanism prescribes, or the credentials are
                refused by their provider.
            NetworkError: the provider of the credentials cannot be asked now.
        """
        raise NotImplementedError

    def renewal(self, now: float) -> tuple[Blocking | None, float]:
        """Work that keeps the credentials fresh without a login, and when to ask again (monotonic ms)."""
        return None, NEVER
