"""Scripted brokers that take the tuner's records as the model says: one request of a connection at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.broker import PRODUCE, Partition, Received, Topic
from tests.fakes.produce import Answer, answer_produce
from tests.unit.admin.world import AdminWorld

TOO_LARGE, NOT_LEADER = 10, 6
ALL = -1


@dataclass
class Speed:
    """Times of a node, in ms; ``most`` is the bytes of a batch that is taken."""

    rtt: float = 2.0
    fixed: float = 0.5
    per_mib: float = 4.0
    replication: float = 1.5
    most: int = 1 << 20
    ends_after: int | None = None
    """Requests after which it goes away."""


@dataclass
class Served:
    """What a node did."""

    free_at: float = 0.0
    requests: int = 0
    sizes: list[int] = field(default_factory=list)


def real_world(*speeds: Speed, replicas: int = 1, **config: Any) -> AdminWorld:
    """A cluster whose topic ``t`` has a partition on each node."""
    world = AdminWorld(len(speeds), **config)
    copies = tuple(range(1, replicas + 1))
    world.cluster.topics["t"] = Topic([Partition(node, replicas=copies) for node in range(1, len(speeds) + 1)])
    for node, speed in enumerate(speeds, 1):
        broker, served = world.broker(node), Served()
        broker.delay_ms = speed.rtt

        def produce(request: Received, speed: Speed = speed, served: Served = served) -> None:
            _serve(world, request, speed, served)

        broker.script[PRODUCE] = produce
    return world


def _serve(world: AdminWorld, request: Received, speed: Speed, served: Served) -> None:
    served.requests += 1
    if speed.ends_after is not None and served.requests > speed.ends_after:
        world.cluster.down(request.broker.node.id)
        return
    (topic,) = request.body.topic_data
    (part,) = topic.partition_data
    size = len(part.records)
    now = world.clock.now()
    replication = speed.replication if request.body.acks == ALL and topic.name else 0.0
    end = max(now + speed.rtt / 2, served.free_at) + speed.fixed + speed.per_mib * size / (1 << 20) + replication
    served.free_at = end
    code = TOO_LARGE if size > speed.most else 0
    answer_produce(request, {(topic.name, part.index): Answer(code, base_offset=0)}, delay_ms=end + speed.rtt / 2 - now)
