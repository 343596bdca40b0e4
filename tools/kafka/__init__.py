"""A real Apache Kafka for tests and benches: jars by Maven, brokers on loopback, its own tools as judges."""

from tools.kafka.archive import ensure_archive
from tools.kafka.cluster import KafkaFailed, Listener, RealKafka
from tools.kafka.jars import KAFKA_VERSION, LEGACY_KAFKA_VERSION, OLDEST_KAFKA_VERSION, JarsUnavailable, ensure_jars
from tools.kafka.judge import DumpedBatch, DumpedRecord, Performance, dump_log, producer_performance

__all__ = [
    "KAFKA_VERSION",
    "LEGACY_KAFKA_VERSION",
    "OLDEST_KAFKA_VERSION",
    "DumpedBatch",
    "DumpedRecord",
    "JarsUnavailable",
    "KafkaFailed",
    "Listener",
    "Performance",
    "RealKafka",
    "dump_log",
    "ensure_archive",
    "ensure_jars",
    "producer_performance",
]
