"""Calibration: how long the brokers of a real cluster take for a request, measured on a scratch topic with consent.

A request's work is the time between the answers to requests that wait in the broker's line, which alone tells it from
the round trip.  Requests with ``acks=all`` tell what the followers add, and large ones what each byte adds.  The round
trip is what is left of a lone request's time, so that the sum is what a lone request takes; ApiVersions is asked for,
too, and said beside it.  Lone requests come after a pause, as those of a producer that lingers.  Handlers are not
probed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from forebay._assembly import Surroundings
from forebay.config import ProducerConfig
from forebay.errors import RecordTooLargeError
from forebay.tune._json import json_of
from forebay.tune._probe import ALL, ONE, Place, Probe, asking, places_of, spacings
from forebay.tune.brokers import Broker, Brokers

IN_LINE, LONE, TRIPS, LARGE = 100, 20, 20, 12
"""Requests of each kind in a round."""
PAUSE_MS = 10.0
"""As between the requests of a producer that lingers.  Who has nothing to do takes longer to begin: threads and
processors sleep, ours and the brokers'."""
WARM_UP, COUNTED, MOST_ROUNDS = 2, 3, 12
"""Rounds that are not counted, those that are, and most of them."""
SETTLED = 0.9
"""A round that takes less than this share of the one before says that the brokers still compile or load."""
SLOW_MS = 10.0
"""A broker that takes longer is not slow because it compiles, and one round tells how slow it is."""
LARGE_RUNS = 3
IN_FLIGHT = 5
SMALL_BYTES = 100
LARGE_BYTES = 512 << 10
LEAST_LARGE = 16 << 10
MOST_RECORDS = MOST_ROUNDS * 2 * (IN_LINE + LONE) + LARGE_RUNS * LARGE + 1
VERSION = 1
"""Of the JSON."""
BEGIN = "# Measured by forebay tune calibrate"
"""Of a file."""
PLACES = 4
MOST_JITTER = 1.0
UPPER_QUARTER = 0.6745
"""Of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Node:
    """What was measured of one broker; times in ms."""

    id: int
    address: str
    broker: Broker
    trip_ms: float
    """The median time of ApiVersions, which is no work for a broker."""
    lone_ms: float
    """The median time of a request of one record after a pause, with ``acks=all``."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured of a cluster."""

    topic: str
    nodes: tuple[Node, ...]
    """Those that lead a partition of the topic."""
    records: int
    """That were written."""

    @property
    def brokers(self) -> Brokers:
        """For a prediction; numbered from 1 in the order of ``nodes``."""
        return Brokers(tuple(node.broker for node in self.nodes), measured=True)

    def as_json(self) -> str:
        """All of it."""
        return json_of({"version": VERSION, **asdict(self)})

    def as_toml(self) -> str:
        """A file that ``[cluster] file = ...`` names, and that can be read by people."""
        lines = [
            f"{BEGIN} on topic {self.topic}; the brokers that lead a partition of it.",
            "[cluster]",
            f"nodes = {len(self.nodes)}",
            "measured = true",
        ]
        for number, node in enumerate(self.nodes, 1):
            said = f"ApiVersions takes {node.trip_ms:g} ms, a record alone {node.lone_ms:g} ms"
            lines += ["", f"# Broker {node.id} at {node.address}: {said}.", "[[cluster.node]]", f"node = {number}"]
            lines += [f"{name} = {getattr(node.broker, name):g}" for name in FIGURES]
        return "\n".join(lines) + "\n"


FIGURES = ("rtt_ms", "fixed_ms", "per_mib_ms", "replication_ms", "jitter")


def calibrate(settings: Mapping[str, Any], topic: str, *, tell: Callable[[str], object] | None = None) -> Calibration:
    """Measures the brokers that lead partitions of a topic; some hundreds of records each are written.

    Whoever calls this agrees that the topic is filled.

    Args:
        settings: by Kafka's names: how the cluster is reached, and how long is waited (``max.block.ms``).
        topic: it has records of the tuner alone.
        tell: gets a line for each step.

    Raises:
        ConfigError: there is no such topic, it holds records that are not the tuner's, a broker went away, or an
            option is not right.
        KafkaError: the brokers refuse.
    """
    return measure(ProducerConfig(settings), topic, tell=tell or (lambda text: None))


def measure(
    config: ProducerConfig,
    topic: str,
    *,
    around: Surroundings | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Calibration:
    """As ``calibrate``.

    Args:
        config: says how the cluster is reached, and how long is waited (``max.block.ms``).
        around: clock and network; None: the machine's.
        tell: gets a line for each step.

    Raises:
        TuneError: there is no such topic, it holds records that are not the tuner's, or a broker went away.
        KafkaError: the brokers refuse.
    """
    with asking(config, "the calibration", around) as (session, clock):
        deadline = session.deadline("the calibration", config["max.block.ms"])
        places = places_of(session, topic, deadline)
        chance = random.Random(topic)
        nodes: list[Node] = []
        records = 0
        for place in places:
            tell(f"broker {place.leader.id} at {place.leader.host}:{place.leader.port}")
            node, written = _node(Probe(session, place, clock.wall, config["max.block.ms"]), place, chance)
            nodes.append(node)
            records += written
        return Calibration(topic, tuple(nodes), records)


class Round(NamedTuple):
    """Times of a round, in ms."""

    one: list[float]
    """Between answers to requests in line, with ``acks=1``."""
    everyone: list[float]
    """With ``acks=all``."""
    lone: list[float]
    """From a request to its answer, one right after the other."""
    rested: list[float]
    """The same, each after a pause."""
    trips: list[float]
    """Of ApiVersions, after a pause."""


def _node(probe: Probe, place: Place, chance: random.Random) -> tuple[Node, int]:
    """Measures one broker; the records that were written beside it."""
    before = probe.written
    rounds = _rounds(probe, place, chance.randbytes(SMALL_BYTES))
    lone = _middle(each.lone for each in rounds)
    fixed = service = _middle(each.one for each in rounds)
    if place.replicas > 1:
        service = max(fixed, _middle(each.everyone for each in rounds))
    # What differs between requests of which none waits is the work, not the way.
    jitter = sigma(ms - max(0.0, lone - service) for each in rounds for ms in each.lone)
    below = math.exp(-jitter * jitter / 2)  # the median of the work by its mean
    rested = max(lone, _middle(each.rested for each in rounds))
    # More than a lone request takes is no work of the broker, but its and our waiting for a processor.
    service = min(service, lone / below)
    fixed = min(fixed, service)
    rtt = rested - service * below
    size, large = _large(probe, chance)
    found = Broker(
        rtt_ms=rounded(rtt),
        fixed_ms=rounded(fixed),
        per_mib_ms=rounded(max(0.0, large - fixed) * (1 << 20) / (size - SMALL_BYTES)),
        replication_ms=rounded(service - fixed),
        jitter=rounded(jitter),
    )
    trip = _middle(each.trips for each in rounds)
    leader = place.leader
    node = Node(leader.id, f"{leader.host}:{leader.port}", found, rounded(trip), rounded(rested))
    return node, probe.written - before


def _rounds(probe: Probe, place: Place, small: bytes) -> list[Round]:
    """The last rounds, of which none was clearly faster than the one before."""
    acks = ALL if place.replicas > 1 else ONE
    found: list[Round] = []
    for number in range(MOST_ROUNDS):
        one = [*spacings(probe.produce(small, acks=ONE, count=IN_LINE, in_flight=IN_FLIGHT))]
        everyone = (
            [*spacings(probe.produce(small, acks=ALL, count=IN_LINE, in_flight=IN_FLIGHT))] if acks == ALL else []
        )
        lone, rested = (
            [each.received - each.sent for each in probe.produce(small, acks=acks, count=LONE, pause_ms=pause_ms)]
            for pause_ms in (0.0, PAUSE_MS)
        )
        newest = Round(one, everyone, lone, rested, probe.round_trips(TRIPS, PAUSE_MS))
        if number <= WARM_UP or median(newest.one) < SETTLED * median(found[-1].one):
            found.clear()
        found.append(newest)
        if len(found) == COUNTED or median(newest.one) > SLOW_MS:
            break
    return found


def _large(probe: Probe, chance: random.Random) -> tuple[int, float]:
    """The size of large requests that the topic takes, and the ms of each."""
    size = LARGE_BYTES
    while True:
        value = chance.randbytes(size)
        try:
            probe.produce(value, acks=ONE, count=1)
            break
        except RecordTooLargeError:
            if size <= LEAST_LARGE:
                raise
            size //= 2
    runs = [[*spacings(probe.produce(value, acks=ONE, count=LARGE, in_flight=IN_FLIGHT), 3)] for _ in range(LARGE_RUNS)]
    return size, _middle(runs[1:])


def _middle(rounds: Iterable[Sequence[float]]) -> float:
    """The median of all values of all rounds."""
    return median([ms for each in rounds for ms in each])


def median(values: Sequence[float]) -> float:
    """The lower one of two."""
    return sorted(values)[(len(values) - 1) // 2]


def sigma(values: Iterable[float]) -> float:
    """Of the lognormal distribution whose median and upper quarter these values have; 0 where they do not differ.

    Not of the standard deviation: a few times are those of a machine that stalled.
    """
    ordered = sorted(values)
    middle, upper = median(ordered), ordered[3 * (len(ordered) - 1) // 4]
    return min(MOST_JITTER, math.log(upper / middle) / UPPER_QUARTER) if upper > middle > 0 else 0.0


def rounded(ms: float) -> float:
    """To a figure that says no more than was measured."""
    return round(ms, PLACES)
