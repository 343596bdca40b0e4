"""Keeps the metadata fresh over the client's connections: which node to ask, when, and what to do after failures.

The client calls ``maybe_update`` in every turn.  Everything runs on the sender's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from forebay._network.connection_states import State
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.metadata import Metadata, MetadataQuery
from forebay._network.options import NetworkOptions
from forebay._protocol.metadata import MetadataResponse, decode_metadata, encode_metadata
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay._runtime.log import RateLimitedLogger
from forebay.errors import AuthenticationError, KafkaError, ProtocolError, error_for
from forebay.errors._base import reworded

if TYPE_CHECKING:
    from forebay._network.connection_states import ConnectionStates, NodeState
    from forebay.model import Node

_INFINITY = float("inf")
REBOOTSTRAP_REQUIRED = 129
STRANGERS = 3
"""So often another protocol is recognised before a send fails: once, a port may be in other hands for a moment."""
GETTING_ON = (State.READY, State.AUTHENTICATING)


class Connections(Protocol):
    """What the updater asks of the client."""

    def pick(self, now: float) -> tuple[Node | None, bool]:
        """The least loaded node, and whether any is connected or may be."""
        ...

    def can_send(self, node_id: int, now: float) -> bool: ...

    def transmit(self, request: ClientRequest, now: float) -> None: ...

    def connect(self, node: Node, now: float) -> None: ...

    def disconnect_learned(self, now: float) -> None:
        """Closes the connections to all nodes of the metadata."""
        ...

    def retry_delay(self, now: float) -> float:
        """Ms until some node may be tried or asked again."""
        ...

    def check_at(self, when: float) -> None:
        """Makes the client call ``maybe_rebootstrap`` at ``when``."""
        ...


class MetadataUpdater:
    """Sends metadata requests, one at a time, and starts over with the bootstrap servers if that is needed."""

    def __init__(
        self,
        connections: Connections,
        states: ConnectionStates,
        metadata: Metadata,
        options: NetworkOptions,
        log: RateLimitedLogger,
    ) -> None:
        self._connections = connections
        self._states = states
        self._metadata = metadata
        self._options = options
        self._log = log
        self.query: MetadataQuery | None = None
        """The request without an answer; the client reads this in every turn."""
        # The time of the first attempt since the last update; None if there was none.
        self._trying_since: float | None = None
        self._strangers = 0
        """How often another protocol was recognised on a port since the last update."""

    def is_due(self, now: float) -> bool:
        """Whether the next request has to be one for metadata."""
        return self.query is None and now >= self._metadata.due_at

    def maybe_update(self, now: float) -> float:
        """Sends a request if one is due and can be sent; ms until it is worth calling again."""
        if self.query is not None:
            return _INFINITY
        wait = self._metadata.due_at - now
        if wait > 0:
            return wait
        if self._trying_since is None:
            self._trying_since = now
            if self._options.rebootstrap:
                self._connections.check_at(now + self._options.rebootstrap_trigger_ms)
        node, reachable = self._connections.pick(now)
        if not reachable and self._options.rebootstrap and not self._metadata.is_bootstrap:
            self._log.info("rebootstrap", now, "No known broker can be reached, starting over with bootstrap.servers")
            self._rebootstrap(now)
            node, reachable = self._connections.pick(now)
        if node is None:
            return self._connections.retry_delay(now)
        return self._ask(node, now)

    def disconnected(self, state: NodeState, error: KafkaError, now: float) -> None:
        """A connection was lost, or not made: the metadata may be out of date."""
        if self.is_due(now):
            # It was probably the node to ask: wait before the next attempt.
            self._metadata.failed_update(now)
        if isinstance(error, AuthenticationError):
            self._metadata.fatal(error)
        if isinstance(error, ProtocolError) and error.stranger:
            self._strangers += 1
            if self._strangers >= STRANGERS and self._nobody_is_kafka():
                self._metadata.fatal(
                    reworded(error, f"No address of bootstrap.servers answers as a Kafka: {error.message}")
                )
        self._metadata.note_failure(error)
        self._metadata.request_update(reset_equivalent=False)

    def _nobody_is_kafka(self) -> bool:
        """Whether no broker was ever learned, and each bootstrap server has failed and is not getting on now."""
        if not self._metadata.is_bootstrap:
            return False
        states = [self._states.nodes.get(server.id) for server in self._metadata.servers]
        return all(
            state is not None and state.last_error is not None and state.state not in GETTING_ON for state in states
        )

    def maybe_rebootstrap(self, now: float) -> None:
        """Starts over if no update came for metadata.recovery.rebootstrap.trigger.ms (KIP-1102)."""
        if self._trying_since is None or not self._options.rebootstrap:
            return
        due = self._trying_since + self._options.rebootstrap_trigger_ms
        if now <= due:
            self._connections.check_at(due)
            return
        self._log.warning(
            "rebootstrap-trigger",
            now,
            "No metadata for %d ms, starting over with bootstrap.servers",
            now - self._trying_since,
        )
        self._start_over(now)

    def _start_over(self, now: float) -> None:
        self._connections.disconnect_learned(now)
        self._rebootstrap(now)

    def _rebootstrap(self, now: float) -> None:
        self._metadata.rebootstrap()
        self._trying_since = now
        self._connections.check_at(now + self._options.rebootstrap_trigger_ms)

    def _ask(self, node: Node, now: float) -> float:
        connections = self._connections
        if connections.can_send(node.id, now):
            self.query = self._metadata.next_query(now)
            connections.transmit(self._request(node, self.query), now)
            # It may have failed at once: a broker that knows no version of ours.
            return _INFINITY if self.query is not None else self._metadata.time_to_next_update(now)
        patience = self._states.patience_left(now)
        if patience > 0:
            # One attempt at a time.
            return patience
        if self._states.can_connect(node.id, now):
            connections.connect(node, now)
            # If it failed at once no patience is left, and the failure has delayed the next update.
            return max(self._states.patience_left(now), self._metadata.time_to_next_update(now))
        return connections.retry_delay(now)

    def _request(self, node: Node, query: MetadataQuery) -> ClientRequest:
        oldest, newest = SUPPORTED[ApiKey.METADATA]
        return ClientRequest(
            node.id,
            ApiKey.METADATA,
            # v0 cannot ask for no topics.
            max(oldest, 1),
            newest,
            lambda version: list(encode_metadata(version, query.topics)),
            decode_metadata,
            timeout_ms=self._options.request_timeout_ms,
            on_complete=self._answered,
            internal=True,
            context=query,
        )

    def _answered(self, response: ClientResponse) -> None:
        query = cast("MetadataQuery", response.request.context)
        now = response.received
        self.query = None
        if response.error is not None:
            # A lost connection is temporary; a broker that cannot answer the request is not.
            self._metadata.failed_update(now, None if response.disconnected else response.error)
            return
        answer = cast("MetadataResponse", response.body)
        if answer.error_code == REBOOTSTRAP_REQUIRED and self._options.rebootstrap:
            self._log.warning("rebootstrap-required", now, "The broker asks to start over with bootstrap.servers")
            # A broker that repeats this is asked no more often than a broker that does not answer.
            self._metadata.failed_update(now)
            self._start_over(now)
            return
        error = error_for(answer.error_code)
        if error is not None or not answer.brokers:
            what = "an error: " + error.name if error is not None else "no brokers"
            self._log.warning("metadata-useless", now, "Metadata from node %d has %s", response.request.node_id, what)
            self._metadata.failed_update(now)
            return
        self._trying_since = None
        self._strangers = 0
        self._metadata.update(query, answer, response.request.version, now)
