"""A prediction, and advice, in at most 40 lines of text each, for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from forebay._closed_forms.wording import (
    CAUSES,
    COLUMNS,
    NOT_SERVED,
    ONE_SEED,
    PARTS,
    VERDICTS,
    counted,
    in_bytes,
    plain,
)
from forebay.tune.advice import Advice
from forebay.tune.brokers import Brokers
from forebay.tune.described import described, wrapped
from forebay.tune.figures import LIMITS, Figures
from forebay.tune.goal import Goal
from forebay.tune.prediction import NodePrediction, Prediction, Times
from forebay.tune.workload import Workload

TO = "\N{EN DASH}"
MOST_NODES = 3
MOST_OUTAGES = 3
MOST_REASONS = 3
MOST_TRUST = 2
"""Lines of what is assumed, and of why to trust less."""
WITH_SPREAD = {"p50, ms": "p50", "p99, ms": "p99", "requests/s": "requests"}
"""Rows of advice with what the seeds differ by, and their figures."""
MOST_TRIALS = 4
FRONT = 4
"""Settings of the front that are shown, from the fastest to the one with the fewest requests."""


def prediction_text(found: Prediction, load: Workload, brokers: Brokers, goal: Goal) -> str:
    """The lines, each with its end."""
    lines = [
        *_question(found, load, brokers),
        "",
        *_latency(found),
        "",
        *_flow(found),
        *_nodes(found.nodes),
        *_trouble(found),
        *_goal(found.figures(), goal),
        *_told("assumed", found.assumptions, MOST_TRUST + 1),
        *_told("trust", found.doubts, MOST_TRUST, "lower: "),
    ]
    return "".join(f"{line}\n" for line in lines)


def _told(head: str, sentences: Sequence[str], most: int, begin: str = "") -> list[str]:
    """So many lines of sentences at most; none without any."""
    return wrapped(head, begin + "; ".join(sentences), most) if sentences else []


def _span(found: Prediction, name: str, shown: Callable[[float], str]) -> str:
    """The interval of a figure."""
    low, high = map(shown, found.intervals[name])
    return low if low == high else f"{low}{TO}{high}"


def _between(found: Prediction, name: str, shown: Callable[[float], str]) -> str:
    """The interval of a figure, in brackets after it; empty where there is none."""
    return f" ({_span(found, name, shown)})" if name in found.intervals else ""


def _question(found: Prediction, load: Workload, brokers: Brokers) -> Iterator[str]:
    for head, text in described(load, brokers):
        yield f"{head:<10}{text}"
    settings = " ".join(f"{name}={value}" for name, value in found.settings.items())
    yield from wrapped("settings", settings or "the defaults")[:2]
    several = "; in brackets what other seeds gave" if found.intervals else ""
    of = "" if found.fleet.simulated == found.fleet.producers else f" of {counted(found.fleet.simulated, 'producer')}"
    yield f"{'simulated':<10}{found.seconds:g} s, {found.sent:,} records{of}, seed {found.seed}{several}"


def _latency(found: Prediction) -> Iterator[str]:
    yield f"{'latency, ms':<30}{'p50':>10}{'p99':>10}{'p99.9':>10}{'longest':>10}"
    yield _times("from due to acknowledged", found.latency)
    if found.intervals:
        p50, p99 = (_span(found, name, plain) for name in ("p50_ms", "p99_ms"))
        yield f"{'  of all seeds':<26}{p50:>14}{f' {p99}':>10}"
    if found.latency_from_call != found.latency:
        yield _times("from the call of send", found.latency_from_call)
    for name, label in PARTS.items():
        if found.parts[name].longest > 0:
            yield _times(f"  {label}", found.parts[name])


def _times(label: str, times: Times) -> str:
    numbers = (times.p50, times.p99, times.p999, times.longest)
    return f"{label:<30}{''.join(f'{ms:>10,.2f}' for ms in numbers)}"


def _flow(found: Prediction) -> Iterator[str]:
    causes = ", ".join(f"{CAUSES[cause]} {share:.0%}" for cause, share in _largest(found.causes) if share >= 0.005)
    fill = f"{found.fill:.1%}{_between(found, 'fill', lambda share: f'{share:.1%}')} full"
    yield f"{'batches':<10}{found.records_a_batch:,.1f} records, {fill}; closed: {causes or 'none'}"
    requests = f"{found.requests_s:,.1f}/s{_between(found, 'requests_s', lambda rate: f'{rate:,.1f}')}"
    yield (f"{'requests':<10}{requests} with {found.batches_a_request:,.1f} batches, {in_bytes(found.bytes_s)}/s")
    pool = found.pool
    memory = f"{in_bytes(pool.peak)}{_between(found, 'pool_peak', in_bytes)}"
    yield f"{'memory':<10}{memory} at most, of {in_bytes(pool.limit)}"
    if found.holds:
        longest = f"{found.longest_hold_ms:,.0f} ms{_between(found, 'longest_hold_ms', lambda ms: f'{ms:,.0f}')}"
        yield f"{'held':<10}{counted(found.holds, 'call')} of send, the longest for {longest}"
    yield f"{'processor':<10}{found.cpu:.1%} of one"


def _nodes(nodes: Iterable[NodePrediction]) -> Iterator[str]:
    busiest = sorted(nodes, key=lambda node: (-node.busy, node.node))
    for node in busiest[:MOST_NODES]:
        throttled = f", throttled for {node.throttled_ms:,} ms" if node.throttled_ms else ""
        yield (
            f"{f'node {node.node}':<10}{node.requests_s:,.1f} requests/s, {in_bytes(node.bytes_s)}/s, handlers busy "
            f"{node.busy:.1%}, answers in {node.answer.p50:,.1f} ms (p99 {node.answer.p99:,.1f}){throttled}"
        )
    if len(busiest) > MOST_NODES:
        yield f"{'':<10}and {len(busiest) - MOST_NODES} nodes that are less busy"


def _trouble(found: Prediction) -> Iterator[str]:
    for outage in found.outages[:MOST_OUTAGES]:
        begin, end = outage.seconds
        over = "not seen to be over in the simulated time"
        if outage.recovery_s is not None:
            over = f"over {outage.recovery_s:,.1f} s after its end"
        yield (
            f"{'outage':<10}node {outage.node} {outage.kind}, {begin:g} to {end:g} s: memory up to "
            f"{in_bytes(outage.pool_peak)}, {over}"
        )
    if found.lost:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in _largest(found.failed)[:4])
        yield f"{'lost':<10}{counted(found.lost, 'record')}: {reasons}"
    if found.backlog:
        yield f"{'backlog':<10}{counted(found.backlog, 'record')} not sent in time, because callers were held"
    if found.fleet.above_capacity:
        nodes = ", ".join(map(str, found.fleet.above_capacity[:MOST_NODES]))
        more = " and others" if len(found.fleet.above_capacity) > MOST_NODES else ""
        yield f"{'capacity':<10}node {nodes}{more}: more comes than the handlers can do, and latencies grow for as long"
    if found.fleet.served is not None:
        yield f"{'':<10}the nearest that is served: {counted(found.fleet.served, 'producer')} of this kind"
    if not found.served:
        yield f"{'':<10}the load is not served by these settings"


def _goal(figures: Mapping[str, float], goal: Goal) -> Iterator[str]:
    broken = goal.broken(figures)
    for number, text in enumerate(broken):
        yield f"{'goal' if number == 0 else '':<10}not kept: {text}"
    if goal.limits() and not broken:
        yield f"{'goal':<10}kept: {', '.join(f'{name} {limit:g}' for name, limit in goal.limits().items())}"


def _limited(found: Advice) -> dict[str, float]:
    """What may have a limit, of the settings that are proposed or left, in the longer runs."""
    figures = found.figures["present" if found.verdict == "leave" else "best"]
    return {limit: getattr(figures, name) for limit, name in LIMITS.items()}


def _largest(shares: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(shares.items(), key=lambda item: (-item[1], item[0]))


def advice_text(found: Advice, load: Workload, brokers: Brokers, goal: Goal) -> str:
    """The lines, each with its end."""
    settings = " ".join(f"{name}={value}" for name, value in found.settings.items())
    seen, simulated = found.tried
    lines = [
        *_question(found.present, load, brokers),
        "",
        *wrapped("advice", f"{VERDICTS[found.verdict]} {settings}".rstrip()),
        *(line for reason in found.reasons[:MOST_REASONS] for line in wrapped("", reason.text)),
        "",
        *_columns(found.figures, found.spreads),
        "",
        *_trials(found),
        *_front(found),
        *wrapped("searched", f"{seen:,} settings by closed forms, {simulated} by simulation"),
        *_goal(_limited(found), goal),
        # The figures are of several seeds, those of ``present`` beside them of one.
        *_told("assumed", found.present.assumptions, MOST_TRUST),
        *_told("trust", [each for each in found.present.doubts if each != ONE_SEED], MOST_TRUST, "lower: "),
    ]
    return "".join(f"{line}\n" for line in lines)


def _columns(figures: Mapping[str, Figures], spreads: Mapping[str, Mapping[str, tuple[float, float]]]) -> Iterator[str]:
    """Each figure, and in brackets the least and the most that the seeds gave."""
    yield f"{'':<28}{''.join(f'{COLUMNS[name]:>27}' for name in figures)}"
    rows: dict[str, Any] = {
        "p50, ms": lambda each: f"{each.p50:,.2f}",
        "p99, ms": lambda each: f"{each.p99:,.2f}",
        "requests/s": lambda each: f"{each.requests:,.1f}",
        "sent/s": lambda each: in_bytes(each.bytes),
        "memory at most": lambda each: in_bytes(each.memory),
        "processor": lambda each: f"{each.cpu / 10:,.1f}%",
        "records lost": lambda each: f"{each.lost:,.0f}",
        "longest hold of send, ms": lambda each: f"{each.hold:,.1f}",
    }
    for name, shown in rows.items():
        cells = []
        for which, each in figures.items():
            cell = shown(each)
            if name in WITH_SPREAD:
                low, high = spreads[which][WITH_SPREAD[name]]
                cell += f" ({plain(low)}{TO}{plain(high)})"
            cells.append(f"{cell:>27}")
        yield f"{name:<28}{''.join(cells)}"


def _trials(found: Advice) -> Iterator[str]:
    for number, (name, figures) in enumerate([*found.trials.items()][:MOST_TRIALS]):
        head = "tried" if number == 0 else ""
        lost = f", {counted(round(figures.lost), 'record')} lost" if figures.lost else ""
        yield f"{head:<10}{name}: p99 {figures.p99:,.1f} ms, {figures.requests:,.1f} requests/s{lost}"


def _front(found: Advice) -> Iterator[str]:
    step = max(1, -(-len(found.front) // FRONT))
    for number, (settings, p99, requests, memory) in enumerate(found.front[::step]):
        head = "front" if number == 0 else ""
        short = f"linger {settings['linger.ms']}, batch {in_bytes(float(settings['batch.size']))}, in flight "
        short += str(settings["max.in.flight.requests.per.connection"])
        told = f"about p99 {p99:,.1f} ms, {requests:,.1f} requests/s, {in_bytes(memory)}"
        yield f"{head:<10}{told if math.isfinite(p99) else NOT_SERVED}: {short}"
