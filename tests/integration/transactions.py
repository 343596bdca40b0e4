"""Transactions through a proxy, and what a real broker's readers see of them afterwards."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConsumerPosition

from forebay import KafkaProducer
from forebay.errors import KafkaError
from forebay.model import TopicPartition
from tests.integration.workload import WAIT_S
from tests.support.pace import within_ms
from tests.support.proxy import KafkaProxy
from tests.support.readback import read_all
from tools.kafka import RealKafka

QUICK: dict[str, Any] = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 20,
    "linger.ms": 0,
    "max.block.ms": within_ms(20_000),
    "delivery.timeout.ms": within_ms(20_000),
    "request.timeout.ms": within_ms(5_000),
}


def transactional(proxy: KafkaProxy, transactional_id: str, **options: Any) -> KafkaProducer:
    """A producer behind the proxy that is not initialised yet."""
    settings = {"bootstrap.servers": proxy.bootstrap_servers, "transactional.id": transactional_id}
    return KafkaProducer({**settings, **QUICK, **options})


def transact(
    ours: KafkaProducer, where: TopicPartition, value: bytes, *, group: str = "", offset: int = 0, commit: bool = True
) -> None:
    """One transaction with a record, and with an offset of ``group`` if there is one; raises what a call raises."""
    ours.begin_transaction()
    ours.send(where.topic, value, partition=where.partition)
    if group:
        ours.send_offsets_to_transaction({where: offset}, group)
    if commit:
        ours.commit_transaction()
    else:
        ours.abort_transaction()


def attempt(ours: KafkaProducer, where: TopicPartition, value: bytes, **more: Any) -> KafkaError | None:
    """As ``transact``; gives back what was raised."""
    try:
        transact(ours, where, value, **more)
    except KafkaError as error:
        return error
    return None


def committed_values(kafka: RealKafka, topic: str) -> dict[int, list[bytes | None]]:
    """What ``read_committed`` sees, by partition."""
    found: dict[int, list[bytes | None]] = {}
    for record in read_all(kafka.bootstrap_servers, topic):
        found.setdefault(record.partition, []).append(record.value)
    return found


def committed_offset(kafka: RealKafka, group: str, where: TopicPartition) -> int:
    """The group's offset as its consumers find it; negative if there is none."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    try:
        (found,) = consumer.committed([ConsumerPosition(where.topic, where.partition)], timeout=WAIT_S)
        return int(found.offset)
    finally:
        consumer.close()
