"""What one node gets and what a request costs there: records of a request become batches, bytes and milliseconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from forebay._closed_forms.cycles import ONE, Group, batches_of, grouped
from forebay._closed_forms.packing import Packing, full_batches
from forebay.errors import IllegalArgumentError

BATCH_OVERHEAD = 61
"""Bytes of a batch's header."""
RATIO_MARGIN = 1.05
"""The accumulator takes compressed records for that much larger than the ratio promises."""
MIB = 1 << 20
LEAST_RATIO = 1e-6
"""Of the bytes, that a codec leaves."""
STAYS = 0.999
"""Share of the time on one node from which on it is taken for all of the time."""
DEVIATIONS = (-1.3, -0.6, 0.0, 0.6, 1.3)
"""Of a number that is a matter of chance, each as likely as the others."""
PARTLY = 0.2
"""Batches that are not full in a request that takes several: most often the last one waits for the next request."""


def _check(name: str, value: float, least: float, most: float = 1e15) -> None:
    """Refuses what is no number, or is not between ``least`` and ``most``."""
    if not least <= value <= most:
        raise IllegalArgumentError(f"{name} must be a number of at least {least:g}, got {value!r}")


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node gets.

    rate: records a second.
    sizes: (bytes of a record with its overhead of 7 to 10, share), in the order of coming if ``in_turn``.
    partition_shares: of the node's keyed records, for each of its partitions; None without keys.
    partitions: of the node, without keys.
    """

    rate: float
    sizes: tuple[tuple[float, float], ...]
    partition_shares: tuple[float, ...] | None = None
    in_turn: bool = False
    partitions: int = 1

    def __post_init__(self) -> None:
        _check("rate", self.rate, 0.0)
        if not self.sizes:
            raise IllegalArgumentError("sizes must name at least one size, got none")
        for size, share in self.sizes:
            _check("a size", size, 1.0)
            _check(f"the share of size {size}", share, 0.0)
        if sum(share for _, share in self.sizes) <= 0:
            raise IllegalArgumentError("shares of sizes must add up to more than 0")
        if self.partition_shares is not None and not sum(self.partition_shares) > 0:
            raise IllegalArgumentError("partition_shares must add up to more than 0")
        _check("partitions", self.partitions, 1)

    def mean_of(self, value: Callable[[float], float]) -> float:
        """The mean of what ``value`` makes of each size."""
        return sum(value(size) * share for size, share in self.sizes) / sum(share for _, share in self.sizes)

    @property
    def size(self) -> float:
        """Mean bytes of a record."""
        return self.mean_of(lambda size: size)

    @property
    def size_variance(self) -> float:
        mean = self.size
        return self.mean_of(lambda size: (size - mean) ** 2)


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What a request costs.

    fixed_ms, per_mib_ms: time in the broker, for each request and each MiB of it.
    bandwidth: bytes a second on the way there.
    others_busy: share of the handlers that the requests of others keep busy.
    """

    rtt_ms: float
    fixed_ms: float
    per_mib_ms: float = 0.0
    bandwidth: float = math.inf
    handlers: int = 8
    others_busy: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rtt_ms", "fixed_ms", "per_mib_ms", "others_busy"):
            _check(name, getattr(self, name), 0.0)
        _check("bandwidth", self.bandwidth, 1.0, math.inf)
        _check("handlers", self.handlers, 1)

    def service(self, size: float) -> float:
        """Ms in the broker, of a request of ``size`` bytes."""
        return self.fixed_ms + self.per_mib_ms * size / MIB

    def wire(self, size: float) -> float:
        """Ms on the way there beside the round trip."""
        return size / self.bandwidth * 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a producer; ``compression_ratio`` is what the codec leaves of the bytes."""

    linger_ms: float = 5.0
    batch_size: int = 16384
    in_flight: int = 5
    compression: str = "none"
    compression_ratio: float = 1.0
    buffer_memory: int = 32 * MIB
    max_request_size: int = MIB
    delivery_timeout_ms: float = 120_000.0
    request_timeout_ms: float = 30_000.0
    retry_backoff_max_ms: float = 1000.0

    def __post_init__(self) -> None:
        _check("linger_ms", self.linger_ms, 0.0)
        _check("compression_ratio", self.compression_ratio, LEAST_RATIO)
        for name in ("batch_size", "in_flight", "buffer_memory", "max_request_size"):
            _check(name, getattr(self, name), 1)


@dataclass(slots=True)
class NodeRequests:
    """The requests to one node.  Rates are records a ms in here.

    filling: records a second of all nodes without keys.
    groups: the partitions that its records are spread over.
    fill_rate: records a ms while the sticky partition is on this node.
    """

    load: NodeLoad
    cost: NodeCost
    settings: Settings
    filling: float
    groups: tuple[Group, ...] = field(init=False)
    rate: float = field(init=False)
    fill_rate: float = field(init=False)
    packing: Packing = field(init=False)

    def __post_init__(self) -> None:
        load, settings = self.load, self.settings
        keyed = load.partition_shares is not None
        self.groups = grouped(load.partition_shares or ()) if keyed else ONE
        self.rate = load.rate / 1000
        self.fill_rate = self.rate if keyed else max(self.rate, self.filling / 1000)
        held = settings.compression_ratio * (RATIO_MARGIN if settings.compression != "none" else 1.0)
        sizes = tuple((size * held, share) for size, share in load.sizes)
        lingering = self.fill_rate * settings.linger_ms * self.groups[0].share
        room = settings.batch_size - BATCH_OVERHEAD
        self.packing = full_batches(sizes, room, in_turn=load.in_turn and not keyed, lingering=lingering)

    @property
    def visits(self) -> float:
        """Share of the time in which the sticky partition is on this node; 1 with keys."""
        return min(1.0, self.rate / self.fill_rate)

    @property
    def near(self) -> float:
        """The chance that the next sticky partition is another one of this node."""
        return self.visits * (1 - 1 / self.load.partitions) if self.groups is ONE else 0.0

    @property
    def sent(self) -> float:
        """Mean bytes of a record on the wire."""
        return self.load.size * self.settings.compression_ratio

    @property
    def oversize(self) -> float:
        """Mean bytes by which a record is larger than a batch."""
        ratio, most = self.settings.compression_ratio, self.settings.batch_size - BATCH_OVERHEAD
        return self.load.mean_of(lambda size: max(0.0, size * ratio - most))

    @property
    def most_records(self) -> float:
        """Records of the largest request."""
        # Of each partition one batch: with keys the one with the largest share fills first.
        if self.groups is not ONE:
            full = self.packing.mean / self.groups[0].share
        else:
            # The sticky partition may be the same one twice, and a request takes one batch of it.
            full = self.packing.mean * ((1 + self.load.partitions) / 2 if self.visits > STAYS else 1)
        by_size = max(self.packing.mean, self.settings.max_request_size / self.load.size)
        return max(1.0, min(full, by_size))

    def batches(self, records: float) -> float:
        """Batches of a request with ``records`` records, of which each full one could have gone at once."""
        if self.groups is ONE:
            return max(1.0, records / self.packing.mean)
        return max(batches_of(self.groups, records), records / self.packing.mean)

    def size(self, records: float) -> float:
        """Bytes of a request with ``records`` records."""
        return records * self.sent + BATCH_OVERHEAD * self.batches(records)

    def service(self, records: float) -> float:
        return self.cost.service(self.size(records))

    def capacity(self) -> float:
        """Records a ms that the node can take."""
        records = self.most_records
        size = self.size(records)
        service, wire = self.cost.service(size), self.cost.wire(size)
        turnaround = (self.cost.rtt_ms + service + wire) / self.settings.in_flight
        return records / max(service, wire, turnaround, 1e-9)

    def saturated_gap(self) -> float:
        """Ms between requests of a connection that is never idle while records come at the local rate."""
        longest = self.most_records / self.fill_rate
        found = 0.0
        header = BATCH_OVERHEAD * self.batches(1.0)
        for fixed, share in (
            (self.cost.service(header), self.cost.per_mib_ms / MIB),
            (self.cost.wire(header), 1000 / self.cost.bandwidth),
        ):
            growth = 1 - share * self.fill_rate * self.sent
            found = max(found, fixed / growth if growth > 0 else longest)
        return min(found, longest)

    def turnaround(self, records: float) -> float:
        """Ms from a request to its answer, if nothing is in its way."""
        size = self.size(records)
        return self.cost.rtt_ms + self.cost.wire(size) + self.cost.service(size)

    def slowest(self, records: float) -> float:
        """Ms of a request where it takes longest, on the wire or in the broker: the other one has no queue then."""
        return max(self.service(records), self.cost.wire(self.size(records)))

    def service_variance(self, records: float, lingers: float) -> float:
        """Of a request's time in the broker: number and sizes of its records are a matter of chance."""
        per_byte = max(self.cost.per_mib_ms / MIB, 1000 / self.cost.bandwidth) * self.settings.compression_ratio
        number = max(0.0, records - 1) * lingers
        return per_byte**2 * (records * self.load.size_variance + self.load.size**2 * number)

    def gathered(self, records: float) -> float:
        """Batches of about so many records, more or less by chance."""
        if self.groups is not ONE:
            return self.batches(records)
        spread = math.sqrt(records)
        filled = [(records + part * spread) / self.packing.mean for part in DEVIATIONS]
        return sum(1.0 if share <= 1 else share + PARTLY for share in filled) / len(filled)
