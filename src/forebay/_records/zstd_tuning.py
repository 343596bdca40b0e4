"""The parameters of zstd that suit a topic's records at level 3, the default.  A batch is tried now and then.

The level looks for repetitions of 5 bytes (of 4 in 128 to 256 KiB) in two tables, one for short and one for long ones.
Records resemble each other, so most repetitions are long.  One table with hashes of 5, 6 or 7 bytes that fits into a
processor's nearest cache takes less time.  For most JSON, CSV, logs and numbers the result is as small or smaller.  For
other records two such tables are often enough.  Some records would become larger, and repetitions far behind are
forgotten sooner.  So each topic is tried.  It gets the first of ``CANDIDATES`` with which a sample, and then the whole
batch, is at most a hundredth larger than with the plain level; else it gets the plain level.  Other levels search in
other ways and are not tuned.
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
"""A smaller batch is not tried: a few records repeat too little."""

LEAST_TUNED = 4 * 1024
"""A smaller batch uses the plain level: it gains nothing, and has only short repetitions."""

LEAST_SHARE = 4
"""A batch that is smaller than this part of what was tried (at most a sample) uses the plain level, because a few
records repeat less, and in shorter pieces."""

TOLERANCE = 1.01
TELLING = 0.9
"""A sample that does not become smaller than this has no repetitions, so no tuning can find any."""

TRUSTED = 32 * 1024 * 1024
TRUSTED_BATCHES = 128
"""A finding holds for so many raw bytes of a topic, and so many batches as large as the one that was tried.  So trying
costs little beside compressing."""

GROWTH = 1.1
SHOWS_ALL = 1024 * 1024
"""A batch that is ``GROWTH`` times as large as the one that was tried is tried again, because more of it repeats, and
farther back.  A batch above ``SHOWS_ALL``, twice the window, is not tried again."""

MOST_WHOLE = 2
"""So many candidates that suit the sample are tried on the whole batch: if two forget too much, most do."""


class Finding(NamedTuple):
    """The tuning of a topic, and the size of the batch that was tried: one value, so that one step sets it."""

    tuning: Tuning | None
    size: int

    def covers(self, size: int) -> bool:
        """False if a batch is so much larger that it must be tried itself."""
        return self.size >= SHOWS_ALL or size <= GROWTH * self.size

    def tuning_for(self, size: int) -> Tuning | None:
        """The tuning for a batch that it covers."""
        return self.tuning if size >= max(LEAST_TUNED, min(self.size, SAMPLE) // LEAST_SHARE) else None


class TopicTunings:
    """The finding of each topic.  Any thread: each step is atomic, and of two trials at once the last counts."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}
        self._trusted: dict[str, int] = {}

    def choose(self, topic: str, chunks: Sequence[Chunk], size: int, pack: Pack) -> Tuning | None:
        """The tuning for ``chunks``, ``size`` bytes of records of ``topic``; None for the plain level.

        Args:
            pack: compresses with a tuning, or with the plain level.
        """
        found = self._found.get(topic, Finding(None, 0))
        left = self._trusted.get(topic, 0)
        if size >= LEAST_SAMPLE and (left <= 0 or not found.covers(size)):
            # One thread tries; the others use the old finding meanwhile, or the plain level if it covers too little.
            left = self._trusted[topic] = max(TRUSTED, TRUSTED_BATCHES * size)
            if not found.covers(size):
                self._found[topic] = Finding(None, size)
            found = self._found[topic] = Finding(best(chunks, size, pack), size)
        self._trusted[topic] = left - size
        return found.tuning_for(size)


def best(chunks: Sequence[Chunk], size: int, pack: Pack) -> Tuning | None:
    """The first of ``CANDIDATES`` with which a sample, and the whole batch, is as small as with the plain level."""
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
