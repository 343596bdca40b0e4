"""The inside of a producer as values; ``reading.describe`` makes them.

Each number was true, but not all of them at one moment: nothing is stopped for a look.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition with records under way."""

    topic: str
    partition: int
    leader: int
    """The node that leads it; -1 if none is known."""
    batches: int
    """That wait in its queue, the open one too."""
    records: int
    """In those batches."""
    bytes: int
    """In those batches, as they are estimated to be sent."""
    fill: float
    """Of its open batch: the part of ``batch.size`` that is used; 0 if there is none."""
    in_flight: int
    """Batches that were sent and have no answer."""
    age_ms: float
    """Since the first record of the oldest batch that waits; 0 if none waits."""
    attempts: int
    """How often that batch was sent."""
    last_error: str | None
    """Of that batch's last attempt, or of the topic's metadata."""


@dataclass(frozen=True, slots=True)
class MemoryDescription:
    """``buffer.memory``; sizes in bytes."""

    total: int
    available: int
    """Negative while overdrawn."""
    waiting: tuple[tuple[int, int], ...]
    """Who waits in ``send``, in order: the node whose share is wanted (-1: unknown), and the bytes."""
    held: tuple[tuple[int, int], ...]
    """Which node's batches hold how much, the largest first."""


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """A broker, and the connection to it."""

    id: int
    """Negative for a bootstrap server."""
    address: str
    state: str
    """DISCONNECTED, RESOLVING, CONNECTING, CHECKING_API_VERSIONS, AUTHENTICATING, READY ..."""
    in_flight: int
    """Requests without an answer."""
    throttled_ms: float
    """How long it takes no request because of a quota (KIP-219)."""
    failed_attempts: int
    """To connect, since the last success."""
    last_error: str | None
    """What ended the last connection, or the attempt at it."""


@dataclass(frozen=True, slots=True)
class IdentityDescription:
    """Producer id and transaction of an idempotent producer."""

    producer_id: int
    """-1 while there is none."""
    epoch: int
    state: str
    """As in Java's TransactionManager, such as IN_TRANSACTION."""
    transactional_id: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """What was sent to a topic since the start."""

    topic: str
    acknowledged: int
    failed: int
    retried: int
    """Records that were sent again."""
    bytes: int
    """As sent, repeated ones too."""
    p50_ms: float | None
    """The median from send to acknowledgement, as the upper bound of its bucket; None if nothing was acknowledged."""
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """The inside of a producer at one moment.  ``as_json`` and ``from_json`` carry it to other processes."""

    client_id: str
    process: int
    """Its id."""
    time_ms: int
    """Unix time."""
    uptime_ms: float
    state: str
    """open, closing or closed."""
    unfinished: int
    """Records without an outcome."""
    topics: tuple[TopicDescription, ...]
    partitions: tuple[PartitionDescription, ...]
    """Those with records under way, the one with the oldest first."""
    idle_partitions: int
    """Known partitions without records under way."""
    memory: MemoryDescription
    nodes: tuple[NodeDescription, ...]
    identity: IdentityDescription | None
    """None without idempotence."""
    metrics: dict[str, float]
    """The producer's metrics of the group producer-metrics that have a value, by Java's names."""

    def as_json(self) -> bytes:
        """One line of JSON, without its end."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, line: bytes) -> ProducerDescription:
        """The value of such a line.

        Raises:
            ValueError: it is none, or of another version.
        """
        try:
            fields: dict[str, Any] = json.loads(line)
            memory = fields["memory"]
            pairs = {name: tuple((node, size) for node, size in memory[name]) for name in ("waiting", "held")}
            identity = fields["identity"]
            made = {
                "topics": tuple(TopicDescription(**each) for each in fields["topics"]),
                "partitions": tuple(PartitionDescription(**each) for each in fields["partitions"]),
                "nodes": tuple(NodeDescription(**each) for each in fields["nodes"]),
                "memory": MemoryDescription(**{**memory, **pairs}),
                "identity": None if identity is None else IdentityDescription(**identity),
            }
            return cls(**{**fields, **made})
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"no description of a producer of this version: {error!r}") from error
