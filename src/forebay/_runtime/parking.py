"""The interpreted form of ``_runtime/parking.pxd``: threads sleep until a turn wakes them."""

from __future__ import annotations

from _thread import LockType

from forebay._runtime.threads import Lock


class Parking:
    """Each turn wakes the thread that has slept longest."""

    def __init__(self) -> None:
        self.turns = 0
        self.lock = Lock()
        self.sleeping: list[LockType] = []
        """A lock for each thread that sleeps; to release it wakes the thread.  The first has slept longest.  Guarded by
        ``lock``."""


def asleep_in(lot: Parking) -> int:
    """How many threads sleep."""
    return len(lot.sleeping)


def turn_of(lot: Parking) -> int:
    """The number of the current turn."""
    return lot.turns


def park(lot: Parking, seen: int, nanoseconds: int) -> bool:
    """Sleeps until a turn after ``seen``; True if ``nanoseconds`` (less than a second) passed first."""
    mine = Lock()
    mine.acquire()
    with lot.lock:
        if lot.turns != seen:
            return False
        lot.sleeping.append(mine)
    try:
        return not mine.acquire(timeout=nanoseconds / 1e9)
    finally:
        with lot.lock:
            if mine in lot.sleeping:
                lot.sleeping.remove(mine)


def next_turn(lot: Parking) -> None:
    """Wakes the thread that has slept longest."""
    with lot.lock:
        lot.turns += 1
        if lot.sleeping:
            lot.sleeping.pop(0).release()
