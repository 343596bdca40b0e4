"""Values that programs of confluent-kafka make or are given, and its functions of keys."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from opcode import opmap
from typing import Any, NamedTuple

from forebay.compat._librdkafka_errors import KafkaError, refusal
from forebay.compat._librdkafka_partitioner import PARTITIONERS, hash_partition

OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED, OFFSET_INVALID = -2, -1, -1000, -1001
IMPORT_FROM = opmap["IMPORT_FROM"]
LONGEST_TOPIC = 512
"""Bytes of a topic's name that librdkafka takes; Kafka takes fewer."""


_STAYS = "stays confluent-kafka's own, and goes together with this module: from confluent_kafka import {}"
_ELSEWHERE = {
    **dict.fromkeys(
        (
            "AcknowledgeType",
            "ConcurrentModificationException",
            "Consumer",
            "ConsumerGroupState",
            "ConsumerGroupTopicPartitions",
            "ConsumerGroupType",
            "DeserializingConsumer",
            "DeserializingShareConsumer",
            "ElectionType",
            "IllegalStateException",
            "IsolationLevel",
            "Messages",
            "Node",
            "ShareConsumer",
            "TopicCollection",
            "TopicPartitionInfo",
            "Uuid",
            "admin",
            "avro",
            "schema_registry",
        ),
        _STAYS,
    ),
    "AIOProducer": "is not here: use forebay.AsyncKafkaProducer, whose send() also takes headers",
    "ThrottleEvent": "is not here, as throttle_cb is not: call producer.native.metrics()",
    "libversion": "is not here: forebay.__version__ is this package's, and there is no librdkafka",
    "version": "is not here: forebay.__version__ is this package's",
}


def elsewhere(name: str, frame: Any) -> Exception:
    """What the module raises for a name that it has not.

    An AttributeError, so that ``hasattr`` answers.  Of that ``from ... import`` would make its own words, without ours,
    so it gets an ImportError.

    Args:
        frame: the one that asks; its instruction tells which of the two it does.
    """
    if name not in _ELSEWHERE:
        return AttributeError(f"module 'forebay.compat.confluent_kafka' has no attribute {name!r}")
    words = f"{name} {_ELSEWHERE[name].format(name)}"
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
        return ImportError(words, name="forebay.compat.confluent_kafka")
    return AttributeError(words)


class TopicPartition:
    """A partition, and an offset in it."""

    def __init__(
        self,
        topic: str,
        partition: int = -1,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        self.topic: str = plain_topic(topic)
        self.partition: int = plain_index("partition", partition)
        self.offset: int = plain_index("offset", offset)
        self.metadata: str | None = metadata
        self.leader_epoch: int | None = leader_epoch
        self.error: KafkaError | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicPartition) and (self.topic, self.partition) == (other.topic, other.partition)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) < (other.topic, other.partition)

    # Python makes > and >= of these two.  Type checkers do not know the methods that total_ordering would make.
    def __le__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) <= (other.topic, other.partition)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},offset={self.offset},"
            f"leader_epoch={self.leader_epoch},error={self.error}}}"
        )


class BrokerMetadata(NamedTuple):
    """A broker."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"


class PartitionMetadata(NamedTuple):
    """A partition; ``leader`` is -1 while it has none."""

    id: int
    leader: int
    replicas: list[int]
    isrs: list[int]
    error: KafkaError | None

    def __str__(self) -> str:
        return str(self.id)

    def __repr__(self) -> str:
        return f"PartitionMetadata({self.id}{_behind(self.error)})"


class TopicMetadata(NamedTuple):
    """A topic and its partitions by number."""

    topic: str
    partitions: dict[int, PartitionMetadata]
    error: KafkaError | None

    def __str__(self) -> str:
        return self.topic

    def __repr__(self) -> str:
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{_behind(self.error)})"


class ClusterMetadata(NamedTuple):
    """What ``list_topics`` gives."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, BrokerMetadata]
    topics: dict[str, TopicMetadata]
    orig_broker_id: int = -1
    orig_broker_name: str = ""

    def __str__(self) -> str:
        return str(self.cluster_id)

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"


def _behind(error: KafkaError | None) -> str:
    return "" if error is None else f", {error}"


def as_cluster(answer: Any) -> ClusterMetadata:
    """The values of a Metadata answer."""
    topics = {}
    for topic in answer.topics:
        partitions = {
            part.partition: PartitionMetadata(
                part.partition,
                part.leader_id,
                list(part.replicas),
                list(part.in_sync_replicas),
                KafkaError(part.error_code) if part.error_code else None,
            )
            for part in topic.partitions
        }
        error = KafkaError(topic.error_code) if topic.error_code else None
        topics[topic.name] = TopicMetadata(topic.name, partitions, error)
    brokers = {node.id: BrokerMetadata(node.id, node.host, node.port) for node in answer.brokers}
    return ClusterMetadata(answer.cluster_id, answer.controller_id, brokers, topics)


def _hashed(kind: str, key: bytes, partition_count: int) -> int:
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes, got {type(key).__name__}")
    if not isinstance(partition_count, int):
        raise TypeError(f"partition_count must be an int, got {type(partition_count).__name__}")
    if partition_count < 1:
        raise ValueError(f"partition_count must be > 0, got {partition_count}")
    chosen: int = hash_partition(PARTITIONERS[kind], key, partition_count)
    return chosen


def consistent(key: bytes, partition_count: int) -> int:
    """The partition that librdkafka's ``consistent`` chooses (CRC-32)."""
    return _hashed("consistent", key, partition_count)


def murmur2(key: bytes, partition_count: int) -> int:
    """The partition that ``murmur2`` chooses, as Java does."""
    return _hashed("murmur2", key, partition_count)


def fnv1a(key: bytes, partition_count: int) -> int:
    """The partition that librdkafka's ``fnv1a`` chooses, as Sarama does."""
    return _hashed("fnv1a", key, partition_count)


def check_message(index: int, message: Any) -> None:
    """What ``produce_batch`` is given.

    Raises:
        TypeError: it is no dict, or a field is of another type.
    """
    if not isinstance(message, dict):
        raise TypeError(f"Message at index {index} must be a dict, got {type(message).__name__}")
    for field in ("value", "key"):
        given = message.get(field)
        if given is not None and not isinstance(given, (str, bytes)):
            raise TypeError(f"Message {field} at index {index} must be bytes or str, got {type(given).__name__}")
    if not isinstance(message.get("partition", 0), int):
        raise TypeError(f"Message partition at index {index} must be int, got {message['partition']!r}")


def plain_bytes(what: str, given: Any) -> bytes:
    """A value or key as bytes.

    Raises:
        TypeError: it is neither text nor bytes.
        UnicodeEncodeError: text that has no bytes in UTF-8.
    """
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytes):
        return bytes(given)
    raise TypeError(f"{what} must be bytes, str or None, got {type(given).__name__}")


def plain_topic(given: Any) -> str:
    """A topic's name; a member of an enumeration of str stands for its value.

    Raises:
        TypeError: it is no text.
    """
    if not isinstance(given, str):
        raise TypeError(f"topic must be a str, got {type(given).__name__}")
    return str.__str__(given)


def plain_index(what: str, given: Any) -> int:
    """A partition or timestamp as an int; whatever Python takes for an index will do, such as NumPy's integers.

    Raises:
        TypeError: it is no integer.
    """
    try:
        return operator.index(given)
    except TypeError:
        raise TypeError(f"{what} must be an int, got {type(given).__name__}") from None


def out_of_range(what: str, given: int, most: int) -> OverflowError:
    """The error of a number that its field has no room for."""
    return OverflowError(f"{what} must be from {-most - 1} to {most}, got {given}")


def check_topic(name: str) -> None:
    """Refuses a name that the original refuses in the call.  What Kafka forbids beyond it, the report says.

    Raises:
        ValueError: it has a zero in it, or no bytes in UTF-8.
        KafkaException: it is too long for librdkafka.
    """
    if "\0" in name:
        raise ValueError(f"the topic's name {name!r} has a zero character in it")
    size = len(name.encode())
    if size > LONGEST_TOPIC:
        raise refusal(
            KafkaError._INVALID_ARG,
            f"Local: Invalid argument or configuration: the topic's name has {size} bytes, at most {LONGEST_TOPIC} "
            "are allowed",
        )


def plain_headers(given: Any) -> list[tuple[str, bytes | None]]:
    """Headers as pairs of str and bytes or None.  Names are made text, as the original makes them.

    Raises:
        TypeError: no list of pairs and no mapping, or something else in it.
    """
    if isinstance(given, Mapping):
        given = list(given.items())
    if not isinstance(given, list):
        raise TypeError(f"headers must be a list of pairs or a dict, got {type(given).__name__}")
    pairs = []
    for pair in given:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"a header must be a pair (str, value), got {pair!r}")
        name, value = str(pair[0]), pair[1]
        if value is not None and type(value) is not bytes:
            value = plain_bytes(f"the value of header {name!r}", value)
        pairs.append((name, value))
    return pairs
