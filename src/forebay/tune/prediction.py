"""Prediction: what a simulation said, as values; ``as_json`` has all of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay._closed_forms.wording import ONE_SEED
from forebay.tune._json import json_of
from forebay.tune._world.costs import Costs
from forebay.tune.brokers import Brokers
from forebay.tune.described import described
from forebay.tune.fitting import trace_cluster
from forebay.tune.measures import CAUSES, POINTS, Histogram, Recorder
from forebay.tune.stalls import NO_STALLS, STALLED, Stalls
from forebay.tune.workload import Workload

if TYPE_CHECKING:
    import os

VERSION = 1
"""Of the JSON.  It goes up when a field goes or means something else; a new field leaves it."""
LEAST_ABOVE = 30
"""Records above a p99 of which it is not chance where it is."""
BUSY = 0.9
"""Share of the handlers' time from which on a node may get more than it can do."""
GROWS = 1.25
"""So many times the latency near the beginning lie the records behind at the end, where it does."""
CALM = POINTS // 20
"""So many parts of the time without a late record end an outage; what is late after them is not its doing."""


@dataclass(frozen=True, slots=True)
class Times:
    """A distribution of times, in ms."""

    p50: float
    p90: float
    p99: float
    p999: float
    longest: float
    mean: float

    @classmethod
    def of(cls, found: Histogram) -> Times:
        """Of what was counted."""
        p50, p90, p99, p999, longest = (found.quantile(share) for share in (0.5, 0.9, 0.99, 0.999, 1.0))
        return cls(p50, p90, p99, p999, longest, round(found.mean(), 3))


@dataclass(frozen=True, slots=True)
class NodePrediction:
    """What one broker gets of all producers; rates are a second's."""

    node: int
    requests_s: float
    bytes_s: float
    records_s: float
    busy: float
    """The share of its handlers' time."""
    answer: Times
    """From the writing of a request to its answer."""
    throttled_ms: int
    memory: int
    """Bytes that waited for it, the most of what was seen now and then."""


@dataclass(frozen=True, slots=True)
class PoolPrediction:
    """``buffer.memory`` of one producer, in bytes; of several producers the fullest one's."""

    limit: int
    peak: int
    mean: int
    over_time: tuple[int, ...]
    """The most in use in each part of the time, all parts of the same length."""


@dataclass(frozen=True, slots=True)
class OutagePrediction:
    """What an outage did."""

    node: int
    kind: str
    seconds: tuple[float, float]
    pool_peak: int
    """The most memory in use from its beginning to the recovery."""
    recovery_s: float | None
    """From its end until latencies are what they were before, and for a twentieth of the time; None: not within it, or
    not known, because no record came before it."""


@dataclass(frozen=True, slots=True)
class FleetPrediction:
    """The producers of the load, and how many of them are simulated: the others are a field of their requests.

    Rates are of all producers.  Records and batches that are counted are those of the simulated ones.
    """

    producers: int
    simulated: int
    above_capacity: tuple[int, ...]
    """Nodes that get more than their handlers can do, so that latencies grow for as long as the load comes."""
    served: int | None = None
    """Where there are such nodes: a number of producers that they would serve."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What settings give for a load, by the model."""

    version: int
    seed: int
    seconds: float
    """For which the load came."""
    load: tuple[str, ...]
    """What came, and where to, in words."""
    settings: Mapping[str, Any]
    latency: Times
    """From when a record was due until its acknowledgement."""
    latency_from_call: Times
    """From the call of send."""
    parts: Mapping[str, Times]
    """Of the latency: ``held`` in send, ``closing`` until the batch was closed or had lingered, ``waiting`` for the
    node, ``flight`` until the answer."""
    requests_s: float
    bytes_s: float
    fill: float
    """Bytes of a batch by ``batch.size``."""
    records_a_batch: float
    batches_a_request: float
    causes: Mapping[str, float]
    """The share of batches that were closed because they were ``full``, had no room for the ``next`` record, had
    lingered (``linger``), were taken ``along`` by a request, or because ``memory`` was exhausted."""
    pool: PoolPrediction
    nodes: tuple[NodePrediction, ...]
    sent: int
    acknowledged: int
    failed: Mapping[str, int]
    """Records by why: the phase in which their time ran out, or the error; those that send refused are in here."""
    refused: int
    """Those of the failed records that came into no batch: too large, or held for longer than ``max.block.ms``."""
    backlog: int
    """Records that were due and not sent at the end, because all callers were held."""
    holds: int
    """Calls of send that had to wait for memory."""
    longest_hold_ms: float
    retries: int
    """Batches that were sent once more."""
    cpu: float
    """The share of one processor that the producer takes, by the given costs."""
    outages: tuple[OutagePrediction, ...]
    distribution: tuple[tuple[float, int], ...]
    """The latency: upper bound (ms) and count."""
    assumptions: tuple[str, ...]
    fleet: FleetPrediction
    doubts: tuple[str, ...] = ()
    """Why it is to be trusted less, beside what it assumes."""
    intervals: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """The least and the most that the seeds gave, by figure (``INTERVALS``); empty after one seed."""

    @property
    def lost(self) -> int:
        """Records that failed."""
        return sum(self.failed.values())

    @property
    def served(self) -> bool:
        """Whether every record came through, and callers kept up with the load."""
        return not self.lost and not self.fleet.above_capacity and self.backlog <= max(10, self.sent // 100)

    def figures(self) -> dict[str, float]:
        """What a Goal looks at, by its names."""
        return {
            "p50_ms": self.latency.p50,
            "p99_ms": self.latency.p99,
            "memory": self.pool.peak,
            "lost": self.lost * self.fleet.producers / self.fleet.simulated,
            "hold_ms": self.longest_hold_ms,
            "requests": self.requests_s,
            "latency": self.latency.p99,
            "cpu": self.cpu,
            "bytes": self.bytes_s,
        }

    def as_json(self) -> str:
        """All of it; the same simulation gives the same text."""
        return json_of(dataclasses.asdict(self))

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with plots, in HTML; the same prediction gives the same bytes.

        Raises:
            OSError: the file cannot be written.
        """
        from forebay.tune.report import prediction_page  # for pages alone

        Path(path).write_bytes(prediction_page(dataclasses.asdict(self)).encode())


INTERVALS: Mapping[str, Callable[[Prediction], float]] = {
    "p50_ms": lambda found: found.latency.p50,
    "p99_ms": lambda found: found.latency.p99,
    "requests_s": lambda found: found.requests_s,
    "fill": lambda found: found.fill,
    "pool_peak": lambda found: found.pool.peak,
    "longest_hold_ms": lambda found: found.longest_hold_ms,
}
"""The figures that have an interval."""


def joined(
    runs: Sequence[Prediction], load: Workload, brokers: Brokers, costs: Costs, stalls: Stalls | None
) -> Prediction:
    """The first of some predictions that differ in their seeds alone; by how much they do, and what is assumed."""
    doubts = (
        *_doubts_of_figures(runs[0], stalls or NO_STALLS),
        *_doubts_of_times(load, brokers, costs, stalls),
        *_doubts_of_records(load, runs[0].acknowledged),
    )
    spans = {name: [figure(each) for each in runs] for name, figure in INTERVALS.items() if len(runs) > 1}
    return dataclasses.replace(
        runs[0],
        assumptions=_assumptions(load, costs, stalls, runs[0].fleet.simulated),
        doubts=doubts if spans else (*doubts, ONE_SEED),
        intervals={name: (min(span), max(span)) for name, span in spans.items()},
    )


def prediction_of(
    found: Recorder,
    load: Workload,
    brokers: Brokers,
    settings: Mapping[str, Any],
    *,
    costs: Costs,
    seed: int,
    simulated: int,
) -> Prediction:
    """What a run of so many simulated producers said of all that the load has; ``joined`` adds what is assumed."""
    # As if for a longer time, each of the simulated ones did what they all do.
    seconds = found.seconds * simulated / load.producers
    nodes = found.nodes.values()
    each_node = _nodes(found, brokers, seconds)
    batches, records = (sum(getattr(node, name) for node in nodes) for name in ("batches", "records"))
    requests = sum(node.requests for node in nodes)
    return Prediction(
        version=VERSION,
        seed=seed,
        seconds=found.seconds,
        load=tuple(text for _, text in described(load, brokers)),
        settings=dict(settings),
        latency=Times.of(found.from_due),
        latency_from_call=Times.of(found.from_call),
        parts={name: Times.of(getattr(found, name)) for name in ("held", "closing", "waiting", "flight")},
        requests_s=round(requests / seconds, 3),
        bytes_s=round(sum(node.size for node in nodes) / seconds, 1),
        fill=_ratio(found.batch_bytes, batches * found.batch_size),
        records_a_batch=_ratio(records, batches),
        batches_a_request=_ratio(batches, requests),
        causes={cause: _ratio(found.causes[cause], batches) for cause in CAUSES},
        pool=_pool(found),
        nodes=each_node,
        **_totals(found),
        cpu=_ratio(found.cpu_ms + found.sent * _record_ms(load, costs), simulated * found.seconds * 1000),
        outages=_outages(found, brokers),
        distribution=tuple(found.from_due.buckets()),
        assumptions=(),
        fleet=FleetPrediction(load.producers, simulated, _above_capacity(found, each_node)),
    )


def _totals(found: Recorder) -> dict[str, Any]:
    """What was counted."""
    return {
        **{name: getattr(found, name) for name in ("sent", "acknowledged", "refused", "backlog", "retries")},
        "failed": dict(sorted(found.failed.items())),
        "holds": len(found.holds),
        "longest_hold_ms": round(max(found.holds, default=0.0), 3),
    }


def _record_ms(load: Workload, costs: Costs) -> float:
    """What a record takes of its caller's time, on average."""
    of_rows = sum(stream.mean_rate for stream in load.streams if stream.batch_rows > 1) / load.rate
    return of_rows * costs.row + (1 - of_rows) * costs.record


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _pool(found: Recorder) -> PoolPrediction:
    return PoolPrediction(found.memory, found.pool_peak, round(sum(found.pool) / POINTS), tuple(found.pool))


def _nodes(found: Recorder, brokers: Brokers, seconds: float) -> tuple[NodePrediction, ...]:
    return tuple(
        NodePrediction(
            node=number,
            requests_s=round(node.requests / seconds, 3),
            bytes_s=round(node.size / seconds, 1),
            records_s=round(node.records / seconds, 1),
            busy=min(1.0, _ratio(node.busy_ms, brokers.nodes[number - 1].handlers * seconds * 1000)),
            answer=Times.of(node.latency),
            throttled_ms=node.throttled_ms,
            memory=node.memory,
        )
        for number, node in found.nodes.items()
    )


def _above_capacity(found: Recorder, nodes: Sequence[NodePrediction]) -> tuple[int, ...]:
    # Longest latencies after the start, against the time by which acknowledgements are late at the end: as long as a
    # node keeps up, however busy it is, it is no longer.
    early = sorted(ms for ms in found.slowest[POINTS // 16 : POINTS // 8] if ms)
    behind_ms = 1000 * found.seconds * (1 - found.in_time / max(1, found.sent + found.backlog))
    grows = bool(early) and behind_ms > GROWS * early[len(early) // 2]
    return tuple(node.node for node in nodes if node.busy >= BUSY) if grows else ()


def _outages(found: Recorder, brokers: Brokers) -> tuple[OutagePrediction, ...]:
    width = found.seconds / POINTS
    told: list[OutagePrediction] = []
    for outage in brokers.outages:
        begin, end = outage.seconds
        if begin >= found.seconds:
            continue
        first, last = math.floor(begin / width), min(math.ceil(end / width), POINTS)
        # Not the longest: a record that was under way when the outage began had to wait for its end.
        before = sorted(found.slowest[:first])
        normal = 2 * before[len(before) * 9 // 10] if before else 0.0
        over = first
        for place in range(first, POINTS):
            if normal and found.slowest[place] > normal and place <= max(over, last) + CALM:
                over = place + 1
        # Without latencies before it there is none that they could have again.
        recovery = max(0.0, round(over * width - end, 3)) if normal and over < POINTS else None
        peak = max(found.pool[first : max(over, last)], default=0)
        told.append(OutagePrediction(outage.node, outage.kind, outage.seconds, peak, recovery))
    return tuple(told)


def _assumptions(load: Workload, costs: Costs, stalls: Stalls | None, simulated: int) -> tuple[str, ...]:
    said = ["one connection of a producer is served one request at a time"]
    said.append((stalls or NO_STALLS).described())
    if simulated < load.producers:
        others = load.producers - simulated
        said.insert(0, f"the requests of {others:,} producers are those of {simulated} that ran, at other times")
    if costs.switch:
        said.append(f"the sender waits up to {costs.switch:g} ms for the interpreter's lock")
    if load.trace is not None:
        said.append("records without key could have gone to any partition")
        if load.trace.head["every"] > 1:
            said.append(f"each moment that was recorded stands for {load.trace.head['every']}")
    if load.compression is not None:
        which = "a full" if load.compression.by_size else "every"
        said.append(f"{which} batch compresses to {load.compression.ratio:g} of its bytes")
    return tuple(said)


def _doubts_of_figures(found: Prediction, stalls: Stalls) -> Iterator[str]:
    """Where latencies were farther from what was measured than elsewhere: docs/how_the_tuner_knows.md has the runs."""
    if any(node.throttled_ms for node in found.nodes):
        yield "a quota holds records back: their latency may differ by 40 %"
    if found.fleet.simulated < found.fleet.producers and any(node.busy >= BUSY for node in found.nodes):
        yield "a broker of the fleet is busy for more than nine tenths of the time: the p99 may differ by a third"
    if stalls.p99 > STALLED * found.latency.p50:
        yield "the machine stalls for long beside the p50, and brokers may do so, too: the p99 may be twice as long"


def _doubts_of_times(load: Workload, brokers: Brokers, costs: Costs, stalls: Stalls | None) -> Iterator[str]:
    of_trace = load.trace is not None and brokers == Brokers.of(trace_cluster(load.trace))
    if of_trace:
        yield "the times of the brokers are guessed from the fast answers in the trace"
    guesses = {
        "the brokers": not (brokers.measured or of_trace),
        "the client's own work": dataclasses.replace(costs, switch=0.0) == Costs(),
    }
    if any(guesses.values()):
        yield f"the times of {' and of '.join(what for what, guessed in guesses.items() if guessed)} are guesses"
    if stalls is None:
        yield "stalls of its machine are not known"


def _doubts_of_records(load: Workload, acknowledged: int) -> Iterator[str]:
    if load.trace is not None and load.trace.left_out:
        yield f"{load.trace.left_out:,} records are not in the trace: its recorder could not keep up"
    if load.compression is not None and (load.trace is None or load.trace.compression() is None):
        yield "what compression leaves was given, not measured"
    if acknowledged < 100 * LEAST_ABOVE:
        yield f"only {acknowledged // 100} records took longer than the p99"
