"""_insight.telemetry.dialog: the states and what is due, without a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._insight.telemetry.dialog import (
    DEFAULT_INTERVAL_MS,
    ENDING,
    INFINITY,
    LAST_PUSH_MS,
    NEXT,
    SENT,
    START_MS,
    VERDICTS,
    State,
    Subscription,
    TelemetryDialog,
    Verdict,
)
from forebay._protocol.get_telemetry_subscriptions import NO_INSTANCE, GetTelemetrySubscriptionsResponse
from forebay.errors import IllegalStateError, ProtocolError

WHO = bytes(range(16))
SAID = GetTelemetrySubscriptionsResponse(0, 0, WHO, 7, (4, 1), 1_000, 1 << 20, False, ("*",))
WANTED = Subscription.of(SAID, NO_INSTANCE)


def dialog() -> TelemetryDialog:
    return TelemetryDialog(lambda: 0.25, 0.0)


def in_state(state: State) -> TelemetryDialog:
    made = dialog()
    made.subscription = WANTED
    made.state = state
    return made


def test_the_usual_way() -> None:
    made = dialog()
    assert (made.state, made.due, made.instance_id) == (State.SUBSCRIPTION_NEEDED, START_MS, NO_INSTANCE)
    made.sent()
    assert (made.state, made.due) == (State.SUBSCRIPTION_IN_PROGRESS, INFINITY)
    made.subscribed(WANTED, 200)
    assert (made.state, made.due, made.instance_id) == (State.PUSH_NEEDED, 200 + 750, WHO)
    made.sent()
    made.pushed(1_000)
    assert (made.state, made.due) == (State.PUSH_NEEDED, 2_000)
    made.end(1_500)
    assert (made.state, made.due) == (State.TERMINATING_PUSH_NEEDED, 1_500 + LAST_PUSH_MS)
    made.sent()
    assert (made.state, made.due) == (State.TERMINATING_PUSH_IN_PROGRESS, 1_500 + LAST_PUSH_MS)
    made.pushed(1_600)
    assert made.ended and made.due == INFINITY and not made.owes_last_push


@pytest.mark.parametrize("source", State)
@pytest.mark.parametrize("target", State)
def test_every_pair_of_states(source: State, target: State) -> None:
    made = in_state(source)
    if target in NEXT[source]:
        made._move(target, 5)
        assert (made.state, made.due) == (target, 5)
    else:
        with pytest.raises(IllegalStateError, match=f"from '{source.value}' to '{target.value}'"):
            made._move(target, 5)
        assert made.state is source


def test_the_end_can_be_reached_from_everywhere_and_not_left() -> None:
    assert {state for state in State if State.TERMINATED not in NEXT[state]} == {State.TERMINATED}
    assert NEXT[State.TERMINATED] == frozenset()
    assert all(target in NEXT[source] for source, target in SENT.items())


@pytest.mark.parametrize(
    ("code", "state", "verdict", "next_state", "due"),
    [
        (117, State.PUSH_IN_PROGRESS, Verdict.AT_ONCE, State.SUBSCRIPTION_NEEDED, 10),
        (76, State.PUSH_IN_PROGRESS, Verdict.AT_ONCE, State.SUBSCRIPTION_NEEDED, 10),
        (118, State.PUSH_IN_PROGRESS, Verdict.LATER, State.SUBSCRIPTION_NEEDED, 1_010),
        (89, State.PUSH_IN_PROGRESS, Verdict.LATER, State.SUBSCRIPTION_NEEDED, 1_010),
        (42, State.PUSH_IN_PROGRESS, Verdict.NEVER, State.TERMINATED, INFINITY),
        (87, State.PUSH_IN_PROGRESS, Verdict.NEVER, State.TERMINATED, INFINITY),
        (35, State.SUBSCRIPTION_IN_PROGRESS, Verdict.NEVER, State.TERMINATED, INFINITY),
        (-1, State.PUSH_IN_PROGRESS, Verdict.NEVER, State.TERMINATED, INFINITY),
        (117, State.SUBSCRIPTION_IN_PROGRESS, Verdict.LATER, State.SUBSCRIPTION_NEEDED, 1_010),
        (89, State.TERMINATING_PUSH_IN_PROGRESS, Verdict.NEVER, State.TERMINATED, INFINITY),
        (89, State.TERMINATED, Verdict.LATER, State.TERMINATED, INFINITY),
    ],
)
def test_errors(code: int, state: State, verdict: Verdict, next_state: State, due: float) -> None:
    made = in_state(state)
    made.due = INFINITY
    assert made.refused(code, 10) is verdict
    assert (made.state, made.due) == (next_state, due)


def test_a_lost_connection() -> None:
    for state in (State.SUBSCRIPTION_IN_PROGRESS, State.PUSH_IN_PROGRESS):
        made = in_state(state)
        made.lost(10)
        assert (made.state, made.due) == (State.SUBSCRIPTION_NEEDED, 10 + DEFAULT_INTERVAL_MS)
    made = in_state(State.TERMINATING_PUSH_IN_PROGRESS)
    made.lost(10)
    assert made.ended


def test_a_push_that_is_left_out() -> None:
    made = in_state(State.PUSH_NEEDED)
    made.skip(10)
    assert (made.state, made.due) == (State.PUSH_NEEDED, 1_010)
    made = in_state(State.TERMINATING_PUSH_NEEDED)
    made.skip(10)
    assert made.ended


@pytest.mark.parametrize("state", State)
def test_an_end(state: State) -> None:
    made = in_state(state)
    owed = made.owes_last_push
    made.end(10)
    made.end(10)
    if state in (State.SUBSCRIPTION_NEEDED, State.TERMINATED):
        assert made.ended and not owed
        return
    assert owed and made.state in ENDING
    made.end(10 + LAST_PUSH_MS)
    assert made.ended
    made.subscribed(WANTED, 20)
    made.pushed(20)
    made.lost(20)
    made.stop()
    assert made.ended


def test_an_end_before_any_subscription_or_with_an_empty_one_owes_nothing() -> None:
    made = dialog()
    made.sent()
    assert not made.owes_last_push
    made.end(10)
    assert made.ended
    made = in_state(State.SUBSCRIPTION_IN_PROGRESS)
    made.subscription = WANTED._replace(prefixes=())
    assert not made.owes_last_push


def test_an_empty_subscription_is_asked_for_again() -> None:
    made = dialog()
    made.sent()
    made.subscribed(WANTED._replace(prefixes=()), 10)
    assert (made.state, made.due, made.instance_id) == (State.SUBSCRIPTION_NEEDED, 1_010, WHO)


@pytest.mark.parametrize(("said", "used"), [(0, DEFAULT_INTERVAL_MS), (-1, DEFAULT_INTERVAL_MS), (1, 100), (101, 101)])
def test_intervals(said: int, used: int) -> None:
    assert Subscription.of(SAID._replace(push_interval_ms=said), WHO).interval_ms == used


@pytest.mark.parametrize(
    ("requested", "wanted", "unwanted"),
    [
        ((), (), ("org.a", "")),
        (("",), ("org.a",), ()),
        (("*",), ("org.a",), ()),
        (("org.b", "*"), ("org.a",), ()),
        (("org.a", "org.b"), ("org.a", "org.a.b", "org.b"), ("org", "com.a")),
        (("o*",), (), ("org",)),
    ],
)
def test_prefixes(requested: tuple[str, ...], wanted: tuple[str, ...], unwanted: tuple[str, ...]) -> None:
    found = Subscription.of(SAID._replace(requested_metrics=requested), WHO)
    assert all(found.wants(name) for name in wanted) and not any(found.wants(name) for name in unwanted)
    assert bool(found.prefixes) == bool(requested)


def test_an_instance_id_that_is_not_given() -> None:
    answer = SAID._replace(instance_id=NO_INSTANCE)
    assert Subscription.of(answer, WHO).instance_id == WHO
    with pytest.raises(ProtocolError, match="no instance id"):
        Subscription.of(answer, NO_INSTANCE)


def test_a_limit_below_zero_is_none() -> None:
    assert Subscription.of(SAID._replace(max_bytes=-5), WHO).max_bytes == 0


EVENTS: list[Callable[[TelemetryDialog, float], Any]] = [
    lambda made, now: made.sent() if made.state in SENT else None,
    lambda made, now: made.subscribed(WANTED, now),
    lambda made, now: made.subscribed(WANTED._replace(prefixes=()), now),
    lambda made, now: made.pushed(now),
    lambda made, now: made.lost(now),
    lambda made, now: made.end(now),
    lambda made, now: made.stop(),
    *(lambda made, now, code=code: made.refused(code, now) for code in (*VERDICTS, 31)),
]


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.floats(0, 10_000)), max_size=30))
def test_no_order_of_events_is_refused(steps: list[tuple[Callable[[TelemetryDialog, float], Any], float]]) -> None:
    made, now = dialog(), 0.0
    for event, ms in steps:
        now += ms
        event(made, now)
        assert made.due == INFINITY or made.due <= now + max(DEFAULT_INTERVAL_MS, 1.5 * WANTED.interval_ms)
        assert not made.ended or made.due == INFINITY
