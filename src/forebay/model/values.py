"""Plain values that cross the public surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from forebay.model._wire import shown_record

if TYPE_CHECKING:
    from forebay.errors import KafkaError
    from forebay.model._metadata import DeliveryReport

NO_OFFSET = -1
NO_TIMESTAMP = -1
UNKNOWN_PARTITION = -1

Headers = Sequence[tuple[str, bytes | None]] | Mapping[str, bytes | None]
"""A record's headers as ``send`` takes them: pairs in their order, or a mapping."""

DeliveryCallback = Callable[["DeliveryReport"], object]
"""``on_delivery``: called with what became of the record; what it returns is ignored."""


class TopicPartition(NamedTuple):
    """A topic's name and one of its partitions; prints as Kafka does, ``topic-3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Node(NamedTuple):
    """A broker as metadata names it; bootstrap servers have negative ids."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id {self.id})"


class PartitionInfo(NamedTuple):
    """A partition as the newest metadata shows it; ``leader`` is None while there is none."""

    topic: str
    partition: int
    leader: Node | None
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class TopicDescription(NamedTuple):
    """A topic as a broker describes it; ``error`` says why it has no partitions, such as that there is no such topic.

    ``is_internal`` is True for topics of Kafka's own.  ``operations`` are what this client may do to the topic, in
    Kafka's words (``WRITE``, ``READ`` ...); None if that was not asked, or the brokers are older than 2.3 (KIP-430).
    """

    name: str
    partitions: tuple[PartitionInfo, ...]
    is_internal: bool
    error: KafkaError | None
    operations: frozenset[str] | None = None


class ClusterDescription(NamedTuple):
    """A cluster as one of its brokers describes it; ``controller`` is None while there is none."""

    cluster_id: str | None
    controller: Node | None
    nodes: tuple[Node, ...]
    topics: tuple[TopicDescription, ...]


class TransactionIdentity(NamedTuple):
    """A transactional producer as the coordinator knows it; enough to end its transaction from another process.

    ``transaction_version`` is the one its transactions are made by: 2 gives a new epoch at every end (KIP-890).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int


class TransactionDescription(NamedTuple):
    """What a coordinator knows of one transactional id (KIP-664).

    ``state`` is Kafka's word (``Empty``, ``Ongoing``, ``PrepareCommit``, ``CompleteAbort`` ...), ``start_time_ms``
    Unix time or -1 when no transaction is open, ``partitions`` those in the open transaction, ``coordinator`` the
    broker's id.
    """

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    partitions: tuple[TopicPartition, ...]
    coordinator: int


class TransactionListing(NamedTuple):
    """One transactional id in a list of them; ``state`` is Kafka's word for it."""

    transactional_id: str
    producer_id: int
    state: str


class TailRecord(NamedTuple):
    """A record as it was read back; ``timestamp`` in Unix ms, -1 if it has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __repr__(self) -> str:
        facts = {"offset": self.offset, "timestamp": self.timestamp}
        return shown_record("TailRecord", self.value, self.key, self.headers, **facts)
