"""Columns from many threads beside single records: they share batches and locks, and lose and mix up nothing."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from forebay import BatchDelivery, KafkaProducer
from forebay.errors import KafkaError, RecordTooLargeError
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.readback import read_all
from tools.kafka import RealKafka

ROWS = 30_000


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_many_threads_with_columns_and_records(kafka: RealKafka, topic: TopicFactory, codec: str) -> None:
    name = topic(kafka, 2)
    options = {"bootstrap.servers": kafka.bootstrap_servers, "buffer.memory": 1 << 20, "compression.type": codec}
    followed: list[list[BatchDelivery]] = [[] for _ in range(3)]

    def columns(sender: int, producer: KafkaProducer) -> None:
        for start in range(0, ROWS, 6000):
            values = [b"%d:%d" % (sender, number) for number in range(start, start + 6000)]
            keys = [b"%d" % sender] * 6000
            batch = pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
            followed[sender].append(producer.send_batch(name, batch))

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
        assert [sum(delivery.acknowledged for delivery in one) for one in followed] == [ROWS] * 3
    found: dict[int, list[int]] = {}
    for record in read_all(kafka.bootstrap_servers, name):
        sender, number = (record.value or b"").split(b":")
        found.setdefault(int(sender), []).append(int(number))
    assert found == {sender: list(range(ROWS)) for sender in range(6)}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_offsets_rows_and_parts_of_a_record_are_those_that_a_reader_finds(
    kafka: RealKafka, topic: TopicFactory, codec: str
) -> None:
    names = [topic(kafka, 3), topic(kafka, 2)]
    rows = 20_000
    entries = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "v": pa.array([None if row % 11 == 0 else b"%d" % row * (row % 40) for row in range(rows)], pa.binary()),
            "k": pa.array([f"key-{row % 700}" for row in range(rows)]).dictionary_encode(),
            "h": pa.array([[{"key": "row", "value": b"%d" % row}] for row in range(rows)], entries),
            "at": pa.array(range(1_700_000_000_000, 1_700_000_000_000 + rows), pa.timestamp("ms")),
            "to": pa.array([names[row % 2] for row in range(rows)]),
        }
    )
    with KafkaProducer({"bootstrap.servers": kafka.bootstrap_servers, "compression.type": codec}) as producer:
        delivery = producer.send_batch(None, table, value="v", key="k", headers="h", timestamp="at", topic_column="to")
        where = delivery.result(WAIT_S)
    found = [record for name in names for record in read_all(kafka.bootstrap_servers, name)]
    assert sorted(int((record.headers[0][1] or b"").decode()) for record in found) == list(range(rows))
    for record in found:
        row = int((record.headers[0][1] or b"").decode())
        assert record.value == (None if row % 11 == 0 else b"%d" % row * (row % 40))
        assert (record.key, record.timestamp) == (b"key-%d" % (row % 700), 1_700_000_000_000 + row)
    counts = {(one.topic, one.partition): sum(run.records for run in runs) for one, runs in where.items()}
    read: dict[tuple[str, int], int] = {}
    for name in names:
        for record in read_all(kafka.bootstrap_servers, name):
            read[name, record.partition] = read.get((name, record.partition), 0) + 1
    assert counts == read
    assert all(runs[0].base_offset == 0 for runs in where.values())


def test_in_a_transaction_a_refused_row_leaves_nothing(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka, 1)
    options = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"columns-{name}"}
    with KafkaProducer(options) as producer:
        producer.init_transactions(WAIT_S)
        with producer.transaction():
            delivery = producer.send_batch(name, [b"a"] * 500)
        assert delivery.acknowledged == 500
        producer.begin_transaction()
        with pytest.raises(RecordTooLargeError):
            producer.send_batch(name, [b"lost", bytes(2 << 20)])
        with pytest.raises(KafkaError):
            producer.commit_transaction(WAIT_S)
        producer.abort_transaction(WAIT_S)
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == [b"a"] * 500
