"""Closed forms for what settings give: no simulation, about a millisecond a setting.

They choose candidates and explain; what is proposed is judged by simulation.  Plain numbers go in: what a node gets,
what a request costs it, the settings.  Rates are records a second, times milliseconds, sizes bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from forebay._closed_forms.cycles import ONE, Cycle, cycle
from forebay._closed_forms.latency import Latency, latency, later_of, mixed, uniform, waiting
from forebay._closed_forms.node import BATCH_OVERHEAD, MIB, NodeCost, NodeLoad, NodeRequests, Settings
from forebay._closed_forms.queueing import (
    NONE,
    Arrivals,
    Wait,
    bunch_gap,
    handler_wait,
    line_wait,
    merging,
    slot_gap,
    slot_waits,
)
from forebay.errors import IllegalArgumentError

ROUNDS = 6
"""Of the iteration for requests that grow while they wait."""
GROWN = 1.5
"""Bytes of a batch's chunk for each that is written: chunks double as batches grow, up to ``batch.size``."""
MOST_BUSY = 0.99
"""Share of the handlers' time that others can take, so that what waits for a handler does not wait for ever."""
DEVIATIONS_OF_MOST = 3.0
"""Standard deviations above its mean that the number of records in the pool comes to."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Mean ms of a record's latency, by what it waits for."""

    linger: float
    slot: float
    line: float
    wire: float
    round_trip: float
    service: float


@dataclass(frozen=True, slots=True)
class NodeEstimate:
    """What a node gets of the settings.

    lingers: share of the cycles that ``linger.ms`` ends; a full batch ends the others.
    used: share of what the connection can take, while the sticky partition is on this node: slots, wire or broker.
    capacity: records a second at most.
    pool_record: bytes of the pool for a record in full batches, as they wait while the node is away.
    pool_steady: bytes of the pool in use.
    """

    rate: float
    requests: float
    records_request: float
    records_batch: float
    batches_request: float
    fill: float
    latency: Latency
    parts: Parts
    lingers: float
    used: float
    capacity: float
    pool_record: float
    pool_steady: float
    bytes: float

    @property
    def overload(self) -> bool:
        return self.rate >= self.capacity


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the settings give: of all nodes, and of each."""

    nodes: tuple[NodeEstimate, ...]
    latency: Latency
    requests: float
    records_batch: float
    fill: float
    pool: float
    bytes: float
    used: float
    overload: bool


def estimate(nodes: Sequence[tuple[NodeLoad, NodeCost]], settings: Settings, producers: int = 1) -> Estimate:
    """What the settings give for this load, of each of so many producers; requests and bytes are those of all.

    The requests of the others keep handlers busy.
    Under overload the figures are those of a node that is as busy as it can be, and the latency is infinite.
    """
    used = [node for node in nodes if node[0].rate > 0]
    counts = Counter(used)
    found = estimate_alike([(count, *node) for node, count in counts.items()], settings, producers)
    by_node = dict(zip(counts, found.nodes, strict=True))
    return replace(found, nodes=tuple(by_node[node] for node in used))


def estimate_alike(
    groups: Sequence[tuple[int, NodeLoad, NodeCost]], settings: Settings, producers: int = 1
) -> Estimate:
    """As ``estimate``, for groups of so many nodes that are alike; one of each is looked at, and is in ``nodes``."""
    used = [(count, load, cost) for count, load, cost in groups if load.rate > 0]
    if not used:
        raise IllegalArgumentError("rate must be above 0 for at least one node, all are 0")
    filling = math.fsum(count * load.rate for count, load, _ in used if load.partition_shares is None)
    found = [(count, _Steps(load, cost, settings, filling, producers).estimate()) for count, load, cost in used]
    rate = math.fsum(count * node.rate for count, node in found)
    batches = math.fsum(count * node.requests * node.batches_request for count, node in found)
    return Estimate(
        nodes=tuple(node for _, node in found),
        latency=mixed([(count * node.rate / rate, node.latency) for count, node in found]),
        requests=producers * math.fsum(count * node.requests for count, node in found),
        records_batch=rate / batches,
        fill=math.fsum(count * node.fill * node.requests * node.batches_request for count, node in found) / batches,
        pool=math.fsum(count * node.pool_steady for count, node in found),
        bytes=producers * math.fsum(count * node.bytes for count, node in found),
        used=max(node.used for _, node in found),
        overload=any(node.overload for _, node in found),
    )


@dataclass(frozen=True, slots=True)
class _Flow:
    """``gap``: ms between requests; ``held``: share of the requests that wait for a slot."""

    gap: float
    held: float
    turnaround: float
    bunch: float
    line: Wait


def bounded(wait: Wait, most: float) -> Latency:
    """A wait that no more than ``most`` is left of, because the rest is spent before a slot is free."""
    free = waiting(wait.chance, wait.mean)
    return latency((min(point, most), weight) for point, weight in free.weighted())


@dataclass(slots=True)
class _Steps(NodeRequests):
    """The steps of the estimate for one node; rates are records a ms in here."""

    producers: int = 1

    def batches_sent(self, free: Cycle, flow: _Flow) -> float:
        """Batches of a request, as requests go: what gathers for a slot ends with a batch that is not full."""
        records, slots = flow.gap * self.fill_rate, self.settings.in_flight
        alone = (
            self.batches(records)
            if self.groups is not ONE
            else max(1.0, (records - free.along) / self.packing.mean) + free.along
        )
        if flow.held <= 0 or records <= 1:
            return min(records, alone)
        early = min(records, max(1.0, flow.bunch * self.fill_rate))
        late = records * slots - early * (slots - 1)
        gathered = (self.gathered(early) * (slots - 1) + self.gathered(late)) / slots
        found = alone * (1 - flow.held) + gathered * flow.held
        return min(records, max(found, records / self.packing.mean))

    def flow(self, free: Cycle) -> _Flow:
        """How often requests go once they wait for slots and for each other.

        A request that waits gets larger, so the steps are taken again until they agree.
        """
        arrivals = free.arrivals
        saturated, in_flight = self.saturated_gap(), self.settings.in_flight
        flow = _Flow(max(free.mean, saturated), 0.0, 0.0, 0.0, NONE)
        for _ in range(ROUNDS):
            records = self.fill_rate * flow.gap
            service = self.service(records)
            turnaround = self.turnaround(records)
            gap, held = slot_gap(arrivals, turnaround, in_flight)
            line = self.line(free, flow.gap, records)
            if in_flight > 1 and line.chance > 0:
                longest = self.slowest(records)
                merged = line.longer((in_flight - 1) * longest) * merging(arrivals, longest)
                gap = max(gap, free.mean / (1 - merged))
            gap = min(max(gap, saturated), max(free.mean, self.most_records / self.fill_rate))
            flow = _Flow(gap, held, turnaround, bunch_gap(arrivals, held, turnaround, service, in_flight), line)
        return flow

    def saturated(self, free: Cycle, flow: _Flow) -> bool:
        """Whether the connection is never idle, so that only larger requests keep it from falling behind."""
        return free.mean < flow.gap <= self.saturated_gap() * 1.001

    def before(self, free: Cycle, flow: _Flow) -> tuple[Latency, float]:
        """The wait of a record until its request goes, and how much of its mean is for a slot."""
        slots = self.settings.in_flight
        if self.saturated(free, flow):
            return latency(uniform(0.0, flow.gap)), flow.gap / 2
        closing = latency(free.waits)
        if flow.held <= 0:
            return closing, 0.0
        window = slot_waits(
            free.arrivals,
            gap=flow.gap,
            bunch=flow.bunch,
            held=flow.held,
            service=self.service(flow.gap * self.fill_rate),
            turnaround=flow.turnaround,
            in_flight=slots,
        )
        total = sum(weight for _, weight in window)
        found = later_of(closing, latency([*window, (0.0, max(0.0, 1.0 - total))]))
        return found, max(0.0, found.mean - closing.mean)

    def line(self, free: Cycle, gap: float, records: float) -> Wait:
        """The wait for the requests before one, on the wire or at the broker."""
        if self.settings.in_flight == 1:
            return NONE
        slowest, variance = self.slowest(records), self.service_variance(records, free.lingers)
        return line_wait(Arrivals(gap, free.variance, free.shortest), slowest, variance)

    def estimate(self) -> NodeEstimate:
        free = cycle(self.fill_rate, self.settings.linger_ms, self.packing, self.groups, near=self.near)
        flow = self.flow(free)
        records = flow.gap * self.fill_rate
        batches = self.batches_sent(free, flow)
        requests = self.rate / records
        wait, parts = self.latency(free, flow, records)
        capacity = self.capacity()
        settings = self.settings
        batch = records * self.sent / batches + BATCH_OVERHEAD
        room = settings.batch_size + records / batches * self.oversize
        return NodeEstimate(
            rate=self.load.rate,
            requests=requests * 1000,
            records_request=records,
            records_batch=records / batches,
            batches_request=batches,
            fill=min(1.0, batch / room),
            latency=wait,
            parts=parts,
            lingers=free.lingers,
            used=min(1.0, max(self.rate / capacity, self.slowest(records) / flow.gap)),
            capacity=capacity * 1000,
            pool_record=max(self.load.size, settings.batch_size / self.packing.mean),
            pool_steady=self.pool(records / batches, batch, wait),
            bytes=requests * 1000 * self.size(records),
        )

    def latency(self, free: Cycle, flow: _Flow, records: float) -> tuple[Latency, Parts]:
        """The waits of a record, added up."""
        service, wire, rtt = self.service(records), self.cost.wire(self.size(records)), self.cost.rtt_ms
        slots = self.settings.in_flight
        before, slot = self.before(free, flow)
        if self.saturated(free, flow):
            line = latency([(max(0.0, slots * flow.gap - rtt - service - wire), 1.0)])
        else:
            # The rest is waited for in the producer, until the next request takes along all that is there.
            line = bounded(flow.line, (slots - 0.5) * self.slowest(records))
        others = handler_wait(self.cost.handlers, self.others_busy(service * self.rate / records), service)
        found = before.plus(line)
        if others.chance > 0:
            found = found.plus(waiting(others.chance, others.mean))
        parts = Parts(
            linger=max(0.0, before.mean - slot),
            slot=slot,
            line=line.mean + others.chance * others.mean,
            wire=wire,
            round_trip=rtt,
            service=service,
        )
        found = self.of_size(found, wire + rtt + service)
        if self.rate >= self.capacity():
            return latency([(math.inf, 1.0)]), parts
        return found.later(wire + rtt + service), parts

    def others_busy(self, busy: float) -> float:
        """The share of the handlers' time that others take, if each producer takes ``busy`` of one handler's."""
        if self.producers == 1:
            return self.cost.others_busy
        return min(MOST_BUSY, self.cost.others_busy + (self.producers - 1) * busy / self.cost.handlers)

    def of_size(self, found: Latency, base: float) -> Latency:
        """With what a record that is larger or smaller than the others adds itself."""
        per_byte = (self.cost.per_mib_ms / MIB + 1000 / self.cost.bandwidth) * self.settings.compression_ratio
        sizes = [size for size, _ in self.load.sizes]
        if (max(sizes) - min(sizes)) * per_byte < base / 20:
            return found
        mean = self.load.size
        return found.plus(latency(((size - mean) * per_byte, share) for size, share in self.load.sizes))

    def pool(self, records: float, batch: float, wait: Latency) -> float:
        """Most bytes of the pool in use: chunks of what waits for its batch to close and for its answer.

        What is there at a time is a matter of chance, as the records come.
        """
        chunk = batch * GROWN
        if batch * 9 / 8 > self.settings.batch_size / 2:
            chunk = max(batch, self.settings.batch_size)
        there = self.rate * wait.p999
        return chunk * (self.visits + (there + DEVIATIONS_OF_MOST * math.sqrt(there)) / records)
