"""For users of aiokafka: its producer, and what is imported beside it, under its names.

``errors``, ``structs``, ``helpers``, ``abc`` and ``partitioner`` have aiokafka's names, too.  Consumers and admin
clients stay aiokafka's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.compat.aiokafka import structs
from forebay.compat.aiokafka.errors import IllegalOperation
from forebay.compat.aiokafka.producer import AIOKafkaProducer

_STAY = ("AIOKafkaClient", "AIOKafkaConsumer", "ConsumerRebalanceListener", "ConsumerRecord", "ConsumerStoppedError")

if TYPE_CHECKING:
    from forebay.compat.aiokafka.structs import OffsetAndMetadata, TopicPartition
else:

    def __getattr__(name: str) -> object:
        if name in ("OffsetAndMetadata", "TopicPartition"):
            return getattr(structs, name)
        # An ImportError, for whoever imports them in the same line as the producer.
        if name in _STAY:
            raise ImportError(f"{name} is not a producer's: write `from aiokafka import {name}`, beside this import")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["AIOKafkaProducer", "IllegalOperation", "OffsetAndMetadata", "TopicPartition"]
