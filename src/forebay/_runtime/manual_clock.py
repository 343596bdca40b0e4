"""ManualClock: a clock that only its owner moves: a test, or a simulation."""

from __future__ import annotations

from forebay._runtime.clock import Clock


class ManualClock(Clock):
    """Monotonic and wall time have different starts, so that mixing them up fails at once."""

    def __init__(self, now: float = 10_000.0, wall: int = 1_700_000_000_000) -> None:
        self._now = now
        self._wall = wall
        # Not yet in the wall clock, which shows whole milliseconds; in [0, 1).
        self._fraction = 0.0

    def now(self) -> float:
        return self._now

    def wall(self) -> int:
        return self._wall

    def advance(self, ms: float) -> None:
        """Moves both clocks forward by ``ms`` milliseconds."""
        self._pass(ms)
        self._now += ms

    def move_to(self, when: float) -> None:
        """Moves both clocks forward until ``now`` is ``when``, exactly: a sum of steps might end just before it."""
        self._pass(when - self._now)
        self._now = when

    def _pass(self, ms: float) -> None:
        if ms < 0:
            raise ValueError(f"a clock does not go back: {ms} ms")
        fraction = self._fraction + ms
        if fraction >= 1:
            whole = int(fraction)
            self._wall += whole
            fraction -= whole
        self._fraction = fraction
