"""From a node to a channel: looks its name up without blocking, then tries the addresses one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forebay._network.connection import Connection
from forebay._network.connection_states import NodeState, State
from forebay._network.options import NetworkOptions
from forebay.errors import KafkaError, NetworkError

if TYPE_CHECKING:
    from forebay._network.metadata import Metadata
    from forebay._network.resolver import Resolution
    from forebay.model import Node


class Connector:
    """Begins connections; sender thread only.

    Args:
        metadata: told of the canonical names of bootstrap servers, if those are wanted.
        failed: called when a name cannot be looked up.
    """

    def __init__(
        self,
        selector: Any,
        resolver: Any,
        metadata: Metadata,
        options: NetworkOptions,
        failed: Callable[[NodeState, KafkaError, float], None],
    ) -> None:
        self._selector = selector
        self._resolver = resolver
        self._metadata = metadata
        self._options = options
        self._failed = failed
        self.waiting: list[NodeState] = []
        """Nodes whose names are being looked up."""
        self._canonical: set[tuple[str, int]] = set()

    def begin(self, state: NodeState, now: float) -> None:
        """An attempt at ``state``, which is CONNECTING: opens the channel now, or once its address is known."""
        if not state.addresses.exhausted:
            self._open(state, now)
            return
        if state.resolution is None:
            state.resolution = self._look_up(state.node)
        if not self._take(state, now) and state not in self.waiting:
            self.waiting.append(state)

    def poll(self, now: float) -> None:
        """Goes on with those whose addresses have become known, and drops those that were given up."""
        self.waiting = [
            state for state in self.waiting if state.state == State.CONNECTING and not self._take(state, now)
        ]

    def _look_up(self, node: Node) -> Resolution:
        # An alias first becomes the names behind it, which is what Kerberos and certificates go by; done here, by
        # the attempt at it, the look-up has this attempt's timeout and back-off, and holds up no other server.
        alias = self._options.canonical_bootstrap and node.id < 0 and (node.host, node.port) not in self._canonical
        ask = self._resolver.canonical if alias else self._resolver.resolve
        resolution: Resolution = ask(node.host, node.port, self._selector.wakeup)
        return resolution

    def _take(self, state: NodeState, now: float) -> bool:
        """Whether the look-up is over.  If not, it stays with the node: the next attempt does not ask again."""
        resolution = state.resolution
        if not resolution.done:
            return False
        state.resolution = None
        if resolution.names:
            self._rename(state, resolution.names, now)
            return self._take(state, now)
        if resolution.error is not None or not resolution.addresses:
            self._failed(state, resolution.error or NetworkError(f"{state.node.host} has no address"), now)
        else:
            state.addresses.resolved(tuple(resolution.addresses))
            self._open(state, now)
        return True

    def _rename(self, state: NodeState, names: tuple[str, ...], now: float) -> None:
        alias = state.node
        self._canonical.update((name, alias.port) for name in names)
        self._metadata.expand_bootstrap(alias, names, now)
        state.node = alias._replace(host=names[0])
        state.resolution = self._look_up(state.node)

    def _open(self, state: NodeState, now: float) -> None:
        options = self._options
        state.connection = Connection(state.node, options.client_id, options.max_frame)
        state.channel = self._selector.open(
            state.addresses.take(),
            context=state,
            now=now,
            send_buffer=options.send_buffer_bytes,
            receive_buffer=options.receive_buffer_bytes,
        )
