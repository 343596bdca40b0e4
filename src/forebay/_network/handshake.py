"""The handshake of a connection: the requests between "connected" and "ready".

A handshake is a generator without I/O: it yields requests, gets their responses and returns the broker's versions.
``Handshakes`` drives the generators of all connections.  Authentication will be another generator that runs first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import cast

from forebay._network.broker_versions import ApiVersions, BrokerVersions
from forebay._network.connection_states import ConnectionStates, NodeState
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.options import NetworkOptions
from forebay._protocol.api_versions import (
    ApiVersionsResponse,
    decode_api_versions,
    encode_api_versions,
    fallback_version,
)
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.errors import KafkaError, error_for

Handshake = Generator[ClientRequest, ClientResponse, BrokerVersions]


class Handshakes:
    """Drives the handshake of each new connection; sender thread only.

    Args:
        states: gets the progress.
        versions: gets the versions of each broker that is ready.
        transmit: sends a request of a handshake.
        lose: closes the connection of a handshake that failed.
        check_at: makes the client look for idle connections at a time.
    """

    def __init__(
        self,
        states: ConnectionStates,
        versions: ApiVersions,
        options: NetworkOptions,
        *,
        transmit: Callable[[ClientRequest, float], None],
        lose: Callable[[NodeState, KafkaError, float], None],
        check_at: Callable[[float], None],
    ) -> None:
        self._states = states
        self._versions = versions
        self._options = options
        self._transmit = transmit
        self._lose = lose
        self._check_at = check_at

    def begin(self, state: NodeState, now: float) -> None:
        """Sends the first request on a connection that has just opened."""
        self._states.checking(state)
        step: Callable[[ClientResponse], None] = partial(self._step, state, state.channel)
        options = self._options
        state.setup = check_versions(state.node.id, options.software_version, options.request_timeout_ms, step)
        self._transmit(next(state.setup), now)

    def _step(self, state: NodeState, channel: object, response: ClientResponse) -> None:
        """Sends the next request, or ends the handshake."""
        if response.disconnected or state.channel is not channel:
            return
        try:
            if response.error is not None:
                raise response.error
            self._transmit(state.setup.send(response), response.received)
        except StopIteration as end:
            self._finish(state, end.value, response.received)
        except KafkaError as error:
            self._lose(state, error, response.received)

    def _finish(self, state: NodeState, versions: BrokerVersions, now: float) -> None:
        state.setup = None
        state.connection.versions = versions
        self._versions.update(state.node.id, versions)
        self._states.ready(state)
        if self._options.connections_max_idle_ms >= 0:
            self._check_at(now + self._options.connections_max_idle_ms)


def check_versions(
    node_id: int, software_version: str, timeout_ms: float, on_complete: Callable[[ClientResponse], None]
) -> Handshake:
    """Asks for the versions that the broker knows, with our newest ApiVersions first, then an older one (KIP-511).

    Args:
        on_complete: of each request; it sends the response into the generator.

    Raises:
        KafkaError: the broker's error, unless another version of the request may succeed.
    """
    version = SUPPORTED[ApiKey.API_VERSIONS][1]
    while True:
        response = yield ClientRequest(
            node_id,
            ApiKey.API_VERSIONS,
            version,
            version,
            lambda chosen: list(encode_api_versions(chosen, "forebay", software_version)),
            decode_api_versions,
            timeout_ms=timeout_ms,
            on_complete=on_complete,
            internal=True,
        )
        answer = cast("ApiVersionsResponse", response.body)
        error = error_for(answer.error_code)
        if error is None:
            return BrokerVersions(answer)
        lower = fallback_version(answer, version)
        if lower is None:
            raise error.with_context(api="ApiVersions", version=version)
        version = lower
