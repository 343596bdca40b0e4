from __future__ import annotations

import math
import random
from itertools import product

import pytest

from forebay._network.connection_states import (
    ABSENT,
    MOVES,
    Addresses,
    ConnectionStates,
    NodeState,
    State,
    interleaved,
)
from forebay._network.options import NetworkOptions
from forebay._network.transport import Address
from forebay.errors import AuthenticationError, IllegalStateError
from forebay.model import Node

A, B = Node(1, "a.example", 9092), Node(2, "b.example", 9092)
BASE, LIMIT = 10_000, 60_000
V4, V6 = 2, 10
X, Y, Z = (Address(V4, (name, 9092)) for name in "xyz")
P, Q = (Address(V6, (name, 9092)) for name in "pq")


def states(jitter: random.Random | None = None) -> ConnectionStates:
    options = NetworkOptions(
        client_id="mock",
        reconnect_backoff_ms=BASE,
        reconnect_backoff_max_ms=LIMIT,
        setup_timeout_ms=10_000,
        setup_timeout_max_ms=127_000,
    )
    return ConnectionStates(options, jitter.random if jitter else lambda: 0.5)


def test_the_table_is_the_law() -> None:
    for before, after in product(State, State):
        node = NodeState(A, 0, 0)
        node.state = before
        if after in MOVES[before]:
            node.move(after)
            assert node.state is after
        else:
            with pytest.raises(IllegalStateError, match=f"from {before.name} to {after.name}"):
                node.move(after)
            assert node.state is before


def test_every_state_can_be_left_and_reached() -> None:
    assert set(MOVES) == set(State)
    assert set().union(*MOVES.values()) == set(State)


def test_several_nodes() -> None:
    """M ClusterConnectionStatesTest testMultipleNodeConnectionStates: each has its own."""
    nodes = states()
    first = nodes.connecting(A, 0)
    assert (first.state, nodes.get(2)) == (State.CONNECTING, None)
    second = nodes.connecting(B, 0)
    nodes.ready(first)
    assert (first.state, second.state) == (State.READY, State.CONNECTING)
    nodes.disconnected(second, 10)
    assert (nodes.can_connect(1, 10), nodes.can_connect(2, 10)) == (False, False)
    assert nodes.can_connect(2, 10 + BASE)


def test_authentication_failed() -> None:
    """M ClusterConnectionStatesTest testAuthorizationFailed: keeps the error, waits, and ready clears it."""
    nodes = states()
    state = nodes.connecting(A, 100)
    nodes.checking(state)
    error = AuthenticationError("no")
    nodes.authentication_failed(state, error, 200)
    assert state.state is State.AUTHENTICATION_FAILED
    assert state.authentication_error is error
    assert not nodes.can_connect(1, 200)
    assert nodes.can_connect(1, 200 + BASE)
    state = nodes.connecting(A, 200 + BASE)
    nodes.ready(state)
    assert state.authentication_error is None


def test_remove_node() -> None:
    """M ClusterConnectionStatesTest testRemoveNode: nothing is left of it."""
    nodes = states()
    nodes.disconnected(nodes.connecting(A, 0), 0)
    assert not nodes.can_connect(1, 1)
    nodes.remove(1)
    assert nodes.can_connect(1, 1)
    assert (nodes.connection_delay(1, 1), nodes.poll_delay(1, 1)) == (0, 0)


def test_max_reconnect_backoff() -> None:
    """M ClusterConnectionStatesTest testMaxReconnectBackoff: the limit, even after 100 failures."""
    nodes = states(random.Random(3))
    now = 0.0
    for _ in range(100):
        nodes.disconnected(nodes.connecting(A, now), now)
        delay = nodes.connection_delay(1, now)
        assert 0 < delay <= LIMIT * 1.2
        now += delay
        assert nodes.can_connect(1, now)


@pytest.mark.parametrize("checking", [False, True])
def test_exponential_reconnect_backoff(checking: bool) -> None:
    """M ClusterConnectionStatesTest testExponentialReconnectBackoff: 10 failures, with and without a connection."""
    nodes = states(random.Random(4))
    now = 0.0
    for failure in range(10):
        state = nodes.connecting(A, now)
        if checking:
            nodes.checking(state)
        nodes.disconnected(state, now)
        expected = BASE * 2 ** min(failure, math.log2(LIMIT / BASE))
        delay = nodes.connection_delay(1, now)
        assert 0.8 * expected <= delay <= min(1.2 * expected, LIMIT)
        assert nodes.connection_delay(1, now) == delay  # drawn once
        now += delay
    nodes.ready(nodes.connecting(A, now))
    nodes.disconnected(nodes.nodes[1], now)
    assert nodes.connection_delay(1, now) <= 1.2 * BASE


def test_setup_timeout_grows_with_failed_connects_only() -> None:
    nodes = states()
    seen = []
    for _ in range(6):
        state = nodes.connecting(A, 0)
        seen.append(state.setup_timeout_ms)
        nodes.disconnected(state, 0)
    assert seen == pytest.approx([10_000, 20_000, 40_000, 80_000, 127_000, 127_000])
    state = nodes.connecting(A, 0)
    nodes.checking(state)
    assert state.setup_timeout_ms == 10_000
    nodes.disconnected(state, 0)
    assert nodes.connecting(A, 0).setup_timeout_ms == 10_000


def test_throttled() -> None:
    """M ClusterConnectionStatesTest testThrottled: counts down, and the poll delay follows."""
    nodes = states()
    state = nodes.connecting(A, 0)
    nodes.ready(state)
    nodes.throttle(state, 100)
    for now, left in ((0, 100), (50, 50), (100, 0)):
        assert nodes.throttle_delay(1, now) == left
        assert nodes.poll_delay(1, now) == (left or math.inf)
    nodes.throttle(state, 40)
    assert nodes.throttle_delay(1, 0) == 100  # never shortened


def test_closed_for_want_of_use_is_no_failure() -> None:
    nodes = states()
    state = nodes.connecting(A, 0)
    nodes.ready(state)
    nodes.closed(state)
    assert state.state in ABSENT
    assert nodes.can_connect(1, 0)
    nodes.disconnected(nodes.connecting(A, 0), 0)
    assert nodes.connection_delay(1, 0) == BASE


def test_single_address() -> None:
    """M ClusterConnectionStatesTest testSingleIP: the same one for every attempt, looked up each time."""
    addresses = Addresses()
    for _ in range(3):
        assert addresses.exhausted
        addresses.resolved((X,))
        assert addresses.take() == X


def test_several_addresses() -> None:
    """M ClusterConnectionStatesTest testMultipleIPs: each once, then a new look-up."""
    addresses = Addresses()
    addresses.resolved((X, Y, Z))
    assert [addresses.take() for _ in range(3)] == [X, Y, Z]
    assert addresses.exhausted
    addresses.resolved((X, Y, Z))
    assert addresses.take() == X


def test_host_resolves_to_something_else() -> None:
    """M ClusterConnectionStatesTest testHostResolveChange: an established connection lost means looking up anew."""
    nodes = states()
    state = nodes.connecting(A, 0)
    state.addresses.resolved((X, Y))
    state.addresses.take()
    nodes.ready(state)
    nodes.disconnected(state, 0)
    assert state.addresses.exhausted
    state.addresses.resolved((Z,))
    assert state.addresses.take() == Z


def test_a_connection_that_ends_before_the_broker_answered_goes_on_with_the_next_address() -> None:
    """Not as in Java, which looks the name up, and so may meet the same wrong server for ever."""
    nodes = states()
    state = nodes.connecting(A, 0)
    state.addresses.resolved((X, Y))
    state.addresses.reached(state.addresses.take(), ())
    nodes.checking(state)
    nodes.disconnected(state, 0)
    assert state.addresses.left == (Y,)


def test_failed_attempt_goes_on_with_the_next_address() -> None:
    nodes = states()
    state = nodes.connecting(A, 0)
    state.addresses.resolved((X, Y))
    state.addresses.take()
    nodes.disconnected(state, 0)
    assert not state.addresses.exhausted
    assert nodes.connecting(A, 0).addresses.take() == Y


@pytest.mark.parametrize("moved", [A._replace(host="c.example"), A._replace(port=9093)])
def test_node_with_new_address(moved: Node) -> None:
    """M ClusterConnectionStatesTest testNodeWithNewHostname: looked up anew, failures forgotten."""
    nodes = states()
    state = nodes.connecting(A, 0)
    state.addresses.resolved((X, Y))
    nodes.disconnected(state, 0)
    renewed = nodes.connecting(moved, 0)
    assert renewed is not state
    assert renewed.addresses.exhausted
    assert (renewed.node, renewed.failed_attempts) == (moved, 0)


def test_skip_last_attempted_address() -> None:
    """M ClusterConnectionStatesTest testSkipLastAttemptedIp: the one just lost is not the first to be tried."""
    addresses = Addresses()
    addresses.resolved((X, Y))
    assert addresses.take() == X
    addresses.clear()
    addresses.resolved((X, Y))
    assert addresses.take() == Y


def test_what_was_not_waited_for_stays_to_be_tried() -> None:
    addresses = Addresses()
    addresses.resolved((X, P, Y, Q))
    tried = [addresses.take() for _ in range(3)]
    assert tried == [X, P, Y]
    addresses.reached(P, [X, Y])
    assert addresses.left == (X, Y, Q)


def test_the_family_that_worked_leads_and_in_it_the_address_that_was_lost_is_last() -> None:
    addresses = Addresses()
    addresses.resolved((P, Q, X, Y))
    assert addresses.left == (P, X, Q, Y)
    addresses.take()
    addresses.reached(addresses.take(), ())
    addresses.worked()
    addresses.clear()
    addresses.resolved((P, Q, X, Y))
    assert addresses.left == (Y, P, X, Q)


def test_a_family_that_the_name_has_no_more_leads_nothing() -> None:
    addresses = Addresses()
    addresses.resolved((P,))
    addresses.take()
    addresses.worked()
    addresses.clear()
    addresses.resolved((X, Y))
    assert addresses.left == (X, Y)


@pytest.mark.parametrize(
    ("given", "first", "order"),
    [
        ((), None, []),
        ((X,), None, [X]),
        ((X, Y, Z), V6, [X, Y, Z]),
        ((X, Y, Z, P), None, [X, P, Y, Z]),
        ((P, Q, X), None, [P, X, Q]),
        ((P, Q, X, Y), V4, [X, P, Y, Q]),
    ],
)
def test_families_are_interleaved(given: tuple[Address, ...], first: int | None, order: list[Address]) -> None:
    assert interleaved(given, first) == order
