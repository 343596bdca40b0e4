"""Which parameters of zstd suit a topic's records at level 3, the default: found on one of its batches now and then.

The level looks for repetitions of 5 bytes (of 4 in 128 to 256 KiB) in two tables, one for short and one for long ones.
Records resemble each other, so most repetitions are long.  One table with hashes of 5, 6 or 7 bytes that fits into a
processor's nearest cache takes less time.  For most JSON, CSV, logs and numbers the result is as small or smaller; for
others two such tables often do.  Some records would become larger, and repetitions far behind are forgotten sooner.  So
each topic is tried: it gets the first of ``CANDIDATES`` whose sample, and then whole batch, is at most a hundredth
larger than the level's; else the level as it is.  Other levels search in other ways and are left alone.
docs/measurements.md has the figures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

Chunk = bytes | bytearray | memoryview


FAST, DFAST = 1, 2
"""zstd's numbers of its strategies with one table and with two."""


class Tuning(NamedTuple):
    """zstd's names; logarithms of bytes (window) and entries (tables), and bytes (match)."""

    strategy: int
    window_log: int
    hash_log: int
    chain_log: int
    min_match: int


CANDIDATES = (
    Tuning(FAST, 19, 14, 14, 6),
    Tuning(FAST, 19, 15, 14, 7),
    Tuning(FAST, 19, 14, 14, 5),
    Tuning(DFAST, 19, 15, 14, 7),
    Tuning(DFAST, 19, 15, 14, 6),
)
"""The fastest first."""

Pack = Callable[[Chunk, Tuning | None], bytes]
TUNED_LEVEL = 3
SAMPLE = 64 * 1024
LEAST_SAMPLE = 16 * 1024
"""Less says little: in a few records nothing repeats yet."""

LEAST_TUNED = 4 * 1024
"""For less nothing is won, and short repetitions are all there are."""

LEAST_SHARE = 4
"""A batch that is smaller than this share of what was tried (of a sample, if that was larger) goes by the level: in a
few records less repeats, and shorter pieces."""

TOLERANCE = 1.01
TELLING = 0.9
"""A sample that becomes no smaller than this says nothing: whatever is looked for, there is nothing to be found."""

TRUSTED = 32 * 1024 * 1024
TRUSTED_BATCHES = 128
"""A finding holds for so many raw bytes of a topic, and so many batches as large as the one that was tried.  So trying
costs little beside compressing."""

GROWTH = 1.1
SHOWS_ALL = 1024 * 1024
"""A batch that is ``GROWTH`` times as large as the one that was tried is tried again, because more of it repeats, and
farther back.  A batch above ``SHOWS_ALL``, twice the window, is not tried again."""

MOST_WHOLE = 2
"""Candidates that suit the sample and are tried on a whole batch: where two forget too much, most do."""


class Finding(NamedTuple):
    """What suits a topic, and the size of the batch that told: one value, so that one step sets it."""

    tuning: Tuning | None
    size: int

    def covers(self, size: int) -> bool:
        """False where a batch is so much larger that it has to be tried itself."""
        return self.size >= SHOWS_ALL or size <= GROWTH * self.size

    def tuning_for(self, size: int) -> Tuning | None:
        """For a batch that it covers."""
        return self.tuning if size >= max(LEAST_TUNED, min(self.size, SAMPLE) // LEAST_SHARE) else None


class TopicTunings:
    """What was found for each topic; any thread: each step is atomic, and of two that try at a time the last counts."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}
        self._trusted: dict[str, int] = {}

    def choose(self, topic: str, chunks: Sequence[Chunk], size: int, pack: Pack) -> Tuning | None:
        """The tuning for ``chunks``, ``size`` bytes of records of ``topic``; None for the level as it is.

        Args:
            pack: compresses a sample with a tuning, or with none.
        """
        found = self._found.get(topic, Finding(None, 0))
        left = self._trusted.get(topic, 0)
        if size >= LEAST_SAMPLE and (left <= 0 or not found.covers(size)):
            # One thread tries; the others go by what is known meanwhile, or by the level if that is too little.
            left = self._trusted[topic] = max(TRUSTED, TRUSTED_BATCHES * size)
            if not found.covers(size):
                self._found[topic] = Finding(None, size)
            found = self._found[topic] = Finding(best(chunks, size, pack), size)
        self._trusted[topic] = left - size
        return found.tuning_for(size)


def best(chunks: Sequence[Chunk], size: int, pack: Pack) -> Tuning | None:
    """The first of ``CANDIDATES`` that makes a sample of a batch as small as the level does, and all of it too."""
    sample = sample_of(chunks)
    plain = len(pack(sample, None))
    if plain > TELLING * len(sample):
        return None
    fit = (tuning for tuning in CANDIDATES if len(pack(sample, tuning)) <= plain * TOLERANCE)
    first = next(fit, None)
    if first is None or len(sample) == size:
        return first
    whole = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    limit = len(pack(whole, None)) * TOLERANCE
    tried = itertools.islice(itertools.chain([first], fit), MOST_WHOLE)
    return next((tuning for tuning in tried if len(pack(whole, tuning)) <= limit), None)


def sample_of(chunks: Sequence[Chunk]) -> Chunk:
    """The first bytes of ``chunks``, at most ``SAMPLE``."""
    if len(chunks[0]) >= LEAST_SAMPLE:
        return memoryview(chunks[0])[:SAMPLE]
    sample = bytearray()
    for chunk in chunks:
        sample += memoryview(chunk)[: SAMPLE - len(sample)]
        if len(sample) >= SAMPLE:
            break
    return sample
