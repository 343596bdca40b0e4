"""``producer.advise()``: what closed forms say of a running producer's settings, out of its own metrics.

Nothing is simulated and no thread is started, so it may be asked in production.  What it cannot know it says: how
records come below a second, and which part of an answer's time is the broker's work.  ``forebay tune advise`` on a
trace knows more.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from forebay._closed_forms.estimate import Estimate, estimate_alike
from forebay._closed_forms.node import BATCH_OVERHEAD, NodeCost, NodeLoad, Settings
from forebay._closed_forms.wording import changed, option_value, options_changed, plain, settings_of, size
from forebay._metrics.names import NODE, PRODUCER
from forebay._runtime.times import is_number
from forebay.errors import IllegalArgumentError

LEAST_RECORDS = 1_000
"""Of the time that is looked at."""
LINGERS = (0, 1, 2, 5, 10, 20, 50, 100)
LARGER = (2, 4, 8)
"""Times ``batch.size``."""
FEWER = (1, 2)
"""Requests in flight."""
SHOWN = (0, 5, 20, 100)
"""Lingers whose figures are told, whatever is proposed."""
LEAST_GAIN = 0.02
"""A smaller one is none."""
LEAST_MS = 0.001
SPARE = 1.1
"""What is within a tenth of today's p99 is no slower: closed forms are not more exact."""
SLOW = 1.5
"""A node that takes so many times the median is looked at apart."""
KEYED = 1.3
"""Batches of a request from which on partitions fill side by side."""
MOST_PARTITIONS = 50
"""Of a node, that are told apart; more behave as these do."""
BUSY = 0.95
"""A connection's answers leave no less time between them than the work of one, up to this share."""
ALONE = 1.1
"""Records of a request up to which nothing joined most of them."""
JOINED = 1.5
"""Records of a request from which on formulas say that linger.ms brings some together."""
ODD = 1.5
"""Times that requests are more or fewer than formulas say, from which on that is told."""
WAITS = 0.01
"""Share of the time that calls wait for memory from which on more of it is proposed."""
ASSUMED = (
    "half of an answer's time is the way, as far as the rate of requests allows",
    "records come one by one, at random",
    "what happened in the last minute goes on",
)

Verdict = Literal["change", "leave", "too few"]


class LiveFigures(NamedTuple):
    """What closed forms say of some settings; times in ms, rates a second."""

    p50_ms: float
    p99_ms: float
    requests: float
    records_batch: float
    fill: float


@dataclass(frozen=True, slots=True)
class LiveAdvice:
    """What is to be said of a running producer's settings; ``print`` shows it for people.

    verdict: "change" to ``settings``; "leave" what there is; "too few" records to say anything.
    settings: options by name that are to be set; empty unless the verdict is "change".
    reasons: sentences with cause, effect and price.
    measured: what the metrics of the last minute say, by name.
    estimated: what closed forms say of today's settings (``present``), of the ``proposed``, and of some lingers.
    assumptions: what was taken for granted.
    """

    verdict: Verdict
    settings: Mapping[str, int | str]
    reasons: tuple[str, ...]
    measured: Mapping[str, float]
    estimated: Mapping[str, LiveFigures]
    assumptions: tuple[str, ...] = ASSUMED

    def as_json(self) -> str:
        """All of it; what has no limit, as the latency of a broker that is overloaded, is null."""
        import json  # only those who ask

        estimated = {
            name: {key: value if math.isfinite(value) else None for key, value in each._asdict().items()}
            for name, each in self.estimated.items()
        }
        return json.dumps({**dataclasses.asdict(self), "estimated": estimated}, indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        lines = [" ".join((HEADS[self.verdict], *(f"{name}={value}" for name, value in self.settings.items())))]
        lines += [f"  {reason}" for reason in self.reasons]
        if self.measured:
            lines.append("measured   " + ", ".join(f"{name} {plain(value)}" for name, value in self.measured.items()))
        if self.estimated:
            lines.append(f"{'estimated':<22}{'p50, ms':>9}{'p99, ms':>9}{'requests/s':>12}{'records a batch':>17}")
        for name, each in self.estimated.items():
            numbers = f"{plain(each.p50_ms):>9}{plain(each.p99_ms):>9}{plain(each.requests):>12}"
            lines.append(f"  {name:<20}{numbers}{plain(each.records_batch):>17}")
        if self.estimated:
            lines.append(f"assumed    {'; '.join(self.assumptions)}")
        return "\n".join(lines)


HEADS: Mapping[Verdict, str] = {
    "change": "Set",
    "leave": "Leave the settings as they are.",
    "too few": "Too few records to say anything.",
}


class Seen(NamedTuple):
    """What the metrics say; rates a second, times in ms, sizes in bytes."""

    records: float
    """Of the time that is looked at."""
    rate: float
    record_size: float
    """With a record's overhead, before compression."""
    batch_size: float
    """As sent."""
    ratio: float
    """What compression leaves."""
    records_request: float
    queue_ms: float
    answer_ms: float
    nodes: tuple[tuple[float, float], ...]
    """Bytes a second and mean ms of an answer, of each broker that gets any."""
    partitions: int
    """That are known."""
    memory: int
    available: int
    waits: float
    """Share of the time in which calls waited for memory."""
    throttled_ms: float
    failed: float
    """Records."""


def advise(parts: Any, p99_ms: float | None) -> LiveAdvice:
    """What to say of the producer that is made of ``parts`` (``_assembly.Components``).

    Args:
        p99_ms: what the 99th percentile may come to; None: what it is now.

    Raises:
        IllegalArgumentError: ``p99_ms`` is no number above 0.
    """
    if p99_ms is not None and (not is_number(p99_ms) or not 0 < p99_ms < math.inf):
        raise IllegalArgumentError(f"p99_ms is {p99_ms!r}; it must be a number above 0, or None")
    seen = seen_of(parts)
    return advice_of(seen, settings_of(parts.config, seen.ratio), p99_ms)


def seen_of(parts: Any) -> Seen:
    """Reads the metrics; what has no value yet is 0."""
    now = parts.clock.now()
    found: dict[str, float] = {}
    by_node: dict[str, dict[str, float]] = {}
    started = parts.clock.wall()
    for name, value in parts.metrics.snapshot(now).items():
        if name.name == "start-time-ms":
            started = float(value)
        if name.group not in (PRODUCER, NODE) or not math.isfinite(number := float(value)):
            continue
        node = dict(name.tags).get("node-id")
        (found if node is None else by_node.setdefault(node, {}))[name.name] = number
    config, pool = parts.config, parts.accumulator.pool
    window_s = config["metrics.sample.window.ms"] / 1000
    up_s = max(0.001, (parts.clock.wall() - started) / 1000)
    sent = found.get("record-send-total", 0.0)
    # A rate is of a whole window at least, so that of a producer that just began is too low.
    young = up_s < window_s * (config["metrics.num.samples"] - 1)
    rate = sent / up_s if young else found.get("record-send-rate", 0.0)
    return Seen(
        records=sent if young else min(sent, rate * window_s * config["metrics.num.samples"]),
        rate=rate,
        record_size=found.get("record-size-avg", 0.0),
        batch_size=found.get("batch-size-avg", 0.0),
        ratio=found.get("compression-rate-avg", 0.0) or 1.0,
        records_request=found.get("records-per-request-avg", 0.0),
        queue_ms=found.get("record-queue-time-avg", 0.0),
        answer_ms=found.get("request-latency-avg", 0.0),
        nodes=tuple(
            (each.get("outgoing-byte-rate", 0.0), each.get("request-latency-avg", 0.0))
            for node, each in by_node.items()
            if not node.startswith("node--") and each.get("outgoing-byte-rate", 0.0) > 0
        ),
        partitions=sum(len(topic.queues) for topic in list(parts.accumulator.topics.values())),
        memory=pool.total,
        available=pool.available(),
        waits=found.get("bufferpool-wait-ratio", 0.0),
        throttled_ms=found.get("produce-throttle-time-avg", 0.0),
        failed=found.get("record-error-total", 0.0),
    )


def advice_of(seen: Seen, present: Settings, p99_ms: float | None) -> LiveAdvice:
    """What is to be said."""
    measured = measured_of(seen)
    if seen.records < LEAST_RECORDS or seen.rate <= 0 or seen.record_size <= 0:
        why = f"{plain(seen.records)} records were sent in the time that is looked at; it takes {LEAST_RECORDS:,}"
        return LiveAdvice("too few", {}, (why,), measured, {})
    groups = groups_of(seen)
    tried: dict[Settings, Estimate] = {}

    def of(settings: Settings) -> Estimate:
        if settings not in tried:
            tried[settings] = estimate_alike(groups, settings)
        return tried[settings]

    now = of(present)
    limit = max(LEAST_MS, now.latency.p99 * SPARE) if p99_ms is None else p99_ms
    without = replace(present, linger_ms=0.0)
    if alone(seen, present, now) and fits(without, of(without), now) and of(without).latency.p99 <= limit:
        best = without
        reasons = [alone_reason(seen, present)]
    else:
        best = searched(present, limit, of)
        if gained(now, of(best), limit) < LEAST_GAIN:
            best = present
        reasons = [*reason_of(present, best, now, of(best)), *odd(seen, now)]
    reasons += warnings(seen)
    settings = options_changed(present, best)
    if seen.waits > WAITS:
        settings["buffer.memory"] = 2 * seen.memory
    shown = {"present": present, "proposed": best}
    shown |= {f"linger.ms={linger}": replace(best, linger_ms=float(linger)) for linger in SHOWN}
    # Each once, under the first of its names.
    names = {each: name for name, each in reversed(shown.items())}
    estimated = {name: figures_of(of(each)) for name, each in shown.items() if names[each] == name}
    if not reasons:
        reasons = [f"No other setting has fewer requests with a p99 of at most {plain(limit)} ms."]
    return LiveAdvice("change" if settings else "leave", settings, tuple(reasons), measured, estimated)


def requests_of(seen: Seen) -> float:
    """Requests a second."""
    return seen.rate / seen.records_request if seen.records_request else 0.0


def measured_of(seen: Seen) -> dict[str, float]:
    """The figures that are shown."""
    return {
        "records/s": round(seen.rate, 3),
        "bytes a record": round(seen.record_size, 1),
        "requests/s": round(requests_of(seen), 3),
        "records a request": round(seen.records_request, 3),
        "bytes a batch": round(seen.batch_size, 1),
        "ms in the queue": round(seen.queue_ms, 3),
        "ms of an answer": round(seen.answer_ms, 3),
        "memory in use": float(seen.memory - seen.available),
    }


def groups_of(seen: Seen) -> list[tuple[int, NodeLoad, NodeCost]]:
    """The brokers as closed forms take them: those that are alike, and apart the slowest one if it is much slower."""
    nodes = seen.nodes or ((1.0, seen.answer_ms),)
    middle = sorted(ms for _, ms in nodes)[(len(nodes) - 1) // 2]
    total = sum(share for share, _ in nodes)
    slow = max(nodes, key=lambda node: node[1])
    # Which partition is whose is not asked: they are taken for evenly spread.
    led = max(1, min(MOST_PARTITIONS, round(seen.partitions / len(nodes))))
    raw = max(seen.record_size, seen.batch_size / seen.ratio - BATCH_OVERHEAD)
    batches = seen.records_request * seen.record_size / raw
    shares = (1.0,) * led if batches > KEYED and led > 1 else None

    def group(count: int, rate: float, ms: float) -> tuple[int, NodeLoad, NodeCost]:
        requests = max(0.001, rate / max(1.0, seen.records_request))
        work = max(0.0, min(ms / 2, BUSY * 1000 / requests))
        load = NodeLoad(rate, ((seen.record_size, 1.0),), partition_shares=shares, partitions=led)
        return count, load, NodeCost(rtt_ms=max(0.0, ms - work), fixed_ms=work)

    if len(nodes) == 1 or slow[1] <= SLOW * middle:
        return [group(len(nodes), seen.rate / len(nodes), middle)]
    rate = seen.rate * slow[0] / total
    rest = len(nodes) - 1
    return [group(rest, (seen.rate - rate) / rest, middle), group(1, rate, slow[1])]


def searched(present: Settings, limit: float, of: Callable[[Settings], Estimate]) -> Settings:
    """One option after the other: the best linger, then the best batch size with it, then requests in flight."""
    best = present
    for tried in (lingers, larger_batches, fewer_in_flight):
        for each in tried(best):
            if fits(each, of(each), of(best)) and gained(of(best), of(each), limit) > LEAST_GAIN:
                best = each
    return best


def fits(settings: Settings, after: Estimate, before: Estimate) -> bool:
    """Whether the producer's other options, which are left, allow it: delivery.timeout.ms and buffer.memory."""
    timely = settings.linger_ms + settings.request_timeout_ms <= settings.delivery_timeout_ms
    return timely and after.pool <= max(settings.buffer_memory, before.pool)


def lingers(settings: Settings) -> Iterator[Settings]:
    """Other values of linger.ms."""
    for linger in LINGERS:
        yield replace(settings, linger_ms=float(linger))


def larger_batches(settings: Settings) -> Iterator[Settings]:
    """Larger values of batch.size."""
    for times in LARGER:
        larger = min(settings.max_request_size, settings.batch_size * times)
        if larger > settings.batch_size:
            yield replace(settings, batch_size=larger)


def fewer_in_flight(settings: Settings) -> Iterator[Settings]:
    """Fewer requests in flight; never more, which the order of records may not stand."""
    for count in FEWER:
        if count < settings.in_flight:
            yield replace(settings, in_flight=count)


def gained(before: Estimate, after: Estimate, limit: float) -> float:
    """The share of the requests that is saved; a p99 above the limit has to come down first."""
    if after.overload:
        return -1.0
    if before.overload:
        return 1.0
    excess = [max(0.0, each.latency.p99 / limit - 1) for each in (before, after)]
    if max(excess) > 0:
        return excess[0] - excess[1]
    return 1 - after.requests / before.requests


def reason_of(present: Settings, best: Settings, before: Estimate, after: Estimate) -> Iterator[str]:
    """What is proposed of the search: cause, effect, price."""
    pairs = changed(present, best)
    if not pairs:
        return
    said = ", ".join(
        f"{name} {option_value(name, old)} ▸ {option_value(name, new)}" for name, (old, new) in pairs.items()
    )
    requests = after.requests / before.requests - 1
    effect = f"requests {plain(before.requests)} ▸ {plain(after.requests)}/s ({100 * requests:+.0f} %)"
    cause = f"a batch takes {plain(before.records_batch)} ▸ {plain(after.records_batch)} records"
    if "max.in.flight.requests.per.connection" in pairs:
        cause += ", and a broker serves one request of a connection at a time, so that more in flight only wait there"
    waits = [
        f"{name} {plain(old)} ▸ {plain(new)} ms"
        for name, old, new in (
            ("p50", before.latency.p50, after.latency.p50),
            ("p99", before.latency.p99, after.latency.p99),
        )
        if abs(new - old) > LEAST_GAIN * old
    ]
    yield f"{said}: {cause}; {effect}; {', '.join(waits) if waits else 'no price in latency'}."


def alone(seen: Seen, present: Settings, now: Estimate) -> bool:
    """Whether records linger and nothing joins them, though at random some would: the next comes after the answer."""
    waits = 0 < present.linger_ms <= 2 * seen.queue_ms
    return waits and 0 < seen.records_request < ALONE and seen.rate > JOINED * now.requests


def alone_reason(seen: Seen, present: Settings) -> str:
    """Cause, effect, price."""
    return (
        f"linger.ms {plain(present.linger_ms)} ▸ 0: a request takes along {plain(seen.records_request)} records, so "
        f"each waits {plain(seen.queue_ms)} ms and nothing joins it; that wait ends.  A program that waits for each "
        "answer then sends more often; else there is no price."
    )


def odd(seen: Seen, now: Estimate) -> Iterator[str]:
    """That the formulas do not fit the producer, if they do not."""
    requests = requests_of(seen)
    if requests > 0 and not 1 / ODD < now.requests / requests < ODD:
        yield (
            f"Formulas give {plain(now.requests)} requests/s where {plain(requests)} were measured: records do not "
            "come as is assumed here.  A trace has how they come (record_trace), and forebay tune advise takes it."
        )


def warnings(seen: Seen) -> Iterator[str]:
    """What the metrics say that no formula is needed for."""
    if seen.waits > WAITS:
        yield (
            f"buffer.memory {size(seen.memory)} ▸ {size(2 * seen.memory)}: calls of send waited for memory in "
            f"{100 * seen.waits:.3g} % of the time."
        )
    if seen.throttled_ms > 0:
        yield f"Brokers ask for pauses of {plain(seen.throttled_ms)} ms: a quota is the limit, and not the settings."
    if seen.failed > 0:
        yield f"{plain(seen.failed)} records failed since the start; the errors say why."


def figures_of(found: Estimate) -> LiveFigures:
    """In few numbers."""
    latency = found.latency
    figures = (latency.p50, latency.p99, found.requests, found.records_batch, found.fill)
    return LiveFigures(*(float(f"{each:.6g}") for each in figures))
