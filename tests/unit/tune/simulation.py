"""A small simulation of a producer and its brokers, to hold closed forms to: plain queues, no code of the package.

Records come at random.  A batch lingers, or is full when a record does not fit.  A request takes one batch of each
partition of a node.  A broker serves one request of a connection at a time.  Without keys records go to the sticky
partition, which changes once it got ``batch.size`` bytes and its last batch is full or gone.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from forebay._closed_forms.latency import Latency, latency
from forebay._closed_forms.node import NodeCost, NodeLoad, Settings

OVERHEAD = 61


@dataclass(slots=True)
class Batch:
    created: float
    size: float = OVERHEAD
    due: list[float] = field(default_factory=list)
    full: bool = False
    counted: int = 0


@dataclass(slots=True)
class Node:
    load: NodeLoad
    cost: NodeCost
    partitions: list[deque[Batch]] = field(default_factory=list)
    in_flight: int = 0
    wire_free: float = 0.0
    line_free: float = 0.0
    busy: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    latency: Latency
    requests: float
    records_batch: float
    fill: float
    busy: float


class Simulation:
    """One producer."""

    def __init__(self, nodes: list[tuple[NodeLoad, NodeCost]], settings: Settings, seed: int) -> None:
        self.settings, self.random = settings, Random(seed)
        self.nodes = [Node(load, cost) for load, cost in nodes]
        for node in self.nodes:
            shares = node.load.partition_shares
            node.partitions = [deque() for _ in range(len(shares) if shares is not None else node.load.partitions)]
        self.keyless = [(node, queue) for node in self.nodes for queue in node.partitions]
        self.sticky, self.produced = self.random.choice(self.keyless), 0.0
        self.events: list[tuple[float, int, str, Node]] = []
        self.number, self.turns = count(), count()
        self.waits: list[float] = []
        self.requests = self.batches = self.records = self.due_until_end = 0
        self.bytes = self.room = 0.0
        self.started = self.ended = math.inf
        self.busy_before: list[float] = []
        self.counting = False
        self.arrivals = self.coming()

    def run(self, records: int) -> Measured:
        """Counts so many records, after a tenth as many; records go on to come until the last one has its answer."""
        start, end, came = records // 10, records + records // 10, 0
        at, node, size = next(self.arrivals)
        while came < end or self.due_until_end > 0:
            if not self.events or at <= self.events[0][0]:
                self.counting = start <= came < end
                if came == start:
                    self.started, self.busy_before = at, [each.busy for each in self.nodes]
                elif came == end:
                    self.ended, busy = at, [each.busy for each in self.nodes]
                self.arrive(node, size, at)
                came += 1
                at, node, size = next(self.arrivals)
            else:
                now, _, kind, where = heapq.heappop(self.events)
                where.in_flight -= kind == "answer"
                self.send(where, now)
        # Of the runs without waits, the last answer may come before the record after the end.
        span = (self.ended if came > end else at) - self.started
        busy = busy if came > end else [each.busy for each in self.nodes]
        return Measured(
            latency((wait, 1.0) for wait in self.waits),
            self.requests / span * 1000,
            self.records / self.batches,
            self.bytes / self.room,
            max(after - before for before, after in zip(self.busy_before, busy, strict=True)) / span,
        )

    def coming(self) -> Iterator[tuple[float, Node, float]]:
        """(time, node, size) of each record."""
        rates = [node.load.rate / 1000 for node in self.nodes]
        now = 0.0
        while True:
            now += self.random.expovariate(sum(rates))
            (node,) = self.random.choices(self.nodes, rates)
            sizes = node.load.sizes
            if node.load.in_turn:
                size = sizes[next(self.turns) % len(sizes)][0]
            else:
                (size,) = self.random.choices([size for size, _ in sizes], [share for _, share in sizes])
            yield now, node, size

    def arrive(self, node: Node, size: float, now: float) -> None:
        shares, left = node.load.partition_shares, node
        if shares is not None:
            (queue,) = self.random.choices(node.partitions, shares)
        else:
            node, queue = left, _ = self.sticky
            fits = bool(queue) and self.fits(queue[-1], size)
            if not fits and self.produced >= self.settings.batch_size:
                if queue:
                    queue[-1].full = True
                self.sticky, self.produced = self.random.choice(self.keyless), 0.0
                node, queue = self.sticky
            self.produced += size if queue and self.fits(queue[-1], size) else size + OVERHEAD
        if queue and not self.fits(queue[-1], size):
            queue[-1].full = True
        if not queue or queue[-1].full:
            queue.append(Batch(now))
            heapq.heappush(self.events, (now + self.settings.linger_ms, next(self.number), "due", node))
        queue[-1].size += size
        queue[-1].due.append(now)
        queue[-1].counted += self.counting
        self.due_until_end += self.counting
        # Only now, as the sender runs later than the call: what is full takes along what has just begun.
        self.send(left, now)
        self.send(node, now)

    def fits(self, batch: Batch, size: float) -> bool:
        return not batch.full and batch.size + size <= self.settings.batch_size

    def send(self, node: Node, now: float) -> None:
        """As many requests as are due and find a slot."""
        linger = self.settings.linger_ms
        while node.in_flight < self.settings.in_flight:
            waiting = [queue for queue in node.partitions if queue]
            if not any(len(queue) > 1 or queue[0].full or queue[0].created + linger <= now + 1e-9 for queue in waiting):
                return
            self.request(node, [queue.popleft() for queue in waiting], now)

    def request(self, node: Node, batches: list[Batch], now: float) -> None:
        cost, size = node.cost, sum(batch.size for batch in batches)
        node.in_flight += 1
        node.wire_free = max(now, node.wire_free) + cost.wire(size)
        start = max(node.wire_free + cost.rtt_ms / 2, node.line_free)
        node.line_free = start + cost.service(size)
        node.busy += cost.service(size)
        answered = node.line_free + cost.rtt_ms / 2
        heapq.heappush(self.events, (answered, next(self.number), "answer", node))
        self.requests += self.counting
        for batch in batches:
            self.waits += [answered - due for due in batch.due if self.started <= due < self.ended]
            self.due_until_end -= batch.counted
            if self.counting:
                self.batches += 1
                self.records += len(batch.due)
                self.bytes += batch.size
                self.room += max(batch.size, self.settings.batch_size)


def measured(nodes: list[tuple[NodeLoad, NodeCost]], settings: Settings, *, seed: int, records: int) -> Measured:
    """What a run of so many records gives."""
    return Simulation(nodes, settings, seed).run(records)
