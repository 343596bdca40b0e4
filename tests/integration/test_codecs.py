"""Each codec at each level: judged by Kafka's own log dumper, and read back by librdkafka with CRC checks."""

from __future__ import annotations

import random
from typing import Any

import pytest

from forebay import KafkaProducer
from tests.integration.workload import BASE, Ledger
from tests.support.fixtures import Broker, TopicFactory
from tools.kafka import RealKafka, dump_log

LEVELS: dict[str, tuple[int | None, ...]] = {
    "none": (None,),
    "gzip": (-1, *range(1, 10)),
    "snappy": (None,),
    "lz4": tuple(range(1, 18)),
    "zstd": (-131_072, -7, -1, *range(1, 23)),
}
RECORDS = 150


def options(broker: Broker, codec: str, level: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
    if level is not None:
        found[f"compression.{codec}.level"] = level
    return found


def values(seed: int) -> list[bytes]:
    """What compresses well, what does not, and what is larger than a batch."""
    source = random.Random(seed)
    words = [b"value %d " % source.randrange(10) * source.randrange(1, 40) for _ in range(RECORDS - 2)]
    return [*words, source.randbytes(5000), b"large " * 5000]


@pytest.mark.parametrize("codec", LEVELS)
def test_every_level_is_read_back(any_broker: Broker, topic: TopicFactory, codec: str) -> None:
    name = topic(any_broker, 2)
    ledger = Ledger()
    for level in LEVELS[codec]:
        with KafkaProducer(options(any_broker, codec, level)) as ledger.producer:
            for number, value in enumerate(values(level or 0)):
                ledger.send(name, value, b"%d" % number, (("level", b"%d" % (level or 0)), ("n", None)))
    ledger.check(any_broker)


@pytest.mark.parametrize("codec", LEVELS)
def test_the_log_dumper_finds_every_batch_valid(kafka: RealKafka, topic: TopicFactory, codec: str) -> None:
    name = topic(kafka)
    levels = LEVELS[codec][:: max(1, len(LEVELS[codec]) - 1)]
    for level in levels:
        with KafkaProducer(options(kafka, codec, level)) as producer:
            futures = [
                producer.send(name, b"value %d" % number, b"k", headers=[("h", b"")], timestamp=BASE + number)
                for number in range(RECORDS)
            ]
        assert [future.result(0).offset % RECORDS for future in futures] == list(range(RECORDS))
    batches = dump_log(kafka, name, 0)
    assert {(each.valid, each.codec, each.magic, each.transactional, each.control) for each in batches} == {
        (True, codec, 2, False, False)
    }
    assert sum(each.record_count for each in batches) == RECORDS * len(levels)
    assert all(each.last_offset - each.base_offset + 1 == each.record_count == len(each.records) for each in batches)
    records = [record for each in batches for record in each.records]
    assert [record.value for record in records] == [f"value {number}" for number in range(RECORDS)] * len(levels)
    assert [record.timestamp for record in records] == [BASE + number for number in range(RECORDS)] * len(levels)
    assert {(record.key, record.header_keys) for record in records} == {("k", ("h",))}
    # Each producer has an id of its own, epoch 0, and sequences that count its records from 0.
    ids = {each.producer_id: each.producer_epoch for each in batches}
    assert len(ids) == len(levels)
    assert set(ids.values()) == {0} and min(ids) >= 0
    assert [record.sequence for record in records] == list(range(RECORDS)) * len(levels)


def test_without_idempotence_batches_carry_no_producer_id(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka)
    with KafkaProducer({**options(kafka, "zstd", 3), "enable.idempotence": False}) as producer:
        producer.send(name, b"v")
    (batch,) = dump_log(kafka, name, 0)
    assert batch.valid
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


def test_compressed_batches_hold_more_than_batch_size(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka)
    with KafkaProducer({**options(kafka, "zstd", 3), "linger.ms": 1000}) as producer:
        ledger = Ledger(producer)
        for number in range(4000):
            ledger.send(name, b"%d: much the same as the one before" % (number % 10) * 25)
        ledger.check(kafka)
    batches = dump_log(kafka, name, 0)
    assert all(each.valid and each.size <= 16_384 + 1024 for each in batches)
    # The estimate of the ratio follows what it sees by 0.005 a batch, so the last ones hold the most.
    assert max(sum(record.value_size for record in each.records) for each in batches) > 2 * 16_384
