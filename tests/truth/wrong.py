"""Eight wrong models, listed before the first run: each must fail the truth table, or the table could not see it.

A model is the right one with one thing changed.  It fails where a figure that the right model has within its tolerance
comes outside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from forebay.tune import Brokers, Stalls, Workload
from forebay.tune._world.selector import Link
from forebay.tune._world.service import NodeService, Waiting
from forebay.tune.workload import Cycle, Stream

RECORD_OVERHEAD = 8
"""Bytes that a record of these loads has beside its value, without its key."""
NO_BOUND = 1 << 30


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a prediction is made of."""

    load: Workload
    settings: Mapping[str, Any]
    brokers: Brokers
    stalls: Stalls | None


Change = Callable[[Inputs], Inputs]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong model: what is changed of the inputs, and around a prediction."""

    name: str
    change: Change = lambda inputs: inputs
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext


def half_the_service(inputs: Inputs) -> Inputs:
    """Every request takes half the work."""
    brokers = inputs.brokers
    for number, node in enumerate(brokers.nodes, 1):
        changed = {name: getattr(node, name) / 2 for name in ("fixed_ms", "per_mib_ms", "replication_ms")}
        brokers = brokers.with_node(number, **changed)
    return replace(inputs, brokers=brokers)


@contextlib.contextmanager
def no_line() -> Iterator[None]:
    """A broker serves all requests of a connection side by side."""

    def arrive(node: NodeService, link: Link, waiting: Waiting) -> None:
        if link.open:
            node._serve(link, waiting)

    right = NodeService._arrive
    setattr(NodeService, "_arrive", arrive)  # noqa: B010, which mypy would not have as an assignment
    try:
        yield
    finally:
        setattr(NodeService, "_arrive", right)  # noqa: B010


def no_stalls(inputs: Inputs) -> Inputs:
    """The client's machine never stalls."""
    return replace(inputs, stalls=None)


def by_stream(inputs: Inputs, change: Callable[[Stream], Stream]) -> Inputs:
    """Another load, stream by stream."""
    load = inputs.load
    streams = [change(stream) for stream in load.streams]
    return replace(inputs, load=Workload(streams, topics=load.topics, compression=load.compression))


def another_partitioner(inputs: Inputs) -> Inputs:
    """Each record goes to any partition, whatever its key is and whichever batch is open."""
    count = inputs.load.topics[0][1]
    return by_stream(inputs, lambda stream: replace(stream, keys=None, partitions=(1.0,) * count))


def no_overhead(inputs: Inputs) -> Inputs:
    """A record takes the bytes of its value and its key alone."""

    def smaller(stream: Stream) -> Stream:
        assert isinstance(stream.sizes, Cycle)
        return replace(stream, sizes=Cycle(tuple(max(1, size - RECORD_OVERHEAD) for size in stream.sizes.values)))

    return by_stream(inputs, smaller)


def no_linger(inputs: Inputs) -> Inputs:
    """``linger.ms`` is not looked at."""
    return replace(inputs, settings={**inputs.settings, "linger.ms": 0})


def no_bound(inputs: Inputs) -> Inputs:
    """``buffer.memory`` is not looked at."""
    return replace(inputs, settings={**inputs.settings, "buffer.memory": NO_BOUND})


def delay_of_one(inputs: Inputs) -> Inputs:
    """All brokers are as the first one."""
    brokers = inputs.brokers
    return replace(inputs, brokers=Brokers((brokers.nodes[0],) * len(brokers.nodes), brokers.outages))


MODELS = (
    Wrong("half the service time", half_the_service),
    Wrong("no serial line", around=no_line),
    Wrong("no stalls", no_stalls),
    Wrong("another partitioner", another_partitioner),
    Wrong("no overhead of records", no_overhead),
    Wrong("linger ignored", no_linger),
    Wrong("memory without bound", no_bound),
    Wrong("one broker's delay given to all", delay_of_one),
)
