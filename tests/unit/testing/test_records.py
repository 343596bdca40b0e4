"""``broker.records``: what readers of committed records would see of the embedded broker's log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forebay import KafkaProducer
from forebay.errors import IllegalStateError, TimeoutError, UnknownTopicOrPartitionError
from forebay.testing import EmbeddedBroker
from tests.support.pace import HANG_S


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def test_every_partition_in_order(broker: EmbeddedBroker) -> None:
    broker.create_topic("plain", 3)
    assert broker.records("plain") == []
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type="gzip") as producer:
        for number in range(300):
            producer.send("plain", b"%d" % number, b"k", [("h", None)], number % 3, 1000 + number)
    found = broker.records("plain")
    assert [(one.partition, one.offset) for one in found] == [(p, o) for p in range(3) for o in range(100)]
    assert found[1] == ("plain", 0, 1, 1003, b"k", b"3", (("h", None),))
    assert broker.records("plain", 2) == found[200:]


def test_what_is_aborted_or_open_is_left_out(broker: EmbeddedBroker) -> None:
    broker.create_topic("transactions", 1)
    options = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}
    with KafkaProducer(options) as producer:
        producer.init_transactions(HANG_S)
        for number in range(4):
            producer.begin_transaction()
            producer.send("transactions", b"%d" % number).result(HANG_S)
            if number % 2:
                producer.abort_transaction(HANG_S)
            else:
                producer.commit_transaction(HANG_S)
        producer.begin_transaction()
        producer.send("transactions", b"open").result(HANG_S)
        assert [one.value for one in broker.records("transactions")] == [b"0", b"2"]
        everything = broker.records("transactions", committed=False)
        assert [one.value for one in everything] == [b"0", b"1", b"2", b"3", b"open"]


def test_what_is_not_there(broker: EmbeddedBroker) -> None:
    assert broker.records("asked-for") == []  # the mock makes it
    with pytest.raises((UnknownTopicOrPartitionError, TimeoutError)):
        broker.records("plain", 99, timeout=0.5)


def test_a_broker_that_is_closed_is_not_asked() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        assert broker.records("t") == []
    with pytest.raises(IllegalStateError, match="records: this embedded broker is closed"):
        broker.records("t", timeout=1)
