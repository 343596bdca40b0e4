"""What an outage of a broker does: what fills, when ``send`` stops, when it ends, and which settings lose nothing."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from forebay._closed_forms.estimate import Estimate, NodeEstimate
from forebay._closed_forms.node import MIB, Settings
from forebay.errors import IllegalArgumentError


@dataclass(frozen=True, slots=True)
class Outage:
    """Some nodes take nothing for ``away_ms``.

    nodes: their places in the estimate.
    notice_ms: until the producer knows; ``request.timeout.ms`` if the node is silent, 0 if it refuses connections.
    election_ms: until another node leads.
    """

    nodes: tuple[int, ...]
    away_ms: float
    notice_ms: float = 0.0
    election_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class OutageEstimate:
    """Times in ms, sizes in bytes.

    fills_in: until the pool is full and ``send`` waits; infinite if it lasts longer than the outage and its recovery.
    held: how long ``send`` waits for room.
    recovery: from the end of the outage until nothing waits that did not wait before it; infinite under overload.
    memory: the smallest ``buffer.memory`` in which the pool does not get full.
    delivery_timeout: the smallest ``delivery.timeout.ms`` in which nothing expires.
    """

    fills_in: float
    held: float
    recovery: float
    memory: float
    delivery_timeout: float


def through(outage: Outage, found: Estimate, settings: Settings) -> OutageEstimate:
    """An outage with these settings.

    Raises:
        IllegalArgumentError: a node that the estimate does not have.
    """
    away = _nodes(found, outage.nodes)
    lasts = outage.away_ms + outage.election_ms
    gathers = math.fsum(node.rate / 1000 * node.pool_record for node in away)
    left = max(0.0, settings.buffer_memory - found.pool)
    fills_in = left / gathers if gathers > 0 else math.inf
    recovery = max((recovery_of(node, lasts) for node in away), default=0.0)
    expires = outage.notice_ms + lasts + settings.retry_backoff_max_ms + recovery
    return OutageEstimate(
        fills_in=fills_in if fills_in < lasts else math.inf,
        held=max(0.0, lasts - fills_in),
        recovery=recovery,
        memory=found.pool + gathers * lasts,
        delivery_timeout=max(settings.linger_ms + settings.request_timeout_ms, expires),
    )


def recovery_of(node: NodeEstimate, away_ms: float) -> float:
    """Ms until a node has taken what came while it was away, beside what comes meanwhile."""
    spare = node.capacity - node.rate
    return away_ms * node.rate / spare if spare > 0 else math.inf


def memory_for(found: Estimate, settings: Settings, outages: Collection[Outage] = ()) -> float:
    """The smallest ``buffer.memory``, in bytes, in which ``send`` never waits; outages come one at a time."""
    return max([found.pool, *(through(outage, found, settings).memory for outage in outages)])


def delivery_timeout_for(found: Estimate, settings: Settings, outages: Collection[Outage] = ()) -> float:
    """The smallest ``delivery.timeout.ms`` in which nothing expires."""
    least = settings.linger_ms + settings.request_timeout_ms
    return max([least, *(through(outage, found, settings).delivery_timeout for outage in outages)])


def fitted(
    found: Estimate, settings: Settings, outages: Collection[Outage] = (), *, least_memory: int = MIB
) -> Settings:
    """The settings with the memory and the timeout that follow from the others.

    Memory is rounded up to a power of two of at least ``least_memory``, the timeout to whole seconds.  What the load
    needs infinitely much of stays as it is.  The timeout never gets shorter.
    """
    memory = memory_for(found, settings, outages)
    timeout = delivery_timeout_for(found, settings, outages)
    if math.isfinite(memory):
        memory = max(least_memory, 1 << math.ceil(math.log2(max(1.0, memory))))
    if math.isfinite(timeout):
        timeout = max(settings.delivery_timeout_ms, math.ceil(timeout / 1000) * 1000)
    return replace(
        settings,
        buffer_memory=int(memory) if math.isfinite(memory) else settings.buffer_memory,
        delivery_timeout_ms=timeout if math.isfinite(timeout) else settings.delivery_timeout_ms,
    )


def _nodes(found: Estimate, places: Collection[int]) -> list[NodeEstimate]:
    missing = [place for place in places if not 0 <= place < len(found.nodes)]
    if missing:
        raise IllegalArgumentError(
            f"there is no node {missing[0]}: the estimate has {len(found.nodes)}, counted from 0"
        )
    return [found.nodes[place] for place in places]
