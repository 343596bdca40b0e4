"""Which of the nodes to ask what any of them can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from forebay._network.connection_states import NodeState, State
from forebay.model import Node

_INFINITY = float("inf")
_PREPARING = (State.CONNECTING, State.CHECKING_API_VERSIONS)


class Readiness(Protocol):
    """What has to be known of each node."""

    def can_send(self, node_id: int, now: float) -> bool: ...

    def can_connect(self, node: Node, now: float) -> bool: ...


def choose_node(
    nodes: Sequence[Node], start: int, states: Mapping[int, NodeState], client: Readiness, now: float
) -> tuple[Node | None, bool]:
    """The least loaded node, and whether any node is connected or may be.

    Idle and ready goes first, then ready with the fewest in flight, then one that is being connected, then the
    one whose last attempt is the oldest.  Nodes that throttle are passed over.

    Args:
        start: where to begin; random, so that clients spread over the brokers.
    """
    busy: tuple[float, Node | None] = (_INFINITY, None)
    absent: tuple[float, Node | None] = (_INFINITY, None)
    connecting: Node | None = None
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
            connecting = node
        elif client.can_connect(node, now):
            last = -_INFINITY if state is None else state.last_attempt
            if absent[1] is None or last < absent[0]:
                absent = (last, node)
    chosen = busy[1] or connecting or absent[1]
    return chosen, connected or chosen is not None
