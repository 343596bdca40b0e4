"""What if: each tuned option one step up and down from the proposed one, by closed forms.

These are estimates: nothing is simulated for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forebay._closed_forms.estimate import Estimate
from forebay._closed_forms.node import Settings
from forebay._closed_forms.wording import OPTIONS, options_of
from forebay.tune.outages import Outage, delivery_timeout_for, memory_for, through
from forebay.tune.search import Estimator

STEPPED = ("linger_ms", "batch_size", "in_flight")
"""Fields that go to the next value that was looked at; those that follow from the others are halved and doubled."""
FACTORS = (0.5, 2)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the proposed settings give with one option changed, by closed forms."""

    option: str
    """By Kafka's name; empty for the proposed settings themselves."""
    value: int | str
    p50_ms: float | None
    """None: the load is more than the brokers take."""
    p99_ms: float | None
    requests_s: float
    """Of all producers."""
    bytes_s: float
    memory: float | None
    """The smallest ``buffer.memory`` (bytes) in which send never waits, in the declared outages too."""
    held_ms: float | None
    """The longest wait of send in a declared outage; None: it waits without an outage, too."""
    expires: bool
    """Whether ``delivery.timeout.ms`` of a record runs out after a declared outage."""


def what_if(
    estimate: Estimator,
    settings: Settings,
    looked_at: Sequence[Settings],
    outages: Sequence[Outage] = (),
) -> tuple[WhatIf, ...]:
    """The proposed settings, and each neighbour of them.

    Args:
        settings: as they are proposed.
        looked_at: of the search; an option's next value is taken from there.
    """
    found = [_row("", settings, estimate(settings), outages)]
    for field, other in neighbours(settings, looked_at, outages):
        found.append(_row(OPTIONS[field], other, estimate(other), outages))
    return tuple(found)


def neighbours(
    settings: Settings, looked_at: Sequence[Settings], outages: Sequence[Outage]
) -> Iterator[tuple[str, Settings]]:
    """Settings that differ in one field, and its name; the value below first."""
    for field in STEPPED:
        own = getattr(settings, field)
        values = sorted({own, *(getattr(each, field) for each in looked_at)})
        at = values.index(own)
        for value in (*values[max(0, at - 1) : at], *values[at + 1 : at + 2]):
            changed: dict[str, Any] = {field: value}
            yield field, replace(settings, **changed)
    codecs = {each.compression: each.compression_ratio for each in looked_at}
    for codec, ratio in codecs.items():
        if codec != settings.compression:
            yield "compression", replace(settings, compression=codec, compression_ratio=ratio)
    for factor in FACTORS:
        yield "buffer_memory", replace(settings, buffer_memory=max(1, int(settings.buffer_memory * factor)))
    least = settings.linger_ms + settings.request_timeout_ms
    for timeout in (settings.delivery_timeout_ms * factor for factor in FACTORS):
        # Without an outage nothing gets as old as the timeout, so that it changes nothing.
        if outages and timeout >= least:
            yield "delivery_timeout_ms", replace(settings, delivery_timeout_ms=timeout)


def _row(option: str, settings: Settings, found: Estimate, outages: Sequence[Outage]) -> WhatIf:
    held = max((through(each, found, settings).held for each in outages), default=0.0)
    timeout = delivery_timeout_for(found, settings, outages)
    return WhatIf(
        option=option,
        value=options_of(settings)[option] if option else "",
        p50_ms=_number(found.latency.p50),
        p99_ms=_number(found.latency.p99),
        requests_s=round(found.requests, 3),
        bytes_s=round(found.bytes, 1),
        memory=_number(memory_for(found, settings, outages)),
        held_ms=_number(held) if found.pool <= settings.buffer_memory else None,
        expires=bool(outages) and timeout > settings.delivery_timeout_ms,
    )


def _number(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None
