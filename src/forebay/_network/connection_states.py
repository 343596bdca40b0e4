"""What the client knows of each node it talks to: state, back-off, setup timeout, throttling, addresses.

A node's state outlives its connections.  States and their allowed moves are one table; a move outside it is a
bug and raises.  All of it belongs to the sender thread; times are monotonic ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._network.connection import Connection

from forebay._runtime.backoff import ExponentialBackoff
from forebay.errors import AuthenticationError, IllegalStateError, KafkaError
from forebay.model import Node

if TYPE_CHECKING:
    from forebay._network.transport import Address


class State(IntEnum):
    """How far the way to a node has been made."""

    DISCONNECTED = 0
    CONNECTING = 1
    CHECKING_API_VERSIONS = 2
    READY = 3
    AUTHENTICATION_FAILED = 4


MOVES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.DISCONNECTED: frozenset({State.CONNECTING}),
        State.CONNECTING: frozenset(
            {State.CHECKING_API_VERSIONS, State.READY, State.DISCONNECTED, State.AUTHENTICATION_FAILED}
        ),
        State.CHECKING_API_VERSIONS: frozenset({State.READY, State.DISCONNECTED, State.AUTHENTICATION_FAILED}),
        State.READY: frozenset({State.DISCONNECTED, State.AUTHENTICATION_FAILED}),
        State.AUTHENTICATION_FAILED: frozenset({State.CONNECTING}),
    }
)

# An enum's member is looked up by its name at each mention of it.
READY = cython.declare(object, State.READY)
ABSENT = (State.DISCONNECTED, State.AUTHENTICATION_FAILED)


class Addresses:
    """The addresses of one host name, each tried once before the name is looked up again (KIP-602).

    The families take turns (RFC 8305, section 4); the first is the one that worked last, else the one that the
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
        """Those that were not tried yet."""
        return tuple(self._left)

    def resolved(self, addresses: Sequence[Address]) -> None:
        """Takes a look-up's result; of its family, the address that was connected to last is tried last."""
        self._left = interleaved(sorted(addresses, key=lambda address: address == self._last), self._family)

    def take(self) -> Address:
        """The next address to try."""
        self._last = self._left.pop(0)
        return self._last

    def reached(self, address: Address, unfinished: Iterable[Address]) -> None:
        """A connection to ``address`` stands; those to ``unfinished`` were not waited for."""
        self._last = address
        self._left[:0] = unfinished

    def worked(self) -> None:
        """The broker answered on the connection that was made last."""
        self._family = self._last.family if self._last is not None else None

    def clear(self) -> None:
        """The name is looked up before the next attempt."""
        self._left = []


def interleaved(addresses: Sequence[Address], first: int | None) -> list[Address]:
    """The addresses by turns of their families, in their order otherwise.

    Args:
        first: the family to begin with; that of the first address if None or if there is none of it.
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
        self.channel: Any = None  # the connection that stands
        self.connection: Any = None
        self.resolution: Any = None
        self.race: Any = None  # the connections that are being made
        self.sensors: Any = None
        self.setup: Any = None

    @cython.cfunc
    @cython.exceptval(-1)
    def free_slots(self, now: cython.double, most: cython.int) -> cython.int:
        """How many of ``most`` requests it takes; 0 unless connected and not throttled (KIP-219)."""
        if self.state is not READY or now < self.throttled_until:
            return 0
        connection: Connection = self.connection
        return max(0, most - connection.in_flight.count)

    def move(self, to: State) -> None:
        """Changes the state.

        Raises:
            IllegalStateError: the table does not allow it.
        """
        if to not in MOVES[self.state]:
            raise IllegalStateError(f"Node {self.node} cannot go from {self.state.name} to {to.name}")
        self.state = to

    @property
    def established(self) -> bool:
        """Whether bytes have been exchanged or may be: the connection itself exists."""
        return self.state in (State.CHECKING_API_VERSIONS, State.READY)

    def __repr__(self) -> str:
        return f"<NodeState {self.node}: {self.state.name}>"


class ConnectionStates:
    """All nodes, and the rules that say when the next attempt is allowed (KIP-144, KIP-601)."""

    def __init__(
        self,
        *,
        reconnect_backoff_ms: float,
        reconnect_backoff_max_ms: float,
        setup_timeout_ms: float,
        setup_timeout_max_ms: float,
        random: Callable[[], float],
    ) -> None:
        self._reconnect = ExponentialBackoff(reconnect_backoff_ms, reconnect_backoff_max_ms, random)
        self._setup = ExponentialBackoff(setup_timeout_ms, setup_timeout_max_ms, random)
        self.nodes: dict[int, NodeState] = {}

    def get(self, node_id: int) -> NodeState | None:
        return self.nodes.get(node_id)

    def remove(self, node_id: int) -> None:
        """Forgets a node with its back-off."""
        self.nodes.pop(node_id, None)

    def connecting(self, node: Node, now: float) -> NodeState:
        """An attempt begins; another address under the same id starts from a clean sheet."""
        state = self.nodes.get(node.id)
        if state is None or (state.node.host, state.node.port) != (node.host, node.port):
            state = NodeState(node, self._reconnect.delay(0), self._setup.delay(0))
            self.nodes[node.id] = state
        state.node = node
        state.move(State.CONNECTING)
        state.last_attempt = now
        return state

    def checking(self, state: NodeState) -> None:
        """The connection is there, the broker's versions are asked for."""
        state.move(State.CHECKING_API_VERSIONS)
        self._reset_setup(state)

    def ready(self, state: NodeState) -> None:
        """Requests may be sent.  Only now the failures are forgotten: accepting and hanging up is one too."""
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
            # The broker may come back under another address.  One that ended before it named its versions may be
            # no Kafka at all: then the next attempt goes on with the name's other addresses.
            state.addresses.clear()

    def closed(self, state: NodeState) -> None:
        """We ended the connection ourselves, for want of use: no failure."""
        state.move(State.DISCONNECTED)
        state.addresses.clear()
        state.reconnect_backoff_ms = 0.0

    def authentication_failed(self, state: NodeState, error: AuthenticationError, now: float) -> None:
        state.move(State.AUTHENTICATION_FAILED)
        state.authentication_error = error
        self._count_failure(state, now)

    def throttle(self, state: NodeState, until: float) -> None:
        """No requests before ``until``; a later answer may prolong this, not shorten it."""
        state.throttled_until = max(state.throttled_until, until)

    def can_connect(self, node_id: int, now: float) -> bool:
        state = self.nodes.get(node_id)
        return state is None or (state.state in ABSENT and now >= state.last_attempt + state.reconnect_backoff_ms)

    def connection_delay(self, node_id: int, now: float) -> float:
        """Ms until an attempt is allowed; infinite while one is under way or done, where only events matter."""
        state = self.nodes.get(node_id)
        if state is None:
            return 0.0
        if state.state not in ABSENT:
            return float("inf")
        return max(0.0, state.last_attempt + state.reconnect_backoff_ms - now)

    def throttle_delay(self, node_id: int, now: float) -> float:
        """Ms until the broker takes requests again; 0 if it is not throttling."""
        state = self.nodes.get(node_id)
        return max(0.0, state.throttled_until - now) if state else 0.0

    def poll_delay(self, node_id: int, now: float) -> float:
        """Ms after which it is worth looking at this node again."""
        return self.throttle_delay(node_id, now) or self.connection_delay(node_id, now)

    def _count_failure(self, state: NodeState, now: float) -> None:
        state.last_attempt = now
        # Drawn once a failure: drawing at every look would favour the short ones.
        state.reconnect_backoff_ms = self._reconnect.delay(state.failed_attempts)
        state.failed_attempts += 1

    def _reset_setup(self, state: NodeState) -> None:
        state.failed_setups = 0
        state.setup_timeout_ms = self._setup.delay(0)
