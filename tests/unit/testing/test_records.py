"""``broker.records``: what readers of committed records would see of the embedded broker's log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from forebay import KafkaProducer
from forebay.errors import IllegalStateError, KafkaTimeoutError, TopicAuthorizationError, UnknownTopicOrPartitionError
from forebay.testing import DISCONNECT, EmbeddedBroker
from forebay.testing.faults import api_key
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
            producer.send(
                "plain", b"%d" % number, b"k", headers=[("h", None)], partition=number % 3, timestamp=1000 + number
            )
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
    with pytest.raises(KafkaTimeoutError) as refused:
        broker.records("plain", 99, timeout=0.5)
    assert isinstance(refused.value.__cause__, UnknownTopicOrPartitionError)
    with (
        broker.faults.topic_error("plain", TopicAuthorizationError),
        pytest.raises(TopicAuthorizationError),
    ):
        broker.records("plain")
    with broker.faults.topic_error("plain", UnknownTopicOrPartitionError), pytest.raises(KafkaTimeoutError) as refused:
        broker.records("plain", timeout=0.5)
    assert isinstance(refused.value.__cause__, UnknownTopicOrPartitionError)


def test_a_broker_that_is_closed_is_not_asked() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        assert broker.records("t") == []
    with pytest.raises(IllegalStateError, match="records: this embedded broker is closed"):
        broker.records("t", timeout=1)


def down(node: int | None) -> Callable[[EmbeddedBroker], None]:
    def cut(broker: EmbeddedBroker) -> None:
        with broker.faults.down(node):
            pass

    return cut


def down_while_reading(broker: EmbeddedBroker) -> None:
    with broker.faults.down(), pytest.raises(KafkaTimeoutError):
        broker.records("kept", timeout=0.2)


def lost_at(api: str, before: int) -> Callable[[EmbeddedBroker], None]:
    """At a request of this API, after ``before`` others of it."""
    return lambda broker: broker.push_request_errors(api_key(api), *[0] * before, DISCONNECT)


FAULTS: dict[str, Callable[[EmbeddedBroker], None]] = {
    "every node was down": down(None),
    "node 1 was down": down(1),
    "node 2 was down": down(2),
    "every node was down, and read from meanwhile": down_while_reading,
    **{
        f"{api} {at} loses its connection": lost_at(api, at)
        for api in ("Metadata", "ListOffsets", "Fetch")
        for at in (0, 1, 2)
    },
}
CALLS: dict[str, Callable[[EmbeddedBroker], object]] = {
    "records": lambda broker: len(broker.records("kept")),
    "of one partition": lambda broker: len(broker.records("kept", 0) + broker.records("kept", 1)),
    "not committed": lambda broker: len(broker.records("kept", committed=False)),
}


@pytest.fixture(scope="module")
def two() -> Iterator[EmbeddedBroker]:
    """Two nodes, each of which leads one partition with one record."""
    with EmbeddedBroker(nodes=2, topics={"kept": 2}) as broker:
        for partition in (0, 1):
            broker.set_leader("kept", partition, partition + 1)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for partition in (0, 1):
                producer.send("kept", b"v", partition=partition).result(HANG_S)
        yield broker


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", CALLS)
def test_each_call_connects_again(two: EmbeddedBroker, call: str, fault: str) -> None:
    assert CALLS[call](two) == 2
    FAULTS[fault](two)
    assert CALLS[call](two) == 2
    assert CALLS[call](two) == 2
