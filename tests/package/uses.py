"""Right and wrong uses of the public surface, read by type checkers and never run.

Each wrong one has an ignore, and the checkers are told to report an ignore that nothing needs.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_type

from forebay import (
    AdminClient,
    BatchDelivery,
    ConsumerGroupMetadata,
    DeliveryReport,
    KafkaError,
    KafkaProducer,
    OffsetAndMetadata,
    ProducerConfig,
    ProducerRecord,
    RecordFuture,
    RecordMetadata,
    TopicPartition,
    TransactionIdentity,
    errors,
)
from forebay.model import DeliveryCallback, PartitionInfo, TailRecord
from forebay.testing import EmbeddedBroker, ManualClock


def delivered(report: DeliveryReport) -> None:
    assert_type(report.metadata.topic, str)
    assert_type(report.metadata.offset, int)
    if report.error is not None:
        assert_type(report.error.code, int | None)
        assert_type(report.error.retriable, bool)


def of_two(metadata: RecordMetadata, error: KafkaError | None) -> None: ...


def of_metadata_alone(metadata: RecordMetadata) -> None: ...


def less_precise(report: object) -> bool:
    return report is None


def constructs(settings: Mapping[str, Any]) -> None:
    assert_type(KafkaProducer({"bootstrap.servers": "localhost:9092"}), KafkaProducer)
    KafkaProducer(settings)
    KafkaProducer(settings, linger_ms=5, key_serializer=str.encode)
    KafkaProducer(ProducerConfig(bootstrap_servers="localhost:9092"))
    KafkaProducer("localhost:9092")  # type: ignore[arg-type]
    KafkaProducer({b"linger.ms": 5})  # type: ignore[dict-item]
    KafkaProducer(settings, settings)  # type: ignore[arg-type, call-arg]


def sends(producer: KafkaProducer) -> None:
    future = producer.send("t", b"v", key=b"k", headers=[("h", b"1"), ("n", None)], partition=0, timestamp=0)
    assert_type(future, RecordFuture)
    assert_type(producer.send_nowait("t", b"v"), RecordFuture)
    producer.send("t", headers={"h": b"1", "n": None})
    producer.send(ProducerRecord("t", b"v", headers={"h": b"1"}))
    producer.send()  # type: ignore[call-arg]
    producer.send(5)  # type: ignore[arg-type]
    producer.send(b"t", b"v")  # type: ignore[arg-type]
    producer.send("t", partition="0")  # type: ignore[arg-type]
    producer.send("t", timestamp=datetime.now(UTC))
    producer.send("t", timestamp=0.5)  # type: ignore[arg-type]
    producer.send("t", headers={"h": "1"})  # type: ignore[dict-item]
    producer.send("t", headers="h")  # type: ignore[arg-type]
    producer.send_nowait("t", partition="0")  # type: ignore[arg-type]


def is_called_back(producer: KafkaProducer) -> None:
    named: DeliveryCallback = delivered
    producer.send("t", on_delivery=named)
    producer.send("t", on_delivery=less_precise)
    producer.send("t", on_delivery=lambda report: print(report.metadata.offset, report.error))
    producer.send("t", on_delivery=of_two)  # type: ignore[arg-type]
    producer.send("t", on_delivery=of_metadata_alone)  # type: ignore[arg-type]
    producer.send("t", on_delivery=5)  # type: ignore[arg-type]
    producer.send_nowait("t", on_delivery=of_two)  # type: ignore[arg-type]


def waits(future: RecordFuture) -> None:
    metadata = future.result(timeout=1.5)
    assert_type(metadata, RecordMetadata)
    assert_type(metadata.partition, int)
    assert_type(metadata.timestamp, int)
    assert_type(metadata.serialized_value_size, int)
    assert_type(metadata.has_offset, bool)
    assert_type(metadata._asdict(), dict[str, Any])
    assert_type(future.get(), RecordMetadata)
    assert_type(future.exception(), KafkaError | None)
    assert_type(future.done(), bool)
    future.add_done_callback(lambda done: print(done.result().offset))
    future.add_done_callback(delivered)  # type: ignore[arg-type]
    future.result("1")  # type: ignore[arg-type]
    future.results()  # type: ignore[attr-defined]
    metadata.offset = 5  # type: ignore[misc]


def looks_into(metadata: RecordMetadata) -> int:
    match metadata:
        case RecordMetadata(topic, partition, offset):
            assert_type(topic, str)
            assert_type(partition, int)
            return offset
    return -1


def sends_columns(producer: KafkaProducer, table: object) -> None:
    delivery = producer.send_batch("t", table, value="json", key=None, partition=0)
    assert_type(delivery, BatchDelivery)
    for where, runs in delivery.result(timeout=30).items():
        assert_type(where, TopicPartition)
        assert_type(runs[0].base_offset, int)
    for rows, error in delivery.failures:
        assert_type(rows, array[int])
        assert_type(error, KafkaError)
    assert_type(delivery.taken(), list[range])
    assert_type(delivery.acknowledged, int)
    assert_type(len(delivery), int)
    delivery.add_done_callback(lambda done: print(done.failed))
    producer.send_batch(5, table)  # type: ignore[arg-type]
    producer.send_batch("t", table, values="json")  # type: ignore[call-arg]
    delivery.result(timeout="1")  # type: ignore[arg-type]


def ends(producer: KafkaProducer) -> None:
    producer.flush()
    producer.flush(timeout=1)
    producer.flush("1")  # type: ignore[arg-type]
    producer.flush(timeout_ms=1)  # type: ignore[call-arg]
    producer.close(1.5)
    with KafkaProducer(linger_ms=5) as opened:
        assert_type(opened, KafkaProducer)
        assert_type(opened.config, ProducerConfig)
        assert_type(opened.client_id, str)
        assert_type(opened.partitions_for("t"), tuple[PartitionInfo, ...])
        assert_type(opened.metrics().value("record-send-total"), float | int | str)
        assert_type(opened.client_instance_id(1), str)


def transacts(producer: KafkaProducer) -> None:
    producer.init_transactions()
    with producer.transaction():
        where = TopicPartition("orders", 0)
        producer.send_offsets_to_transaction({where: 42}, "billing")
        producer.send_offsets_to_transaction({where: OffsetAndMetadata(42)}, ConsumerGroupMetadata("billing"))
    assert_type(producer.producer_id, int)
    assert_type(producer.detach_transaction(), TransactionIdentity)
    producer.begin_transaction(5)  # type: ignore[call-arg]


def controls() -> None:
    with AdminClient(bootstrap_servers="localhost:9092") as admin:
        assert_type(admin, AdminClient)
        assert_type(admin.transaction_version(), int)
        admin.create_topic("t", partitions=6)
        for record in admin.read_tail("t", 0):
            assert_type(record, TailRecord)
            assert_type(record.value, bytes | None)
        admin.create_topic(6, partitions=1)  # type: ignore[arg-type]


def tests_with_a_broker() -> None:
    with EmbeddedBroker(nodes=3) as broker:
        broker.create_topic("t", 6)
        assert_type(broker.bootstrap_servers, str)
        broker.create_topic("t", "6")  # type: ignore[arg-type]
    clock = ManualClock()
    clock.advance(5)
    assert_type(clock.now(), float)


def catches(producer: KafkaProducer) -> str:
    try:
        producer.send("t").result()
    except errors.BufferExhaustedError as error:
        assert_type(error.context, dict[str, object])
    except errors.KafkaTimeoutError as error:
        assert_type(error.retriable, bool)
    except errors.KafkaErrors:  # type: ignore[attr-defined]
        pass
    assert_type(errors.for_code(3), type[KafkaError] | None)
    return errors.for_code(3).name  # type: ignore[union-attr]
