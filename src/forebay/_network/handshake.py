"""The handshake of a connection: the requests between "connected" and "ready".

A handshake is a generator without I/O: it yields requests and gets their responses.  It asks for the broker's versions,
then it authenticates (SASL).  That order saves a round trip, and brokers allow it.  The requests go one after the
other, because over TLS a broker delays requests that came together.  It may also yield ``Blocking``: a helper thread
does that work, and its wake-up lets the handshake go on.  ``Handshakes`` drives the generators of all connections.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple, cast

from forebay._network.broker_versions import ApiVersions, BrokerVersions
from forebay._network.connection_states import ConnectionStates, NodeState, State
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.options import NetworkOptions
from forebay._network.sasl.mechanism import MAX_TOKEN, NEVER, Blocking, Exchange, Mechanism
from forebay._protocol.api_versions import (
    ApiVersionsResponse,
    decode_api_versions,
    encode_api_versions,
    fallback_version,
)
from forebay._protocol.sasl import (
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
    decode_sasl_authenticate,
    decode_sasl_handshake,
    encode_sasl_authenticate,
    encode_sasl_handshake,
)
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.errors import KafkaError, NetworkError, SaslAuthenticationError, error_for
from forebay.errors._base import bare, printable
from forebay.model import Node

FRAME_LIMIT = 512 * 1024
"""Bytes of an answer before the broker is known to be one."""
EARLIEST, LATEST = 0.85, 0.95
"""A session is authenticated again at a random share of its life between these, so not all connections at once."""

AT_ONCE = 0.0
LOOK_MS = 1_000.0
"""Ms between looks at the files of keys and passwords, while a broker refuses the login."""
RETRY_MS = 10_000.0
"""Ms until the next attempt to authenticate again, if the credentials could not be had (as in Java)."""

log = logging.getLogger("forebay.network")

Steps = Generator[ClientRequest | Blocking, Any, Any]


class Ready(NamedTuple):
    """The result of a handshake: the versions, or None if the connection was authenticated again."""

    versions: BrokerVersions | None
    session_lifetime_ms: int = 0


class _Wait(NamedTuple):
    """For work of the helper thread."""

    work: Blocking
    until: float
    """Monotonic ms; after it nobody waits any longer."""
    go_on: Callable[[float], None]


class Handshakes:
    """Drives the handshake of each new connection, and later authentications; sender's thread only.

    Args:
        states: gets the progress.
        versions: gets the versions of each broker that is ready.
        random: in [0, 1), for the time of the next authentication.
        transmit: sends a request of a handshake.
        lose: closes the connection of a handshake that failed.
        check_at: makes the client look for what is due at a time.
    """

    def __init__(
        self,
        states: ConnectionStates,
        versions: ApiVersions,
        options: NetworkOptions,
        random: Callable[[], float],
        *,
        transmit: Callable[[ClientRequest, float], None],
        lose: Callable[[NodeState, KafkaError, float], None],
        check_at: Callable[[float], None],
    ) -> None:
        self._states = states
        self._versions = versions
        self._options = options
        self._random = random
        self._transmit = transmit
        self._lose = lose
        self._check_at = check_at
        self.waiting: list[_Wait] = []
        """For work of the helper thread; ``poll`` is to be called while there is any."""
        self._renewing: Blocking | None = None
        self._seen: object = None
        """The last value of ``options.files`` while a broker refuses the login."""

    def begin(self, state: NodeState, now: float) -> None:
        """Sends the first request on a connection that has just opened."""
        self._states.checking(state)
        state.connection.max_frame = min(FRAME_LIMIT, self._options.max_frame)
        self._start(state, self._set_up(state), now)

    def authenticate_again(self, state: NodeState, now: float) -> None:
        """Begins another authentication on a connection that is ready (KIP-368).

        Requests are sent as before until the first token is there.
        """
        state.reauthenticate_at = NEVER
        mechanism = cast("Mechanism", self._options.sasl)
        steps = authenticate(state.node, mechanism, state.connection.versions, self._asks(state))
        self._start(state, _again(steps), now)

    def poll(self, now: float) -> None:
        """Goes on with what waited for work that is done, or that has taken too long."""
        waits, self.waiting = self.waiting, []
        for wait in waits:
            if wait.work.done or now > wait.until:
                wait.go_on(now)
            else:
                self.waiting.append(wait)

    def check(self, now: float) -> None:
        """Looks for what is due beside the connections, and names the next time."""
        self._look_at_files(now)
        for wait in self.waiting:
            self._check_at(wait.until)
        self.renew(now)

    def renew(self, now: float) -> None:
        """Renews credentials before they end, also while no connection logs in."""
        if self._options.sasl is None:
            return
        work, again_at = self._options.sasl.renewal(now)
        if work is not None and work is not self._renewing:
            self._renewing = work
            self._wait(_Wait(work, NEVER, self.renew))
        self._check_at(again_at)

    def _look_at_files(self, now: float) -> None:
        """While a broker refuses the login, tries it at once when a file of keys or passwords has changed."""
        if self._options.files is None:
            return
        if not any(state.state is State.AUTHENTICATION_FAILED for state in self._states.nodes.values()):
            self._seen = None
            return
        seen = self._options.files()
        if self._seen is not None and self._seen != seen:
            self._states.credentials = object()
            self._check_at(AT_ONCE)
        self._seen = seen
        self._check_at(now + LOOK_MS)

    def _start(self, state: NodeState, steps: Steps, now: float) -> None:
        state.setup = steps
        self._advance(state, partial(next, steps), now)

    def _set_up(self, state: NodeState) -> Steps:
        ask = self._asks(state)
        versions = yield from check_versions(self._options.software_version, ask)
        if self._options.sasl is None:
            return Ready(versions)
        self._states.authenticating(state)
        lifetime = yield from authenticate(state.node, self._options.sasl, versions, ask)
        return Ready(versions, lifetime)

    def _asks(self, state: NodeState) -> Callable[..., ClientRequest]:
        return partial(
            ClientRequest,
            state.node.id,
            timeout_ms=self._options.request_timeout_ms,
            on_complete=partial(self._step, state, state.channel),
            internal=True,
        )

    def _step(self, state: NodeState, channel: object, response: ClientResponse) -> None:
        """Goes on after an answer."""
        if response.disconnected or state.channel is not channel:
            return
        if response.error is not None:
            self._give_up(state, response.error, response.received)
        else:
            self._advance(state, partial(state.setup.send, response), response.received)

    def _advance(self, state: NodeState, step: Callable[[], ClientRequest | Blocking], now: float) -> None:
        """Sends the next request, or waits for the helper thread, or ends the handshake."""
        try:
            wanted = step()
            if isinstance(wanted, Blocking):
                until = now + self._options.request_timeout_ms
                self._wait(_Wait(wanted, until, partial(self._resume, state, state.channel, wanted)))
                return
            if state.state is State.READY:
                self._states.authenticating(state)
            self._transmit(wanted, now)
        except StopIteration as end:
            self._finish(state, end.value, now)
        except KafkaError as error:
            self._give_up(state, bare(error), now)  # its frames have the tokens
        except Exception as error:
            # Else the connection would wait for ever.  Not the error itself: its repr may hold a secret.
            log.exception("%s: the handshake failed", state.node)
            self._give_up(state, NetworkError(f"{state.node}: the handshake failed: {type(error).__name__}"), now)

    def _wait(self, wait: _Wait) -> None:
        if not wait.work.begun:
            self._options.helper.begin(wait.work)
        self.waiting.append(wait)
        self._check_at(AT_ONCE if wait.work.done else wait.until)

    def _resume(self, state: NodeState, channel: object, work: Blocking, now: float) -> None:
        """Goes on after work of the helper thread."""
        if state.channel is not channel:
            return
        error = work.error
        if not work.done:
            error = NetworkError(f"{work.what} has not come within request.timeout.ms")
        if error is None:
            self._advance(state, partial(state.setup.send, work.result), now)
            return
        if not isinstance(error, KafkaError):
            error = NetworkError(f"{work.what} failed: {type(error).__name__}: {error}")
        self._advance(state, partial(state.setup.throw, error), now)

    def _give_up(self, state: NodeState, error: KafkaError, now: float) -> None:
        if state.state is not State.READY:
            self._lose(state, error, now)
            return
        # The session goes on until the broker ends it, and the credentials may be there before that.
        state.setup = None
        state.reauthenticate_at = now + RETRY_MS
        self._check_at(state.reauthenticate_at)
        log.warning("%s: not authenticated again yet: %s", state.node, error)

    def _finish(self, state: NodeState, ready: Ready, now: float) -> None:
        state.setup = None
        state.connection.max_frame = self._options.max_frame
        if ready.versions is not None:
            state.connection.versions = ready.versions
            self._versions.update(state.node.id, ready.versions)
        self._states.ready(state)
        if ready.session_lifetime_ms > 0:
            share = EARLIEST + (LATEST - EARLIEST) * self._random()
            state.reauthenticate_at = now + share * ready.session_lifetime_ms
            self._check_at(state.reauthenticate_at)
        if self._options.connections_max_idle_ms >= 0:
            self._check_at(now + self._options.connections_max_idle_ms)


def _again(steps: Generator[ClientRequest | Blocking, Any, int]) -> Steps:
    lifetime = yield from steps
    return Ready(None, lifetime)


def check_versions(
    software_version: str, ask: Callable[..., ClientRequest]
) -> Generator[ClientRequest, ClientResponse, BrokerVersions]:
    """Asks for the versions that the broker knows, with our newest ApiVersions first, then an older one (KIP-511).

    Args:
        ask: makes a request of its key, its versions, and what encodes and decodes it.

    Raises:
        KafkaError: the broker's error, unless another version of the request may succeed.
    """
    version = SUPPORTED[ApiKey.API_VERSIONS][1]
    while True:
        response = yield ask(
            ApiKey.API_VERSIONS,
            version,
            version,
            lambda chosen: list(encode_api_versions(chosen, "forebay", software_version)),
            decode_api_versions,
        )
        answer = cast("ApiVersionsResponse", response.body)
        error = error_for(answer.error_code)
        if error is None:
            return BrokerVersions(answer)
        lower = fallback_version(answer, version)
        if lower is None:
            raise error.with_context(api="ApiVersions", version=version)
        version = lower


def authenticate(
    node: Node, mechanism: Mechanism, versions: BrokerVersions, ask: Callable[..., ClientRequest]
) -> Generator[ClientRequest | Blocking, Any, int]:
    """Names the mechanism and exchanges its tokens (KIP-152); the session's life in ms, 0 for no end (KIP-368).

    The first token is made before the broker is asked, so that a session may go on while it has to be fetched.

    Raises:
        AuthenticationError: the broker takes no such mechanism, or not these credentials; or its answers are not the
            mechanism's.
        UnsupportedVersionError: a broker before 1.0, which exchanges bare tokens.
    """
    name = mechanism.name
    exchange = mechanism.exchange(node.host)
    token = yield from _token(node, mechanism, exchange, None)
    chosen = versions.choose(ApiKey.SASL_HANDSHAKE, *SUPPORTED[ApiKey.SASL_HANDSHAKE])
    response = yield ask(
        ApiKey.SASL_HANDSHAKE, chosen, chosen, lambda v: encode_sasl_handshake(v, name), decode_sasl_handshake
    )
    _check_offer(node, mechanism, cast("SaslHandshakeResponse", response.body))
    chosen = versions.choose(ApiKey.SASL_AUTHENTICATE, *SUPPORTED[ApiKey.SASL_AUTHENTICATE])
    while True:
        response = yield ask(
            ApiKey.SASL_AUTHENTICATE,
            chosen,
            chosen,
            lambda v, token=token: encode_sasl_authenticate(v, token),
            decode_sasl_authenticate,
        )
        answer = cast("SaslAuthenticateResponse", response.body)
        _check_answer(node, mechanism, answer)
        token = yield from _token(node, mechanism, exchange, answer.token)
        if token is None:
            return max(0, answer.session_lifetime_ms)


def _token(
    node: Node, mechanism: Mechanism, exchange: Exchange, received: bytes | None
) -> Generator[Blocking, Any, bytes | None]:
    """The client's next token, after the work that it needs; None: the client needs no further token."""
    try:
        wanted = exchange.send(received)
        while isinstance(wanted, Blocking):
            try:
                result = yield wanted
            except KafkaError as error:
                wanted = exchange.throw(error)
            else:
                wanted = exchange.send(result)
        return wanted
    except StopIteration:
        return None
    except SaslAuthenticationError as error:
        raise SaslAuthenticationError(f"{node}: {error.message} ({mechanism.who})") from error


def _check_offer(node: Node, mechanism: Mechanism, offer: SaslHandshakeResponse) -> None:
    error = error_for(offer.error_code)
    if error is None:
        return
    takes = ", ".join(printable(name, 40) for name in offer.mechanisms[:10]) or "none"
    if offer.error_code == ILLEGAL_SASL_STATE:
        text = f"{node} takes no SASL on this listener: set security.protocol to PLAINTEXT or SSL, or another port"
    else:
        text = f"{node} does not take sasl.mechanism={mechanism.name}; it takes {takes}"
    raise type(error)(text) from error


def _check_answer(node: Node, mechanism: Mechanism, answer: SaslAuthenticateResponse) -> None:
    error = error_for(answer.error_code)
    if error is not None:
        said = f": {printable(answer.error_message)}" if answer.error_message else ""
        raise type(error)(f"{node} refused the login by {mechanism.name} as {mechanism.who}{said}") from error
    if len(answer.token) > MAX_TOKEN:
        raise SaslAuthenticationError(f"{node}: a token of {len(answer.token)} bytes, allowed are {MAX_TOKEN}")


ILLEGAL_SASL_STATE = 34
"""Kafka's error code of a SASL request on a listener without SASL."""
