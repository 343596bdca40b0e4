"""kafka-python's KafkaProducer: its start, metrics, ends, transactions, and what is raised."""

from __future__ import annotations

import time
from typing import Any

import pytest

from forebay.compat.kafka import KafkaProducer, errors
from tests.support.pace import within
from tests.unit.compat.kafka.test_path import made, ours

NOBODY = "127.0.0.1:1"


def test_the_options_can_be_read() -> None:
    world = made()
    config = ours(world, acks="all", linger_ms=3).config
    assert (config["acks"], config["linger_ms"], config["batch_size"]) == (-1, 3, 16_384)
    assert config["client_id"] == world.producer.client_id
    named = f"<KafkaProducer client_id={config['client_id']} transactional_id=None>"
    assert str(ours(world)) == repr(ours(world)) == named


def test_partitions_and_the_cluster() -> None:
    producer = ours(made(topics={"test": 3}))
    assert producer.partitions_for("test") == {0, 1, 2} and not producer.bootstrap_connected()
    with pytest.raises(errors.KafkaTimeoutError, match="not present in metadata"):
        ours(made(max_block_ms=0)).partitions_for("other")
    assert ours(made(known=False)).bootstrap_connected()


def test_metrics_have_the_originals_shape() -> None:
    world = made()
    producer = ours(world)
    producer.send("test", b"v", partition=0)
    world.settle()
    metrics = producer.metrics()
    assert metrics is not None and metrics["producer-topic-metrics.test"]["record-send-total"] == 1
    assert metrics["producer-metrics"]["record-send-total"] == 1
    assert "producer-node-metrics.node-0" in metrics
    assert ours(world, metrics_enabled=False).metrics() is None
    with pytest.raises(errors.KafkaConfigurationError, match=r"use producer\.native\.metrics"):
        producer.metrics(raw=True)


class Closing:
    count = 0

    def serialize(self, topic: str, headers: Any, data: Any) -> Any:
        return data

    def close(self) -> None:
        self.count += 1


def test_close_sends_and_ends() -> None:
    serializer = Closing()
    with KafkaProducer(bootstrap_servers=NOBODY, api_version=(2, 5), key_serializer=serializer) as producer:
        with pytest.raises(ValueError, match="cannot be negative"):
            producer.close(timeout=-1)
        assert producer._open
    assert not producer._open and serializer.count == 1 and producer.bootstrap_connected()
    producer.close()
    assert serializer.count == 1
    with pytest.raises(errors.IllegalStateError, match="already closed"):
        producer.send("test", b"v")


def test_flush_and_its_limit() -> None:
    world = made()
    producer = ours(world)
    producer.flush()
    producer.send("test", b"v", partition=0)
    with pytest.raises(errors.KafkaTimeoutError, match=r"1 record\(s\) have no outcome"):
        producer.flush(timeout=0)


def test_no_broker_at_the_start() -> None:
    begun = time.monotonic()
    with pytest.raises(errors.NoBrokersAvailable, match="has answered within 50 ms") as refused:
        KafkaProducer(bootstrap_servers=NOBODY, bootstrap_timeout_ms=50)
    assert isinstance(refused.value, errors.KafkaTimeoutError) and time.monotonic() - begun < within(20)
    with pytest.raises(errors.NoBrokersAvailable, match="within 40 ms"):
        KafkaProducer(bootstrap_servers=NOBODY, api_version_auto_timeout_ms=40)


def test_a_version_that_is_given_asks_nobody() -> None:
    producer = KafkaProducer(bootstrap_servers=NOBODY, api_version=(0, 10, 1))
    assert producer.config["api_version"] == (0, 10, 1) and producer.bootstrap_connected()
    assert producer.max_usable_produce_magic((2, 5)) == 2
    producer.close()


@pytest.mark.parametrize("call", ["init_transactions", "begin_transaction", "commit_transaction", "abort_transaction"])
def test_transactions_need_an_id(call: str) -> None:
    with pytest.raises(errors.IllegalStateError, match="transactional"):
        getattr(ours(made()), call)()


def test_offsets_need_a_transaction() -> None:
    with pytest.raises(errors.IllegalStateError, match="transactional"):
        ours(made()).send_offsets_to_transaction({}, "group")


def test_options_that_cannot_be_leave_nothing_open() -> None:
    with pytest.raises(ValueError, match="Unrecognized configs: nonsense"):
        KafkaProducer(nonsense=1)


def test_what_stays_the_originals() -> None:
    with pytest.raises(ImportError, match="from kafka import KafkaConsumer"):
        from forebay.compat.kafka import KafkaConsumer  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from forebay.compat.kafka import nonsense  # type: ignore[attr-defined]  # noqa: F401


def test_a_closed_producer_tells_the_partitions_that_it_knew() -> None:
    producer = ours(made())
    producer._shut()
    producer.native._set_state(1)
    assert producer.partitions_for("test") == {0, 1} and not producer.bootstrap_connected()
    with pytest.raises(errors.IllegalStateError):
        producer.partitions_for("other")
