"""Columns from many threads beside single records: they share batches and locks, and lose and mix up nothing."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from forebay import KafkaProducer
from forebay._columnar import Columns, Deliveries, append_columns
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.readback import read_all
from tools.kafka import RealKafka

ROWS = 30_000


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_many_threads_with_columns_and_records(kafka: RealKafka, topic: TopicFactory, codec: str) -> None:
    name = topic(kafka, 2)
    options = {"bootstrap.servers": kafka.bootstrap_servers, "buffer.memory": 1 << 20, "compression.type": codec}
    followed = [Deliveries() for _ in range(3)]

    def columns(sender: int, producer: KafkaProducer) -> None:
        for start in range(0, ROWS, 6000):
            values = [b"%d:%d" % (sender, number) for number in range(start, start + 6000)]
            keys = [b"%d" % sender] * 6000
            batch = pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
            append_columns(producer, Columns(batch, name), followed[sender])

    def records(sender: int, producer: KafkaProducer) -> None:
        for number in range(ROWS):
            producer.send(name, b"%d:%d" % (sender, number), b"%d" % sender)

    with KafkaProducer(options) as producer:
        threads = [
            threading.Thread(target=columns if sender < 3 else records, args=(sender, producer)) for sender in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert not any(thread.is_alive() for thread in threads)
        producer.flush()
        assert [(one.collect(), one.acknowledged) for one in followed] == [(0, ROWS)] * 3
    found: dict[int, list[int]] = {}
    for record in read_all(kafka.bootstrap_servers, name):
        sender, number = (record.value or b"").split(b":")
        found.setdefault(int(sender), []).append(int(number))
    assert found == {sender: list(range(ROWS)) for sender in range(6)}
