"""What closed forms need of a load: what each node gets of it and what a request costs there.

Rates by partition and sizes are counted in records as the simulation sends them, so that keys fall where they do there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from forebay._accumulator.partitioner import key_partition
from forebay._closed_forms.node import NodeCost, NodeLoad
from forebay._closed_forms.phases import Phase
from forebay._records.batch_v2 import exact_record_size
from forebay.tune import span, steps
from forebay.tune._world.callers import records
from forebay.tune.fitting import in_steps
from forebay.tune.workload import Cycle

if TYPE_CHECKING:
    from forebay.tune.brokers import Broker, Brokers
    from forebay.tune.workload import Stream, Workload

SAMPLE = 20_000
"""Records of each stream that are counted."""
APART = 12
"""So many nodes are told apart, however little they differ."""
BAND = 1.1
"""Times by which the rates of nodes differ that are taken for alike."""
SIZES = 40
"""So many sizes of records at most are told apart."""
IN_TURN = 4
"""Sizes in turn at most whose order is followed; more of them are like sizes drawn at random."""


def phases_of(load: Workload, brokers: Brokers) -> tuple[list[Phase], list[int]]:
    """What each node gets of one producer while the rate stays, and the numbers of these nodes, from 1 on.

    The rate of a burst and that in between are two; so are those of two steps, in which bursts count by their mean.
    Bursts of several streams are taken to come together.
    """
    if len(steps.changes(load)) > 1:
        return _steps(load, brokers)
    bursts = [(stream, stream.burst) for stream in load.streams if stream.burst is not None and stream.burst.off_ms > 0]
    if load.trace is not None or not bursts:
        nodes, numbers = node_loads(load, brokers)
        return [Phase(nodes)], numbers
    loud = [replace(stream, burst=None) for stream in load.streams]
    nodes, numbers = node_loads(load, brokers, loud)
    share = math.fsum(stream.mean_rate for stream, _ in bursts)
    share /= math.fsum(replace(stream, burst=None).mean_rate for stream, _ in bursts)
    phases = [Phase(nodes, share, max(burst.on_ms for _, burst in bursts))]
    quiet = [stream for stream in load.streams if stream.burst is None]
    if quiet:
        rest = dict(zip(*reversed(node_loads(load, brokers, quiet)), strict=True))
        between = [
            rest.get(at, (replace(node, rate=0.0), cost)) for at, (node, cost) in zip(numbers, nodes, strict=True)
        ]
        phases.append(Phase(between, 1 - share))
    return phases, numbers


def _steps(load: Workload, brokers: Brokers) -> tuple[list[Phase], list[int]]:
    """A phase for each step of the rate that brings records."""
    nodes, numbers = node_loads(load, brokers)
    whole = span(load, brokers.with_outages())
    phases = []
    for begin, end in pairwise([*steps.changes(load), whole]):
        rate = steps.rate_at(load, begin)
        if rate > 0:
            phases.append(Phase(scaled(nodes, rate / load.rate), (end - begin) / whole, 1000 * (end - begin)))
    return phases, numbers


def node_loads(
    load: Workload, brokers: Brokers, streams: Sequence[Stream] = ()
) -> tuple[list[tuple[NodeLoad, NodeCost]], list[int]]:
    """What each node gets of one producer and what a request costs there; and the numbers of these nodes, from 1 on.

    Nodes that get nothing are left out.

    Args:
        streams: to be counted instead of those of the load.
    """
    streams = streams or load.streams
    sample = Sample(len(streams))
    for number, stream in enumerate(streams):
        sample.count(load, stream, number)
    leaders = leaders_of(load, len(brokers.nodes))
    found, numbers = [], []
    for number, broker in enumerate(brokers.nodes, 1):
        own = [where for where, leader in leaders.items() if leader == number]
        node = sample.of_node(own, dict(load.topics))
        if node is not None:
            found.append((node, cost_of(broker)))
            numbers.append(number)
    return found if len(found) <= APART else alike(found), numbers


def alike(nodes: Sequence[tuple[NodeLoad, NodeCost]]) -> list[tuple[NodeLoad, NodeCost]]:
    """The same nodes, but those that cost the same and get nearly the same get the mean.

    Keys give each of many nodes a little more or less, and closed forms look at each kind of node once.
    """
    bands: defaultdict[tuple[NodeCost, bool, int, int], list[int]] = defaultdict(list)
    for at, (load, cost) in enumerate(nodes):
        band = round(math.log(load.rate) / math.log(BAND))
        bands[cost, load.partition_shares is None, load.partitions, band].append(at)
    found = [*nodes]
    for places in bands.values():
        middle, cost = nodes[sorted(places, key=lambda at: nodes[at][0].rate)[len(places) // 2]]
        factor = math.fsum(nodes[at][0].rate for at in places) / len(places) / middle.rate
        shares = None if middle.partition_shares is None else tuple(factor * each for each in middle.partition_shares)
        for at in places:
            found[at] = replace(middle, rate=factor * middle.rate, partition_shares=shares), cost
    return found


def leaders_of(load: Workload, nodes: int) -> dict[tuple[str, int], int]:
    """Who leads each partition: the nodes in turn, as in the simulation."""
    homes = None if load.trace is None else load.trace.homes(nodes)
    if homes is not None:
        return {(name, partition): home for name, each in homes.items() for partition, home in enumerate(each)}
    places = [(name, partition) for name, count in load.topics for partition in range(count)]
    return {where: at % nodes + 1 for at, where in enumerate(places)}


def cost_of(broker: Broker) -> NodeCost:
    """A node's times; what an answer waits for followers holds up its connection."""
    busy = broker.others.rate * broker.service_ms(broker.others.size) / 1000 / broker.handlers
    return NodeCost(
        rtt_ms=broker.rtt_ms,
        fixed_ms=broker.fixed_ms + broker.replication_ms,
        per_mib_ms=broker.per_mib_ms,
        bandwidth=broker.bandwidth or math.inf,
        handlers=broker.handlers,
        others_busy=min(0.99, busy),
    )


def scaled(nodes: Sequence[tuple[NodeLoad, NodeCost]], factor: float) -> list[tuple[NodeLoad, NodeCost]]:
    """The same with so many times the records."""
    return [(replace(load, rate=load.rate * factor), cost) for load, cost in nodes]


def slowed(nodes: Sequence[tuple[NodeLoad, NodeCost]], at: int, factor: float) -> list[tuple[NodeLoad, NodeCost]]:
    """The same with one node that takes so many times as long."""
    found = [*nodes]
    load, cost = found[at]
    found[at] = load, replace(cost, fixed_ms=cost.fixed_ms * factor, per_mib_ms=cost.per_mib_ms * factor)
    return found


class Sample:
    """Rates (records a second of one producer) and sizes, of so many streams."""

    def __init__(self, streams: int = 1) -> None:
        self._streams = streams
        self.by_partition: defaultdict[tuple[str, int], float] = defaultdict(float)
        """Of records whose partition their key or the caller decides."""
        self.by_topic: defaultdict[str, float] = defaultdict(float)
        """Of the others."""
        self.in_turn: tuple[int, ...] = ()
        """Sizes of the records in the order of coming, which begins anew after the last one; empty: in no order."""
        self._sizes: defaultdict[int, float] = defaultdict(float)

    def count(self, load: Workload, stream: Stream, number: int) -> None:
        """Counts the first records of a stream, each for its share of the stream's rate."""
        topics = (stream.topic,) if stream.topic is not None else tuple(name for name, _ in load.topics)
        partitions = dict(load.topics)
        # When they come does not matter here, and closed callers always have a next record.
        endless = replace(stream, callers="closed", think_ms=1.0)
        drawn = list(islice(records(endless, topics, f"sample {number}", 0.0, math.inf), SAMPLE))
        for _due, topic, value, key, partition in drawn:
            share = stream.mean_rate / len(drawn)
            place = key_partition(key, partitions[topic]) if key is not None else partition
            if place is None:
                self.by_topic[topic] += share
            else:
                self.by_partition[topic, place] += share
            self._sizes[exact_record_size(0, 0, -1 if key is None else len(key), len(value))] += share
        alone = self._streams == 1 and len(topics) == 1 and not self.by_partition
        if alone and isinstance(stream.sizes, Cycle) and len(self._sizes) > 1 and len(stream.sizes.values) <= IN_TURN:
            self.in_turn = tuple(exact_record_size(0, 0, -1, value) for value in stream.sizes.values)

    def of_node(self, own: list[tuple[str, int]], partitions: dict[str, int]) -> NodeLoad | None:
        """What comes to these partitions; None for nothing.

        Each topic without keys has one batch at a time, as a partition of keyed records has.
        """
        keyed = [self.by_partition[where] for where in own if where in self.by_partition]
        places = {name: sum(1 for topic, _ in own if topic == name) for name in self.by_topic}
        free = [self.by_topic[name] * count / partitions[name] for name, count in places.items() if count]
        rate = math.fsum([*keyed, *free])
        if rate <= 0:
            return None
        in_turn = [(float(size), 1 / len(self.in_turn)) for size in self.in_turn]
        return NodeLoad(
            rate=rate,
            sizes=tuple(in_turn or in_steps(self._sizes, SIZES)),
            partition_shares=(*keyed, *free) if keyed or len(free) > 1 else None,
            in_turn=bool(in_turn),
            partitions=max(1, sum(places.values())),
        )
