"""A load and its cluster in a few lines, as texts and pages begin with them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from forebay._closed_forms.wording import counted
from forebay.tune.brokers import Brokers
from forebay.tune.workload import Cycle, Lognormal, Sizes, Stream, Workload

MOST_STREAMS = 2
MOST_TOPICS = 4
WIDTH = 110
"""Of a line that may be long."""


def wrapped(head: str, text: str, most: int | None = None) -> list[str]:
    """A text with its head, and what goes on below it; of no more lines than ``most``."""
    return textwrap.wrap(f"{head:<10}{text}", WIDTH, subsequent_indent=" " * 10, max_lines=most, placeholder=" ...")


def described(load: Workload, brokers: Brokers) -> Iterator[tuple[str, str]]:
    """(what it is about, the line); a line that goes on with the one before is about the empty text."""
    if load.trace is not None:
        trace = load.trace
        client, count = trace.head["client_id"], len(trace.arrivals.times)
        yield "trace", f"{trace.seconds:,.1f} s, {count:,} records of {client}; on average:"
    streams = [*map(_stream, load.streams[:MOST_STREAMS])]
    if len(load.streams) > MOST_STREAMS:
        streams.append(f"and {len(load.streams) - MOST_STREAMS} more")
    for number, text in enumerate(streams):
        yield "load" if number == 0 else "", text
    topics = ", ".join(f"{name} ({count})" for name, count in load.topics[:MOST_TOPICS])
    more = f" and {len(load.topics) - MOST_TOPICS} more" if len(load.topics) > MOST_TOPICS else ""
    nodes, producers = counted(len(brokers.nodes), "node"), counted(load.producers, "producer")
    yield "topics", f"{topics}{more}; {nodes}, {producers}"


def _stream(stream: Stream) -> str:
    if stream.callers == "closed":
        rate = f"{counted(stream.threads, 'thread')}, {stream.think_ms:g} ms between calls"
    elif isinstance(stream.rate, float):
        rate = f"{stream.rate:,g} records/s"
    else:
        rate = f"{min(rate for _at, rate in stream.rate):,g} to {stream.mean_rate:,g} records/s"
    burst = "" if stream.burst is None else f" for {stream.burst.on_ms:g} ms, none for {stream.burst.off_ms:g} ms"
    keys = "" if stream.keys is None else f", {stream.keys.count:,} keys"
    where = "" if stream.topic is None else f", to {stream.topic}"
    tables = "" if stream.batch_rows == 1 else f" in tables of {stream.batch_rows:,}"
    return f"{rate}{tables}{burst}, values of {_sizes(stream.sizes)}{keys}{where}"


def _sizes(sizes: Sizes) -> str:
    if isinstance(sizes, Lognormal):
        return f"{sizes.median:,g} B in the median"
    numbers = sizes.values if isinstance(sizes, Cycle) else [size for size, _share in sizes.pairs]
    shown = " and ".join(f"{size:,}" for size in numbers[:3])
    return f"{shown} B{' and others' if len(numbers) > 3 else ''}"
