"""A field of requests: when they come, how they are served, and what they leave of the handlers for others."""

from __future__ import annotations

import random
from typing import Any

import pytest

from forebay.tune._world.field import Came, Field, NodeField, Notes, Phases
from forebay.tune.brokers import Broker

SPAN = 1000.0
ANY_TIME = Phases(SPAN, SPAN, SPAN)
AT_ONCE = Phases(SPAN, SPAN, 0.0)
CONFIG: dict[str, Any] = {
    "max.in.flight.requests.per.connection": 2,
    "max.request.size": 1 << 20,
    "batch.size": 1 << 20,
    "acks": 1,
}


def noted(*stream: Came, producers: int = 1) -> Notes:
    notes = Notes()
    notes.begin(0, SPAN)
    for producer in range(producers):
        for came in stream:
            notes.add(1, producer, *came)
    return notes


def node_field(
    notes: Notes,
    count: int = 1,
    phases: Phases = AT_ONCE,
    *,
    broker: Broker | None = None,
    config: dict[str, Any] | None = None,
) -> tuple[NodeField, list[float]]:
    field = Field.of(notes, count, phases, CONFIG | (config or {}), partitions=1)
    handlers = [0.0] * (broker or Broker()).handlers
    chance = random.Random(1)
    made = NodeField(field, 1, 1, broker or Broker(), handlers, chance=chance, span=(0.0, 5 * SPAN), awake=None)
    return made, handlers


def test_only_what_comes_in_the_time_of_the_load_is_noted() -> None:
    notes = Notes()
    notes.begin(100, 200)
    for at in (99, 100, 199, 200):
        notes.add(1, 0, at, 1.0, 10)
    assert [came.at for came in notes.streams[1][0]] == [0, 99]


def test_each_producer_sends_what_was_noted() -> None:
    made, _handlers = node_field(noted(*(Came(100.0 * at, 1.0, 10) for at in range(10))), 50, ANY_TIME)
    made.advance(SPAN)
    assert made.requests == 500
    made.advance(3 * SPAN)
    assert made.requests == 1500, "it comes again"


def test_phases_are_drawn_over_the_whole_time() -> None:
    chance = random.Random(2)
    drawn = sorted(ANY_TIME.draw(chance) for _ in range(1000))
    assert 0 <= drawn[0] < 10 and 990 < drawn[-1] < SPAN
    assert drawn[500] == pytest.approx(SPAN / 2, rel=0.1)


def test_phases_of_bursts_are_whole_periods_and_a_little() -> None:
    phases, chance = Phases(SPAN, 100.0, 5.0), random.Random(2)
    drawn = [phases.draw(chance) for _ in range(1000)]
    assert max(at % 100 for at in drawn) < 5
    assert {int(at // 100) for at in drawn} == set(range(10))
    assert phases.circular and not Phases(SPAN, SPAN, 5.0).circular


def test_what_is_shifted_beyond_the_end_of_a_load_that_changes_does_not_come() -> None:
    made, _handlers = node_field(noted(Came(1, 1.0, 10), Came(999.5, 1.0, 10)), 100, Phases(SPAN, SPAN, 200.0))
    made.advance(200.9)
    assert 90 < made.requests <= 100
    made.advance(5 * SPAN)
    assert made.requests == 200


def test_a_connection_is_served_one_request_at_a_time() -> None:
    """Three requests of 10 ms come together: with a handler for each they would end together."""
    made, handlers = node_field(noted(*(Came(0, 10.0, 10) for _ in range(3))), broker=Broker(handlers=3))
    made.advance(25)
    assert sorted(handlers) == [10, 20, 30]


def test_what_waits_beyond_the_requests_in_flight_goes_along() -> None:
    """Of ten that come together one is served and two wait; the others are in the last of these."""
    broker = Broker(handlers=1, fixed_ms=6, per_mib_ms=4)
    made, handlers = node_field(noted(*(Came(0, 10.0, 10) for _ in range(10))), broker=broker)
    made.advance(SPAN)
    assert made.requests == 3
    assert handlers == [10 + 10 + 10 + 7 * 4]


def test_a_request_does_not_grow_beyond_its_limit() -> None:
    made, _handlers = node_field(noted(*(Came(0, 1.0, 600) for _ in range(10))), config={"batch.size": 1200})
    made.advance(SPAN)
    assert made.requests == 1 + 1 + 4


def test_followers_and_a_lone_request_in_flight_hold_up_the_next_one() -> None:
    broker = Broker(rtt_ms=3, replication_ms=5)
    two = noted(Came(0, 10.0, 10), Came(0, 10.0, 10))
    cases: list[tuple[dict[str, Any], float]] = [
        ({}, 10),
        ({"acks": -1}, 15),
        ({"acks": -1, "max.in.flight.requests.per.connection": 1}, 18),
    ]
    for config, next_at in cases:
        made, handlers = node_field(two, broker=broker, config=config)
        made.advance(SPAN)
        assert sorted(handlers)[-2:] == [10, next_at + 10]


def test_a_field_that_asks_for_too_much_slows_itself_down() -> None:
    """40 connections with 10 ms of work each, every 10 ms, and four handlers: all are busy, and no line grows."""
    stream = [Came(10.0 * at, 10.0, 10) for at in range(100)]
    broker = Broker(handlers=4, fixed_ms=10, per_mib_ms=0)
    made, handlers = node_field(noted(*stream), 40, ANY_TIME, broker=broker)
    for seconds in (1, 3):
        made.advance(seconds * SPAN)
        assert 0 <= made.requests - 4 * 100 * seconds <= 40, "beside those that run, one of each waits for a handler"
        assert max(handlers) <= seconds * SPAN + 40 * 10 / 4 + 10


def test_nothing_comes_to_a_node_that_is_away() -> None:
    made, _handlers = node_field(noted(*(Came(100.0 * at, 1.0, 10) for at in range(10))))
    made.advance(350)
    made.away = True
    made.advance(550)
    made.away = False
    made.advance(999)
    assert made.requests == 8


def test_a_silence_moves_what_begins_in_it() -> None:
    field = Field.of(noted(Came(100, 10.0, 10)), 1, AT_ONCE, CONFIG, partitions=1)
    handlers = [0.0]

    def awake(when: float) -> float:
        return 500.0 if when < 500 else when

    made = NodeField(field, 1, 1, Broker(handlers=1), handlers, chance=random.Random(1), span=(0.0, SPAN), awake=awake)
    made.advance(200)
    assert handlers == [510]


def test_with_partitions_of_their_own_others_send_to_the_next_nodes() -> None:
    field = Field.of(noted(Came(0, 1.0, 10)), 6, AT_ONCE, CONFIG, partitions=1, in_turn=True)
    assert [bool(field.stream(2, 3, number)) for number in range(6)] == [False, False, True, False, False, True]
    assert [bool(field.stream(1, 3, number)) for number in range(3)] == [True, False, False]


def test_several_noted_producers_are_taken_in_turn() -> None:
    notes = noted(Came(0, 1.0, 10))
    notes.add(1, 1, 7.0, 1.0, 10)
    field = Field.of(notes, 4, AT_ONCE, CONFIG, partitions=1)
    assert [field.stream(1, 1, number)[0].at for number in range(4)] == [0, 7, 0, 7]
    assert field.stream(2, 2, 0) == ()
