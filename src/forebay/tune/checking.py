"""A check of a prediction: the same load for real, by a KafkaProducer, beside what was predicted of it.

The load's records are the simulation's: the same times, sizes and keys by the same seed, or those of a trace.  While
they are sent, a thread that sleeps for a millisecond notes by how much it oversleeps: that is time in which the machine
let nothing of ours run, and which no prediction knows of.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from forebay._assembly import Surroundings
from forebay._runtime.clock import Clock
from forebay.config import ProducerConfig
from forebay.model import DeliveryReport
from forebay.tune._checks import TuneError
from forebay.tune._probe import HEADER, asking, check_own, parts_of
from forebay.tune._world.callers import Record, records, replays_from
from forebay.tune.measures import Histogram
from forebay.tune.prediction import Prediction
from forebay.tune.stalls import STALLED, Stalls, sleep, watched
from forebay.tune.workload import Workload

TOLERANCES: Mapping[str, float] = {"p50, ms": 0.15, "p99, ms": 0.25, "requests/s": 0.05, "fill": 0.05}
"""Of the difference, by what was measured."""
HOLD_TOLERANCE = 0.1
LEAST_HOLD_MS = 1.0
"""A call of send that takes less was not held for memory, but the thread did not run."""
SOON_MS = 100.0
"""From the start of the threads to the begin of the load."""


class Counted(Protocol):
    """What is read of a producer's counters."""

    def __call__(self) -> Counters: ...


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of a producer at a moment, since its start."""

    requests: int = 0
    batches: int = 0
    batch_bytes: float = 0.0
    waits: int = 0
    """Calls that waited for memory."""

    @classmethod
    def of(cls, producer: Any) -> Counters:
        """As they are now; any thread."""
        found = producer._parts.metrics
        sizes = found.batch_size
        return cls(found.records_sent.count, sizes.count, sizes.total, found.buffer_wait_ns.count)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run gave."""

    p50: float
    p99: float
    requests_s: float
    fill: float
    longest_hold_ms: float
    sent: int
    lost: int
    stalls: Stalls


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, predicted and measured, and by how much they may differ."""

    name: str
    predicted: float
    measured: float
    allowed: float
    """In the figure's own unit."""
    stalled: float | None = None
    """Predicted with the stalls of the run, which is what counts; None: it was not."""

    @property
    def kept(self) -> bool:
        """Whether they differ by no more."""
        found = self.predicted if self.stalled is None else self.stalled
        return abs(found - self.measured) <= self.allowed

    def difference(self, found: float) -> str:
        """Of what was measured, as a share; empty where nothing was."""
        return f"{found / self.measured - 1:+.1%}" if self.measured else ""


def compared(predicted: Prediction, measured: Measured, stalled: Prediction | None = None) -> list[Row]:
    """The figures side by side.

    Args:
        stalled: the prediction with the stalls that were seen in the run.
    """
    hold = measured.longest_hold_ms
    counts = predicted if stalled is None else stalled
    rows: dict[str, tuple[Callable[[Prediction], float], float, float | None]] = {
        "p50, ms": (lambda each: each.latency.p50, measured.p50, None),
        "p99, ms": (lambda each: each.latency.p99, measured.p99, None),
        "requests/s": (lambda each: each.requests_s, measured.requests_s, None),
        "fill": (lambda each: each.fill, measured.fill, None),
        "longest hold, ms": (lambda each: each.longest_hold_ms, hold, max(HOLD_TOLERANCE * hold, LEAST_HOLD_MS)),
        "lost": (lambda each: each.lost, measured.lost, counts.records_a_batch if counts.lost else 0),
    }
    return [
        Row(
            name,
            figure(predicted),
            seen,
            TOLERANCES[name] * seen if allowed is None else allowed,
            None if stalled is None else figure(stalled),
        )
        for name, (figure, seen, allowed) in rows.items()
    ]


def comparison_text(rows: list[Row], measured: Measured) -> str:
    """The table, each line with its end."""
    both = any(row.stalled is not None for row in rows)
    more = f"{'with stalls':>13}{'difference':>12}" if both else ""
    lines = [f"{'':<20}{'predicted':>12}{'measured':>12}{'difference':>12}{more}{'allowed':>10}"]
    for row in rows:
        share = f"{row.allowed / row.measured:.0%}" if row.measured else f"{row.allowed:g}"
        layout = ",.0f" if row.name == "lost" else ",.3f" if row.name == "fill" else ",.2f"
        more = "" if row.stalled is None else f"{row.stalled:>13{layout}}{row.difference(row.stalled):>12}"
        lines.append(
            f"{row.name:<20}{row.predicted:>12{layout}}{row.measured:>12{layout}}{row.difference(row.predicted):>12}"
            f"{more}{share:>10}{'' if row.kept else '  outside'}"
        )
    stalls = measured.stalls
    lines.append(
        f"{'stalls':<20}a thread that slept overslept by {stalls.p50:.2f} ms in the median, p99 {stalls.p99:.2f}, "
        f"longest {stalls.longest:.1f}"
    )
    if stalls.p99 > STALLED * measured.p50:
        lines.append(
            f"{'':<20}the p99 of that is above a fifth of the p50: the machine was busy, so check again when it is not"
        )
    return "".join(f"{line}\n" for line in lines)


def load_of(load: Workload, topic: str, partitions: int) -> Workload:
    """The load with its one topic under another name; each record has the callback that times it.

    Raises:
        TuneError: it cannot be sent by one producer to this topic.
    """
    if len(load.topics) > 1:
        raise TuneError(f"the load has {len(load.topics)} topics; a check sends to one")
    if load.producers > 1:
        raise TuneError(f"the load has {load.producers} producers; a check is made with one")
    if any(stream.batch_rows > 1 for stream in load.streams):
        raise TuneError("the load has batch_rows; a check sends single records")
    ((name, count),) = load.topics
    if count != partitions:
        raise TuneError(f"topic {topic} has {partitions} partitions; topic {name} of the load has {count}")
    streams = [replace(stream, topic=None, callbacks=True) for stream in load.streams]
    trace = load.trace
    if trace is not None:
        trace = replace(trace, head={**trace.head, "topics": [topic], "leaders": {topic: trace.head["leaders"][name]}})
    return Workload(streams, topics={topic: partitions}, compression=load.compression, trace=trace)


def scratch(config: ProducerConfig, topic: str, around: Surroundings | None = None) -> tuple[int, int]:
    """Partitions of a topic that a check may fill, and the brokers that lead them.

    Raises:
        TuneError: as ``probe.asking`` and ``probe.parts_of``; or a partition begins with a record that is not the
            tuner's.
    """
    with asking(config, "the check", around) as (session, _clock):
        deadline = session.deadline("the check", config["max.block.ms"])
        parts = parts_of(session, topic, deadline)
        check_own(session, topic, parts, deadline, first=True)
        return len(parts), len({part.leader.id for part in parts if part.leader is not None})


def warm_up(producer: Any, topic: str, partitions: int) -> None:
    """A record to each partition, which says whose the topic is; then the producer is connected to each leader."""
    for partition in range(partitions):
        producer.send(topic, b"", partition=partition, headers=[(HEADER, b"1")])
    producer.flush()


class Load:
    """The load, sent by threads of its own.

    Args:
        send: of the producer.
        counters: of the producer.
        clock: of the times in ``load``.
        wait: seconds; returns after them.
    """

    def __init__(
        self, send: Callable[..., Any], counters: Counted, clock: Clock, wait: Callable[[float], object]
    ) -> None:
        self.latencies: Histogram = Histogram()
        """From due to acknowledged; the sender's thread counts."""
        self.lost: int = 0
        self.sent: int = 0
        self.longest_hold_ms: float = 0.0
        self._send, self._counters, self._clock, self._wait = send, counters, clock, wait
        self._lock = threading.Lock()

    def threads(self, load: Workload, topic: str, seed: int, begin: float, end: float) -> list[Callable[[], None]]:
        """What each thread does, from ``begin`` to ``end`` (ms)."""
        if load.trace is not None:
            # One thread, and the second of the simulation's first producer.
            offset_s = replays_from(load.trace, random.Random(f"{seed} replays"), end - begin)
            return [partial(self.run, load.trace.replay(begin, end, offset_s), None, end, shifts=True)]
        found: list[Callable[[], None]] = []
        for number, stream in enumerate(load.streams):
            # The seed of the simulation's first producer, whose records these are.
            source = records(stream, (topic,), f"{seed} stream {number} of producer 0", begin, end)
            think_ms = stream.think_ms if stream.callers == "closed" else None
            found += [partial(self.run, source, think_ms, end)] * stream.threads
        return found

    def run(self, source: Iterator[Record], think_ms: float | None, end: float, *, shifts: bool = False) -> None:
        """Sends what is due, until the load is over; who is free takes the next record.

        Args:
            think_ms: of a closed caller; None for an open one.
            shifts: what a call was held delays all later records.
        """
        clock, shift_ms = self._clock, 0.0
        while True:
            with self._lock:
                record = next(source, None)
            now = clock.now()
            if record is None or now >= end:
                return
            due, topic, value, key, partition = record
            due += shift_ms
            if due >= end:
                return
            if think_ms is not None:
                due = now
            elif due > now:
                self._wait((due - now) / 1000)
            held_ms = self._one(due, topic, value, key, partition)
            if shifts:
                shift_ms += held_ms
            if think_ms is not None:
                self._wait(think_ms / 1000)

    def _one(self, due: float, topic: str, value: bytes, key: bytes | None, partition: int | None) -> float:
        """Sends a record; how long the call waited for memory."""
        clock = self._clock
        waits, called = self._counters().waits, clock.now()
        self._send(topic, value, key=key, partition=partition, on_delivery=partial(self.settled, due))
        took = clock.now() - called
        with self._lock:
            self.sent += 1
            if took < LEAST_HOLD_MS or self._counters().waits == waits:
                return 0.0
            self.longest_hold_ms = max(self.longest_hold_ms, took)
            return took

    def settled(self, due: float, report: DeliveryReport) -> None:
        """A record has its outcome."""
        if report.error is not None:
            self.lost += 1
        else:
            self.latencies.add_one(self._clock.now() - due)


def measure(
    producer: Any,
    load: Workload,
    topic: str,
    *,
    seconds: float,
    seed: int,
    batch_size: int,
    clock: Clock,
) -> Measured:
    """Lets the load come to a producer that knows the topic and is connected.

    Args:
        producer: a KafkaProducer; it is flushed, not closed.
    """
    wait = sleep
    counters: Counted = partial(Counters.of, producer)
    begin = clock.now() + SOON_MS
    end = begin + 1000 * seconds
    sending = Load(producer.send, counters, clock, wait)
    over = threading.Event()
    stalls: list[Stalls] = []
    sleeper = threading.Thread(target=lambda: stalls.append(watched(clock, wait, over.is_set)), daemon=True)
    threads = [threading.Thread(target=each, daemon=True) for each in sending.threads(load, topic, seed, begin, end)]
    before = counters()
    for thread in (sleeper, *threads):
        thread.start()
    wait(max(0.0, end - clock.now()) / 1000)
    after = counters()
    for thread in threads:
        thread.join()
    over.set()
    sleeper.join()
    producer.flush()
    return measured_of(sending, stalls[0], before, after, seconds=seconds, batch_size=batch_size)


def measured_of(
    sending: Load, stalls: Stalls, before: Counters, after: Counters, *, seconds: float, batch_size: int
) -> Measured:
    """The figures of a run whose records have their outcome."""
    batches = after.batches - before.batches
    return Measured(
        p50=sending.latencies.quantile(0.5),
        p99=sending.latencies.quantile(0.99),
        requests_s=(after.requests - before.requests) / seconds,
        fill=(after.batch_bytes - before.batch_bytes) / (batches * batch_size) if batches else 0.0,
        longest_hold_ms=sending.longest_hold_ms,
        sent=sending.sent,
        lost=sending.lost,
        stalls=stalls,
    )
