"""kafka-python's producer and what is imported beside it: programs change ``kafka`` to ``forebay.compat.kafka``.

``docs/from_kafka_python.md`` lists what differs.  Consumers and admin clients stay those of kafka-python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.compat.kafka import errors, structs
from forebay.compat.kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner
from forebay.compat.kafka.producer import FutureRecordMetadata, KafkaProducer, RecordMetadata
from forebay.compat.kafka.serializer import DefaultSerializer, Deserializer, JsonSerializer, Serializer

if TYPE_CHECKING:
    from forebay.compat.kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = [
    "ConsumerGroupMetadata",
    "DefaultPartitioner",
    "DefaultSerializer",
    "Deserializer",
    "FutureRecordMetadata",
    "JsonSerializer",
    "KafkaProducer",
    "OffsetAndMetadata",
    "Partitioner",
    "RecordMetadata",
    "Serializer",
    "StickyPartitioner",
    "TopicPartition",
    "errors",
    "structs",
]

_STAY = ("ConsumerRebalanceListener", "KafkaAdminClient", "KafkaClient", "KafkaConsumer")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in ("ConsumerGroupMetadata", "OffsetAndMetadata", "TopicPartition"):
            return getattr(structs, name)
        # An ImportError, for whoever imports them in the same line as the producer.
        if name in _STAY:
            raise ImportError(f"{name} is not a producer's: write `from kafka import {name}`, beside this import")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
