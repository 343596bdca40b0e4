"""Answers that make no sense, on the connection: it is given up, its requests are sent again, and that is all.

A batch counts as delivered only by a well-formed answer for it; other connections do not notice; memory follows the
bytes that arrived and not what a length says.
"""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from forebay._delivery.future import RecordFuture
from forebay._transactions.result import TransactionalResult
from forebay.errors import BufferExhaustedError, KafkaError, KafkaTimeoutError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import API_VERSIONS, INIT_PRODUCER_ID, METADATA, PRODUCE, Received
from tests.fakes.damage import SENSELESS, TRUE, UNDONE, Damage, Damager, lie
from tests.fakes.world import World
from tests.property.coordinator import Coordinator
from tests.property.frames import printed_seed
from tests.support.examples import cases
from tests.support.refusal import ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT
from tests.support.rewrite import FIND_COORDINATOR

REQUEST_TIMEOUT_MS, RECONNECT_MS = 2000, 70
APIS = (API_VERSIONS, METADATA, INIT_PRODUCER_ID, PRODUCE)
TXN_APIS = {
    1: (ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, END_TXN),
    2: (TXN_OFFSET_COMMIT, END_TXN),
}
PARTITIONS = 2
ROUNDS, RECORDS, LIARS = cases(5000), 4, 200


def new_world(**config: Any) -> World:
    given: dict[str, Any] = {
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "delivery_timeout_ms": 3_600_000,
        "reconnect_backoff_ms": RECONNECT_MS,
        "reconnect_backoff_max_ms": 2 * RECONNECT_MS,
        **config,
    }
    return World(nodes=2, topics={"test": PARTITIONS}, idempotent=True, known=False, **given)


def learn(world: World) -> None:
    """As ``World.learn``, however often it takes."""
    world.metadata.add_topic("test", world.now)
    world.until(lambda: world.metadata.cluster().partition_count("test") == PARTITIONS, step=20)
    world.accumulator.refresh("test", world.metadata.cluster())


def delivered(world: World, futures: dict[bytes, RecordFuture], partition: int) -> None:
    """Each record once, in order, where its future says."""
    log = world.values(partition=partition)
    assert log == list(futures)
    for value, future in futures.items():
        assert log[future.result(0).offset] == value


def only_once(damage: Damage, api_key: int) -> Any:
    """Damages the first answer to ``api_key``."""
    left = [damage]
    return lambda request: left.pop() if left and request.api_key == api_key else None


# Only a produce request leaves something behind, or does not.
CASES = [(api, kind, processed) for api in APIS for kind in SENSELESS for processed in {True, api != PRODUCE}]


@pytest.mark.parametrize(("api_key", "kind", "processed"), CASES)
def test_a_senseless_answer_costs_its_connection_and_nothing_else(api_key: int, kind: str, processed: bool) -> None:
    world = new_world()
    damager = Damager(world, only_once(SENSELESS[kind], api_key), random.Random(1), lambda: processed)
    damager.install()
    learn(world)
    futures: list[dict[bytes, RecordFuture]] = [{}, {}]
    for number in range(6):
        value = b"%d" % number
        futures[number % 2][value] = world.send(value, partition=number % 2)
        world.settle(2)
    world.until(lambda: all(future.done() for some in futures for future in some.values()), limit_ms=20_000)
    for partition in range(PARTITIONS):
        delivered(world, futures[partition], partition)
    (damaged,) = damager.done
    # An answer that does not come is waited for until the connection's setup, or its request, times out.
    world.until(lambda: not damaged.link.open, limit_ms=15_000)
    closed = [link for link in world.selector.links if not link.open and link is not damaged.link]
    # The connections to bootstrap servers end by themselves once brokers are known; no other does.
    assert all(link.channel.context.node.id < 0 for link in closed)  # type: ignore[attr-defined]
    assert world.sender.in_flight == {} and world.pool.available() == world.pool.total


@pytest.mark.parametrize("kind", TRUE)
def test_what_stands_behind_a_true_answer_does_not_take_it_back(kind: str) -> None:
    world = new_world()
    damager = Damager(world, only_once(TRUE[kind], PRODUCE), random.Random(1))
    damager.install()
    learn(world)
    futures = {b"%d" % number: world.send(b"%d" % number) for number in range(3)}
    world.until(lambda: all(future.done() for future in futures.values()))
    delivered(world, futures, 0)
    assert len(world.cluster.requests()) <= 3
    (damaged,) = damager.done
    assert damaged.link.open == (kind in ("longer_body", "in_pieces"))
    later = {b"later": world.send(b"later")}
    world.until(lambda: later[b"later"].done())
    delivered(world, {**futures, **later}, 0)


def test_the_next_connection_waits_for_its_back_off() -> None:
    world = new_world()
    damager = Damager(world, only_once(SENSELESS["impossible_size"], PRODUCE), random.Random(1))
    damager.install()
    learn(world)
    future = world.send(b"v")
    world.until(lambda: bool(damager.done), step=1)
    tried = len(world.selector.opened)
    address = world.cluster.address(damager.done[0].link.peer.node.id)  # type: ignore[attr-defined]
    world.until(lambda: address in world.selector.opened[tried:], step=1)
    # Jitter is off in this world, and turns are 1 ms apart.
    assert RECONNECT_MS - 1 <= world.now - damager.done[0].when <= RECONNECT_MS + 2
    world.until(future.done)
    assert future.result(0).offset == 0


def test_a_broker_that_only_talks_nonsense_harms_no_other() -> None:
    world = new_world(delivery_timeout_ms=6000)

    def nonsense(request: Received) -> Damage | None:
        return SENSELESS["senseless_body"] if request.api_key == PRODUCE and request.broker.node.id == 0 else None

    damager = Damager(world, nonsense, random.Random(printed_seed()), lambda: False)
    damager.install()
    learn(world)
    lost = world.send(b"lost", partition=0)
    good: dict[bytes, RecordFuture] = {}
    for number in range(60):
        value = b"%d" % number
        good[value] = world.send(value, partition=1)
        world.run(120, 20)
        assert good[value].done(), "it waits for another broker"
    delivered(world, good, 1)
    error = lost.exception(0)
    assert isinstance(error, KafkaTimeoutError) and "Produce v13" in str(error)
    assert world.values(partition=0) == []
    assert len([link for link in world.cluster.brokers[1].links if not link.open]) <= 1
    assert len(damager.done) > 20


@pytest.mark.parametrize("api_key", APIS)
def test_memory_follows_the_bytes_and_not_the_length(api_key: int) -> None:
    world = new_world()

    def announce(reply: Any, draw: random.Random) -> None:
        tracemalloc.start()
        reply.link.send((99 << 20).to_bytes(4, "big") + reply.data[4:])

    damager = Damager(world, only_once(announce, api_key), random.Random(1))
    damager.install()
    world.metadata.add_topic("test", world.now)
    if api_key == PRODUCE:
        learn(world)
        world.send(b"v")
    try:
        world.until(lambda: bool(damager.done), step=1)
        world.run(REQUEST_TIMEOUT_MS / 2, 50)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    learn(world)
    future = world.send(b"v")
    world.until(future.done)
    assert future.result(0).offset == (api_key == PRODUCE)


TRANSACTIONAL = [
    (generation, api, kind, processed)
    for generation in (1, 2)
    for api in (FIND_COORDINATOR, INIT_PRODUCER_ID, PRODUCE, *TXN_APIS[generation])
    for kind in SENSELESS
    for processed in {True, api not in UNDONE}
]


@pytest.mark.parametrize(("generation", "api_key", "kind", "processed"), TRANSACTIONAL)
def test_a_senseless_answer_in_a_transaction(generation: int, api_key: int, kind: str, processed: bool) -> None:
    """It is committed once, whole, and the next one too; whichever answer made no sense."""
    world = new_world(transactional_id="t")
    coordinator = Coordinator(world, generation)
    coordinator.install()
    damager = Damager(world, only_once(SENSELESS[kind], api_key), random.Random(1), lambda: processed)
    damager.install()
    learn(world)
    session = world.parts.session
    assert session is not None

    def finish(result: TransactionalResult) -> None:
        world.until(lambda: result.done, limit_ms=30_000)
        result.acknowledged = True
        assert result.error is None

    finish(session.initialize())
    for number in range(2):
        session.begin()
        for partition in range(PARTITIONS):
            world.send(b"%d" % number, partition=partition)
        finish(
            session.send_offsets({TopicPartition("input", 0): OffsetAndMetadata(number)}, ConsumerGroupMetadata("g"))
        )
        finish(session.commit())
    assert len(damager.done) == 1
    expected = [
        ({("test", partition): [b"%d" % number] for partition in range(PARTITIONS)}, {("input", 0): number})
        for number in range(2)
    ]
    assert [(unit.values, unit.offsets) for unit in coordinator.units] == expected


class Chaos:
    """Rounds of records, while answers of all kinds are damaged at random."""

    def __init__(self, world: World, draw: random.Random, kinds: list[Damage], rate: float) -> None:
        self.world = world
        self.draw = draw
        self.kinds = kinds
        self.rate = rate
        self.futures: list[dict[bytes, RecordFuture]] = [{} for _ in range(PARTITIONS)]
        self.number = 0
        self.damager = Damager(world, self.choose, draw, lambda: draw.random() < 0.5)
        self.damager.install()

    def choose(self, request: Received) -> Damage | None:
        return self.draw.choice(self.kinds) if self.draw.random() < self.rate else None

    def round(self) -> None:
        world, draw = self.world, self.draw
        for _ in range(draw.randrange(RECORDS)):
            partition = draw.randrange(PARTITIONS)
            self.number += 1
            value = b"%d" % self.number
            try:
                future = world.producer.send_nowait("test", value, partition=partition)
            except (BufferExhaustedError, KafkaTimeoutError):
                continue
            self.futures[partition][value] = future
        world.run(draw.choice((1, 50, 200)), 50)

    def acknowledged(self) -> list[tuple[int, bytes, int]]:
        return [
            (partition, value, future.result(0).offset)
            for partition in range(PARTITIONS)
            for value, future in self.futures[partition].items()
            if future.done() and future.exception(0) is None
        ]


@pytest.mark.sized
def test_random_damage_delivers_everything_once() -> None:
    """Thousands of answers, most of them senseless: nothing is lost, doubled, reordered or taken for delivered."""
    draw = random.Random(printed_seed())
    chaos = Chaos(new_world(), draw, [*SENSELESS.values(), *TRUE.values()], rate=0.4)
    learn(chaos.world)
    for number in range(ROUNDS):
        chaos.round()
        if number % 500 == 0:
            for partition, value, offset in chaos.acknowledged():
                assert chaos.world.values(partition=partition)[offset] == value
    chaos.rate = 0
    futures = [future for some in chaos.futures for future in some.values()]
    chaos.world.until(lambda: all(future.done() for future in futures), limit_ms=60_000, step=20)
    for partition in range(PARTITIONS):
        delivered(chaos.world, chaos.futures[partition], partition)
    counts = Counter(one.what for one in chaos.damager.done)
    print(f"{counts.total()} damaged answers, {chaos.number} records: {dict(counts)}")
    assert counts.total() > ROUNDS // 3 and set(counts) == {*SENSELESS, *TRUE}
    assert chaos.world.pool.available() == chaos.world.pool.total


def test_lies_harm_nobody_for_good() -> None:
    """Readable answers that say anything at all: no turn trips, each record has one outcome, all memory comes back.

    What such an answer says of a record must be believed; so nothing is asserted of where the records are.
    """
    draw = random.Random(printed_seed())
    outcomes: Counter[str] = Counter()
    for _ in range(LIARS):
        world = new_world(delivery_timeout_ms=6000, buffer_memory=200_000)
        chaos = Chaos(world, draw, [lie], rate=0)
        learn(world)
        chaos.rate = 0.5
        for _ in range(12):
            chaos.round()
        chaos.rate = 0
        futures = [future for some in chaos.futures for future in some.values()]
        world.until(lambda: all(future.done() for future in futures), limit_ms=8000, step=100)  # noqa: B023
        world.until(lambda: world.pool.available() == world.pool.total, limit_ms=8000, step=100)  # noqa: B023
        assert world.accumulator.incomplete() == [] and world.sender.in_flight == {}
        for future in futures:
            error = future.exception(0)
            assert error is None or isinstance(error, KafkaError)
            outcomes["delivered" if error is None else type(error).__name__] += 1
        outcomes["lies"] += len(chaos.damager.done)
    print(dict(outcomes))
    assert outcomes["lies"] > 1000 and outcomes["delivered"] > 50
