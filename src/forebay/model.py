"""Plain values that cross the public surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

NO_OFFSET = -1
NO_TIMESTAMP = -1
UNKNOWN_PARTITION = -1

Headers = Sequence[tuple[str, bytes | None]]


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


class RecordMetadata(NamedTuple):
    """Where a record went.

    ``offset`` is -1 when the broker does not tell it (acks=0, or a duplicate that was acknowledged before);
    ``timestamp`` is the broker's append time for such topics, else the record's own, in ms; sizes are in bytes,
    -1 for a null key or value.  For a failed record offset, timestamp and sizes are -1 and ``partition`` is -1
    if it was not known yet.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int

    @property
    def has_offset(self) -> bool:
        return self.offset != NO_OFFSET

    @property
    def has_timestamp(self) -> bool:
        return self.timestamp != NO_TIMESTAMP

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record as interceptors see it, before serialization.

    Raises:
        forebay.errors.IllegalArgumentError: topic missing, negative partition or negative timestamp.
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        from forebay.errors import IllegalArgumentError

        if not isinstance(self.topic, str) or not self.topic:
            raise IllegalArgumentError(f"topic must be a non-empty str, got {self.topic!r}")
        if self.partition is not None and self.partition < 0:
            raise IllegalArgumentError(
                f"Invalid partition: {self.partition}. Partition number should always be non-negative or None."
            )
        if self.timestamp_ms is not None and self.timestamp_ms < 0:
            raise IllegalArgumentError(
                f"Invalid timestamp: {self.timestamp_ms}. Timestamp should always be non-negative or None."
            )


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset to be committed for a consumer group: the first one that was not processed.

    ``leader_epoch`` is that of the last record that was, -1 if not known; ``metadata`` is kept with the offset.

    Raises:
        forebay.errors.IllegalArgumentError: negative offset, or a leader epoch below -1.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""

    def __post_init__(self) -> None:
        from forebay.errors import IllegalArgumentError

        if self.offset < 0:
            raise IllegalArgumentError(f"Invalid negative offset: {self.offset}")
        if self.leader_epoch < -1:
            raise IllegalArgumentError(
                f"Invalid leader epoch: {self.leader_epoch}, it is at least 0, or -1 for unknown"
            )


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """Who commits offsets: a consumer group and, where known, the member in it (KIP-447).

    Raises:
        forebay.errors.IllegalArgumentError: no group, or a generation without a member.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None

    def __post_init__(self) -> None:
        from forebay.errors import IllegalArgumentError

        if not isinstance(self.group_id, str) or not self.group_id:
            raise IllegalArgumentError(f"group_id must be a non-empty str, got {self.group_id!r}")
        if self.generation_id > 0 and not self.member_id:
            raise IllegalArgumentError(
                f"Generation {self.generation_id} of group {self.group_id!r} was given without a member_id: "
                "pass both, or neither"
            )


class TransactionIdentity(NamedTuple):
    """Who a transactional producer is to the coordinator; enough to end its transaction from another process.

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
