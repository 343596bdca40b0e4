"""The threads that send: which records come when, and what a thread does while its call is held."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import accumulate, chain, cycle, islice, repeat
from typing import Any, Protocol

from forebay._runtime.ticket import Ticket
from forebay.model._inputs import ProducerRecord
from forebay.producer._pending import PendingSend
from forebay.tune._world.agenda import Agenda
from forebay.tune._world.stalling import Stalling
from forebay.tune.trace import Trace
from forebay.tune.workload import Cycle, Keys, Lognormal, Mix, Sizes, Stream

BLOCK = 512
"""Numbers that are drawn at once."""
KEPT = 4096
"""Values of different sizes that are made once."""
SOON_MS = 0.001


Record = tuple[float, str, bytes, bytes | None, int | None]
"""What a caller is to send: when it is due (ms), topic, value, key, partition.  A plain tuple: there are many."""


class Producer(Protocol):
    """What callers need of a simulated producer."""

    path: Any
    """Its SendPath."""
    agenda: Agenda
    stalling: Stalling | None
    """Of its machine."""
    next_at: Callable[[], float]
    """When the world's next event is."""

    def accepted(self, future: Any, due: float, now: float, held_ms: float) -> float:
        """A record came into a batch, or was refused: its future has failed.

        Returns:
            What the call took beside its own cost (ms), such as for compression.
        """
        ...


def due_times(stream: Stream, chance: random.Random, begin: float, end: float) -> Iterator[float]:
    """When the records of a stream are due, or its tables, in ms from ``begin`` to ``end``."""
    draw: Callable[[float], float] = chance.expovariate if stream.arrivals == "poisson" else _interval
    for start, stop, rate in _stretches(stream, begin, end):
        if rate <= 0:
            continue
        when = start + draw(rate)
        while when < stop:
            yield when
            when += draw(rate)


def _interval(rate: float) -> float:
    return 1 / rate


def _stretches(stream: Stream, begin: float, end: float) -> Iterator[tuple[float, float, float]]:
    """From, to, and the rate (records or tables a ms) between; without memory, so a stretch may be cut anywhere."""
    per_ms = 1000 * stream.batch_rows
    steps = ((0.0, stream.rate),) if isinstance(stream.rate, float) else stream.rate
    for number, (second, rate) in enumerate(steps):
        start = begin + 1000 * second
        stop = min(begin + 1000 * steps[number + 1][0] if number + 1 < len(steps) else end, end)
        if stream.burst is None:
            yield start, stop, rate / per_ms
            continue
        period = stream.burst.on_ms + stream.burst.off_ms
        count = int((start - begin) // period)
        while begin + count * period < stop:
            on = begin + count * period
            yield max(on, start), min(on + stream.burst.on_ms, stop), rate / per_ms
            count += 1


def numbers(sizes: Sizes, chance: random.Random) -> Iterator[int]:
    """Sizes without end."""
    if isinstance(sizes, Cycle):
        yield from cycle(sizes.values)
    elif isinstance(sizes, Mix):
        values, weights = zip(*sizes.pairs, strict=True)
        bounds = list(accumulate(weights))
        while True:
            yield from chance.choices(values, cum_weights=bounds, k=BLOCK)
    else:
        yield from _lognormal(sizes, chance)


def _lognormal(sizes: Lognormal, chance: random.Random) -> Iterator[int]:
    while True:
        found = round(sizes.median * chance.lognormvariate(0, sizes.sigma))
        if found <= sizes.most:
            yield max(found, 1)


def values(sizes: Sizes, chance: random.Random) -> Iterator[bytes]:
    """Values of those sizes; their content means nothing here."""
    made: dict[int, bytes] = {}
    for size in numbers(sizes, chance):
        value = made.get(size)
        if value is None:
            value = bytes(size)
            if len(made) < KEPT:
                made[size] = value
        yield value


def keys(wanted: Keys, sizes: Sizes, chance: random.Random) -> Iterator[bytes]:
    """Keys by their shares; the key of a number is always the same."""
    every, bounds = _all_keys(wanted, sizes)
    while True:
        if wanted.zipf:
            yield from chance.choices(every, cum_weights=bounds, k=BLOCK)
        else:
            yield from chance.choices(every, k=BLOCK)


@lru_cache(maxsize=2)
def _all_keys(wanted: Keys, sizes: Sizes) -> tuple[list[bytes], list[float]]:
    """The keys, and the sums of their weights: a search asks for the same ones in each run."""
    size = numbers(sizes, random.Random("sizes of keys"))
    every = [str(number).encode().rjust(next(size), b"0") for number in range(wanted.count)]
    return every, list(accumulate(1 / (rank**wanted.zipf) for rank in range(1, wanted.count + 1)))


def partitions(shares: tuple[float, ...], chance: random.Random) -> Iterator[int]:
    """Partitions by their shares."""
    bounds = list(accumulate(shares))
    while True:
        yield bisect(bounds, chance.random() * bounds[-1], hi=len(bounds) - 1)


def records(stream: Stream, topics: tuple[str, ...], seed: str, begin: float, end: float) -> Iterator[Record]:
    """What a stream sends.  It depends on the seed alone: not on the settings, nor on what the producer does.

    Args:
        topics: that it sends to, in turn.
        begin: ms; records of closed callers are due then, all of them.
    """
    chances = {name: random.Random(f"{seed} {name}") for name in ("due", "value", "key", "partition")}
    topic = cycle(topics)
    value = values(stream.sizes, chances["value"])
    key: Iterator[Any] = cycle((None,))
    partition: Iterator[Any] = cycle((None,))
    if stream.keys is not None:
        key = keys(stream.keys, stream.key_sizes, chances["key"])
    if stream.partitions:
        partition = partitions(stream.partitions, chances["partition"])
    due = cycle((begin,)) if stream.callers == "closed" else due_times(stream, chances["due"], begin, end)
    if stream.batch_rows > 1:
        due = chain.from_iterable(repeat(at, stream.batch_rows) for at in due)
    return zip(due, topic, value, key, partition, strict=False)


def replays_from(trace: Trace, chance: random.Random, ms: float, *, first: bool = True) -> float:
    """The second of a trace with which a producer begins that replays it for so long.

    Args:
        chance: of all producers; each asks once.
        first: this is the first one, which replays the whole trace if there is time.
    """
    is_part = ms < 1000 * trace.seconds - SOON_MS
    return chance.random() * trace.seconds if is_part or not first else 0.0


def _settled(due: float, report: Any) -> None:
    """A callback that is there for the memory that it takes."""


class Caller(Ticket):
    """One thread.  Threads of a stream share its records: who is free takes the next one.

    It is also the ticket of its own wait for memory.

    Args:
        source: the records.
        think_ms: of a closed caller, from the return of a call to the next; None for an open one.
        record_ms: what a call takes.
        wake_ms: from the end of a wait until the thread runs.
        shifts: what a call was held delays all later records, as it did those that were recorded.
        callbacks: each record has a callback of its own.
    """

    def __init__(
        self,
        producer: Producer,
        source: Iterator[Record],
        *,
        think_ms: float | None,
        record_ms: float,
        wake_ms: float,
        end: float,
        shifts: bool = False,
        callbacks: bool = False,
    ) -> None:
        super().__init__()
        self.held_since: float | None = None
        """When the present call began, while it is held."""
        self.record: Record | None = None
        """What is sent next, or is being sent."""
        self._producer = producer
        self._agenda = producer.agenda
        self._stalling = producer.stalling
        self._source = source
        self._think_ms = think_ms
        self._costs = (record_ms, wake_ms)
        self._end = end
        self._shifts = shifts
        self._callbacks = callbacks
        self._shift_ms = 0.0
        self._pending: PendingSend | None = None
        self._woken = False

    def begin(self, at: float) -> None:
        """The thread starts."""
        self._agenda.at(self._take(at), self._go)

    def _take(self, free_at: float) -> float:
        """Takes the next record; when it is sent.  Infinite if there is none."""
        self.record = next(self._source, None)
        if self.record is None:
            return self._end
        if self._shift_ms:
            self.record = (self.record[0] + self._shift_ms, *self.record[1:])
        due = self.record[0]
        at = free_at if self._think_ms is not None or due < free_at else due
        if self._stalling is None:
            return at
        return self._stalling.woken(at) if at > free_at or self._think_ms else self._stalling.running(at)

    def _go(self) -> None:
        """Sends what is due, until something else happens in the world, or the call is held."""
        agenda, producer = self._agenda, self._producer
        try_send = producer.path._try_send
        rest_ms = self._costs[0] + (self._think_ms or 0.0)
        now = agenda.clock.now()
        while self.record is not None and now < self._end:
            due, topic, value, key, partition = self.record
            due = now if self._think_ms is not None else due
            callback = partial(_settled, due) if self._callbacks else None
            future = try_send(topic, value, key, None, partition, None, on_delivery=callback)
            if future is None:
                self._hold(due, now)
                return
            at = self._take(now + rest_ms + producer.accepted(future, due, now, 0.0))
            if at >= producer.next_at():
                agenda.at(at, self._go)
                return
            if at > now:
                agenda.clock.move_to(at)
                now = at

    def left(self) -> int:
        """How many records of an open caller were due and not sent; ends the records."""
        if self._think_ms is not None:
            return 0
        first, self.record = self.record, None
        return (first is not None) + sum(1 for _record in self._source)

    # -- a call that is held -----------------------------------------------------------------------------

    def _hold(self, due: float, now: float) -> None:
        assert self.record is not None
        _due, topic, value, key, partition = self.record
        self.record = (due, topic, value, key, partition)
        self.held_since = now
        record = ProducerRecord(topic, value, key, partition=partition)
        callback = partial(_settled, due) if self._callbacks else None
        self._pending = PendingSend(self._producer.path, record, callback)
        # A little later, because a sum of times may end just before the limit.
        self._agenda.at(now + self._pending.left() + SOON_MS, self._step, self._pending)
        self._step(self._pending)

    def wake(self) -> None:
        """As ``Ticket.wake``."""
        if not self._woken:
            self._woken = True
            at = self._agenda.clock.now() + self._costs[1]
            at = at if self._stalling is None else self._stalling.woken(at)
            self._agenda.at(at, self._step, self._pending)

    def _step(self, pending: PendingSend | None) -> None:
        """Tries again: the caller was woken, or ``max.block.ms`` is over."""
        if pending is None or pending is not self._pending:
            return
        self._woken = False
        future = pending.step(self)
        if future is None:
            return
        self._pending = None
        pending.end(self)
        assert self.record is not None and self.held_since is not None
        now = self._agenda.clock.now()
        extra_ms = self._producer.accepted(future, self.record[0], now, now - self.held_since)
        if self._shifts:
            self._shift_ms += now - self.held_since
        self.held_since = None
        self._agenda.at(self._take(now + self._costs[0] + extra_ms + (self._think_ms or 0.0)), self._go)


class TableCaller(Caller):
    """A thread that hands over tables with ``send_batch``; of those of a stream, who is free takes the next one whole.

    The rows of a table are sent one after the other, as records are.

    Args:
        rows: of a table.
        think_ms: of a closed caller, from the end of a table to the next one.
        record_ms: what a row takes.
    """

    def __init__(
        self, producer: Producer, source: Iterator[Record], *, rows: int, think_ms: float | None, **more: Any
    ) -> None:
        super().__init__(producer, source, think_ms=None if think_ms is None else 0.0, **more)
        self._rows = rows
        self._table: Iterator[Record] = iter(())
        self._pause_ms = think_ms or 0.0

    def _take(self, free_at: float) -> float:
        row = next(self._table, None)
        if row is None:
            begun = self.record is not None
            self._table = iter([*islice(self._source, self._rows)])
            row = next(self._table, None)
            free_at += self._pause_ms if begun else 0.0
        self.record = row
        if row is None:
            return self._end
        return free_at if self._think_ms is not None or row[0] < free_at else row[0]

    def left(self) -> int:
        """As ``Caller.left``."""
        rest = sum(1 for _row in self._table) if self._think_ms is None else 0
        return rest + super().left()
