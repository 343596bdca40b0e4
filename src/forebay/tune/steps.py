"""The rate of a load over time: when it changes, what it is then, and how often something comes at all."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.tune.workload import Stream, Workload


def changes(load: Workload) -> tuple[float, ...]:
    """The seconds from which on the rate is another one; the first is 0."""
    steps = [stream.rate for stream in load.streams if not isinstance(stream.rate, float)]
    return tuple(sorted({0.0, *(second for each in steps for second, _rate in each)}))


def rate_at(load: Workload, second: float) -> float:
    """Records a second of one producer then; of bursts the mean."""
    return sum(_of_stream(stream, second) for stream in load.streams)


def _of_stream(stream: Stream, second: float) -> float:
    if isinstance(stream.rate, float) or stream.callers == "closed":
        return stream.mean_rate
    now = [rate for begin, rate in stream.rate if begin <= second][-1]
    return stream.mean_rate * now / max(rate for _second, rate in stream.rate)


def rate_over(load: Workload, seconds: float) -> float:
    """Records a second of one producer, over so much time from the beginning."""
    times = [*(second for second in changes(load) if second < seconds), seconds]
    return sum(rate_at(load, begin) * (end - begin) for begin, end in pairwise(times)) / seconds


def shortest(load: Workload, seconds: float) -> float:
    """The shortest time in which the rate stays, of so much time from the beginning."""
    return min(end - begin for begin, end in pairwise([*changes(load), seconds]))


def calls(load: Workload) -> float:
    """Calls a second of one producer that hand over a record, or a table."""
    return sum(stream.mean_rate / stream.batch_rows for stream in load.streams)
