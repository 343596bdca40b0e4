"""Which parameters of zstd suit a topic's records at level 3, the default: found on one of its batches now and then.

The level looks for repetitions of 5 bytes (of 4 in 128 to 256 KiB).  JSON, CSV and logs repeat longer pieces: looking
for 7 or 6 bytes in tables that fit into a processor's nearest cache takes 10 to 40 % less time, and what comes out is
up to 15 % smaller.  Binary records would come out up to 15 % larger, and what repeats far behind is forgotten sooner.
So nothing is taken for granted: a topic has the first of ``LONG`` that makes a sample no larger than the level does, by
more than a hundredth, and then the whole batch too; else the level as it is.  Other levels search in other ways and are
left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Chunk = bytes | bytearray | memoryview


class Tuning(NamedTuple):
    """zstd's names; logarithms of bytes (window) and entries (tables), and bytes (match)."""

    window_log: int
    hash_log: int
    chain_log: int
    min_match: int


LONG = (Tuning(19, 15, 14, 7), Tuning(19, 15, 14, 6))
Pack = Callable[[Chunk, Tuning | None], bytes]
TUNED_LEVEL = 3
SAMPLE = 64 * 1024
LEAST_SAMPLE = 16 * 1024
"""Less says little: in a few records nothing repeats yet."""

LEAST_TUNED = 4 * 1024
"""For less nothing is won, and short repetitions are all there are."""

TOLERANCE = 1.01
TELLING = 0.9
"""A sample that becomes no smaller than this says nothing: whatever is looked for, there is nothing to be found."""

TRUSTED = 32 * 1024 * 1024
TRUSTED_BATCHES = 128
"""Raw bytes of a topic, and batches as large as the one that was tried, for which a finding holds: trying takes 2 %."""


class TopicTunings:
    """What was found for each topic; any thread: each step is atomic, and of two that try at a time the last counts."""

    def __init__(self) -> None:
        self._found: dict[str, Tuning | None] = {}
        self._trusted: dict[str, int] = {}

    def choose(self, topic: str, chunks: Sequence[Chunk], size: int, pack: Pack) -> Tuning | None:
        """The tuning for ``chunks``, ``size`` bytes of records of ``topic``; None for the level as it is.

        Args:
            pack: compresses a sample with a tuning, or with none.
        """
        left = self._trusted.get(topic, 0)
        if left <= 0 and size >= LEAST_SAMPLE:
            self._found[topic] = best(chunks, size, pack)
            left = max(TRUSTED, TRUSTED_BATCHES * size)
        self._trusted[topic] = left - size
        return self._found.get(topic) if size >= LEAST_TUNED else None


def best(chunks: Sequence[Chunk], size: int, pack: Pack) -> Tuning | None:
    """The first of ``LONG`` that makes a sample of a batch as small as the level does, if all of it too."""
    sample = sample_of(chunks)
    plain = len(pack(sample, None))
    if plain > TELLING * len(sample):
        return None
    found = next((tuning for tuning in LONG if len(pack(sample, tuning)) <= plain * TOLERANCE), None)
    if found is None or len(sample) == size:
        return found
    whole = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    return found if len(pack(whole, found)) <= len(pack(whole, None)) * TOLERANCE else None


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
