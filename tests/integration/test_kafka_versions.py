"""The oldest Kafka that the tests can run; test_producer.py and its neighbours run the newest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forebay import AdminClient, KafkaProducer, TopicPartition
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory, real_kafka
from tests.support.readback import read_all
from tools.kafka import OLDEST_KAFKA_VERSION, RealKafka, dump_log

pytestmark = pytest.mark.rest("an old Kafka")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def oldest() -> Iterator[RealKafka]:
    with real_kafka(version=OLDEST_KAFKA_VERSION) as broker:
        yield broker


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_back_once_and_in_order(oldest: RealKafka, topic: TopicFactory, codec: str) -> None:
    name = topic(oldest)
    values = [b"value %d" % number * 10 for number in range(500)]
    with KafkaProducer({"bootstrap.servers": oldest.bootstrap_servers, "compression.type": codec}) as producer:
        futures = [producer.send(name, value, b"key", headers=[("h", b"1")]) for value in values]
        assert [future.result(WAIT_S).offset for future in futures] == list(range(500))
        assert producer.producer_id >= 0, "it is idempotent"
    found = read_all(oldest.bootstrap_servers, name)
    assert [record.value for record in found] == values
    batches = dump_log(oldest, name, 0)
    assert {batch.codec.lower() for batch in batches} == {codec}
    assert all(batch.valid and batch.producer_id >= 0 for batch in batches)


def test_a_table_and_the_tail_of_its_log(oldest: RealKafka, topic: TopicFactory) -> None:
    name = topic(oldest)
    with KafkaProducer(bootstrap_servers=oldest.bootstrap_servers) as producer:
        delivery = producer.send_batch(name, [b"row %d" % number for number in range(100)])
        delivery.result(WAIT_S)
        assert delivery.acknowledged == 100
    with AdminClient(bootstrap_servers=oldest.bootstrap_servers) as admin:
        assert [record.value for record in admin.read_tail(name, 0, max_records=2)] == [b"row 98", b"row 99"]


def test_what_is_aborted_is_not_read_and_the_version_is_the_first(oldest: RealKafka, topic: TopicFactory) -> None:
    name = topic(oldest)
    with KafkaProducer(bootstrap_servers=oldest.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions(WAIT_S)
        assert producer.transaction_version < 2
        producer.begin_transaction()
        producer.send(name, b"aborted").result(WAIT_S)
        producer.abort_transaction(WAIT_S)
        with producer.transaction():
            producer.send(name, b"committed")
            producer.send_offsets_to_transaction({TopicPartition(name, 0): 1}, f"group-of-{name}")
    committed = {"isolation.level": "read_committed"}
    found = read_all(oldest.bootstrap_servers, name, properties=committed)
    assert [record.value for record in found] == [b"committed"]
