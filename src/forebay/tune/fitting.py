"""Fits tables ``[load]`` and ``[cluster]`` to what was seen: of a trace, or of looks at running producers.

A table is what a file of TOML would say, so that what is fitted can be written, read and changed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from forebay._insight.values import ProducerDescription
from forebay.tune._checks import TuneError
from forebay.tune.trace import Trace

MOST_SIZES = 12
"""Sizes of values that are told apart."""
LOW = 0.1
"""The part of answers that came sooner than the one whose time is taken as that of a broker without a line."""
RTT_PART = 0.5
MOST_RTT_MS = 1.0
OVERHEAD = 8
"""Bytes of a record beside key and value, as most have."""
BUSY = 2.0
"""Partitions of a topic with records at the same time, from which on keys must have chosen them."""
CHANGE = 0.25
"""By which the rate of a second differs from that of the step before if a new step begins."""
SIGMAS = 4.0
"""And by so many standard deviations of chance."""

Look = Sequence[ProducerDescription]
"""One producer's descriptions, in order."""


def trace_streams(trace: Trace) -> list[dict[str, Any]]:
    """The load's streams as closed forms need them: one for each topic with keys, and one for each without.

    Keys count as parts of the values, and the partitions that they chose are named.
    """
    found, names = trace.arrivals, trace.topics
    sizes: defaultdict[tuple[int, bool], Counter[int]] = defaultdict(Counter)
    places: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for topic, partition, key, value in zip(found.topics, found.partitions, found.keys, found.values, strict=True):
        sizes[topic, partition >= 0][max(key, 0) + max(value, 0)] += 1
        if partition >= 0:
            places[topic][partition] += 1
    streams: list[dict[str, Any]] = []
    for (topic, keyed), counted in sorted(sizes.items()):
        name, count = names[topic]
        stream: dict[str, Any] = {"rate": counted.total() / trace.seconds, "sizes": mix(counted), "topic": name}
        if keyed:
            stream["partitions"] = [float(places[topic][partition]) for partition in range(count)]
        streams.append(stream)
    return streams


def trace_cluster(trace: Trace) -> dict[str, Any]:
    """The nodes of a trace, guessed from the fast answers: what stood before the others in line is not known."""
    answers = trace.answers_ms()
    nodes = [
        {"node": at, **times_of(found[int(LOW * len(found))])} for at, found in enumerate(answers.values(), 1) if found
    ]
    return {"nodes": max(1, len(answers)), "per_mib_ms": 0.0, "node": nodes}


def times_of(answer_ms: float) -> dict[str, float]:
    """The way and the work that make up an answer's time; which of them took how long is a guess."""
    rtt_ms = min(MOST_RTT_MS, RTT_PART * answer_ms)
    return {"rtt_ms": round(rtt_ms, 3), "fixed_ms": round(answer_ms - rtt_ms, 3)}


def mix(counted: Mapping[int, int]) -> dict[int, float]:
    """Sizes and their shares, in a small number of steps with the mean of each."""
    found: defaultdict[int, float] = defaultdict(float)
    for size, share in in_steps(counted, MOST_SIZES):
        found[round(size)] += share
    return dict(found)


def in_steps(weights: Mapping[int, float], most: int) -> list[tuple[float, float]]:
    """(the mean size of a step, its share), in order; of no more sizes than ``most`` each is a step of its own."""
    total, ordered = sum(weights.values()), sorted(weights.items())
    if len(ordered) <= most:
        return [(float(size), weight / total) for size, weight in ordered]
    found: list[tuple[float, float]] = []
    weight_of_step = bytes_of_step = 0.0
    for size, weight in ordered:
        weight_of_step += weight
        bytes_of_step += size * weight
        if weight_of_step >= total / most or size == ordered[-1][0]:
            found.append((bytes_of_step / weight_of_step, weight_of_step / total))
            weight_of_step = bytes_of_step = 0.0
    return found


def seen_load(looks: Sequence[Look]) -> dict[str, Any]:
    """The load of producers that were looked at once a second; several count as so many of their mean.

    Raises:
        ConfigError: nothing was acknowledged meanwhile.
    """
    used = [look for look in looks if len(look) > 1 and _records(look) > 0]
    if not used:
        raise TuneError("no record was acknowledged while it was looked at: nothing can be said of the load")
    names = sorted({topic.topic for look in used for topic in look[-1].topics if _of_topic(look, topic.topic)[0] > 0})
    streams = [_stream(used, name) for name in names]
    topics = _partitions(used, names)
    if len(streams) == 1:
        del streams[0]["topic"]
        return {**streams[0], "topics": topics, "producers": len(used)}
    return {"topics": topics, "producers": len(used), "stream": streams}


def seen_cluster(looks: Sequence[Look]) -> dict[str, Any]:
    """The nodes as they were seen, all of them alike."""
    last = [look[-1] for look in looks if look]
    nodes = {node.id for each in last for node in each.nodes if node.id >= 0}
    answers = [each.metrics.get("request-latency-avg", 0.0) for look in looks for each in look[1:]]
    found = [answer for answer in answers if answer > 0]
    return {"nodes": max(1, len(nodes)), **(times_of(fmean(found)) if found else {})}


def seen_settings(looks: Sequence[Look]) -> dict[str, Any]:
    """What a description tells of settings."""
    return {"buffer.memory": looks[0][-1].memory.total}


def seen_facts(looks: Sequence[Look]) -> list[str]:
    """What was measured, to be laid beside a prediction; a line each."""
    rows = {
        "requests a second": "request-rate",
        "bytes of a batch": "batch-size-avg",
        "records of a request": "records-per-request-avg",
        "ms of a request": "request-latency-avg",
        "ms in the queue": "record-queue-time-avg",
        "compressed by": "compression-rate-avg",
    }
    facts = []
    for text, name in rows.items():
        found = [value for look in looks for each in look[1:] if (value := each.metrics.get(name)) is not None]
        if found:
            facts.append(f"{text}: {fmean(found):,.2f}")
    fills = [part.fill for look in looks for each in look for part in each.partitions if part.fill > 0]
    if fills:
        facts.append(f"fill of open batches: {fmean(fills):.2f}")
    return facts


def _records(look: Look) -> int:
    return sum(_of_topic(look, topic.topic)[0] for topic in look[-1].topics)


def _of_topic(look: Look, name: str) -> tuple[int, int]:
    """Records that got an outcome, and bytes, from the first look to the last."""
    ends = [{topic.topic: topic for topic in each.topics}.get(name) for each in (look[0], look[-1])]
    first, last = ((0, 0) if end is None else (end.acknowledged + end.failed, end.bytes) for end in ends)
    return last[0] - first[0], last[1] - first[1]


def _stream(looks: Sequence[Look], name: str) -> dict[str, Any]:
    stream: dict[str, Any] = {"rate": _rate(looks, name), "sizes": _size(looks, name), "topic": name}
    busy: Counter[int] = Counter()
    together: list[int] = []
    for look in looks:
        for each in look:
            parts = [part for part in each.partitions if part.topic == name]
            busy.update({part.partition: part.records + part.in_flight for part in parts})
            together += [len(parts)] if parts else []
    if together and fmean(together) > BUSY:
        stream["partitions"] = [float(busy[partition]) for partition in range(max(busy) + 1)]
    return stream


def _size(looks: Sequence[Look], name: str) -> int:
    """The mean of a value and its key: that of all records, in proportion to what the topic's records take."""
    means = [each.metrics.get("record-size-avg", 0.0) for look in looks for each in look[1:]]
    mean = fmean([each for each in means if each > 0] or [100.0 + OVERHEAD])
    own, every = [0, 0], [0, 0]
    for look in looks:
        for topic in look[-1].topics:
            found = _of_topic(look, topic.topic)
            for sums in (every, own) if topic.topic == name else (every,):
                sums[0] += found[0]
                sums[1] += found[1]
    part = (own[1] / own[0]) / (every[1] / every[0]) if own[0] and every[1] else 1.0
    return max(1, round(mean * part - OVERHEAD))


def _rate(looks: Sequence[Look], name: str) -> float | list[list[float]]:
    """Records a second of one producer: one number, or steps where it changed by more than chance."""
    count = min(len(look) for look in looks)
    seconds: list[tuple[float, float]] = []
    for at in range(1, count):
        spans = [look[at - 1 : at + 1] for look in looks]
        length = fmean((pair[1].uptime_ms - pair[0].uptime_ms) / 1000 for pair in spans)
        records = fmean(_of_topic(pair, name)[0] for pair in spans)
        if length > 0:
            seconds.append((length, records))
    return steps(seconds)


def steps(seconds: Iterable[tuple[float, float]]) -> float | list[list[float]]:
    """The rate, or [second, rate] where it changed.

    Args:
        seconds: length and records of each look.
    """
    found: list[tuple[float, float, float]] = []  # begin, length, records
    at = 0.0
    for length, records in seconds:
        if found:
            begin, before, sum_before = found[-1]
            expected = sum_before / before * length
            chance = SIGMAS * math.sqrt(max(expected, 1.0))
            if abs(records - expected) <= max(chance, CHANGE * expected):
                found[-1] = (begin, before + length, sum_before + records)
                at += length
                continue
        found.append((at, length, records))
        at += length
    if len(found) == 1:
        return max(0.001, round(found[0][2] / found[0][1], 3))
    return [[round(begin, 3), round(records / length, 3)] for begin, length, records in found]


def _partitions(looks: Sequence[Look], names: Sequence[str]) -> dict[str, int]:
    """Partitions by topic: those that were seen; what is left of all that are known belongs to the largest topic."""
    seen: Counter[str] = Counter(dict.fromkeys(names, 1))
    known = 0
    for look in looks:
        for each in look:
            known = max(known, len(each.partitions) + each.idle_partitions)
            for part in each.partitions:
                if part.topic in seen:
                    seen[part.topic] = max(seen[part.topic], part.partition + 1)
    (largest, _count), *_others = seen.most_common(1)
    seen[largest] += max(0, known - seen.total())
    return dict(seen)
