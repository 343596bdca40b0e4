"""Keeps the metadata fresh over the client's own connections: whom to ask, when, and what to do with failures.

The client calls ``maybe_update`` in every turn; everything runs on the sender thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.metadata import Metadata, MetadataQuery
from forebay._network.options import NetworkOptions
from forebay._protocol.metadata import MetadataResponse, decode_metadata, encode_metadata
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay._runtime.log import RateLimitedLogger
from forebay.errors import AuthenticationError, KafkaError, error_for

if TYPE_CHECKING:
    from forebay._network.connection_states import NodeState
    from forebay.model import Node

_INFINITY = float("inf")
REBOOTSTRAP_REQUIRED = 129


class Connections(Protocol):
    """What the updater asks of the client."""

    def pick(self, now: float) -> tuple[Node | None, bool]:
        """The least loaded node, and whether any is connected or may be."""
        ...

    def can_send(self, node_id: int, now: float) -> bool: ...

    def transmit(self, request: ClientRequest, now: float) -> None: ...

    def patience_left(self, now: float) -> float:
        """Ms for which no other connection should be begun, because one is being made."""
        ...

    def can_connect(self, node: Node, now: float) -> bool: ...

    def connect(self, node: Node, now: float) -> None: ...

    def disconnect_learned(self, now: float) -> None:
        """Closes the connections to all nodes of the metadata."""
        ...

    def retry_delay(self, now: float) -> float:
        """Ms until some node may be tried or asked again."""
        ...

    def check_at(self, when: float) -> None:
        """Sees to it that ``maybe_rebootstrap`` is called at ``when``."""
        ...


class MetadataUpdater:
    """One update at a time."""

    def __init__(
        self, connections: Connections, metadata: Metadata, options: NetworkOptions, log: RateLimitedLogger
    ) -> None:
        self._connections = connections
        self._metadata = metadata
        self._options = options
        self._log = log
        self.query: MetadataQuery | None = None
        """The one that is being answered; the client looks at it in every turn."""
        # When the attempts began that have not brought an update yet.
        self._trying_since: float | None = None

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
        """A connection was lost, or not made: what is known may be out of date."""
        if self.is_due(now):
            # It was probably to be asked: wait before the next attempt.
            self._metadata.failed_update(now)
        if isinstance(error, AuthenticationError):
            self._metadata.fatal(error)
        self._metadata.note_failure(error)
        self._metadata.request_update(reset_equivalent=False)

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
        patience = connections.patience_left(now)
        if patience > 0:
            # One attempt at a time: another may be answered while this one is being made.
            return patience
        if connections.can_connect(node, now):
            connections.connect(node, now)
            # No patience is left if it failed at once; then the failure has put the next update off.
            return max(connections.patience_left(now), self._metadata.time_to_next_update(now))
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
            # A connection that was lost passes; a broker that cannot answer at all does not.
            self._metadata.failed_update(now, None if response.disconnected else response.error)
            return
        answer = cast("MetadataResponse", response.body)
        if answer.error_code == REBOOTSTRAP_REQUIRED and self._options.rebootstrap:
            self._log.warning("rebootstrap-required", now, "The broker asks to start over with bootstrap.servers")
            # A broker that says so each time is asked no more often than one that does not answer.
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
        self._metadata.update(query, answer, response.request.version, now)
