"""The interpreted parking place; the compiled one is in C, and test_gil.py parks in it."""

from __future__ import annotations

import threading

import pytest

from forebay._runtime import parking as _parking
from forebay._runtime.parking import Parking, asleep_in, next_turn, park, turn_of


def test_who_has_missed_a_turn_does_not_sleep() -> None:
    lot = Parking()
    seen = turn_of(lot)
    next_turn(lot)
    assert turn_of(lot) == seen + 1
    assert not park(lot, seen, 999_000_000)


def test_a_turn_that_does_not_come() -> None:
    lot = Parking()
    assert park(lot, turn_of(lot), 1_000)
    assert asleep_in(lot) == 0


def test_each_turn_wakes_the_one_that_has_slept_longest() -> None:
    lot = Parking()
    woken: list[int] = []
    threads = []

    def sleep(number: int) -> None:
        assert not park(lot, turn_of(lot), 999_000_000)
        woken.append(number)

    for number in range(3):
        threads.append(threading.Thread(target=sleep, args=(number,)))
        threads[-1].start()
        while asleep_in(lot) <= number:
            pass
    for number in range(3):
        next_turn(lot)
        threads[number].join()
        assert asleep_in(lot) == 2 - number
    assert woken == [0, 1, 2]


def test_who_is_interrupted_does_not_count_as_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    lot = Parking()

    class Interrupted:
        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if timeout >= 0:
                raise KeyboardInterrupt
            return True

    monkeypatch.setattr(_parking, "Lock", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        park(lot, turn_of(lot), 1_000)
    assert asleep_in(lot) == 0
