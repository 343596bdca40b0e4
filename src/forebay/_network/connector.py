"""From a node to a channel: looks its name up without blocking, then tries the addresses one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forebay._network.connection import Connection
from forebay._network.connection_states import NodeState, State
from forebay._network.options import NetworkOptions
from forebay.errors import KafkaError, NetworkError


class Connector:
    """Begins connections; sender thread only.

    Args:
        failed: called when a name cannot be looked up.
    """

    def __init__(
        self,
        selector: Any,
        resolver: Any,
        options: NetworkOptions,
        failed: Callable[[NodeState, KafkaError, float], None],
    ) -> None:
        self._selector = selector
        self._resolver = resolver
        self._options = options
        self._failed = failed
        self.waiting: list[NodeState] = []
        """Nodes whose names are being looked up."""

    def begin(self, state: NodeState, now: float) -> None:
        """An attempt at ``state``, which is CONNECTING: opens the channel now, or once its address is known."""
        if not state.addresses.exhausted:
            self._open(state, now)
            return
        if state.resolution is None:
            state.resolution = self._resolver.resolve(state.node.host, state.node.port, self._selector.wakeup)
        if not self._take(state, now) and state not in self.waiting:
            self.waiting.append(state)

    def poll(self, now: float) -> None:
        """Goes on with those whose addresses have become known, and drops those that were given up."""
        self.waiting = [
            state for state in self.waiting if state.state == State.CONNECTING and not self._take(state, now)
        ]

    def _take(self, state: NodeState, now: float) -> bool:
        """Whether the look-up is over.  If not, it stays with the node: the next attempt does not ask again."""
        resolution = state.resolution
        if not resolution.done:
            return False
        state.resolution = None
        if resolution.error is not None or not resolution.addresses:
            self._failed(state, resolution.error or NetworkError(f"{state.node.host} has no address"), now)
        else:
            state.addresses.resolved(tuple(resolution.addresses))
            self._open(state, now)
        return True

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
