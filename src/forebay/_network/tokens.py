"""Tokens of OAUTHBEARER: what a provider may give, how long a token is used, and when the next one is fetched.

All logins of a producer share one token.  It is renewed before it ends, also while nobody logs in, at the times of
Java's clients (``ExpiringCredentialRefreshingLogin``).  Fetching is ``Blocking`` work for the helper thread.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import logging
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from forebay._network.sasl.mechanism import MAX_TOKEN, NEVER, Blocking
from forebay.errors import ConfigError, KafkaError, NetworkError, SaslAuthenticationError

log = logging.getLogger("forebay.network")

RETRY_MS = 10_000.0
"""Ms between attempts to fetch a token."""
LEAST_PERIOD_MS = 1_000.0
"""Ms between two renewals at least: a provider may give tokens that end at once."""
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
"""The characters that brokers take (RFC 6750)."""
MAX_EXTENSIONS = 8192
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")
LONGEST = MAX_TOKEN - MAX_EXTENSIONS - 64
MOST_CLAIMS = 64 * 1024
_SHAPES = "a token, (token, Unix seconds of its end), or these and a principal and a dict of extensions"


class Token(NamedTuple):
    """A token and what is known of it.  It does not show itself."""

    value: str
    expires_ms: float | None = None
    """Unix ms; None: it is used for one login."""
    starts_ms: float | None = None
    principal: str | None = None
    extensions: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"<Token of {self.principal!r}, expires_ms={self.expires_ms}>"


class Refresh(NamedTuple):
    """``sasl.login.refresh.*``."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: float = 60
    buffer_s: float = 300


def refresh_at(now: float, token: Token, refresh: Refresh, random: float) -> float:
    """When to fetch the next token, as Java's logins do; Unix ms, infinite for a token without an end.

    Args:
        now: Unix ms.
        random: in [0, 1).
    """
    end = token.expires_ms
    if end is None:
        return math.inf
    if now > end:
        return now + RETRY_MS
    share = refresh.window_factor + refresh.window_jitter * random
    if now + 1000 * (refresh.min_period_s + refresh.buffer_s) > end:
        return now + int((end - now) * share)
    start = token.starts_ms if token.starts_ms is not None else now
    proposed = start + int((end - start) * share)
    latest = end - refresh.buffer_s * 1000
    return latest if proposed > latest else max(proposed, now + 1000 * refresh.min_period_s)


class Tokens:
    """The token of one producer's logins; sender's thread.

    Args:
        fetch: gets a new token; blocks, on the helper thread.
        what: what is fetched, for messages.
        wall: Unix ms.
        random: in [0, 1).
    """

    def __init__(
        self,
        fetch: Callable[[], Token],
        what: str,
        refresh: Refresh,
        wall: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self._fetch = fetch
        self._what = what
        self._refresh = refresh
        self._wall = wall
        self._random = random
        self._token: Token | None = None
        self._pending: Blocking | None = None
        self._renew_at = -math.inf
        """Unix ms; the first token is fetched at once."""

    def __repr__(self) -> str:
        return f"<Tokens: {self._token!r}>"

    @property
    def principal(self) -> str | None:
        """The principal of the last token, if it is known."""
        return None if self._token is None else self._token.principal

    def wanted(self) -> Token | Blocking:
        """The token for a login, or the work that gives it; logins at the same time share the work."""
        self.settle()
        token = self._token
        if token is not None and token.expires_ms is not None and self._wall() < token.expires_ms:
            return token
        return self._begin()

    def refused(self, token: Token) -> None:
        """A broker refused the token: the next login fetches another one."""
        if self._token is token:
            self._token = token._replace(expires_ms=None)
            self._renew_at = math.inf

    def renewal(self, now: float) -> tuple[Blocking | None, float]:
        """See ``Mechanism.renewal``."""
        self.settle()
        if self._pending is not None:
            return self._pending, NEVER
        left = self._renew_at - self._wall()
        if left <= 0:
            return self._begin(), NEVER
        return None, now + left

    def _begin(self) -> Blocking:
        if self._pending is None:
            self._pending = Blocking(self._what, self._fetch)
        return self._pending

    def settle(self) -> None:
        """Takes the result of work that is done."""
        work = self._pending
        if work is None or not work.done:
            return
        self._pending = None
        if work.error is None:
            token: Token = work.result
            self._token = token
            now = self._wall()
            self._renew_at = max(refresh_at(now, token, self._refresh, self._random()), now + LEAST_PERIOD_MS)
            return
        log.warning("SASL OAUTHBEARER: no new token, it is tried again in %d s: %s", RETRY_MS / 1000, work.error)
        self._renew_at = self._wall() + RETRY_MS


# -- what goes with a token -------------------------------------------------------------------------------------


def check_extensions(extensions: Mapping[Any, Any]) -> None:
    """Raises ConfigError for what brokers do not take as extensions (KIP-342)."""
    for key, value in extensions.items():
        if not isinstance(key, str) or not _EXTENSION_NAME.fullmatch(key) or key == "auth":
            # Any other text may be a value that lost its name.
            shown = "'auth'" if key == "auth" else f"of {len(str(key))} characters"
            raise ConfigError(f"SASL extension {shown}: a name has letters only, and is not 'auth'")
        if not isinstance(value, str) or not _EXTENSION_VALUE.fullmatch(value):
            raise ConfigError(f"SASL extension {key!r}: its value must be printable ASCII and not empty")
    if sum(len(key) + len(value) + 2 for key, value in extensions.items()) > MAX_EXTENSIONS:
        raise ConfigError(f"SASL extensions: together they have more than {MAX_EXTENSIONS} bytes")


# -- what a provider gives -------------------------------------------------------------------------------------


def ask(provider: Callable[[], Any], name: str, wall: Callable[[], float]) -> Token:
    """Calls a user's provider; on the helper thread.

    Args:
        name: the option that it comes from.
        wall: Unix ms.

    Raises:
        NetworkError: it raised: it may have a token later.
        SaslAuthenticationError: what it gave is no token that is valid now; the value is not shown.
    """
    try:
        given = provider()
    except KafkaError:
        raise
    except Exception as error:
        raise NetworkError(f"no token: {name} raised {type(error).__name__}: {error}") from error
    return given_token(given, name, wall())


def given_token(given: Any, name: str, now: float) -> Token:
    """The token in what a provider gave: a text, or a tuple as confluent-kafka's ``oauth_cb`` gives it.

    Without an end, the token's own is read from it if it is a JWT; it is not verified here.

    Raises:
        SaslAuthenticationError: as ``ask``.
    """
    if inspect.isawaitable(given):
        if inspect.iscoroutine(given):
            given.close()
        raise _rubbish(name, "an awaitable: it is called by a thread without an event loop, so it must be a function")
    parts: list[Any] = list(given) if isinstance(given, (tuple, list)) else [given]
    if not 1 <= len(parts) <= 4 or not isinstance(parts[0], str):
        raise _rubbish(name, f"{type(given).__name__}; it must give {_SHAPES}")
    value: str
    value, end, principal, extensions = [*parts, None, None, None][:4]
    if len(value) > LONGEST or not _TOKEN.fullmatch(value):
        raise _rubbish(name, f"a text of {len(value)} characters that is no token (RFC 6750: letters, digits, -._~+/)")
    try:
        pairs = dict({} if extensions is None else extensions)
        check_extensions(pairs)
    except (ConfigError, TypeError, ValueError) as error:
        raise _rubbish(name, f"extensions that cannot be sent: {error}") from error
    token = Token(value, _end(end, value, name), None, None if principal is None else str(principal))
    if token.expires_ms is not None and token.expires_ms <= now:
        late = (now - token.expires_ms) / 1000
        raise _rubbish(name, f"a token that ended {late:.0f} s ago (its end is given in Unix seconds; check the clock)")
    return token._replace(extensions=pairs)


def _end(end: Any, value: str, name: str) -> float | None:
    if end is None:
        try:
            found = read_claims(value).get("exp")
        except SaslAuthenticationError:
            return None  # not a JWT, and it need not be one
        return found * 1000.0 if _is_time(found) else None
    if not _is_time(end):
        raise _rubbish(name, f"{type(end).__name__} as the token's end; it must be a number of Unix seconds")
    return float(end) * 1000.0


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12


def _rubbish(name: str, what: str) -> SaslAuthenticationError:
    return SaslAuthenticationError(f"no token: {name} gave {what}")


# -- JSON Web Tokens -------------------------------------------------------------------------------------------


def read_claims(value: str) -> dict[str, Any]:
    """The claims of a JWT; its signature is the broker's to check.

    Raises:
        SaslAuthenticationError: it is none; nothing of it is shown.
    """
    parts = value.split(".")
    if len(parts) != 3:
        raise _no_jwt(f"it has {len(parts)} part(s), not 3")
    if len(parts[1]) > MOST_CLAIMS:
        raise _no_jwt("its claims are too long")
    try:
        text = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        claims = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        raise _no_jwt("its second part is no JSON in base64") from None
    if not isinstance(claims, dict):
        raise _no_jwt("its claims are no JSON object")
    return claims


def checked_jwt(value: str, sub_claim: str, now: float) -> Token:
    """A token of an identity provider's, after the checks of Java's ``ClientJwtValidator``.

    Args:
        sub_claim: ``sasl.oauthbearer.sub.claim.name``.
        now: Unix ms.

    Raises:
        SaslAuthenticationError: it is no JWT, lacks its end or its subject, or has ended.
    """
    if len(value) > LONGEST or not _TOKEN.fullmatch(value):
        raise _no_jwt(f"{len(value)} characters that no broker takes as a token")
    claims = read_claims(value)
    end, subject, start = claims.get("exp"), claims.get(sub_claim), claims.get("iat")
    if end is None:
        raise _no_jwt("it has no claim exp")
    if not _is_time(end):
        raise _no_jwt("its claim exp is no time")
    if not isinstance(subject, str) or not subject.strip():
        raise _no_jwt(f"its claim {sub_claim} (sasl.oauthbearer.sub.claim.name) is not there")
    if start is not None and not _is_time(start):
        raise _no_jwt("its claim iat is no time")
    if end * 1000.0 <= now:
        raise _no_jwt(f"it ended {now / 1000 - end:.0f} s ago; check the clocks of this machine and of its issuer")
    return Token(value, end * 1000.0, None if start is None else start * 1000.0, subject)


def _no_jwt(what: str) -> SaslAuthenticationError:
    return SaslAuthenticationError(f"the token is not accepted: {what}")
