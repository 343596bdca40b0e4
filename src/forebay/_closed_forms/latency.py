"""A latency as a distribution: points in milliseconds with weights, which add up, mix and have quantiles."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

TAIL = (0.0, 0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0)
"""Where an unbounded wait is cut into points: finer towards its end, of which high quantiles are made."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Points of a distribution, in ms, ascending, and the share of records up to and with each point."""

    points: tuple[float, ...]
    up_to: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The smallest point that at least ``share`` of the records do not exceed."""
        # Not interpolated: between the records of a fast and of a slow node there are none.
        return self.points[min(bisect_left(self.up_to, share), len(self.points) - 1)]

    @property
    def p50(self) -> float:
        return self.quantile(0.5)

    @property
    def p99(self) -> float:
        return self.quantile(0.99)

    @property
    def p999(self) -> float:
        return self.quantile(0.999)

    @property
    def mean(self) -> float:
        return sum(point * weight for point, weight in self.weighted())

    def weighted(self) -> list[tuple[float, float]]:
        """The points with the weight of each."""
        before = (0.0, *self.up_to[:-1])
        return [(point, here - below) for point, here, below in zip(self.points, self.up_to, before, strict=True)]

    def plus(self, other: Latency) -> Latency:
        """The sum of two waits that do not depend on each other."""
        mine, theirs = self.weighted(), other.weighted()
        return latency((one + two, weight * share) for one, weight in mine for two, share in theirs if share > 0)

    def later(self, ms: float) -> Latency:
        """The same, ``ms`` later."""
        return Latency(tuple(point + ms for point in self.points), self.up_to)


def later_of(one: Latency, other: Latency) -> Latency:
    """The longer of two waits that grow together: who waits long for the one waits long for the other."""
    points: list[tuple[float, float]] = []
    mine = theirs = 0
    reached = 0.0
    while mine < len(one.points) and theirs < len(other.points):
        ends = min(one.up_to[mine], other.up_to[theirs])
        points.append((max(one.points[mine], other.points[theirs]), ends - reached))
        reached = ends
        mine, theirs = mine + (one.up_to[mine] <= ends), theirs + (other.up_to[theirs] <= ends)
    return latency(points)


def latency(weighted: Iterable[tuple[float, float]]) -> Latency:
    """A distribution of (ms, weight) in any order; the weights need not add up to 1."""
    ordered = sorted((point, weight) for point, weight in weighted if weight > 0) or [(0.0, 1.0)]
    total = math.fsum(weight for _, weight in ordered)
    up_to = [min(1.0, here / total) for here in accumulate(weight for _, weight in ordered)]
    up_to[-1] = 1.0
    return Latency(tuple(point for point, _ in ordered), tuple(up_to))


def mixed(parts: Sequence[tuple[float, Latency]]) -> Latency:
    """Distributions side by side, by the weight of each: what records of several nodes see together."""
    return latency((point, share * weight) for share, part in parts for point, weight in part.weighted())


def uniform(low: float, high: float, cells: int = 20) -> list[tuple[float, float]]:
    """A wait that is as likely anywhere between ``low`` and ``high``, as weighted points."""
    return [(low + (high - low) * (at + 0.5) / cells, 1 / cells) for at in range(cells)]


def waiting(chance: float, mean: float) -> Latency:
    """A wait that occurs with ``chance`` and is exponential with ``mean`` then: what queues have."""
    if chance <= 0 or mean <= 0:
        return latency([(0.0, 1.0)])
    points = [(0.0, 1.0 - chance)] if chance < 1 else []
    for low, high in pairwise(TAIL):
        # The mean of the cell, so that the mean of all is exact.
        points.append((mean * (_excess(low) - _excess(high)) / (high - low), chance * (high - low)))
    return latency(points)


def _excess(share: float) -> float:
    """The integral of the exponential quantile function from ``share`` to 1, for a mean of 1."""
    left = 1.0 - share
    return left - left * math.log(left) if left > 0 else 0.0
