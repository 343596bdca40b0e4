"""For users of aiokafka: its producer, and what is imported beside it, under its names.

``errors``, ``structs``, ``helpers``, ``abc`` and ``partitioner`` have aiokafka's names, too.  Consumers and admin
clients stay aiokafka's.
"""

from forebay.compat.aiokafka.errors import IllegalOperation
from forebay.compat.aiokafka.producer import AIOKafkaProducer
from forebay.compat.aiokafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ["AIOKafkaProducer", "IllegalOperation", "OffsetAndMetadata", "TopicPartition"]
