"""``Producer`` of confluent-kafka, on this package's producer: the import alone changes.

::

    from forebay.compat.confluent_kafka import KafkaException, Producer

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    producer.produce("events", key="k", value="v", on_delivery=lambda err, msg: print(err, msg.offset()))
    producer.flush()

What differs from the original is in ``docs/from_confluent_kafka.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.compat._librdkafka_errors import KafkaError, KafkaException
from forebay.compat._librdkafka_messages import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)
from forebay.compat._librdkafka_producer import Producer
from forebay.compat._librdkafka_serializing import SerializingProducer
from forebay.compat._librdkafka_values import (
    OFFSET_INVALID,
    BrokerMetadata,
    ClusterMetadata,
    PartitionMetadata,
    SerializationContext,
    TopicMetadata,
    TopicPartition,
    consistent,
    elsewhere,
    fnv1a,
    murmur2,
)

__all__ = [
    "OFFSET_INVALID",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "BrokerMetadata",
    "ClusterMetadata",
    "KafkaError",
    "KafkaException",
    "Message",
    "PartitionMetadata",
    "Producer",
    "SerializationContext",
    "SerializingProducer",
    "TopicMetadata",
    "TopicPartition",
    "consistent",
    "fnv1a",
    "murmur2",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise elsewhere(name)
