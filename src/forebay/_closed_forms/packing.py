"""How many records a full batch holds, from the sizes of the records and the room in a batch.

A batch is full when the next record does not fit; that record begins the next batch.  So large records begin batches
more often than their share says, and what is left over depends on the order.  With few records in a batch this is
followed exactly, record by record; with many, the mean left over of renewal theory is exact enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

MOST_EXACT = 24
"""Mean records of a batch up to which the sums are followed."""
MOST_SUMS = 500
"""Sums that are followed at most; more kinds of sizes than that are like any size."""
ROUNDS = 60
"""Of the iteration for the kind that begins a batch."""

Counts = tuple[tuple[int, float], ...]
Ends = dict[tuple[int, int], float]
"""Share of (records of a full batch, kind of the record that did not fit)."""


@dataclass(frozen=True, slots=True)
class Packing:
    """``counts``: records of a full batch, with the share of each number; ``mean``: of them."""

    counts: Counts
    mean: float


@lru_cache(maxsize=4096)
def full_batches(
    sizes: tuple[tuple[float, float], ...], room: float, *, in_turn: bool = False, lingering: float = math.inf
) -> Packing:
    """Records of a full batch.

    Args:
        sizes: (bytes of a record, share).
        room: bytes of records that a batch takes; a larger record goes alone.
        in_turn: the sizes come in this order, again and again; else each is drawn by its share.
        lingering: mean number of records that come while a batch lingers.  If few do, most batches are not ended by a
            record that does not fit, and the next one begins with any record.
    """
    mean = sum(size * share for size, share in sizes) / sum(share for _, share in sizes)
    if len(sizes) == 1:
        fits = max(1, math.floor(room / mean + 1e-9))
        return Packing(((fits, 1.0),), float(fits))
    if room / mean <= MOST_EXACT or in_turn:
        ends = [_in_turn(sizes, room, first) if in_turn else _drawn(sizes, room, first) for first in range(len(sizes))]
        if all(ends):
            return _packing(sizes, [end for end in ends if end], lingering)
    squares = sum(size * size * share for size, share in sizes) / sum(share for _, share in sizes)
    return _between(max(1.0, (room - squares / (2 * mean)) / mean))


def _between(mean: float) -> Packing:
    """A mean as the two whole numbers beside it."""
    low = math.floor(mean)
    part = mean - low
    return Packing(((low, 1.0 - part), (low + 1, part)) if part > 0 else ((low, 1.0),), mean)


def _in_turn(sizes: Sequence[tuple[float, float]], room: float, first: int) -> Ends:
    """The one way in which a batch that begins with the kind ``first`` ends."""
    held, count = sizes[first][0], 1
    while held + (size := sizes[(first + count) % len(sizes)][0]) <= room:
        held += size
        count += 1
    return {(count, (first + count) % len(sizes)): 1.0}


def _drawn(sizes: Sequence[tuple[float, float]], room: float, first: int) -> Ends | None:
    """All ways in which a batch that begins with the kind ``first`` ends; None if they are too many."""
    total = sum(share for _, share in sizes)
    sums, count = {sizes[first][0]: 1.0}, 1
    ends: Ends = {}
    while sums:
        if len(sums) > MOST_SUMS:
            return None
        longer: dict[float, float] = {}
        for held, chance in sums.items():
            for kind, (size, share) in enumerate(sizes):
                part = chance * share / total
                if held + size <= room:
                    longer[held + size] = longer.get(held + size, 0.0) + part
                else:
                    ends[count, kind] = ends.get((count, kind), 0.0) + part
        # What is left of very long batches of the smallest records counts for nothing.
        sums = {held: chance for held, chance in longer.items() if chance > 1e-9}
        count += 1
    return ends


def _packing(sizes: Sequence[tuple[float, float]], ends: Sequence[Ends], lingering: float) -> Packing:
    """The records of a full batch, over the kinds that begin one in the long run."""
    total = sum(share for _, share in sizes)
    fresh = [share / total for _, share in sizes]
    following = [_next(end, fresh, lingering) for end in ends]
    begins = fresh
    for _ in range(ROUNDS):
        moved = [
            sum(weight * row[kind] for weight, row in zip(begins, following, strict=True)) for kind in range(len(sizes))
        ]
        # The mean of both, because kinds in turn would alternate for ever.
        begins = [(old + new) / 2 for old, new in zip(begins, moved, strict=True)]
    counts: dict[int, float] = {}
    for kind, weight in enumerate(begins):
        for (count, _), chance in ends[kind].items():
            counts[count] = counts.get(count, 0.0) + weight * chance
    whole = sum(counts.values())
    shares = tuple(sorted((count, chance / whole) for count, chance in counts.items()))
    return Packing(shares, sum(count * chance for count, chance in shares))


def _next(ends: Ends, fresh: Sequence[float], lingering: float) -> list[float]:
    """The kinds that begin the batch after one that ends in one of these ways, or lingered before that."""
    found = [0.0] * len(fresh)
    for (count, refused), chance in ends.items():
        found[refused] += chance * reaches(lingering, count)
    lingered = max(0.0, 1.0 - sum(found))
    return [share + lingered * other for share, other in zip(found, fresh, strict=True)]


def reaches(mean: float, least: int) -> float:
    """The chance that at least ``least`` come where ``mean`` are expected, if they come at random."""
    return 1.0 if math.isinf(mean) else 1.0 - at_most(mean, least - 1)


def at_most(mean: float, most: int) -> float:
    """The chance of at most ``most`` where ``mean`` are expected (Poisson).

    Exact for few; for many by Wilson and Hilferty's root, which is right to some thousandths.
    """
    if most < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    if most <= 12:
        term = total = math.exp(-mean)
        for number in range(1, most + 1):
            term *= mean / number
            total += term
        return min(1.0, total)
    count = most + 1
    deviation = ((mean / count) ** (1 / 3) - (1 - 1 / (9 * count))) * 3 * math.sqrt(count)
    return 0.5 * math.erfc(deviation / math.sqrt(2))
