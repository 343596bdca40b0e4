"""Exponential back-off with jitter (KIP-580): one rule for retries, reconnects and metadata.

``delay(n)`` is min(random[0.8, 1.2) x initial x 2^min(n, e), maximum) with e = log2(maximum / initial); where
the maximum does not exceed the initial delay it is constant and has no jitter.  Draw once per failure and keep
the result: drawing anew at every check would bias the wait low, as it does in the Java client.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SOON_MS = 20.0
"""The wait before a new try while the coordinator finishes the previous transaction, as in Java."""


class ExponentialBackoff:
    """Delays in milliseconds for the 0th, 1st, 2nd ... repeated failure."""

    def __init__(self, initial_ms: float, max_ms: float, random: Callable[[], float], jitter: float = 0.2) -> None:
        self._initial = min(initial_ms, max_ms)
        self._max = max_ms
        self._random = random
        self._jitter = jitter
        self._max_exponent = math.log2(max_ms / max(initial_ms, 1)) if max_ms > initial_ms else 0.0

    def delay(self, failures: int) -> float:
        """The wait in ms after ``failures`` earlier failures (0 for the first)."""
        if self._max_exponent == 0:
            return self._initial
        term = self._initial * 2 ** min(failures, self._max_exponent)
        spread = 1 + self._jitter * (2 * self._random() - 1)
        return min(term * spread, self._max)
