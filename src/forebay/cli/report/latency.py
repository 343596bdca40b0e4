"""Counts and latencies of ``forebay perf``, and the lines of kafka-producer-perf-test that scripts read."""

from __future__ import annotations

import math
from collections.abc import Callable

MAX_SAMPLES = 500_000
MIB = 1024.0 * 1024.0
QUANTILES = (0.5, 0.95, 0.99, 0.999)


class Stats:
    """What was acknowledged since ``now``; recorded on the sender's thread, read when that has ended.

    Latencies are whole milliseconds, as in the Java tool; of more than 500,000 records every n-th is kept for the
    quantiles.

    Args:
        records: how many are to come.
        interval_ms: a line is written for each, with the first acknowledgement after it.
        write: takes the lines.
        steady: counts what comes after the warm-up, and says so.
    """

    def __init__(
        self, records: int, now: float, *, interval_ms: float, write: Callable[[str], object], steady: bool = False
    ) -> None:
        self.count: int = 0
        self.quiet = False
        """No more lines for intervals: the steady state's take their place."""
        self._bytes = 0
        self._total_ms = 0
        self._max_ms = 0
        self._latencies: list[int] = []
        self._every = max(records // MAX_SAMPLES, 1)
        self._begun = now
        self._interval = interval_ms
        self._write = write
        self._steady = steady
        self._window = _Window(now)

    def record(self, size: int, latency_ms: int, now: float) -> None:
        """An acknowledgement of ``size`` bytes."""
        if not self.count % self._every:
            self._latencies.append(latency_ms)
        self.count += 1
        self._bytes += size
        self._total_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)
        window = self._window
        window.count += 1
        window.bytes += size
        window.total_ms += latency_ms
        window.max_ms = max(window.max_ms, latency_ms)
        if now - window.begun >= self._interval:
            self._end_window(now)

    def _end_window(self, now: float) -> None:
        window = self._window
        if self._steady and window.count == self.count:
            self._write("In steady state.")
        if not self.quiet:
            elapsed = now - window.begun
            self._write(
                f"{window.count} records sent, {_per_second(window.count, elapsed, 1)} records/sec "
                f"({_per_second(window.bytes / MIB, elapsed, 2)} MB/sec), "
                f"{window.total_ms / window.count:.1f} ms avg latency, {window.max_ms:.1f} ms max latency."
            )
        self._window = _Window(now)

    def total(self, now: float) -> str:
        """The last line."""
        elapsed = now - self._begun
        mean = f"{self._total_ms / self.count:.2f}" if self.count else "NaN"
        quantiles = ", ".join(
            f"{value} ms {name}th" for name, value in zip(("50", "95", "99", "99.9"), self._quantiles(), strict=True)
        )
        return (
            f"{self.count}{' steady state' if self._steady else ''} records sent, "
            f"{_per_second(self.count, elapsed, 6)} records/sec ({_per_second(self._bytes / MIB, elapsed, 2)} MB/sec), "
            f"{mean} ms avg latency, {self._max_ms:.2f} ms max latency, {quantiles}."
        )

    def _quantiles(self) -> list[int]:
        found = sorted(self._latencies) or [0]
        return [found[int(share * len(found))] for share in QUANTILES]


class _Window:
    """What was acknowledged since the last line."""

    __slots__ = ("begun", "bytes", "count", "max_ms", "total_ms")

    def __init__(self, now: float) -> None:
        self.begun = now
        self.bytes = 0
        self.count = 0
        self.max_ms = 0
        self.total_ms = 0


def _per_second(amount: float, elapsed_ms: float, digits: int) -> str:
    """A rate as Java prints it, no time having passed included."""
    if elapsed_ms <= 0:
        return "Infinity" if amount else "NaN"
    rate = 1000.0 * amount / elapsed_ms
    return f"{rate:.{digits}f}" if math.isfinite(rate) else "Infinity"
