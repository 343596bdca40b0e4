"""The interpreted form of ``_parking.pxd``: where threads sleep until it is their turn."""

from __future__ import annotations

import threading


class Parking:
    """Each turn wakes the one that has slept longest."""

    def __init__(self) -> None:
        self.turns = self.asleep = 0
        self.condition = threading.Condition()


def asleep_in(lot: Parking) -> int:
    """How many sleep."""
    return lot.asleep


def turn_of(lot: Parking) -> int:
    """Which turn it is."""
    return lot.turns


def park(lot: Parking, seen: int, nanoseconds: int) -> bool:
    """Sleeps until a turn after ``seen``, or for so long at most (no second); True if that time has passed."""
    with lot.condition:
        lot.asleep += 1
        try:
            return lot.turns == seen and not lot.condition.wait(nanoseconds / 1e9)
        finally:
            lot.asleep -= 1


def next_turn(lot: Parking) -> None:
    """The turn of whoever has slept longest."""
    with lot.condition:
        lot.turns += 1
        lot.condition.notify()
