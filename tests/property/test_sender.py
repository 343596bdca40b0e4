"""The whole sender against brokers that keep logs by Kafka's rules, with random faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay import DeliveryReport
from forebay.errors import KafkaError
from tests.fakes.produce import Answer
from tests.fakes.world import Told, World
from tests.property.profile import seeded

NOT_LEADER, REQUEST_TIMED_OUT, NOT_ENOUGH, NOT_ENOUGH_AFTER, STORAGE = 6, 7, 19, 20, 56

REFUSALS = st.one_of(
    st.just(Answer(0)),
    st.sampled_from([Answer(code) for code in (NOT_LEADER, REQUEST_TIMED_OUT, NOT_ENOUGH, STORAGE)]),
    st.sampled_from([Answer(code, written=True) for code in (REQUEST_TIMED_OUT, NOT_ENOUGH_AFTER)]),
)
EVENTS = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 1), st.integers(1, 6)),
    st.tuples(st.just("fail"), st.integers(0, 1), st.lists(REFUSALS, min_size=1, max_size=4)),
    st.tuples(st.just("lose"), st.booleans(), st.just(0)),
    st.tuples(st.just("move"), st.integers(0, 1), st.integers(0, 1)),
    st.tuples(st.just("drop"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("restart"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("delay"), st.integers(0, 1), st.sampled_from([0, 5, 60, 400, 1500])),
    st.tuples(st.just("turns"), st.integers(1, 4), st.just(0)),
    st.tuples(st.just("time"), st.sampled_from([1, 10, 60, 300]), st.just(0)),
)


class History:
    """Plays events on a producer, and knows what was sent to each partition."""

    def __init__(self, *, idempotent: bool, draw: float, **config: Any) -> None:
        numbers = iter(range(1_000_000))
        self.world = World(
            nodes=2,
            topics={"test": 2},
            idempotent=idempotent,
            random=lambda: (draw + 0.618 * next(numbers)) % 1,
            request_timeout_ms=1000,
            delivery_timeout_ms=300_000,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=50,
            batch_size=300,
            **config,
        )
        self.sent: dict[int, list[bytes]] = {0: [], 1: []}
        self.told: dict[int, Told] = {0: Told(), 1: Told()}
        self.order: dict[int, list[bytes]] = {0: [], 1: []}
        """Values in the order of their callbacks."""
        self.number = 0

    def listener(self, partition: int, value: bytes) -> Callable[[DeliveryReport], None]:
        def told(report: DeliveryReport) -> None:
            self.order[partition].append(value)
            self.told[partition](report)

        return told

    def play(self, kind: str, first: int, second: object) -> None:
        world = self.world
        if kind == "send":
            assert isinstance(second, int)
            for _ in range(second):
                self.number += 1
                value = b"%06d" % self.number + bytes(40)
                self.sent[first].append(value)
                world.send(value, partition=first, on_delivery=self.listener(first, value))
        elif kind == "fail":
            assert isinstance(second, list)
            world.cluster.fail("test", first, *second)
        elif kind == "lose":
            world.cluster.lose(processed=bool(first))
        elif kind == "move":
            assert isinstance(second, int)
            world.cluster.move("test", first, second)
        elif kind == "drop":
            world.cluster.brokers[first].drop()
        elif kind == "restart":
            world.cluster.restart(first)
        elif kind == "delay":
            assert isinstance(second, int)
            world.cluster.brokers[first].delay_ms = second
        elif kind == "turns":
            world.settle(first)
        else:
            world.run(first, max(first / 3, 1))

    def finish(self) -> None:
        """No further faults; until everything has an outcome."""
        self.world.cluster.faults.clear()
        self.world.cluster.lost.clear()
        for broker in self.world.cluster.brokers.values():
            broker.delay_ms = 0
        self.world.until(lambda: not self.world.accumulator.has_incomplete(), limit_ms=120_000, step=25)
        self.world.run(3000, 100)

    def log(self, partition: int) -> list[bytes | None]:
        return self.world.values(partition=partition)


@seeded(100)
@given(events=st.lists(EVENTS, min_size=3, max_size=40), draw=st.floats(0, 0.999))
def test_nothing_lost_nothing_twice_nothing_out_of_order(events: list[tuple[str, int, object]], draw: float) -> None:
    """O3: five in flight, and every fault that passes.

    O12: the log has the order of the appends.  Callbacks come batch by batch in the order of completion, as in Java: a
    batch that a broker had written, but whose answer was lost, may be confirmed after its successor.
    """
    history = History(idempotent=True, draw=draw)
    for event in events:
        history.play(*event)
    history.finish()
    for partition in (0, 1):
        assert history.log(partition) == history.sent[partition]
        assert [error for _, error in history.told[partition]] == [None] * len(history.sent[partition])
        assert sorted(history.order[partition]) == history.sent[partition]
        offsets = [metadata.offset for metadata, _ in history.told[partition]]
        for value, offset in zip(history.order[partition], offsets, strict=True):
            assert offset < 0 or history.log(partition)[offset] == value
    assert history.world.pool.available() == history.world.pool.total
    assert history.world.sender.in_flight == {}


@seeded(40)
@given(events=st.lists(EVENTS, min_size=3, max_size=30), draw=st.floats(0, 0.999))
def test_one_in_flight_keeps_the_order_without_idempotence(events: list[tuple[str, int, object]], draw: float) -> None:
    """At least once: nothing lost, and first arrivals in order (max.in.flight 1)."""
    history = History(idempotent=False, draw=draw, max_in_flight_requests_per_connection=1)
    for event in events:
        history.play(*event)
    history.finish()
    for partition in (0, 1):
        log = history.log(partition)
        assert list(dict.fromkeys(log)) == history.sent[partition]
        assert len(history.told[partition]) == len(history.sent[partition])
    assert history.world.pool.available() == history.world.pool.total


@pytest.mark.parametrize("idempotent", [False, True])
@seeded(32)
@given(events=st.lists(EVENTS, min_size=3, max_size=25), draw=st.floats(0, 0.999), code=st.sampled_from([10, 29, 87]))
def test_every_record_has_one_outcome(
    idempotent: bool, events: list[tuple[str, int, object]], draw: float, code: int
) -> None:
    """Also with errors that last: what is reported as delivered is in the log, what failed is reported so."""
    history = History(idempotent=idempotent, draw=draw)
    for number, event in enumerate(events):
        history.play(*event)
        if number % 7 == 3:
            history.world.cluster.fail("test", number % 2, code)
    history.finish()
    for partition in (0, 1):
        told = history.told[partition]
        assert len(told) == len(history.sent[partition])
        assert all(error is None or isinstance(error, KafkaError) for _, error in told)
        log = history.log(partition)
        for metadata, error in told:
            if error is None and metadata.offset >= 0:
                assert metadata.offset < len(log)
        if idempotent:
            assert len(log) == len(set(log)), "a record twice"
    assert history.world.pool.available() == history.world.pool.total
