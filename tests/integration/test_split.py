"""Batches larger than a real broker takes, and topics that are deleted and made again: read back by librdkafka."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from forebay import KafkaProducer
from forebay.errors import KafkaError, KafkaTimeoutError, RecordTooLargeError
from tests.integration.programs import Program, expected
from tests.integration.workload import WAIT_S, metric
from tests.support.fixtures import TopicFactory
from tests.support.pace import until, within_ms
from tests.support.readback import read_all
from tools.kafka import RealKafka

LIMIT = 20_000


def producer(kafka: RealKafka, **options: object) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 200, **options})


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_batch_size_above_max_message_bytes(kafka: RealKafka, topic: TopicFactory, codec: str) -> None:
    """22.3: goes on in parts; only the record that is too large by itself fails, and says where the limit is."""
    name = topic(kafka, config={"max.message.bytes": str(LIMIT)})
    values = [b"%06d" % number + bytes((number * 7 + at * at) % 256 for at in range(500)) for number in range(600)]
    with producer(kafka, **{"batch.size": 300_000, "compression.type": codec}) as ours:
        futures = [ours.send(name, value, on_delivery=lambda report: None) for value in values[:300]]
        large = ours.send(name, bytes(range(256)) * 400 if codec == "none" else _noise(100_000))
        futures += [ours.send(name, value) for value in values[300:]]
        ours.flush(WAIT_S)
        error = large.exception(0)
        assert isinstance(error, RecordTooLargeError) and f"max.message.bytes of topic {name}" in error.message
        assert [future.result(0).offset for future in futures] == list(range(600))
        assert metric(ours, "batch-split-total") > 0
        assert metric(ours, "record-error-total") == 1
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == values


def test_a_batch_that_is_split_while_the_interpreter_exits(kafka: RealKafka, topic: TopicFactory) -> None:
    """Nothing was split before, and no thread can be started any more that would import what splits."""
    name = topic(kafka, config={"max.message.bytes": str(LIMIT)})
    text = """
    producer = make(batch_size=300_000, linger_ms=60_000)
    for value in values(500, bytes(100)):
        producer.send(topic, value)
    """
    with Program(text, kafka.bootstrap_servers, name) as program:
        _, err = program.end()
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == expected(500, bytes(100))
    assert "it was split into" in err and len(err.splitlines()) < 10, err


def _noise(size: int) -> bytes:
    state, out = 1, bytearray()
    while len(out) < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        out += state.to_bytes(8, "big")[:4]
    return bytes(out)


def test_a_topic_that_is_deleted_and_made_again(strict_kafka: RealKafka, topic: TopicFactory) -> None:
    """Its epochs and its sequences begin again; records flow, each once and in order, under the same producer id."""
    name = topic(strict_kafka, 2)
    with producer(
        strict_kafka, **{"linger.ms": 0, "metadata.max.age.ms": 1000, "delivery.timeout.ms": within_ms(40_000)}
    ) as ours:
        for number in range(10):
            ours.send(name, b"before %d" % number, partition=number % 2).result(WAIT_S)
        for round_ in range(2):
            _delete(strict_kafka, name)
            _create(strict_kafka, name)
            values = [b"round %d, %d" % (round_, number) for number in range(40)]
            futures = [ours.send(name, value, partition=number % 2) for number, value in enumerate(values)]
            ours.flush(WAIT_S)
            assert [future.exception(0) for future in futures] == [None] * 40
            found = read_all(strict_kafka.bootstrap_servers, name)
            for partition in (0, 1):
                assert [record.value for record in found if record.partition == partition] == values[partition::2]


def test_a_topic_that_is_deleted_and_stays_away(strict_kafka: RealKafka, topic: TopicFactory) -> None:
    """4.3: once the metadata has told, send() waits for the topic as for one that never was, and says so."""
    name = topic(strict_kafka)
    block_ms = within_ms(1500)
    times = {
        "metadata.max.age.ms": 500,
        "max.block.ms": block_ms,
        "delivery.timeout.ms": within_ms(6000),
        "request.timeout.ms": within_ms(5000),
    }
    with producer(strict_kafka, **{"linger.ms": 0, **times}) as ours:
        ours.send(name, b"before").result(WAIT_S)
        _delete(strict_kafka, name)
        errors: list[KafkaError | None] = []

        def refused() -> bool:
            future = ours.send(name, b"after")
            if future.done():
                errors.append(future.exception(0))
            return bool(errors) and isinstance(errors[-1], KafkaTimeoutError)

        until(refused, "send() waits for the topic that was deleted")
        assert errors[-1] is not None and f"Topic {name} not present in metadata after {block_ms} ms." in str(
            errors[-1]
        )


def _delete(kafka: RealKafka, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_topics([name]).values():
        future.result(WAIT_S)
    until(lambda: name not in admin.list_topics(timeout=WAIT_S).topics, f"{name} is gone")


def _create(kafka: RealKafka, name: str) -> None:
    """Once the broker has forgotten the old one."""

    def created() -> bool:
        try:
            kafka.create_topic(name, 2)
        except (KafkaException, RuntimeError) as error:
            code = error.args[0].code() if isinstance(error, KafkaException) else None
            assert code in (None, LibrdkafkaError.TOPIC_ALREADY_EXISTS), error
            return False
        return True

    until(created, f"{name} is there again")
