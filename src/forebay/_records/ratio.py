"""An estimate of how well each topic compresses.  It lets a batch hold more raw bytes than ``batch.size``.

One estimator belongs to one producer (Java's is shared by all producers of a process).  It falls slowly and
rises fast, so that a batch seldom turns out larger than promised.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

from forebay._records.compression import CompressionType

INITIAL_RATIO = cython.declare(cython.double, 1.0)
IMPROVING_STEP = 0.005
DETERIORATE_STEP = 0.05
ESTIMATION_FACTOR = 1.05
"""The safety factor of an estimated size."""


@cython.final
@cython.cclass
class CompressionRatioEstimator:
    """Compressed size divided by raw size, per topic and codec; any thread.

    ``lock`` guards the read-and-write of an update; reading alone needs none.  The sender's thread takes it too, and a
    signal handler that sends may interrupt a send that closes a batch.  So this is compiled, and no Python code runs
    under the lock: the keys hold a plain int, because an enum's hash is Python code.
    """

    def __init__(self) -> None:
        if not cython.compiled:
            self.lock = Mutex()
        self.ratios: dict[tuple[str, int], float] = {}

    def estimation(self, topic: str, codec: CompressionType) -> float:
        """The ratio to expect, 1.0 until a batch has been seen."""
        return self.ratios.get((topic, int(codec)), INITIAL_RATIO)

    def update(self, topic: str, codec: CompressionType, observed: cython.double) -> float:
        """Adds a closed batch's ratio; returns the new estimate, which is never below that ratio."""
        key = (topic, int(codec))
        current: cython.double
        acquire(self.lock)
        try:
            current = self.ratios.get(key, INITIAL_RATIO)
            if observed > current:
                current = max(current + DETERIORATE_STEP, observed)
            elif observed < current:
                current = max(current - IMPROVING_STEP, observed)
            self.ratios[key] = current
        finally:
            release(self.lock)
        return current

    def set(self, topic: str, codec: CompressionType, ratio: float) -> None:
        """Replaces the estimate, as a split does with max(1.0, the ratio of the batch that was too large)."""
        self.ratios[topic, int(codec)] = ratio

    def reset(self, topic: str) -> None:
        """Forgets a topic that metadata does not know any more."""
        for codec in CompressionType:
            self.ratios.pop((topic, int(codec)), None)
