"""What a run gave, what it was run under, and what one wants of it: least of one figure, within limits of others."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from forebay._closed_forms.node import Settings
from forebay.errors import IllegalArgumentError

PENALTY = 10.0
"""What a broken limit costs: to be over it by a tenth is as bad as twice the present value of what is to be least."""
MOST_EXCESS = 100.0
LEAST = {"requests": "requests", "latency": "p99", "memory": "memory", "cpu": "cpu", "bytes": "bytes"}
"""What may be least, and the figure that says how much there is of it."""
LIMITS = {"p50_ms": "p50", "p99_ms": "p99", "memory": "memory", "lost": "lost", "hold_ms": "hold"}
"""What may have a limit, and its figure."""
OF_LATENCY = ("p50_ms", "p99_ms")
"""Limits that no settings may be able to keep while a broker is away."""

ROOM = {"p50_ms": 1.15, "p99_ms": 1.25, "hold_ms": 1.1}
"""Times by which what is measured may be above what is predicted: the tolerances of a prediction."""
WITH_ROOM, BARELY, BROKEN = range(3)
"""How limits are kept: also if the prediction is off by as much; as it stands; not at all."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run gave.

    p50, p99: ms from a record's due time to its acknowledgement.
    requests, bytes: a second.
    memory: most bytes of the pool at any time.
    cpu: ms of the client's processor a second.
    lost: records that expired or were refused.
    hold: longest time in ms that a call waited for memory.
    """

    p50: float
    p99: float
    requests: float
    memory: float = 0.0
    bytes: float = 0.0
    cpu: float = 0.0
    lost: float = 0.0
    hold: float = 0.0


def mean_of(runs: Sequence[Figures]) -> Figures:
    """The mean of each figure; of those that are the worst of a run, the worst."""
    means = {each.name: math.fsum(getattr(run, each.name) for run in runs) / len(runs) for each in fields(Figures)}
    worst = {name: max(getattr(run, name) for run in runs) for name in ("memory", "lost", "hold")}
    return Figures(**means | worst)


def spread_of(runs: Sequence[Figures]) -> dict[str, tuple[float, float]]:
    """The least and the most of each figure."""
    names = [each.name for each in fields(Figures)]
    values = {name: [getattr(run, name) for run in runs] for name in names}
    return {name: (min(found), max(found)) for name, found in values.items()}


@dataclass(frozen=True, slots=True)
class Variation:
    """How a run differs from the load and the brokers as they are said to be.

    rate: factor of all rates.
    outage: the number of the declared outage that takes place; None for none.
    slow_node: the number of a node that serves twice as slowly.
    """

    rate: float = 1.0
    outage: int | None = None
    slow_node: int | None = None

    @property
    def name(self) -> str:
        """In a sentence."""
        if self.outage is not None:
            return f"outage {self.outage + 1}"
        if self.slow_node is not None:
            return f"broker {self.slow_node + 1} twice as slow"
        return "the load as it is" if self.rate == 1 else f"a rate {100 * (self.rate - 1):+.0f} %"


AS_IT_IS = Variation()


class Simulate(Protocol):
    """Runs the load with these settings.  The same seed means the same arrivals, whatever the settings are."""

    def __call__(self, settings: Settings, seed: int, seconds: float, variation: Variation) -> Figures: ...


@dataclass(frozen=True, slots=True)
class Broken:
    """A limit that a run does not keep; ``excess`` is how far over it is, of the limit."""

    limit: str
    allowed: float
    value: float
    excess: float


@dataclass(frozen=True, slots=True)
class Objective:
    """What is to be least, within limits.  None is no limit."""

    least: str = "requests"
    p50_ms: float | None = None
    p99_ms: float | None = None
    memory: float | None = None
    lost: float | None = None
    hold_ms: float | None = None

    def __post_init__(self) -> None:
        if self.least not in LEAST:
            raise IllegalArgumentError(f"least must be one of {', '.join(LEAST)}, got {self.least!r}")
        for name, allowed in self.limits():
            if not allowed >= 0:
                raise IllegalArgumentError(f"{name} must be a number of at least 0, got {allowed!r}")

    def limits(self) -> list[tuple[str, float]]:
        """Those that are set."""
        found = [(name, getattr(self, name)) for name in LIMITS]
        return [(name, allowed) for name, allowed in found if allowed is not None]

    def value(self, figures: Figures) -> float:
        """Of what is to be least."""
        return float(getattr(figures, LEAST[self.least]))

    def broken(self, figures: Figures, waived: Collection[str] = ()) -> tuple[Broken, ...]:
        """The limits that a run does not keep, worst first; ``waived`` ones do not count."""
        found = []
        for name, allowed in self.limits():
            value = getattr(figures, LIMITS[name])
            if value > allowed and name not in waived:
                excess = value / allowed - 1 if allowed > 0 else value
                found.append(Broken(name, allowed, value, min(MOST_EXCESS, excess)))
        return tuple(sorted(found, key=lambda each: -each.excess))

    @property
    def with_room(self) -> Objective:
        """The same with limits that have room for the error of a prediction."""
        roomy: dict[str, Any] = {name: allowed / ROOM.get(name, 1.0) for name, allowed in self.limits()}
        return replace(self, **roomy)

    def kept(self, figures: Figures) -> int:
        """``WITH_ROOM``, ``BARELY`` or ``BROKEN``."""
        if self.broken(figures):
            return BROKEN
        return BARELY if self.with_room.broken(figures) else WITH_ROOM

    def excess(self, figures: Figures, *, slack: float = 0.0) -> float:
        """How far over its limits a run is, together.

        Args:
            slack: excess over each limit that is let pass, where figures are only estimates.
        """
        return math.fsum(max(0.0, each.excess - slack) for each in self.broken(figures))

    def loss(self, figures: Figures, scale: float, *, slack: float = 0.0) -> float:
        """One number that is smaller for better figures.

        Args:
            scale: the value that counts as 1.
            slack: as for ``excess``.
        """
        return self.value(figures) / scale + PENALTY * self.excess(figures, slack=slack)
