"""How well each topic compresses: the estimate that lets a batch hold more raw bytes than ``batch.size``.

One estimator belongs to one producer (Java's is shared by all producers of a process).  It falls slowly and
rises fast, so that a batch seldom turns out larger than promised.
"""

from __future__ import annotations

from forebay._records.compression import CompressionType
from forebay._runtime.threads import Lock

INITIAL_RATIO = 1.0
IMPROVING_STEP = 0.005
DETERIORATE_STEP = 0.05
ESTIMATION_FACTOR = 1.05
"""What an estimated size is multiplied with, to be on the safe side."""


class CompressionRatioEstimator:
    """Compressed size divided by raw size, per topic and codec; any thread."""

    def __init__(self) -> None:
        self._lock = Lock()  # guards the read-and-write of an update; reading alone needs none
        self._ratios: dict[tuple[str, CompressionType], float] = {}

    def estimation(self, topic: str, codec: CompressionType) -> float:
        """The ratio to expect, 1.0 until a batch has been seen."""
        return self._ratios.get((topic, codec), INITIAL_RATIO)

    def update(self, topic: str, codec: CompressionType, observed: float) -> float:
        """Takes a closed batch's ratio in and returns the new estimate, which is never below it."""
        with self._lock:
            current = self.estimation(topic, codec)
            if observed > current:
                current = max(current + DETERIORATE_STEP, observed)
            elif observed < current:
                current = max(current - IMPROVING_STEP, observed)
            self._ratios[topic, codec] = current
            return current

    def set(self, topic: str, codec: CompressionType, ratio: float) -> None:
        """Replaces the estimate, as a split does with max(1.0, the ratio of the batch that was too large)."""
        with self._lock:
            self._ratios[topic, codec] = ratio

    def reset(self, topic: str) -> None:
        """Forgets a topic, which metadata does not know any more."""
        with self._lock:
            for codec in CompressionType:
                self._ratios.pop((topic, codec), None)
