"""Fleets: a few producers are simulated, and the requests of all others are theirs again, at random times.

A first run notes what a producer asks of each node.  In the second one the others are a field of such requests
(``_world.field``), which slows itself down where handlers are busy, as producers do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from forebay.tune import steps
from forebay.tune.prediction import Prediction, prediction_of

if TYPE_CHECKING:
    from forebay.tune._world.costs import Costs
    from forebay.tune._world.field import Phases
    from forebay.tune.brokers import Brokers
    from forebay.tune.measures import Node
    from forebay.tune.stalls import Stalls
    from forebay.tune.workload import Workload

MOST_SIMULATED = 4
"""Producers; with more of them there is a field."""
ENOUGH = 20_000
"""Calls of send that are simulated at least, by more producers than one if need be: what is chance in them is the same
for all others."""
SHIFT_MS = 200.0
"""Phases of a load that changes with time differ by so much at most."""
OF_BURST = 0.25
"""Or by this part of a burst."""
SMALLER = (0.95, 0.85, 0.7, 0.5, 0.25)
"""What may be served, of what brokers took when they got too much."""


def real_producers(load: Workload, seconds: float) -> int:
    """How many of the load's producers are simulated."""
    if load.producers <= MOST_SIMULATED:
        return load.producers
    calls = steps.calls(load) * seconds
    return math.ceil(min(MOST_SIMULATED, ENOUGH / max(calls, 1.0)))


def predicted(
    load: Workload,
    brokers: Brokers,
    settings: Mapping[str, Any],
    *,
    costs: Costs,
    stalls: Stalls | None = None,
    seed: int,
    seconds: float,
) -> Prediction:
    """What settings give for all producers of a load; ``joined`` adds what is assumed.

    Args:
        settings: as ``files.checked_settings`` gives them.
        stalls: of each producer's machine.
        seconds: for which the load comes.
    """
    from forebay.tune._world.field import Field, Notes
    from forebay.tune._world.world import World  # the producer is imported for it

    simulated = real_producers(load, seconds)
    few, alike = load.of_producers(simulated), are_alike(load, brokers)

    def run(field: Field | None, notes: Notes | None) -> World:
        world = World(few, brokers, settings, costs=costs, stalls=stalls, seed=seed, field=field, notes=notes)
        try:
            world.run(seconds)
        finally:
            world.close()
        return world

    field = None
    if simulated < load.producers:
        config = run(None, notes := Notes()).config
        count, partitions = load.producers - simulated, partitions_of(load, brokers)
        phases = phases_of(load, brokers, seconds)
        field = Field.of(notes, count, phases, config, partitions=partitions, in_turn=alike)
    found = run(field, None).recorder
    if field is not None and alike:
        even_out([*found.nodes.values()])
    return prediction_of(found, load, brokers, settings, costs=costs, seed=seed, simulated=simulated)


def phases_of(load: Workload, brokers: Brokers, seconds: float) -> Phases:
    """When others do what one producer does: at any time of a load that does not change, else at nearly the same."""
    from forebay.tune._world.field import Phases

    span = 1000 * seconds
    changes = bool(brokers.outages) or len(steps.changes(load)) > 1
    bursts = {stream.burst for stream in load.streams}
    if load.trace is not None or not (changes or bursts != {None}):
        return Phases(span, span, span)  # producers begin at different seconds of a trace
    widths = [OF_BURST * burst.on_ms for burst in bursts if burst is not None]
    width = min([*widths, SHIFT_MS, span / 2])
    burst = bursts.pop() if len(bursts) == 1 else None
    if burst is None or changes:
        return Phases(span, span, width)
    return Phases(span, min(span, burst.on_ms + burst.off_ms), width)


def are_alike(load: Workload, brokers: Brokers) -> bool:
    """Whether it is chance alone that a producer sends more to one node than to another one.

    Then others send more to other nodes, so that the nodes get the same of all together.
    """
    named = load.trace is not None or any(stream.keys or stream.partitions for stream in load.streams)
    even = all(count % len(brokers.nodes) == 0 for _name, count in load.topics)
    return even and not named and not brokers.outages and len(set(brokers.nodes)) == 1


def even_out(nodes: Sequence[Node]) -> None:
    """Gives each node the mean of them all."""
    for name in ("requests", "size", "batches", "records", "busy_ms"):
        mean = sum(getattr(node, name) for node in nodes) / len(nodes)
        for node in nodes:
            setattr(node, name, mean)


def partitions_of(load: Workload, brokers: Brokers) -> int:
    """The most that a node leads."""
    return -(-sum(count for _name, count in load.topics) // len(brokers.nodes))


def with_nearest(
    said: Prediction, load: Workload, brokers: Brokers, *, costs: Costs, stalls: Stalls | None, seconds: float
) -> Prediction:
    """A prediction that a broker gets too much; with the number of producers that it would serve."""
    taken = sum(node.records_s for node in said.nodes) / (load.rate * load.producers)
    most = load.producers * min(1.0, taken)
    for share in SMALLER:
        count = int(most * share)
        if count < 1:
            break
        few = load.of_producers(count)
        found = predicted(few, brokers, said.settings, costs=costs, stalls=stalls, seed=said.seed, seconds=seconds)
        if found.served:
            return with_served(said, count)
    return with_served(said, 0)


def with_served(said: Prediction, count: int) -> Prediction:
    """The same, with the number of producers that would be served."""
    return replace(said, fleet=replace(said.fleet, served=count))
