"""A field: the requests of producers that are not simulated, made of what the simulated ones sent in a run before.

Each of these producers has a connection to each node.  On it the noted requests come again, at a phase of its own.  A
connection is served as a real one: one request at a time, and no more under way than may be in flight.  What comes
beyond that goes along with the last one that waits, as records do that no request may take yet.  So a fleet that asks
for more than the handlers can do slows itself down, and a field of what producers ask that have the brokers for
themselves is enough.

Nothing of this is in the agenda: a node serves what has come meanwhile when a real request asks for a handler.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from forebay.tune.brokers import Broker

AT_ONCE = 8192
"""Requests that are put in order at once."""


class Came(NamedTuple):
    """A request that came to a node: when (ms from the beginning of the load), its ms of a handler, its bytes."""

    at: float
    busy_ms: float
    size: int


class Notes:
    """Which requests came in a run, by node and by producer."""

    def __init__(self) -> None:
        self.streams: defaultdict[int, defaultdict[int, list[Came]]] = defaultdict(lambda: defaultdict(list))
        self._span = (math.inf, math.inf)

    def begin(self, at: float, end: float) -> None:
        """What comes in this time is noted."""
        self._span = (at, end)

    def add(self, node: int, producer: int, at: float, busy_ms: float, size: int) -> None:
        """A request came."""
        begin, end = self._span
        if begin <= at < end:
            self.streams[node][producer].append(Came(at - begin, busy_ms, size))


@dataclass(frozen=True, slots=True)
class Phases:
    """By how much each producer's requests are shifted, and whether they come again after ``span_ms``.

    A load that changes has to change for all of them at once.  So they are shifted by whole periods of its bursts, or
    not at all, and beside that by less than ``width_ms``.
    """

    span_ms: float
    period_ms: float
    width_ms: float

    @property
    def circular(self) -> bool:
        """What is shifted beyond the end comes at the beginning."""
        return self.period_ms < self.span_ms or self.width_ms >= self.span_ms

    def draw(self, chance: random.Random) -> float:
        """One phase, in ms."""
        periods = max(1, int(self.span_ms // self.period_ms))
        return chance.randrange(periods) * self.period_ms + chance.random() * self.width_ms


@dataclass(frozen=True, slots=True)
class Field:
    """So many producers that are not simulated.

    count: of them.
    streams: by node, what each simulated producer sent to it, in the order of coming.
    in_flight, most_bytes: limits of their requests: how many a connection may have, and how large one may be.
    acks_all: followers have to answer, too.
    in_turn: each has other partitions, so what one sends to a node another one sends to the next node.
    """

    count: int
    streams: Mapping[int, Sequence[Sequence[Came]]]
    phases: Phases
    in_flight: int
    most_bytes: int
    acks_all: bool
    in_turn: bool = False

    @classmethod
    def of(
        cls,
        notes: Notes,
        count: int,
        phases: Phases,
        config: Mapping[str, Any],
        *,
        partitions: int,
        in_turn: bool = False,
    ) -> Field:
        """What was noted, for ``count`` producers.

        Args:
            config: of each, complete.
            partitions: that a node leads; a request has one batch of each at most.
        """
        streams = {node: [*each.values()] for node, each in notes.streams.items()}
        # The smallest request is that of one batch, which a record may be larger than batch.size says.
        least = min((came.size for each in streams.values() for stream in each for came in stream), default=0)
        return cls(
            count,
            streams,
            phases,
            in_flight=config["max.in.flight.requests.per.connection"],
            most_bytes=min(config["max.request.size"], partitions * max(config["batch.size"], least)),
            acks_all=config["acks"] == -1,
            in_turn=in_turn,
        )

    def stream(self, node: int, nodes: int, number: int) -> Sequence[Came]:
        """What the producer of this number sends to a node, of ``nodes`` in all."""
        if self.in_turn:
            node = (node - 1 + number) % nodes + 1
        streams = self.streams.get(node, ())
        return streams[number % len(streams)] if streams else ()


class Line:
    """The connection of one producer."""

    __slots__ = ("free_at", "waiting")

    def __init__(self) -> None:
        self.free_at = -math.inf
        """When its next request may begin."""
        self.waiting: list[tuple[float, int]] = []
        """Ms of a handler and bytes of each request that waits."""


class NodeField:
    """The field at one node.

    Args:
        handlers: of the node; the times at which they are free, a heap.
        span: of the load: from and to, in ms.
        awake: the end of the silence that a time falls into, or that time.
    """

    def __init__(
        self,
        field: Field,
        node: int,
        nodes: int,
        broker: Broker,
        handlers: list[float],
        *,
        chance: random.Random,
        span: tuple[float, float],
        awake: Callable[[float], float] | None,
    ) -> None:
        self.away: bool = False
        """Nobody listens: what comes is lost."""
        self.requests: int = 0
        """That were begun."""
        self._end = span[1]
        self._field = field
        self._handlers = handlers
        self._fixed_ms = broker.fixed_ms
        # A lone request in flight makes the next one wait for the way, too.
        self._pause_ms = broker.replication_ms if field.acks_all else 0.0
        self._pause_ms += broker.rtt_ms if field.in_flight == 1 else 0.0
        self._awake = awake
        self._lines = [Line() for _ in range(field.count)]
        self._sources: list[tuple[int, float, Sequence[Came], list[float]]] = []
        times: dict[int, list[float]] = {}
        for number in range(field.count):
            stream = field.stream(node, nodes, number)
            phase = field.phases.draw(chance)
            if stream:
                own = times.setdefault(id(stream), [came.at for came in stream])
                self._sources.append((number, span[0] + phase, stream, own))
        total = sum(len(stream) for _number, _phase, stream, _times in self._sources)
        self._step = field.phases.span_ms * min(1.0, AT_ONCE / max(1, total))
        self._filled = span[0]
        self._coming: list[tuple[float, int, float, int]] = []
        self._at = 0
        self._held: list[tuple[float, int]] = []

    def advance(self, now: float) -> None:
        """Serves what came until ``now``."""
        while self._filled <= now and self._filled < self._end:
            self._serve(self._filled)
            self._fill()
        self._serve(now)

    def _fill(self) -> None:
        """Puts what comes next in order."""
        begin, end = self._filled, min(self._filled + self._step, self._end)
        phases, found = self._field.phases, self._coming[self._at :]
        span = phases.span_ms
        for number, phase, stream, times in self._sources:
            turn = math.floor((begin - phase) / span) if phases.circular else 0
            while True:
                offset = phase + turn * span
                low, high = bisect_left(times, begin - offset), bisect_left(times, end - offset)
                found += [(stream[at][0] + offset, number, stream[at][1], stream[at][2]) for at in range(low, high)]
                turn += 1
                if not phases.circular or phase + turn * span >= end:
                    break
        found.sort()
        self._coming, self._at, self._filled = found, 0, end

    def _serve(self, until: float) -> None:
        coming, held, lines, at, count = self._coming, self._held, self._lines, self._at, len(self._coming)
        while True:
            comes = coming[at][0] if at < count else math.inf
            if held and held[0][0] <= comes:
                if held[0][0] > until:
                    break
                when, number = heapq.heappop(held)
                busy_ms, _size = lines[number].waiting.pop(0)
                self._begin(number, when, busy_ms)
            elif comes <= until:
                when, number, busy_ms, size = coming[at]
                at += 1
                line = lines[number]
                if self.away:
                    continue
                if line.free_at <= when and not line.waiting:
                    self._begin(number, when, busy_ms)
                else:
                    self._wait(number, busy_ms, size)
            else:
                break
        self._at = at

    def _begin(self, number: int, when: float, busy_ms: float) -> None:
        handlers, line = self._handlers, self._lines[number]
        start = handlers[0] if handlers[0] > when else when
        if self._awake is not None:
            start = self._awake(start)
        heapq.heapreplace(handlers, start + busy_ms)
        line.free_at = start + busy_ms + self._pause_ms
        self.requests += 1
        if line.waiting:
            heapq.heappush(self._held, (line.free_at, number))

    def _wait(self, number: int, busy_ms: float, size: int) -> None:
        line, field = self._lines[number], self._field
        waiting = line.waiting
        if not waiting:
            heapq.heappush(self._held, (line.free_at, number))
        if len(waiting) >= field.in_flight and waiting[-1][1] + size <= field.most_bytes:
            before_ms, before = waiting.pop()
            busy_ms, size = before_ms + max(0.0, busy_ms - self._fixed_ms), before + size
        waiting.append((busy_ms, size))
