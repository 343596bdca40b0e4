"""Events happen in the order of their times, and those of one time in the order in which they came."""

from __future__ import annotations

import math

from forebay._runtime.manual_clock import ManualClock
from forebay.tune._world.agenda import Agenda


def test_order_and_times() -> None:
    agenda = Agenda(ManualClock(now=0.0))
    seen: list[tuple[str, float]] = []

    def note(name: str) -> None:
        seen.append((name, agenda.clock.now()))

    for when, name in ((0.3, "c"), (0.1, "a"), (0.3, "d"), (0.2, "b")):
        agenda.at(when, note, name)
    while agenda.next_at() < math.inf:
        agenda.go_on()
    assert seen == [("a", 0.1), ("b", 0.2), ("c", 0.3), ("d", 0.3)]


def test_what_is_over_happens_at_once_and_the_clock_does_not_go_back() -> None:
    agenda = Agenda(ManualClock(now=5.0))
    seen: list[float] = []
    agenda.at(1.0, lambda: seen.append(agenda.clock.now()))
    agenda.go_on()
    agenda.move_to(2.0)
    assert (seen, agenda.clock.now()) == ([5.0], 5.0)


def test_what_is_forgotten() -> None:
    agenda = Agenda(ManualClock())
    agenda.at(1.0, list)
    agenda.clear()
    assert agenda.next_at() == math.inf
