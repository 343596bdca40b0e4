"""The workloads of the truth table: what comes, to which brokers, and what befalls these.

They were written down before the first run.  Nothing in the model may be changed to please them: brokers and client are
calibrated once before, on records that are none of these loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from forebay.tune import Brokers, Outage

Place = Literal["one", "three", "slow", "one slow"]
"""The leaders of the topic: one broker; three of them in turn; one whose follower is far away; three, of which the
first one's follower is far away."""
NODES: Mapping[Place, int] = {"one": 1, "three": 3, "slow": 1, "one slow": 3}
SLOW_MS = 8.0
"""By which the answers between brokers are late in ``slow`` and ``one slow``: with ``acks=all`` that is the service."""
KEYS = {"count": 10_000}
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload.

    load: a table ``[load]`` without topics.
    quota: bytes a second that each broker allows the producer.
    events: the values are JSON events, and the load's sizes are theirs.
    """

    letter: str
    what: str
    load: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    place: Place = "three"
    partitions: int = 12
    seconds: float = 10.0
    outage: Outage | None = None
    quota: int | None = None
    events: bool = False

    def brokers(self, calibrated: Brokers) -> Brokers:
        """The brokers of its place as they were measured, with its quota and its outage."""
        found = calibrated
        if self.quota is not None:
            for number in range(1, len(found.nodes) + 1):
                found = found.with_node(number, quota=float(self.quota))
        return found.with_outages(*([self.outage] if self.outage else []))


CASES = (
    Case(letter="A", what="1,000/s of 100 B", load={"rate": 1000, "sizes": 100}, settings={"linger.ms": 5}),
    Case(letter="B", what="2,000/s of 200 B, linger 20", load={"rate": 2000, "sizes": 200}, settings={"linger.ms": 20}),
    Case(letter="C", what="as B, with keys, 60 partitions", load={"rate": 2000, "sizes": 200, "keys": KEYS},
         settings={"linger.ms": 20}, partitions=60),
    Case(letter="D", what="5,000 and 12,000 B in turn, 120/s", load={"rate": 120, "sizes": [5000, 12000]}),
    Case(letter="E", what="bursts of 20,000/s",
         load={"rate": 20000, "sizes": 200, "burst": {"on_ms": 50, "off_ms": 450}}, settings={"linger.ms": 10}),
    Case(letter="F", what="a slow broker, linger 0", load={"rate": 1000, "sizes": 100}, settings={"linger.ms": 0},
         place="slow"),
    Case(letter="G", what="3 s of silence, 1 MiB of memory", load={"rate": 2000, "sizes": 500},
         settings={"buffer.memory": MIB}, place="one", seconds=12.0, outage=Outage(node=1, seconds=(4.0, 7.0))),
    Case(letter="H", what="one slow broker of three, keys", load={"rate": 3000, "sizes": 200, "keys": KEYS},
         place="one slow"),
    Case(letter="I", what="100/s, lone records", load={"rate": 100, "sizes": 100}, place="one"),
    Case(letter="J", what="50,000/s of 100 B", load={"rate": 50000, "sizes": 100}),
    Case(letter="K", what="zstd, JSON of 1 kB", load={"rate": 2000}, settings={"compression.type": "zstd"},
         events=True),
    Case(letter="L", what="a quota of 200 kB/s", load={"rate": 1000, "sizes": 200}, place="one", seconds=20.0,
         quota=200_000),
    Case(letter="M", what="30 s without one of three brokers",
         load={"rate": 1000, "sizes": 100, "keys": KEYS}, seconds=45.0,
         settings={"request.timeout.ms": 5000, "delivery.timeout.ms": 20000},
         outage=Outage(node=2, seconds=(5.0, 35.0))),
)  # fmt: skip
"""Thirteen, because the outage of the design's list is two: one that only holds records up, and one that loses some."""
