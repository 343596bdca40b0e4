"""When the open batches of a node go out: at the end of ``linger.ms``, or when the first of them is full.

A cycle begins with the first record after a request and ends when everything that lingers goes along with the next
request.  Records come at random (Poisson), so whether time or room ends a cycle is a matter of chance, and so is how
long a record waits for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from forebay._closed_forms.latency import uniform
from forebay._closed_forms.packing import Packing, at_most
from forebay._closed_forms.queueing import Arrivals

STEPS = 40
"""Pieces into which the time of a cycle is cut."""
SURE = 1e-4
"""A chance below this one counts as never."""
GROUPS = 8
"""Kinds of partitions that are told apart by their share."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Cycles of one node.  Times in ms.

    records: mean number of records that go along at its end.
    mean, variance: of the time from one end to the next.
    shortest: no cycle is shorter, or next to none.
    lingers: share of the cycles that ``linger.ms`` ends; room ends the others.
    along: records of a cycle, on average, that go along at once because the sticky partition changed just before.
    waits: (wait of a record until its batch goes, weight).
    """

    records: float
    mean: float
    variance: float
    shortest: float
    lingers: float
    along: float
    waits: tuple[tuple[float, float], ...]

    @property
    def arrivals(self) -> Arrivals:
        """Its requests, for the queues behind it."""
        return Arrivals(self.mean, self.variance, self.shortest)


@dataclass(frozen=True, slots=True)
class Group:
    """``count`` partitions that get about the same ``share`` of a node's records each."""

    share: float
    count: int


ONE = (Group(1.0, 1),)
"""Without keys: one batch is open at a time."""


def grouped(shares: Sequence[float]) -> tuple[Group, ...]:
    """The partitions of a node in groups of about the same share, largest first."""
    total = math.fsum(shares)
    ordered = sorted((share / total for share in shares if share > 0), reverse=True)
    kinds = len(set(ordered))
    if kinds <= GROUPS:
        return tuple(Group(share, ordered.count(share)) for share in sorted(set(ordered), reverse=True))
    # Of equal ratio, so that the few large ones, which fill first, are not mixed with the many small ones.
    ratio = (ordered[-1] / ordered[0]) ** (1 / GROUPS)
    found: list[list[float]] = [[] for _ in range(GROUPS)]
    for share in ordered:
        found[min(GROUPS - 1, int(math.log(share / ordered[0]) / math.log(ratio)))].append(share)
    return tuple(Group(math.fsum(group) / len(group), len(group)) for group in found if group)


def batches_of(groups: Sequence[Group], records: float) -> float:
    """Open batches after ``records`` records, of which the first one opened one."""
    more = max(0.0, records - 1.0)
    opened = math.fsum(group.count * (1 - (1 - group.share) * math.exp(-group.share * more)) for group in groups)
    return min(records, opened) if records > 1 else 1.0


# Settings that differ only in what is in flight, or in how slow a broker is, have the same cycles.
@lru_cache(maxsize=1024)
def cycle(rate: float, linger: float, packing: Packing, groups: tuple[Group, ...] = ONE, *, near: float = 0.0) -> Cycle:
    """The cycles of a node that gets ``rate`` records a ms, with free connections.

    Args:
        packing: records of a full batch.
        groups: the partitions that records are spread over.
        near: without keys, the chance that the next sticky partition is another one of the same node.
    """
    if linger <= 0:
        gap = 1 / rate
        return Cycle(1.0, gap, gap * gap, 0.0, 1.0, 0.0, ((0.0, 1.0),))
    if _open(rate * linger, 2, packing, groups) > 1 - SURE:
        return _by_time(rate, linger)
    return _by_room(rate, linger, packing, groups, near)


def _by_time(rate: float, linger: float) -> Cycle:
    """Cycles that always end by ``linger``: the first record waits as long as that, the others any shorter time."""
    records, gap = 1 + rate * linger, 1 / rate
    first = (linger, 1 / records)
    rest = [(wait, weight * (1 - 1 / records)) for wait, weight in uniform(0.0, linger, STEPS)]
    return Cycle(records, records / rate, gap * gap, linger, 1.0, 0.0, (*rest, first))


def _by_room(rate: float, linger: float, packing: Packing, groups: Sequence[Group], near: float) -> Cycle:
    """Cycles that end by time or by room.

    With H(t) the chance that no batch is full t after the first record, and H1(t) the same where one record more is
    placed, records that wait longer than w are H(w) + rate * (integral of H1 from w to the end) in a cycle.
    """
    end = min(linger, _surely_full(rate, packing, groups))
    step = end / STEPS
    open_still = [_open(rate * at * step, 1, packing, groups) for at in range(STEPS + 1)]
    placed = [_open(rate * at * step, 2, packing, groups) for at in range(STEPS + 1)]
    rest = [0.0] * (STEPS + 1)
    for at in reversed(range(STEPS)):
        rest[at] = rest[at + 1] + rate * step * (placed[at] + placed[at + 1]) / 2
    longer = [first + later for first, later in zip(open_still, rest, strict=True)]
    waits = [((at + 0.5) * step, longer[at] - longer[at + 1]) for at in range(STEPS)]
    lingers = open_still[-1] if end == linger else 0.0
    along = _along(1 - lingers, near)
    records = 1 + rest[0] + along
    length = sum((one + two) / 2 for one, two in pairwise(open_still)) * step
    square = sum((one + two) / 2 * (at + 0.5) for at, (one, two) in enumerate(pairwise(open_still)))
    # After a linger, or after a record that went along, the next cycle begins with the next record.
    gap, gaps = 1 / rate, lingers + along
    square = 2 * square * step * step + 2 * gaps * (min(linger, length) * gap + gap * gap)
    mean = length + gaps * gap
    shares = [(wait, weight / records) for wait, weight in (*waits, (end, longer[-1]), (0.0, along)) if weight > 0]
    variance = max(0.0, square - mean * mean)
    return Cycle(records, records / rate, variance, 0.0, lingers, along, tuple(shares))


def _along(by_room: float, near: float) -> float:
    """Records that go along with a full batch, for a cycle.

    When a record does not fit, the sticky partition changes if it got ``batch.size`` bytes since it came: after two
    full batches, or after one if a record was taken along before.  The record then begins a batch elsewhere.  If that
    is on the same node, the request of the full batch takes it along.  A linger between them makes it as likely as not.
    """
    changes = by_room / (2 - near) + (1 - by_room) / 2
    return by_room * near * changes


def _surely_full(rate: float, packing: Packing, groups: Sequence[Group]) -> float:
    """Ms after which a batch is full, all but surely."""
    most = packing.counts[-1][0]
    largest = groups[0].share
    if most * groups[0].count == 1:
        return 9.3 / (rate * largest)
    return (most + 4 * math.sqrt(most) + 6) / (rate * largest)


def _open(mean: float, placed: int, packing: Packing, groups: Sequence[Group]) -> float:
    """The chance that no batch is full where ``mean`` records come at random after ``placed`` ones that are there."""
    chance = 1.0
    for group in groups:
        fits = 0.0
        for already, share in _placed(placed, group.share):
            fits += share * sum(part * at_most(mean * group.share, count - already) for count, part in packing.counts)
        chance *= min(1.0, fits) ** group.count
    return chance


def _placed(placed: int, share: float) -> list[tuple[int, float]]:
    """How many of the ``placed`` records are in a partition with this share, with the chance of each number."""
    numbers = range(placed + 1)
    found = [
        (number, math.comb(placed, number) * share**number * (1 - share) ** (placed - number)) for number in numbers
    ]
    return [(number, chance) for number, chance in found if chance > 0]
