"""``Producer`` of confluent-kafka, on this package's producer: the import alone changes.

::

    from forebay.compat.confluent_kafka import KafkaException, Producer

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    producer.produce("events", key="k", value="v", on_delivery=lambda err, msg: print(err, msg.offset()))
    producer.flush()

What differs from the original is in ``docs/from_confluent_kafka.md``.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING

from forebay.compat._librdkafka_messages import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)
from forebay.compat._librdkafka_producer import Producer
from forebay.compat._librdkafka_values import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    BrokerMetadata,
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
    consistent,
    elsewhere,
    fnv1a,
    murmur2,
)
from forebay.compat.confluent_kafka.error import (
    KafkaError,
    KafkaException,
    KeySerializationError,
    ProduceError,
    SerializationError,
    ValueSerializationError,
)
from forebay.compat.confluent_kafka.serialization import MessageField, SerializationContext
from forebay.compat.confluent_kafka.serializing_producer import SerializingProducer

__all__ = [
    "BrokerMetadata",
    "ClusterMetadata",
    "KafkaError",
    "KafkaException",
    "KeySerializationError",
    "Message",
    "MessageField",
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "PartitionMetadata",
    "ProduceError",
    "Producer",
    "SerializationContext",
    "SerializationError",
    "SerializingProducer",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "TopicMetadata",
    "TopicPartition",
    "ValueSerializationError",
    "consistent",
    "fnv1a",
    "murmur2",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise elsewhere(name, _getframe(1))
