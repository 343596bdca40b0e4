"""Stalling: when a thread runs that would run now, on a machine that stalls and beside threads that compute."""

from __future__ import annotations

import math
import random
from bisect import bisect_right

from forebay.tune.stalls import LONG_MS, Stalls


class Stalling:
    """Moments in which nothing of a producer's process runs come at random, as often and as long as they were seen.

    Args:
        stalls: None: the machine never stalls.
        switch_ms: the longest wait of the sender for the interpreter's lock.
        chance: seeded.
    """

    def __init__(self, stalls: Stalls | None, switch_ms: float, chance: random.Random) -> None:
        self._chance = chance
        self._switch_ms = switch_ms
        spread, middle = ((), 0.0) if stalls is None else (stalls.spread, stalls.p50)
        # The median is in the costs: what it takes until a thread runs that is woken.
        self._short = [max(0.0, ms - middle) for ms in spread if ms < LONG_MS]
        self._long = [] if stalls is None else [ms for _when, ms in stalls.long]
        # By the time in which there is none.
        self._free_ms = 0.0 if stalls is None else max(1.0, 1000 * stalls.seconds - sum(self._long))
        self._begins: list[float] = []
        self._ends: list[float] = []
        self._known = 0.0 if self._long else math.inf
        """Until when the moments are drawn."""

    def running(self, at: float) -> float:
        """When a thread goes on that runs, and would do something at this time (ms)."""
        while self._known <= at:
            begin = self._known + self._chance.expovariate(len(self._long) / self._free_ms)
            self._begins.append(begin)
            self._known = begin + self._chance.choice(self._long)
            self._ends.append(self._known)
        place = bisect_right(self._ends, at)
        return self._ends[place] if place < len(self._ends) and self._begins[place] <= at else at

    def woken(self, at: float) -> float:
        """When a thread runs that slept, and would run at this time."""
        return self.running(at + self._chance.choice(self._short) if self._short else at)

    def turn(self, at: float) -> float:
        """When the sender has its turn."""
        return self.woken(at + self._chance.random() * self._switch_ms if self._switch_ms else at)
