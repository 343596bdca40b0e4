"""Agenda: the events of a simulation in the order of their times; the clock moves from one to the next."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

from forebay._runtime.manual_clock import ManualClock


class Agenda:
    """Events of the same time happen in the order in which they were put in, so a run is the same each time."""

    __slots__ = ("_count", "clock", "heap")

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, when: float, action: Callable[..., object], *arguments: Any) -> None:
        """Has ``action(*arguments)`` called when the clock reaches ``when`` (ms); at once if that is over."""
        self._count += 1
        heapq.heappush(self.heap, (when, self._count, action, arguments))

    def next_at(self) -> float:
        """The time of the next event; infinite without any."""
        return self.heap[0][0] if self.heap else math.inf

    def go_on(self) -> None:
        """Moves the clock to the next event, and lets it happen."""
        when, _number, action, arguments = heapq.heappop(self.heap)
        self.move_to(when)
        action(*arguments)

    def move_to(self, when: float) -> None:
        """Moves the clock to a time before the next event; a time that is over leaves it where it is."""
        if when > self.clock.now():
            self.clock.move_to(when)

    def clear(self) -> None:
        """Forgets all events."""
        self.heap.clear()
