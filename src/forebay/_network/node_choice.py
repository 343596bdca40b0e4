"""Which of the nodes to ask what any of them can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from forebay._network.connection_states import NodeState, State
from forebay.model import Node

_INFINITY = float("inf")
_PREPARING = (State.CONNECTING, State.CHECKING_API_VERSIONS)
PATIENCE_MS = 1000.0
"""How long one attempt at a connection keeps others from being begun for the same purpose.

The Java client waits for the attempt's own timeouts: a server that accepts and says nothing (hung, or not Kafka)
holds up the start by request.timeout.ms although the next bootstrap server would answer at once.
"""


class Readiness(Protocol):
    """What has to be known of each node."""

    def can_send(self, node_id: int, now: float) -> bool: ...

    def can_connect(self, node: Node, now: float) -> bool: ...


def choose_node(
    nodes: Sequence[Node], start: int, states: Mapping[int, NodeState], client: Readiness, now: float
) -> tuple[Node | None, bool]:
    """The least loaded node, and whether any node is connected or may be.

    Idle and ready goes first, then ready with the fewest in flight, then one that is being connected, then the
    one whose last attempt is the oldest, then one that has been being connected for too long.  Nodes that throttle
    are passed over.

    Args:
        start: where to begin; random, so that clients spread over the brokers.
    """
    busy: tuple[float, Node | None] = (_INFINITY, None)
    absent: tuple[float, Node | None] = (_INFINITY, None)
    connecting: Node | None = None
    stuck: Node | None = None
    connected = False
    for node in (*nodes[start:], *nodes[:start]):
        state = states.get(node.id)
        connected = connected or (state is not None and state.state is State.READY)
        if client.can_send(node.id, now):
            count = states[node.id].connection.in_flight.count
            if count == 0:
                return node, True
            if count < busy[0]:
                busy = (count, node)
        elif state is not None and state.state in _PREPARING:
            if patience_left(state, now) > 0:
                connecting = node
            else:
                stuck = node
        elif client.can_connect(node, now):
            last = -_INFINITY if state is None else state.last_attempt
            if absent[1] is None or last < absent[0]:
                absent = (last, node)
    chosen = busy[1] or connecting or absent[1] or stuck
    return chosen, connected or chosen is not None


def patience_left(state: NodeState, now: float) -> float:
    """Ms for which an attempt that is under way is worth waiting for; 0 if none is."""
    return max(0.0, state.last_attempt + PATIENCE_MS - now) if state.state in _PREPARING else 0.0
