"""Closed forms for a load whose rate changes, in bursts or steps: each part of the time by itself, then all together.

At its mean rate such a load would never fill the batches that it does fill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from forebay._closed_forms.estimate import Estimate, NodeEstimate, estimate
from forebay._closed_forms.latency import Latency, latency, mixed, uniform
from forebay._closed_forms.node import NodeCost, NodeLoad, Settings

MOST_USED = 0.95
"""Of what a node can take: a burst of more is taken at this rate, and so for longer."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the time in which the rates hold.

    nodes: the same ones in each phase, in the same order; the rate may be 0.
    share: of the time.
    ms: how long it lasts at once.
    """

    nodes: Sequence[tuple[NodeLoad, NodeCost]]
    share: float = 1.0
    ms: float = math.inf

    @property
    def rate(self) -> float:
        """Records a second of all nodes."""
        return math.fsum(load.rate for load, _ in self.nodes)


@dataclass(frozen=True, slots=True)
class _Found:
    """The estimate of a phase; ``share``: of the time in which its records are taken."""

    phase: Phase
    share: float
    estimate: Estimate


def estimate_phases(phases: Sequence[Phase], settings: Settings, producers: int = 1) -> Estimate:
    """As ``estimate`` for a load that changes; what is a second is the mean over the time, memory is the most."""
    if len(phases) == 1 and phases[0].share == 1:
        return estimate(phases[0].nodes, settings, producers)
    coming = [phase for phase in phases if phase.rate > 0]
    found = [_of(phase, settings, producers, len(coming) == 1) for phase in coming]
    records = [each.phase.share * each.phase.rate for each in found]
    weights = [each / math.fsum(records) for each in records]
    estimates = [each.estimate for each in found]
    batches = math.fsum(came / each.records_batch for came, each in zip(records, estimates, strict=True))
    return Estimate(
        nodes=_nodes(found),
        latency=mixed([(weight, each.latency) for weight, each in zip(weights, estimates, strict=True)]),
        requests=math.fsum(each.share * each.estimate.requests for each in found),
        records_batch=math.fsum(records) / batches,
        fill=math.fsum(weight * each.fill for weight, each in zip(weights, estimates, strict=True)),
        pool=max(each.pool for each in estimates),
        bytes=math.fsum(each.share * each.estimate.bytes for each in found),
        used=max(each.used for each in estimates),
        overload=any(each.overload for each in estimates),
    )


def _of(phase: Phase, settings: Settings, producers: int, alone: bool) -> _Found:
    """The estimate of one phase; ``alone``: nothing comes before it and after it."""
    # What a burst leaves in a batch waits for the linger's end in silence, and no second batch comes of it.
    linger = min(settings.linger_ms, phase.ms) if alone else settings.linger_ms
    here = replace(settings, linger_ms=linger)
    found = estimate(phase.nodes, here, producers)
    times = max(1.0, max(node.rate / node.capacity for node in found.nodes) / MOST_USED)
    if phase.share * times > 1:
        times = 1.0  # there is no time in which it could be made up for
    if times > 1:
        behind = phase.ms * (times - 1)
        slower = [(replace(load, rate=load.rate / times), cost) for load, cost in phase.nodes]
        found = estimate(slower, here, producers)
        waits = math.fsum(node.rate / 1000 * node.pool_record for node in found.nodes) * behind
        found = replace(found, latency=found.latency.plus(latency(uniform(0.0, behind))), pool=found.pool + waits)
    late = _with_the_last(phase, found, settings.linger_ms, settings.linger_ms - linger)
    return _Found(phase, phase.share * times, replace(found, latency=late))


def _with_the_last(phase: Phase, found: Estimate, linger: float, longer: float) -> Latency:
    """The latency with what a burst leaves in batches that are not full, for which nothing more comes.

    Args:
        longer: by which all batches linger longer that are not full.
    """
    rate = math.fsum(node.rate for node in found.nodes)
    lingering = math.fsum(node.rate * node.lingers for node in found.nodes) / rate
    filling = math.fsum(load.rate for load, _ in phase.nodes if load.partition_shares is None)
    keyed = math.fsum(len(load.partition_shares) for load, _ in phase.nodes if load.partition_shares is not None)
    fills = 1000 * found.records_batch * (keyed + (filling > 0)) / phase.rate
    last = min(1.0, fills / 2 / phase.ms)
    rest = max(0.0, linger - fills)
    shares = [(lingering, longer), ((1 - lingering) * last, rest), ((1 - lingering) * (1 - last), 0.0)]
    return mixed([(share, found.latency.later(ms)) for share, ms in shares if share > 0])


def _nodes(found: Sequence[_Found]) -> tuple[NodeEstimate, ...]:
    """Of each node what it gets over the time; the rest as in the phase in which it gets most."""
    by_place: dict[int, list[tuple[_Found, float, NodeEstimate]]] = {}
    for each in found:
        places = [(at, load.rate) for at, (load, _) in enumerate(each.phase.nodes) if load.rate > 0]
        for (at, rate), node in zip(places, each.estimate.nodes, strict=True):
            by_place.setdefault(at, []).append((each, rate, node))
    return tuple(_over_time(by_place[at]) for at in sorted(by_place))


def _over_time(parts: Sequence[tuple[_Found, float, NodeEstimate]]) -> NodeEstimate:
    """One node's phases together."""
    most = max(parts, key=lambda part: part[1])[2]
    return replace(
        most,
        rate=math.fsum(each.phase.share * rate for each, rate, _ in parts),
        requests=math.fsum(each.share * node.requests for each, _, node in parts),
        bytes=math.fsum(each.share * node.bytes for each, _, node in parts),
    )
