"""Tokens from an identity provider (KIP-768, KIP-1139): requests and answers without I/O, then the I/O in ``post``.

A helper thread runs all of this.  An endpoint is asked again as Java's ``HttpJwtRetriever`` does it.  Ours besides: no
redirect is followed, because it would carry the secret elsewhere; an answer has a limit in bytes and in time; and no
answer is logged.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote, urlsplit

from forebay._network.resolver import NOT_FOUND, addresses_within
from forebay._runtime.files import NoTextError, read_small, text_of
from forebay.errors import AuthenticationError, ConfigError, KafkaError, NetworkError, SaslAuthenticationError
from forebay.errors._base import bare, printable
from forebay.model._wire import shown_url

MAX_ANSWER = 1024 * 1024
SHOWN = 200
"""Characters of an error's body that are shown."""
FINAL = frozenset({*range(400, 408), *range(409, 416), 501, 505})
"""HTTP codes after which Java does not ask again."""
CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_HEADERS = {
    "Accept": "application/json",
    "Cache-Control": "no-cache",
    "Content-Type": "application/x-www-form-urlencoded",
}


class TokenRequest(NamedTuple):
    """What is posted.  It does not show itself."""

    headers: Mapping[str, str]
    body: bytes
    secrets: tuple[str, ...]
    """What must not be shown, should the endpoint repeat it."""
    given_by: str = ""
    """The options that the credentials come from, for messages."""

    def __repr__(self) -> str:
        return "<TokenRequest>"


class Endpoint(NamedTuple):
    """Where tokens come from, and how often and how long it is asked."""

    url: str
    context: Callable[[], tuple[Any, str]] | None = None
    """Makes the ``ssl.SSLContext`` of an https URL, and says what it judges certificates by."""
    connect_ms: float = 10_000
    read_ms: float = 10_000
    """``sasl.login.connect.timeout.ms`` and ``.read.timeout.ms``; Java's default is for ever."""
    backoff_ms: float = 100
    backoff_max_ms: float = 10_000
    """``sasl.login.retry.backoff.max.ms``: all tries together."""


# -- requests --------------------------------------------------------------------------------------------------


def with_secret(client_id: str, secret: str, scope: str | None, encode: bool) -> TokenRequest:
    """client_credentials with the client's secret.

    Args:
        encode: ``sasl.oauthbearer.header.urlencode``: as RFC 6749 asks for it, which not all providers read.
    """
    client_id, secret = client_id.strip(), secret.strip()
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}" if encode else f"{client_id}:{secret}"
    basic = base64.b64encode(pair.encode()).decode()
    body = f"grant_type=client_credentials{_scope(scope)}".encode()
    return TokenRequest({**_HEADERS, "Authorization": f"Basic {basic}"}, body, (secret, quote_plus(secret), basic))


def with_assertion(assertion: str, client_id: str | None, scope: str | None) -> TokenRequest:
    """client_credentials with a signed assertion of the client's (RFC 7523, 2.2)."""
    client = f"&client_id={quote_plus(client_id.strip())}" if client_id and client_id.strip() else ""
    body = (
        f"client_assertion_type={quote_plus(CLIENT_ASSERTION)}&client_assertion={quote_plus(assertion)}"
        f"&grant_type=client_credentials{client}{_scope(scope)}"
    )
    return TokenRequest(_HEADERS, body.encode(), (assertion,))


def jwt_bearer(assertion: str, scope: str | None) -> TokenRequest:
    """The grant jwt-bearer (RFC 7523, 2.1)."""
    body = f"grant_type={quote_plus(JWT_BEARER)}&assertion={quote_plus(assertion)}{_scope(scope)}"
    return TokenRequest(_HEADERS, body.encode(), (assertion,))


def _scope(scope: str | None) -> str:
    return f"&scope={quote_plus(scope.strip())}" if scope and scope.strip() else ""


# -- answers ---------------------------------------------------------------------------------------------------


def read_answer(status: int, body: bytes, request: TokenRequest, url: str) -> str:
    """The token in an endpoint's answer.

    Raises:
        SaslAuthenticationError: it will give no token to this request.
        NetworkError: it may give one to the next.
    """
    where = f"no token from {shown_url(url)}"
    if 300 <= status < 400:
        text = f"{where}: HTTP {status} leads elsewhere, which is not followed: it would carry the secret there"
        raise SaslAuthenticationError(text)
    if status not in (200, 201):
        text = f"{where}: HTTP {status} {shown(body, request.secrets)}".rstrip()
        if status in (400, 401, 403) and request.given_by:
            text += f"; the credentials are those of {request.given_by}"
        raise SaslAuthenticationError(text) if status in FINAL else NetworkError(text)
    if len(body) > MAX_ANSWER:
        raise SaslAuthenticationError(f"{where}: an answer of more than {MAX_ANSWER} bytes")
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise SaslAuthenticationError(f"{where}: its answer of {len(body)} bytes is no JSON") from None
    for name in ("access_token", "id_token"):
        value = answer.get(name) if isinstance(answer, dict) else None
        if isinstance(value, str) and value.strip():
            return value.strip()
    raise SaslAuthenticationError(f"{where}: its answer has neither access_token nor id_token")


def shown(body: bytes, secrets: tuple[str, ...]) -> str:
    """The beginning of an error's body, for a message: printable, one line, without the request's secrets."""
    text = body.decode("utf-8", "replace")  # all of it: the beginning of a secret that is cut would not be hidden
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[hidden]")
    return printable(" ".join(text.split()), SHOWN)


def check_url(url: str) -> str:
    """The scheme of ``sasl.oauthbearer.token.endpoint.url``.

    Raises:
        ConfigError: it is no http, https or file URL.
    """
    name = "sasl.oauthbearer.token.endpoint.url"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(f"{name}: {shown_url(url)} is no URL") from None  # the cause may show a password
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{name}: no user or password in it; see sasl.oauthbearer.client.credentials.client.id")
    if parts.scheme == "file" and parts.path and parts.netloc in ("", "localhost"):
        return "file"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError(
            f"{name}: {shown_url(url)} must be an http, https or file URL, such as https://login.example/token"
        )
    return parts.scheme


def is_loopback(url: str) -> bool:
    """Whether a URL stays on this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def read_token_file(url: str) -> str:
    """The token in the file of a ``file:`` URL, read anew each time.

    Raises:
        NetworkError: there is none that can be read now.
    """
    return read_text(unquote(urlsplit(url).path), "sasl.oauthbearer.token.endpoint.url")


def read_text(path: str, option: str) -> str:
    """The text of a small file, without white space around it.

    Raises:
        NetworkError: it cannot be read now; names option and path.
    """
    where = f"{option}={path}"
    try:
        text = text_of(read_small(path, MAX_ANSWER)).strip()
    except OSError as error:
        raise NetworkError(f"{where}: {error.strerror or error}") from error
    except NoTextError as error:
        raise NetworkError(f"{where}: {error}") from None
    if not text:
        raise NetworkError(f"{where}: is empty")
    return text


# -- asking ----------------------------------------------------------------------------------------------------

Post = Callable[[Endpoint, TokenRequest, Callable[[], float]], tuple[int, bytes]]


def fetch(
    endpoint: Endpoint,
    request: TokenRequest,
    now: Callable[[], float],
    pause: Callable[[float], object],
    post: Post | None = None,
) -> str:
    """Asks an endpoint for a token, again after a failure that may pass; blocks.

    Args:
        now: monotonic ms.
        pause: waits for so many ms.

    Raises:
        SaslAuthenticationError: it refuses.
        NetworkError: no answer within ``backoff_max_ms`` and the time of the last try.
    """
    end = now() + endpoint.backoff_max_ms
    wait = endpoint.backoff_ms
    while True:
        body = b""
        try:
            status, body = (post or post_form)(endpoint, request, now)
            return read_answer(status, body, request, endpoint.url)
        except (AuthenticationError, NetworkError) as error:
            left = end - now()
            if isinstance(error, AuthenticationError) or left <= 0 or wait <= 0:
                # The answer may hold a token.  So it is in no variable that a traceback refers to.
                body = b""
                raise bare(error)  # noqa: B904 -- the same error
            pause(min(wait, left))
            wait *= 2


def post_form(endpoint: Endpoint, request: TokenRequest, now: Callable[[], float]) -> tuple[int, bytes]:
    """One POST: status and body, of which at most a byte more than ``MAX_ANSWER`` is read.

    Raises:
        SaslAuthenticationError: the endpoint's certificate is not accepted.
        NetworkError: no connection, or no answer in time.
    """
    import http.client  # slow to import; only here

    parts = urlsplit(endpoint.url)
    host, seconds, store = parts.hostname or "", endpoint.connect_ms / 1000, ""
    connection: Any
    sock: Any = None
    if parts.scheme == "https":
        context, store = endpoint.context() if endpoint.context is not None else (None, "")
        connection = http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=seconds)
    try:
        # The name is looked up apart: getaddrinfo has no limit of its own.
        connection._create_connection = partial(_dial, connection._create_connection, now, now() + endpoint.connect_ms)
        connection.connect()
        sock = connection.sock
        connection.sock = _Timed(sock, now, now() + endpoint.read_ms)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, request.body, dict(request.headers))
        response = connection.getresponse()
        return response.status, response.read(MAX_ANSWER + 1)
    except (OSError, http.client.HTTPException) as error:
        raise _failure(endpoint, host, store, error) from error
    finally:
        connection.close()
        if sock is not None:
            sock.close()


def _dial(dial: Callable[..., Any], now: Callable[[], float], until: float, address: Any, *_: Any) -> Any:
    """A connection to the first address of a host that answers, all within a time."""
    host, port = address
    refused: OSError = TimeoutError(NO_ADDRESS)
    for found in addresses_within(host, port, until - now()):
        left = until - now()
        if left <= 0:
            break
        try:
            return dial((found.sockaddr[0], port), left / 1000)
        except OSError as error:
            refused = error
    raise refused


NO_ADDRESS = "no connection within sasl.login.connect.timeout.ms"


def _failure(endpoint: Endpoint, host: str, store: str, error: Exception) -> KafkaError:
    where = f"no token from {shown_url(endpoint.url)}"
    if endpoint.context is not None:
        from forebay._network.tls_words import of_ssl

        found = of_ssl(error, host, store)
        if found is not None:
            kind = SaslAuthenticationError if isinstance(found, AuthenticationError) else NetworkError
            return kind(f"{where}: {found.message}; {OF_ENDPOINT}")
    return NetworkError(f"{where}: {trouble(error, host)}")


def trouble(error: Exception, host: str) -> str:
    """Why an HTTP request failed, in a sentence of ours, and what the library says."""
    said = printable(str(error), SHOWN)
    if isinstance(error, ConnectionRefusedError):
        return f"{host} refuses the connection"
    if isinstance(error, TimeoutError):
        return said if said in (LATE, NO_ADDRESS, NOT_FOUND) else f"{host} does not answer in time"
    if type(error).__name__ == "gaierror":
        return f"the name {host} has no address ({said})"
    if not isinstance(error, OSError):
        return f"{host} does not answer in HTTP ({type(error).__name__}: {said})"
    return f"the connection to {host} failed ({type(error).__name__}: {said})"


OF_ENDPOINT = "the ssl options of an identity provider stand in sasl.jaas.config"
LATE = "no whole answer within sasl.login.read.timeout.ms"


class _Timed:
    """A socket whose answer must be whole by a time: a limit for each read would let a slow sender go on for hours."""

    def __init__(self, sock: Any, now: Callable[[], float], until: float) -> None:
        self._sock = sock
        self._now = now
        self._until = until

    def _hurry(self) -> None:
        left = (self._until - self._now()) / 1000
        if left <= 0:
            raise TimeoutError(LATE)
        self._sock.settimeout(left)

    def sendall(self, data: Any) -> None:
        self._hurry()
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Answer(self))

    def recv_into(self, buffer: Any) -> int:
        self._hurry()
        try:
            return int(self._sock.recv_into(buffer))
        except TimeoutError:
            raise TimeoutError(LATE) from None

    def close(self) -> None:
        """Does nothing: http.client closes before the body is read, if the server does not keep the connection."""


class _Answer(io.RawIOBase):
    def __init__(self, timed: _Timed) -> None:
        self._timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._timed.recv_into(buffer)
