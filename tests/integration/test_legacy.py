"""Record formats v0 and v1, judged by the last Kafka that takes them, behind a proxy that hides newer versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import (
    IllegalArgumentError,
    KafkaError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)
from tests.integration.workload import BASE, WAIT_S, Ledger, as_stored
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.proxy import KafkaProxy
from tests.support.readback import ReadRecord, read_all
from tests.support.rewrite import PRODUCE, limit_versions
from tools.kafka import RealKafka

INIT_PRODUCER_ID = 22
Limited = Callable[..., KafkaProxy]


@pytest.fixture
def limited(legacy_kafka: RealKafka, proxied: ProxyFactory) -> Limited:
    """``limited(1)``: a proxy that lets Produce through up to that version."""

    def start(newest: int, *, hidden: tuple[int, ...] = ()) -> KafkaProxy:
        limits: dict[int, tuple[int, int] | None] = {PRODUCE: (0, newest), **dict.fromkeys(hidden)}
        return proxied(legacy_kafka, hooks=[limit_versions(limits)])

    return start


def producer(proxy: KafkaProxy, **settings: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, "enable.idempotence": False, **settings})


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("newest", [0, 1, 2])
def test_old_formats_are_read_back(
    legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited, newest: int, codec: str
) -> None:
    name = topic(legacy_kafka, 2)
    proxy = limited(newest)
    with producer(proxy, **{"compression.type": codec}) as ours:
        ledger = Ledger(ours)
        for key in (None, b"", b"key"):
            for value in (None, b"", b"v", b"value " * 5000):
                for partition in (0, 1):
                    ledger.send(name, value, key, partition=partition)
        for number in range(300):
            ledger.send(name, b"value %d" % number, b"%d" % number)
        acknowledged = ledger.acknowledged()
    expected: list[ReadRecord] = []
    for sent, metadata in acknowledged:
        stored = as_stored(sent, (name, metadata.partition, metadata.offset))
        # Format v0 has no place for a timestamp.
        expected.append(stored if newest == 2 else stored._replace(timestamp=-1))
    assert read_all(legacy_kafka.bootstrap_servers, name) == sorted(expected)
    assert {request.version for request in proxy.requests if request.api_key == PRODUCE} == {newest}


@pytest.mark.parametrize("acks", [0, 1])
def test_old_formats_with_fewer_acknowledgements(
    legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited, acks: int
) -> None:
    name = topic(legacy_kafka)
    with producer(limited(2), acks=acks) as ours:
        futures = [ours.send(name, b"%d" % number, timestamp=BASE) for number in range(10)]
        offsets = [future.result(WAIT_S).offset for future in futures]
    assert offsets == ([-1] * 10 if acks == 0 else list(range(10)))
    # The answer to this comes after what was written before it.
    with producer(limited(2), acks=1) as ours:
        ours.send(name, b"last").result(WAIT_S)
    stored = [record.value for record in read_all(legacy_kafka.bootstrap_servers, name)]
    assert sorted(value for value in stored if value) == sorted([*(b"%d" % n for n in range(10)), b"last"])


def failed(ours: KafkaProducer, name: str, **fields: Any) -> KafkaError:
    error = ours.send(name, b"v", **fields).exception(WAIT_S)
    assert error is not None
    return error


@pytest.mark.parametrize("newest", [1, 2])
def test_headers_are_refused(legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited, newest: int) -> None:
    name = topic(legacy_kafka)
    with producer(limited(newest)) as ours:
        error = failed(ours, name, headers=[("h", b"1")])
        assert isinstance(error, IllegalArgumentError)
        assert f"Magic v{newest - 1} does not support record headers" in error.message
        assert ours.send(name, b"without").result(WAIT_S).offset == 0


def test_refused_headers_do_not_take_the_other_partitions_along(
    legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited
) -> None:
    name = topic(legacy_kafka, 2)
    with producer(limited(2), **{"linger.ms": 100}) as ours:
        ours.partitions_for(name)
        bad = ours.send(name, b"with", headers=[("h", b"1")], partition=0)
        fine = ours.send(name, b"without", partition=1)
        assert isinstance(bad.exception(WAIT_S), IllegalArgumentError)
        assert fine.result(WAIT_S).offset == 0


@pytest.mark.parametrize("newest", [0, 2])
def test_idempotence_needs_the_new_format(
    legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited, newest: int
) -> None:
    name = topic(legacy_kafka)
    with producer(limited(newest), **{"enable.idempotence": True}) as ours:
        error = failed(ours, name)
    assert isinstance(error, UnsupportedVersionError)
    assert f"Produce up to version {newest}" in error.message
    assert "enable.idempotence=false" in error.message
    assert read_all(legacy_kafka.bootstrap_servers, name) == []


def test_a_broker_without_producer_ids_is_named(legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited) -> None:
    name = topic(legacy_kafka)
    with producer(limited(2, hidden=(INIT_PRODUCER_ID,)), **{"enable.idempotence": True}) as ours:
        error = failed(ours, name)
    assert isinstance(error, UnsupportedVersionError)
    assert "too old for idempotence" in error.message and "enable.idempotence=false" in error.message


@pytest.mark.parametrize("newest", [1, 2, 3, 6])
def test_zstd_needs_version_7(legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited, newest: int) -> None:
    name = topic(legacy_kafka)
    with producer(limited(newest), **{"compression.type": "zstd"}) as ours:
        error = failed(ours, name)
    assert isinstance(error, UnsupportedCompressionTypeError)
    assert f"Produce up to version {newest}" in error.message and "needs version 7" in error.message
    assert read_all(legacy_kafka.bootstrap_servers, name) == []


@pytest.mark.parametrize("newest", [3, 4, 5, 6, 7, 8, 9, 10, 11])
def test_every_version_of_the_new_format(
    legacy_kafka: RealKafka, topic: TopicFactory, limited: Limited, newest: int
) -> None:
    name = topic(legacy_kafka, 2)
    proxy = limited(newest)
    with producer(proxy, **{"enable.idempotence": True, "compression.type": "lz4"}) as ours:
        ledger = Ledger(ours)
        for number in range(100):
            ledger.send(name, b"%d" % number, b"%d" % number, (("h", None),))
        ledger.check(legacy_kafka)
    assert {request.version for request in proxy.requests if request.api_key == PRODUCE} == {newest}
