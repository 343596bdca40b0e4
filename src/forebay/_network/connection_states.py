"""What the client knows of each node: state, back-off, timeouts, throttling, addresses; and which node to ask.

A node's state outlives its connections.  States and their allowed moves are one table; a move outside it is a
bug and raises.  All of it belongs to the sender's thread; times are monotonic ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import cython

from forebay._network.channel import Channel
from forebay._network.connection import Connection
from forebay._runtime.backoff import ExponentialBackoff
from forebay.errors import AuthenticationError, IllegalStateError, KafkaError
from forebay.model import Node

if TYPE_CHECKING:
    from forebay._network.options import NetworkOptions
    from forebay._network.transport import Address


class State(IntEnum):
    """How far the connection to a node has come."""

    DISCONNECTED = 0
    CONNECTING = 1
    CHECKING_API_VERSIONS = 2
    READY = 3
    AUTHENTICATION_FAILED = 4
    AUTHENTICATING = 5


MOVES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.DISCONNECTED: frozenset({State.CONNECTING}),
        State.CONNECTING: frozenset(
            {State.CHECKING_API_VERSIONS, State.READY, State.DISCONNECTED, State.AUTHENTICATION_FAILED}
        ),
        State.CHECKING_API_VERSIONS: frozenset(
            {State.AUTHENTICATING, State.READY, State.DISCONNECTED, State.AUTHENTICATION_FAILED}
        ),
        State.AUTHENTICATING: frozenset({State.READY, State.DISCONNECTED, State.AUTHENTICATION_FAILED}),
        # AUTHENTICATING: the broker wants it again after a time (KIP-368).
        State.READY: frozenset({State.AUTHENTICATING, State.DISCONNECTED, State.AUTHENTICATION_FAILED}),
        State.AUTHENTICATION_FAILED: frozenset({State.CONNECTING}),
    }
)

# Python looks an enum's member up by its name at each use; these names save that.
CONNECTING = cython.declare(object, State.CONNECTING)
READY = cython.declare(object, State.READY)
ABSENT = (State.DISCONNECTED, State.AUTHENTICATION_FAILED)
PREPARING = (State.CONNECTING, State.CHECKING_API_VERSIONS, State.AUTHENTICATING)
PATIENCE_MS = 1000.0
"""How long one attempt at a connection keeps the client from beginning others for the same purpose.

The Java client waits for the attempt's own timeouts.  So a server that accepts and sends nothing (hung, or not
Kafka) delays the start by request.timeout.ms, although the next bootstrap server would answer at once.
"""
_INFINITY: float = float("inf")
REFUSED_BACKOFF_MS = 1_000.0
REFUSED_BACKOFF_MAX_MS = 30_000.0
"""Ms.  The waits after a refused login double between these, because many in a row lock accounts."""


class Addresses:
    """The addresses of one host name; each is tried once before the name is looked up again (KIP-602).

    The families alternate (RFC 8305, section 4).  The first is the family that worked last, else the one that the
    system puts first.
    """

    __slots__ = ("_family", "_last", "_left")

    def __init__(self) -> None:
        self._left: list[Address] = []
        self._last: Address | None = None
        self._family: int | None = None

    @property
    def exhausted(self) -> bool:
        """Whether the name has to be looked up before the next attempt."""
        return not self._left

    @property
    def left(self) -> tuple[Address, ...]:
        """The addresses that were not tried yet."""
        return tuple(self._left)

    def resolved(self, addresses: Sequence[Address]) -> None:
        """Takes a look-up's result; the address of the last connection is tried as the last of its family."""
        self._left = interleaved(sorted(addresses, key=lambda address: address == self._last), self._family)

    def take(self) -> Address:
        """The next address to try."""
        self._last = self._left.pop(0)
        return self._last

    def reached(self, address: Address, unfinished: Iterable[Address]) -> None:
        """A connection to ``address`` is open; the attempts at ``unfinished`` are given up."""
        self._last = address
        self._left[:0] = unfinished

    def worked(self) -> None:
        """The broker answered on the connection that was made last."""
        self._family = self._last.family if self._last is not None else None

    def clear(self) -> None:
        """The name is looked up before the next attempt."""
        self._left = []


def interleaved(addresses: Sequence[Address], first: int | None) -> list[Address]:
    """The addresses with their families alternating; each family keeps its order.

    Args:
        first: the family to begin with; if it is None or has no address, the family of the first address.
    """
    families: dict[int, list[Address]] = {}
    for address in addresses:
        families.setdefault(address.family, []).append(address)
    queues = sorted(families.values(), key=lambda queue: queue[0].family != first)
    return [address for turn in zip_longest(*queues) for address in turn if address is not None]


@cython.final
@cython.cclass
class NodeState:
    """One node: its state, and the connection in use (set by the client)."""

    def __init__(self, node: Node, reconnect_backoff_ms: float, setup_timeout_ms: float) -> None:
        self.node = node
        self.state: State = State.DISCONNECTED
        self.addresses = Addresses()
        self.authentication_error: AuthenticationError | None = None
        self.last_attempt = float("-inf")
        self.last_error: KafkaError | None = None  # what ended the last connection, or the attempt at it
        self.failed_attempts = 0
        self.failed_setups = 0
        self.reconnect_backoff_ms = reconnect_backoff_ms
        self.setup_timeout_ms = setup_timeout_ms
        self.throttled_until = float("-inf")
        self.reauthenticate_at = _INFINITY  # KIP-368; only while READY
        self.channel: Any = None  # Channel of the open connection
        self.connection: Any = None  # Connection, its side of the protocol
        self.resolution: Any = None  # Resolution, while the host name is looked up
        self.race: Any = None  # Race, while connections to the addresses are made
        self.sensors: Any = None  # NodeSensors
        self.setup: Any = None  # the handshake, until it is over
        self.credentials: Any = None  # ConnectionStates.credentials at the last attempt

    @cython.cfunc
    @cython.exceptval(-1)
    def free_slots(self, now: cython.double, most: cython.int) -> cython.int:
        """How many of ``most`` requests it takes; 0 unless connected and not throttled (KIP-219)."""
        if self.state is not READY or now < self.throttled_until:
            return 0
        connection: Connection | None = self.connection
        return 0 if connection is None else max(0, most - connection.in_flight.count)

    @cython.cfunc
    @cython.exceptval(-1)
    def can_send(self, now: cython.double, most: cython.int) -> cython.bint:
        """Whether it takes a request and all earlier ones are written."""
        if self.free_slots(now, most) == 0:
            return False
        # Until one turn's requests are written, batches that wait in the accumulator can still grow or expire.
        channel: Channel = self.channel
        return channel.takes_more()

    @cython.ccall
    @cython.exceptval(-1)
    def overdue_at(self) -> cython.double:
        """The time after which the attempt, or the oldest request, has taken too long; infinite if there is none."""
        if self.state is CONNECTING:
            return self.last_attempt + self.setup_timeout_ms
        connection: Connection | None = self.connection
        return _INFINITY if connection is None else connection.in_flight.deadline()

    @cython.ccall
    @cython.exceptval(-1)
    def idle_at(self, max_idle_ms: cython.double) -> cython.double:
        """The time after which the connection was unused for too long; infinite while it is in use."""
        if max_idle_ms < 0 or not self.established:
            return _INFINITY
        connection: Connection | None = self.connection
        channel: Channel | None = self.channel
        if connection is None or channel is None or connection.in_flight.count > 0:
            return _INFINITY
        return channel.last_active + max_idle_ms

    def patience_left(self, now: float) -> float:
        """Ms for which an attempt under way is worth waiting for; 0 if there is none."""
        return max(0.0, self.last_attempt + PATIENCE_MS - now) if self.state in PREPARING else 0.0

    def move(self, to: State) -> None:
        """Changes the state.

        Raises:
            IllegalStateError: the table does not allow it.
        """
        if to not in MOVES[self.state]:
            raise IllegalStateError(f"Node {self.node} cannot go from {self.state.name} to {to.name}")
        self.state = to
        self.reauthenticate_at = _INFINITY  # it is of the session that ends here, or has not begun

    @property
    def established(self) -> bool:
        """Whether the connection is open, ready or not."""
        return self.state in (State.CHECKING_API_VERSIONS, State.AUTHENTICATING, State.READY)

    def __repr__(self) -> str:
        return f"<NodeState {self.node}: {self.state.name}>"


class ConnectionStates:
    """All nodes, the rules for the next attempt (KIP-144, KIP-601), and the choice of a node to ask."""

    def __init__(self, options: NetworkOptions, random: Callable[[], float]) -> None:
        self._reconnect = ExponentialBackoff(options.reconnect_backoff_ms, options.reconnect_backoff_max_ms, random)
        self._setup = ExponentialBackoff(options.setup_timeout_ms, options.setup_timeout_max_ms, random)
        self.nodes: dict[int, NodeState] = {}
        self.on_loss: Callable[[NodeState, KafkaError], object] | None = None
        """Told of each connection that is lost or could not be made, before the node's state says so; by the client's
        thread.  It must not raise."""
        self.credentials = object()
        """Any thread replaces it when the credentials change; then a refused login is tried again at once."""

    def get(self, node_id: int) -> NodeState | None:
        return self.nodes.get(node_id)

    def remove(self, node_id: int) -> None:
        """Forgets a node with its back-off."""
        self.nodes.pop(node_id, None)

    def connecting(self, node: Node, now: float) -> NodeState:
        """An attempt begins; a node with another address under the same id starts without a history."""
        state = self.nodes.get(node.id)
        if state is None or (state.node.host, state.node.port) != (node.host, node.port):
            state = NodeState(node, self._reconnect.delay(0), self._setup.delay(0))
            self.nodes[node.id] = state
        state.node = node
        state.move(State.CONNECTING)
        if state.credentials is not self.credentials:
            state.credentials = self.credentials
            state.failed_attempts = 0
        state.last_attempt = now
        return state

    def checking(self, state: NodeState) -> None:
        """The connection is open; the broker is asked for its versions."""
        state.move(State.CHECKING_API_VERSIONS)
        self._reset_setup(state)

    def authenticating(self, state: NodeState) -> None:
        """The client authenticates; no request is sent meanwhile."""
        state.move(State.AUTHENTICATING)

    def ready(self, state: NodeState) -> None:
        """Requests may be sent.  Failures are forgotten only now: a broker may accept and hang up."""
        state.move(State.READY)
        state.addresses.worked()
        state.authentication_error = state.last_error = None
        state.failed_attempts = 0
        state.reconnect_backoff_ms = self._reconnect.delay(0)
        self._reset_setup(state)

    def disconnected(self, state: NodeState, now: float) -> None:
        """The attempt or the connection failed; the next one waits."""
        was = state.state
        state.move(State.DISCONNECTED)
        self._count_failure(state, now)
        if was == State.CONNECTING:
            state.failed_setups += 1
            state.setup_timeout_ms = self._setup.delay(state.failed_setups)
        else:
            self._reset_setup(state)
        if was == State.READY:
            # The broker may come back under another address.  A peer that hung up before it named its versions may
            # not be Kafka: then the next attempt goes on with the name's other addresses.
            state.addresses.clear()

    def closed(self, state: NodeState) -> None:
        """The client closed the connection because it was idle: no failure."""
        state.move(State.DISCONNECTED)
        state.addresses.clear()
        state.reconnect_backoff_ms = 0.0

    def authentication_failed(self, state: NodeState, error: AuthenticationError, now: float) -> None:
        state.move(State.AUTHENTICATION_FAILED)
        state.authentication_error = error
        self._count_failure(state, now)
        wait = REFUSED_BACKOFF_MS * 2.0 ** min(state.failed_attempts - 1, 10)
        state.reconnect_backoff_ms = max(state.reconnect_backoff_ms, min(wait, REFUSED_BACKOFF_MAX_MS))

    def throttle(self, state: NodeState, until: float) -> None:
        """No requests before ``until``; a later answer may extend this, not shorten it."""
        state.throttled_until = max(state.throttled_until, until)

    def can_connect(self, node_id: int, now: float) -> bool:
        state = self.nodes.get(node_id)
        return state is None or (state.state in ABSENT and self.connection_delay(node_id, now) == 0)

    def connection_delay(self, node_id: int, now: float) -> float:
        """Ms until an attempt is allowed; infinite while there is a connection or an attempt at one."""
        state = self.nodes.get(node_id)
        if state is None:
            return 0.0
        if state.state not in ABSENT:
            return _INFINITY
        if state.state is State.AUTHENTICATION_FAILED and state.credentials is not self.credentials:
            return 0.0
        return max(0.0, state.last_attempt + state.reconnect_backoff_ms - now)

    def throttle_delay(self, node_id: int, now: float) -> float:
        """Ms until the broker takes requests again; 0 if it is not throttling (KIP-219)."""
        state = self.nodes.get(node_id)
        return max(0.0, state.throttled_until - now) if state else 0.0

    def poll_delay(self, node_id: int, now: float) -> float:
        """Ms after which it is worth asking again whether the node is ready; events may come earlier."""
        return self.throttle_delay(node_id, now) or self.connection_delay(node_id, now)

    def is_ready(self, node_id: int) -> bool:
        """Whether the connection is open and its handshake over; any thread."""
        return (state := self.nodes.get(node_id)) is not None and state.state is READY

    def failed(self, node_id: int) -> bool:
        """Whether the last connection, or the attempt at one, failed."""
        return (state := self.nodes.get(node_id)) is not None and state.state in ABSENT

    def last_error(self, node_id: int) -> KafkaError | None:
        """What ended the last connection, or the attempt at one, since the node was ready; any thread."""
        return state.last_error if (state := self.nodes.get(node_id)) is not None else None

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        """Why the node refused this client at the last attempt."""
        return state.authentication_error if (state := self.nodes.get(node_id)) is not None else None

    def established_count(self) -> int:
        """The number of open connections; any thread."""
        return sum(state.established for state in list(self.nodes.values()))

    def patience_left(self, now: float) -> float:
        """Ms for which no other connection should be begun, because one is being made."""
        return max((state.patience_left(now) for state in self.nodes.values()), default=0.0)

    def least_loaded(self, nodes: Sequence[Node], start: int, most: int, now: float) -> tuple[Node | None, bool]:
        """The node to ask what any of ``nodes`` can answer, and whether any node is connected or may be.

        The order of preference: idle and ready, ready with the fewest requests in flight, being connected, the
        oldest last attempt, being connected for more than ``PATIENCE_MS``.  Nodes that throttle are left out.

        Args:
            start: the index to begin with; random, so that clients spread over the brokers.
            most: requests in flight to one node.
        """
        busy: tuple[float, Node | None] = (_INFINITY, None)
        absent: tuple[float, Node | None] = (_INFINITY, None)
        connecting: Node | None = None
        stuck: Node | None = None
        connected = False
        for node in (*nodes[start:], *nodes[:start]):
            known: NodeState | None = self.nodes.get(node.id)
            connected = connected or (known is not None and known.state is READY)
            if known is not None and known.can_send(now, most):
                count = known.connection.in_flight.count
                if count == 0:
                    return node, True
                if count < busy[0]:
                    busy = (count, node)
            elif known is not None and known.state in PREPARING:
                if known.patience_left(now) > 0:
                    connecting = node
                else:
                    stuck = node
            elif self.can_connect(node.id, now):
                last = -_INFINITY if known is None else known.last_attempt
                if absent[1] is None or last < absent[0]:
                    absent = (last, node)
        chosen = busy[1] or connecting or absent[1] or stuck
        return chosen, connected or chosen is not None

    def _count_failure(self, state: NodeState, now: float) -> None:
        state.last_attempt = now
        # Drawn once for each failure, because a draw at each call would favour short waits.
        state.reconnect_backoff_ms = self._reconnect.delay(state.failed_attempts)
        state.failed_attempts += 1

    def _reset_setup(self, state: NodeState) -> None:
        state.failed_setups = 0
        state.setup_timeout_ms = self._setup.delay(0)
