"""What a simulation measures: latencies by part, batches and why they were closed, requests, memory, holds, failures.

The simulation tells a ``Recorder`` what happens.  Times are ms of its clock.  Rates count what happened while the load
came, totals count the rest, too: the batches that were under way at its end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

from forebay._records.layout import BATCH_OVERHEAD
from forebay._runtime.clock import Clock

POINTS = 200
"""Parts of the time of the load, for what is shown over time."""
CAUSES = ("full", "next", "linger", "along", "memory")
"""Why a batch was closed: it was full; the next record did not fit, though one as large as its own would have; it had
lingered; it was taken along by a request; memory was exhausted."""


class Histogram:
    """How often each time was seen, in whole microseconds."""

    __slots__ = ("_counts", "_sorted")

    def __init__(self) -> None:
        self._counts: defaultdict[int, int] = defaultdict(int)
        self._sorted: tuple[list[int], list[int]] | None = None

    def add(self, micros: Iterable[int]) -> None:
        """Counts each of these."""
        counts = self._counts
        for each in micros:  # most often few: Counter.update would cost more
            counts[each] += 1
        self._sorted = None

    def add_one(self, ms: float, count: int = 1) -> None:
        """Counts a time, ``count`` times."""
        if count:
            self._counts[int(ms * 1000)] += count
        self._sorted = None

    def merge(self, other: Histogram) -> None:
        """Counts all of ``other``, too."""
        for micros, count in other._counts.items():
            self._counts[micros] += count
        self._sorted = None

    def __len__(self) -> int:
        return sum(self._counts.values())

    def quantile(self, share: float) -> float:
        """The time (ms) that this share of all did not exceed; 0 without any."""
        if not self._counts:
            return 0.0
        times, sums = self._ordered()
        return times[bisect_left(sums, max(1, math.ceil(share * sums[-1])))] / 1000

    def mean(self) -> float:
        """Ms; 0 without any."""
        total = sum(micros * count for micros, count in self._counts.items())
        return total / len(self) / 1000 if self._counts else 0.0

    def buckets(self) -> list[tuple[float, int]]:
        """Upper bound (ms) and count: three digits of each time are kept."""
        found: dict[int, int] = {}
        for micros, count in sorted(self._counts.items()):
            bound = _rounded(micros)
            found[bound] = found.get(bound, 0) + count
        return [(bound / 1000, count) for bound, count in found.items()]

    def _ordered(self) -> tuple[list[int], list[int]]:
        if self._sorted is None:
            times = sorted(self._counts)
            self._sorted = times, list(accumulate(self._counts[micros] for micros in times))
        return self._sorted


def _rounded(micros: int) -> int:
    """Up, to three digits."""
    unit: int = 10 ** max(0, len(str(micros)) - 3)
    return -(-micros // unit) * unit


class Entry:
    """A batch from its first record to its outcome."""

    __slots__ = ("closed_at", "drained", "dues", "held", "is_full", "late", "times")

    def __init__(self) -> None:
        self.dues: list[float] = []
        """When its records were due."""
        self.times: list[float] = []
        """When they came into the batch."""
        self.held: list[tuple[int, float]] = []
        """Index of a record whose call was held, and how long (ms)."""
        self.late: bool = False
        """A record came in after it was due."""
        self.closed_at: float = math.inf
        """When the batch behind it began, if it still waited then."""
        self.drained: float = math.inf
        """When it was sent for the first time."""
        self.is_full: bool = False


class Node:
    """What one node got."""

    __slots__ = ("batches", "busy_ms", "latency", "memory", "records", "requests", "size", "throttled_ms")

    def __init__(self) -> None:
        self.requests: int = 0
        self.size: int = 0
        self.batches: int = 0
        self.records: int = 0
        self.busy_ms: float = 0.0
        self.latency: Histogram = Histogram()
        self.throttled_ms: int = 0
        self.memory: int = 0


class Recorder:
    """Listens to the simulated producers and brokers.

    Args:
        config: of the producers.
        nodes: their numbers.
    """

    def __init__(self, clock: Clock, config: Mapping[str, Any], nodes: Iterable[int]) -> None:
        self._clock = clock
        self.batch_size: int = config["batch.size"]
        self.memory: int = config["buffer.memory"]
        self._linger_ms: float = config["linger.ms"]
        self._span = (0.0, math.inf)
        self.nodes: dict[int, Node] = {number: Node() for number in nodes}
        self._on_time = Histogram()
        """Of records that were sent when they were due: their latency counts from both."""
        self.from_due: Histogram = Histogram()
        self.from_call: Histogram = Histogram()
        self.held: Histogram = Histogram()
        self.closing: Histogram = Histogram()
        self.waiting: Histogram = Histogram()
        self.flight: Histogram = Histogram()
        self.causes: Counter[str] = Counter()
        self.batch_bytes: int = 0
        self.retries: int = 0
        self.sent: int = 0
        self.acknowledged: int = 0
        self.in_time: int = 0
        """Records that were acknowledged while the load came."""
        self.refused: int = 0
        self.failed: Counter[str] = Counter()
        """Failed records by the phase in which their time ran out, or by the error."""
        self.holds: list[float] = []
        self.backlog: int = 0
        """Records that were due and not sent when the load ended, because all callers were held."""
        self.pool: list[int] = [0] * POINTS
        """The most memory in use, in each part of the time of the load."""
        self.slowest: list[float] = [0.0] * POINTS
        """The longest latency (ms) of the records that were due in that part."""
        self.pool_peak: int = 0
        self._latest, self._used, self._next_part = 0, 0, math.inf
        self.cpu_ms: float = 0.0

    def begin(self, at: float, end: float) -> None:
        """The load comes from now on."""
        self._span = (at, end)
        self._latest, self._next_part = -1, at

    @property
    def seconds(self) -> float:
        """For which the load comes."""
        return (self._span[1] - self._span[0]) / 1000

    # -- callers -----------------------------------------------------------------------------------------

    def hold(self, ms: float) -> None:
        """A call was held so long."""
        self.holds.append(ms)

    def refuse(self, error: Any) -> None:
        """A record came into no batch."""
        self.sent += 1
        self.refused += 1
        self.failed[_reason(error, "refused")] += 1

    def use_pool(self, used: int, holders: Callable[[], Iterable[tuple[Any, int]]]) -> None:
        """So many bytes of memory are in use now.

        Args:
            holders: gives the nodes and the bytes that wait for each; asked once in each part of the time.
        """
        if used > self.pool_peak:
            self.pool_peak = used
        if self._clock.now() >= self._next_part:
            self._begin_part(self._place(self._clock.now()), holders)
        self._used = used
        if used > self.pool[self._latest]:
            self.pool[self._latest] = used

    def _begin_part(self, place: int, holders: Callable[[], Iterable[tuple[Any, int]]]) -> None:
        for passed in range(self._latest + 1, place):
            self.pool[passed] = self._used  # nothing has changed meanwhile
        self._latest = place
        begin, end = self._span
        self._next_part = begin + (place + 1) * (end - begin) / POINTS if place < POINTS - 1 else math.inf
        for owner, size in holders():
            if owner in self.nodes:
                self.nodes[owner].memory = max(self.nodes[owner].memory, size)

    def _place(self, when: float) -> int:
        begin, end = self._span
        return min(max(0, int((when - begin) * POINTS / (end - begin))), POINTS - 1)

    # -- the sender --------------------------------------------------------------------------------------

    def drain(self, entry: Entry, batch: Any, *, starved: bool) -> None:
        """A batch is being sent; ``starved``: callers wait for memory."""
        if batch.attempts > 0:
            self.retries += 1
        if entry.drained < math.inf:
            return
        entry.drained = batch.drained
        entry.is_full = not batch.sparse
        if batch.drained >= self._span[1]:
            return
        size = BATCH_OVERHEAD + batch.records.payload_size
        count = batch.record_count
        self.causes[self._cause(entry, batch, size / count, starved)] += 1
        self.batch_bytes += size
        node = self.nodes[batch.last_node]
        node.batches += 1
        node.records += count

    def _cause(self, entry: Entry, batch: Any, mean_size: float, starved: bool) -> str:
        if entry.is_full:
            room = self.batch_size - BATCH_OVERHEAD - batch.records.raw_size
            return "next" if room >= mean_size else "full"
        if batch.drained >= batch.created + self._linger_ms:
            return "linger"
        return "memory" if starved else "along"

    def finish(self, entry: Entry, result: Any) -> None:
        """A batch has its outcome."""
        count = len(entry.dues)
        self.sent += count
        if result.error is not None:
            self._fail(count, result)
            return
        self.acknowledged += count
        done = self._clock.now()
        if done < self._span[1]:
            self.in_time += count
        times = entry.times
        micros = [int((done - at) * 1000) for at in times]
        if entry.late:
            self.from_due.add(int((done - due) * 1000) for due in entry.dues)
            for at, ms in entry.held:
                micros[at] += int(ms * 1000)
            self.from_call.add(micros)
        else:
            self._on_time.add(micros)
        self._parts(entry, times, done)
        place = self._place(entry.dues[0])
        if done - entry.dues[0] > self.slowest[place]:
            self.slowest[place] = done - entry.dues[0]

    def _fail(self, count: int, result: Any) -> None:
        parts = result.parts
        if not parts:
            self.failed[_reason(result.error, "failed")] += count
            return
        for part in parts:
            if part.error is None:
                self.acknowledged += part.record_count
            else:
                self.failed[_reason(part.error, "failed")] += part.record_count

    def _parts(self, entry: Entry, times: list[float], done: float) -> None:
        drained = entry.drained
        ready = min(times[0] + self._linger_ms, entry.closed_at if entry.is_full else drained, drained)
        if entry.is_full and entry.closed_at == math.inf:
            ready = min(ready, times[-1])
        self.closing.add(int((ready - at) * 1000) if at < ready else 0 for at in times)
        if times[-1] <= ready:
            self.waiting.add_one(drained - ready, len(times))
        else:
            self.waiting.add(int((drained - (at if at > ready else ready)) * 1000) for at in times)
        self.flight.add_one(done - drained, len(times))

    # -- brokers -----------------------------------------------------------------------------------------

    def wrote(self, node: int, size: int) -> None:
        """As ``Watcher.wrote``."""
        if self._clock.now() < self._span[1]:
            self.nodes[node].requests += 1
            self.nodes[node].size += size

    def served(self, node: int, size: int, busy_ms: float, latency_ms: float) -> None:
        """As ``Watcher.served``."""
        if self._clock.now() < self._span[1]:
            self.nodes[node].busy_ms += busy_ms
        self.nodes[node].latency.add_one(latency_ms)

    def throttled(self, node: int, throttle_ms: int) -> None:
        """As ``Watcher.throttled``."""
        self.nodes[node].throttled_ms += throttle_ms

    def end(self, backlog: int) -> None:
        """Nothing more comes; so many records were due and not sent."""
        self.backlog = backlog
        self.from_due.merge(self._on_time)
        self.from_call.merge(self._on_time)
        self.held.add(int(ms * 1000) for ms in self.holds)
        self.held.add_one(0, max(0, self.acknowledged - len(self.holds)))


def _reason(error: Any, otherwise: str) -> str:
    """The phase that an error names, or its class."""
    phase = getattr(error, "context", {}).get("phase")
    return str(phase).partition(" (")[0] if phase else getattr(error, "name", otherwise)
