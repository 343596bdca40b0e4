"""How often a broker is asked again that refuses every time, at once, in a way that may pass.

Errors that last are taken from tests/error_matrix.py; each answer takes a millisecond, and time is counted by the
manual clock.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest

from forebay._protocol.versions import SUPPORTED
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from forebay.testing.memory import Link
from tests.error_matrix import MATRIX
from tests.fakes.broker import API_VERSIONS, INIT_PRODUCER_ID, METADATA, PRODUCE, Received, ScriptedBroker
from tests.fakes.coordinator import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    TransactionalWorld,
)
from tests.fakes.produce import Answer, answer_produce, batches_of
from tests.fakes.world import World

BACKOFF_MS, SOON_MS, WINDOW_MS = 100, 20, 2000
GROWING: dict[str, Any] = {"retry_backoff_ms": BACKOFF_MS, "retry_backoff_max_ms": 1000, "delivery_timeout_ms": 60_000}
AGAIN = ("retry", "fresh", "soon", "look", "mend")
PARTITION = TopicPartition("test", 0)


@pytest.fixture(autouse=True)
def without_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred producers' lines would hide the one difference that a failed test tells of."""
    caplog.set_level(logging.CRITICAL, "forebay")


class Endless(deque[Any]):
    """A fault in line that stays there."""

    def popleft(self) -> Any:
        return self[0]


class Times(dict[int, list[float]]):
    """When requests came, by API; kept from now on, at every broker of the world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        for broker in world.cluster.brokers.values():
            broker.delay_ms = 1
            broker.requests = _Watched(lambda request: self.setdefault(request.api_key, []).append(world.now))

    def gap(self, api: int) -> float:
        """The shortest time between two requests of an API."""
        return min((after - before for before, after in pairwise(self.get(api, []))), default=float("inf"))

    def count(self, api: int) -> int:
        return len(self.get(api, []))


class _Watched(list[Received]):
    def __init__(self, note: Callable[[Received], None]) -> None:
        super().__init__()
        self.note = note

    def append(self, request: Received) -> None:
        self.note(request)
        super().append(request)


def lasting(column: str) -> list[int]:
    """The codes after which the same request is made again."""
    return [code for code, word in MATRIX[column].items() if word in AGAIN]


# -- the producer id ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", lasting("init"))
def test_a_producer_id_that_nobody_gives(code: int) -> None:
    world = World(idempotent=True, known=False, **GROWING)
    times = Times(world)
    world.cluster.brokers[0].script[INIT_PRODUCER_ID] = lambda request: world.cluster.init_producer_id(request, code)
    world.metadata.add_topic("test", world.now)
    world.let_pass(WINDOW_MS)
    assert times.gap(INIT_PRODUCER_ID) >= BACKOFF_MS
    assert 4 <= times.count(INIT_PRODUCER_ID) <= 6


def test_a_producer_id_on_connections_that_are_lost() -> None:
    world = World(idempotent=True, known=False, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1, **GROWING)
    times = Times(world)
    world.cluster.brokers[0].script[INIT_PRODUCER_ID] = lambda request: request.link.reset()
    world.let_pass(WINDOW_MS)
    assert times.gap(INIT_PRODUCER_ID) >= BACKOFF_MS and times.gap(METADATA) >= BACKOFF_MS
    assert 4 <= times.count(INIT_PRODUCER_ID) <= 6


# -- transactions ------------------------------------------------------------------------------------------------

COLUMNS = {
    "find": FIND_COORDINATOR,
    "initT": INIT_PRODUCER_ID,
    "addP": ADD_PARTITIONS,
    "addO": ADD_OFFSETS,
    "commit": OFFSET_COMMIT,
    "end": END_TXN,
}
EARLY = (FIND_COORDINATOR, INIT_PRODUCER_ID)
REFUSALS = [
    (version, api, code)
    for column, api in COLUMNS.items()
    for version in (1, 2)
    # Version 2 adds partitions and offsets by Produce and TxnOffsetCommit.
    if version == 1 or api not in (ADD_PARTITIONS, ADD_OFFSETS)
    for code in lasting(column)
]


def stuck(version: int, api: int, fault: Any, **config: Any) -> tuple[TransactionalWorld, Times]:
    """A transaction whose requests of ``api`` meet ``fault`` each time, after so long."""
    world = TransactionalWorld(version, ready=False, **GROWING, **config)
    if api not in EARLY:
        world.finish(world.session.initialize())
        world.let_pass(1000)
    world.coordinator.faults[api] = Endless([fault])
    times = Times(world)
    if api in EARLY:
        world.session.initialize()
    else:
        world.begin()
        world.send()
        world.let_pass(500)
        if api in (ADD_OFFSETS, OFFSET_COMMIT):
            world.session.send_offsets({PARTITION: OffsetAndMetadata(5)}, ConsumerGroupMetadata("g"))
        if api == END_TXN:
            world.session.commit()
    world.let_pass(WINDOW_MS)
    return world, times


@pytest.mark.parametrize(("version", "api", "code"), REFUSALS)
def test_a_coordinator_that_refuses(version: int, api: int, code: int) -> None:
    """A look-up may go between two tries, and only one."""
    world, times = stuck(version, api, code)
    least = SOON_MS if (api, code) == (ADD_PARTITIONS, 51) else BACKOFF_MS
    assert times.gap(api) >= least
    assert times.count(api) >= 4
    # Both coordinators may have been looked up before.
    assert times.count(FIND_COORDINATOR) <= times.count(api) + 2
    assert times.gap(METADATA) >= BACKOFF_MS
    world.producer.close(timeout=0)


SENT = [(1, api) for api in COLUMNS.values()]
SENT += [(2, api) for api in COLUMNS.values() if api not in (ADD_PARTITIONS, ADD_OFFSETS)]
"""Which version of transactions sends which requests."""


@pytest.mark.parametrize(("version", "api"), SENT)
def test_a_coordinator_that_hangs_up(version: int, api: int) -> None:
    world, times = stuck(version, api, False, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
    assert times.gap(api) >= BACKOFF_MS
    assert times.count(api) >= 4
    assert times.count(FIND_COORDINATOR) <= times.count(api) + 2
    assert times.gap(METADATA) >= BACKOFF_MS
    world.producer.close(timeout=0)


@pytest.mark.parametrize("version", [1, 2])
def test_a_coordinator_that_cannot_be_reached(version: int) -> None:
    """FindCoordinator goes on naming it."""
    options: dict[str, Any] = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 1}
    world = TransactionalWorld(version, ready=False, nodes=2, **GROWING, **options)
    world.coordinator.at = 1
    world.cluster.down(1)
    times = Times(world)
    world.session.initialize()
    world.let_pass(WINDOW_MS)
    assert times.gap(FIND_COORDINATOR) >= BACKOFF_MS
    assert 4 <= times.count(FIND_COORDINATOR) <= 6
    assert times.gap(METADATA) >= BACKOFF_MS
    world.producer.close(timeout=0)


# -- produce -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("code", lasting("plain"))
def test_a_batch_that_is_refused(idempotent: bool, code: int) -> None:
    world = World(idempotent=idempotent, **GROWING)
    world.let_pass(1000)
    world.cluster.faults["test", 0] = Endless([Answer(code)])
    times = Times(world)
    world.send()
    world.let_pass(WINDOW_MS)
    assert times.gap(PRODUCE) >= BACKOFF_MS and times.gap(METADATA) >= BACKOFF_MS
    assert 4 <= times.count(PRODUCE) <= 6
    assert times.count(METADATA) <= times.count(PRODUCE) + 2


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("code", lasting("txn"))
def test_a_batch_of_a_transaction_that_is_refused(version: int, code: int) -> None:
    world = TransactionalWorld(version, **GROWING)
    world.let_pass(1000)
    world.begin()
    world.cluster.faults["test", 0] = Endless([Answer(code)])
    times = Times(world)
    world.send()
    world.let_pass(WINDOW_MS)
    assert times.gap(PRODUCE) >= (SOON_MS if code == 51 else BACKOFF_MS)
    assert times.gap(METADATA) >= BACKOFF_MS
    assert times.count(PRODUCE) >= 1
    world.producer.close(timeout=0)


@pytest.mark.parametrize("version", [8, 13])
def test_two_brokers_that_name_each_other_as_the_leader(version: int) -> None:
    """Hints of one epoch (KIP-951): the first is followed at once, the second says nothing new."""
    world = World(nodes=2, topics={"test": 1}, known=False, **GROWING)
    for broker in world.cluster.brokers.values():
        broker.ranges[METADATA] = (0, version)
    world.learn("test")
    world.let_pass(1000)

    def refuse(request: Received) -> None:
        other = 1 - request.broker.node.id
        hint = Answer(6, leader=(other, 101))
        endpoint = (other, "127.0.0.1", 9000 + other)
        answer_produce(request, dict.fromkeys(batches_of(request), hint), endpoints=[endpoint], delay_ms=1)

    for broker in world.cluster.brokers.values():
        broker.script[PRODUCE] = refuse
    times = Times(world)
    world.send()
    world.let_pass(WINDOW_MS)
    assert times.count(PRODUCE) >= 4
    assert times.count(PRODUCE) <= 2 * (WINDOW_MS / BACKOFF_MS + 1)
    assert times.gap(METADATA) >= BACKOFF_MS


# -- connections -------------------------------------------------------------------------------------------------


def no_metadata(request: Received) -> None:
    request.broker.answer_versions(request, ranges={API_VERSIONS: (0, 4), PRODUCE: (3, 13)})


def no_common_metadata(request: Received) -> None:
    request.broker.answer_versions(request, ranges={API_VERSIONS: (0, 4), PRODUCE: (3, 13), METADATA: (99, 99)})


HANDSHAKES: dict[str, Callable[[Received], None]] = {
    "hangs up": lambda request: request.link.close(1),
    "resets": lambda request: request.link.reset(1),
    "nonsense": lambda request: request.answer_bytes(b"\xff" * 40, 1),
    "no api for metadata": no_metadata,
    "no version in common": no_common_metadata,
    **{
        f"error {code}": lambda request, code=code: request.broker.answer_versions(request, error=code)  # type: ignore[misc]
        for code in (-1, 14, 31, 33, 35, 58)
    },
}
MOST_PER_HANDSHAKE = SUPPORTED[API_VERSIONS][1] + 1
"""A broker that refuses each version is asked in all of them."""
RECONNECT: dict[str, Any] = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 1000}


class Waiting:
    """A record that waits for a world's brokers, and when connections to each of them were begun."""

    def __init__(self, nodes: int, known: bool, **config: Any) -> None:
        self.world = World(nodes=nodes, topics={"test": nodes}, known=known, **GROWING, **RECONNECT, **config)
        self.opened: defaultdict[Any, list[float]] = defaultdict(list)
        self.times = Times(self.world)
        begin = self.world.selector.open

        def noted(address: Any, **more: Any) -> Any:
            self.opened[address].append(self.world.now)
            return begin(address, **more)

        self.world.selector.open = noted  # type: ignore[method-assign]

    def brokers(self) -> Iterable[ScriptedBroker]:
        return self.world.cluster.brokers.values()

    def lose(self) -> None:
        """Two records for each broker, and the loss of every connection."""
        for partition in range(len(self.world.cluster.brokers)):
            self.world.send(partition=partition)
        for broker in self.brokers():
            broker.drop()
        self.world.let_pass(WINDOW_MS)

    def judge(self, most: int) -> None:
        for times in self.opened.values():
            assert min((after - before for before, after in pairwise(times)), default=99) >= 49, times
            assert len(times) <= most
        assert self.opened and self.times.gap(METADATA) >= BACKOFF_MS


@pytest.mark.parametrize("kind", HANDSHAKES)
@pytest.mark.parametrize("nodes", [1, 3])
def test_handshakes_that_fail_at_the_start(nodes: int, kind: str) -> None:
    waiting = Waiting(nodes, known=False)
    for broker in waiting.brokers():
        broker.script[API_VERSIONS] = HANDSHAKES[kind]
    waiting.world.metadata.add_topic("test", waiting.world.now)
    waiting.world.let_pass(WINDOW_MS)
    waiting.judge(8)
    assert waiting.times.count(API_VERSIONS) <= 8 * MOST_PER_HANDSHAKE * nodes


@pytest.mark.parametrize("kind", HANDSHAKES)
@pytest.mark.parametrize("nodes", [1, 3])
def test_handshakes_that_fail_later(nodes: int, kind: str) -> None:
    waiting = Waiting(nodes, known=True)
    for broker in waiting.brokers():
        broker.script[API_VERSIONS] = HANDSHAKES[kind]
    waiting.lose()
    waiting.judge(9)
    assert waiting.times.count(API_VERSIONS) <= 9 * MOST_PER_HANDSHAKE * nodes


@pytest.mark.parametrize("nodes", [1, 3])
def test_brokers_that_refuse_connections(nodes: int) -> None:
    waiting = Waiting(nodes, known=True)
    for broker in waiting.brokers():
        waiting.world.selector.refuse(waiting.world.cluster.address(broker.node.id))
    waiting.lose()
    waiting.judge(9)


@pytest.mark.parametrize("nodes", [1, 3])
def test_brokers_that_hang_up_as_soon_as_they_are_ready(nodes: int) -> None:
    """The back-off begins anew with each connection that stood; it is kept all the same."""
    waiting = Waiting(nodes, known=True)

    def hang_up(request: Received) -> None:
        request.broker.answer_versions(request)
        link: Link = request.link
        link.close(2)

    for broker in waiting.brokers():
        broker.script[API_VERSIONS] = hang_up
        broker.held.add(PRODUCE)
    waiting.lose()
    waiting.judge(int(WINDOW_MS / 50) + 2)
