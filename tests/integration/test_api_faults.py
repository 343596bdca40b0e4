"""A connection that fails around one request of each API, before a real broker: everything written, nothing twice.

For each API the proxy loses the request, loses or tears its answer after the broker did the work, delays it past
``request.timeout.ms``, or refuses connections for a while.  What was written is read back by librdkafka.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import KafkaTimeoutError
from tests.integration.workload import WAIT_S, metric
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.pace import until, within, within_ms
from tests.support.proxy import LOST, TORN, UNHEARD, Fault, KafkaProxy, away, late
from tests.support.readback import read_all
from tests.support.refusal import INIT_PRODUCER_ID
from tests.support.rewrite import API_VERSIONS, METADATA, PRODUCE
from tools.kafka import RealKafka

REQUEST_TIMEOUT_MS = within_ms(250)
QUICK: dict[str, Any] = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "request.timeout.ms": REQUEST_TIMEOUT_MS,
    "delivery.timeout.ms": within_ms(20_000),
    "max.block.ms": within_ms(20_000),
    "linger.ms": 0,
}
#: By name, with the seconds that each must cost at least.
FAULTS: dict[str, tuple[Fault, float]] = {
    "lost before": (LOST, 0),
    "lost after": (UNHEARD, 0),
    "torn": (TORN, 0),
    "late": (late(REQUEST_TIMEOUT_MS * 2), REQUEST_TIMEOUT_MS / 1000),
    "refused": (away(200), 0.2),
}
APIS = {"ApiVersions": API_VERSIONS, "Metadata": METADATA, "InitProducerId": INIT_PRODUCER_ID, "Produce": PRODUCE}


def producer(proxy: KafkaProxy, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, **QUICK, **options})


def delivered(proxy: KafkaProxy, name: str, prefix: str, **options: Any) -> tuple[list[bytes], float]:
    """Three records by a producer of their own, one after the other; their values, and the seconds it took."""
    values = [b"%s %d" % (prefix.encode(), number) for number in range(3)]
    begun = time.monotonic()
    with producer(proxy, **options) as ours:
        for value in values:
            ours.send(name, value).result(WAIT_S)
    return values, time.monotonic() - begun


@pytest.mark.parametrize("api", APIS)
def test_a_failed_connection_costs_no_record_and_doubles_none(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, api: str
) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    expected: list[bytes] = []
    for fault, (what, least) in FAULTS.items():
        # Twice: what is done about the first must not be lost by the second.
        proxy.plan(APIS[api], what, what)
        values, took = delivered(proxy, name, fault)
        expected += values
        assert proxy.planned() == 0, fault
        assert 2 * least <= took < within(10), fault
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == expected


@pytest.mark.parametrize("fault", FAULTS)
def test_batches_in_flight_keep_their_order(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, fault: str
) -> None:
    """Five requests on the way when the connection fails: all are sent again, in order, and written once."""
    name, proxy = topic(kafka), proxied(kafka)
    expected = [b"%d" % number for number in range(60)]
    with producer(proxy, **{"batch.size": 80}) as ours:
        ours.send(name, expected[0]).result(WAIT_S)
        proxy.plan(PRODUCE, FAULTS[fault][0])
        futures = [ours.send(name, value) for value in expected[1:]]
        assert [future.result(WAIT_S).offset for future in futures] == list(range(1, 60))
    assert proxy.planned() == 0
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == expected


def test_without_idempotence_what_was_written_unheard_is_written_again(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    twice = {"lost after", "torn", "late"}
    expected: list[bytes] = []
    with producer(proxy, **{"enable.idempotence": False}) as ours:
        for fault, (what, _) in FAULTS.items():
            proxy.plan(PRODUCE, what)
            ours.send(name, fault.encode()).result(WAIT_S)
            expected += [fault.encode()] * (1 + (fault in twice))
    assert proxy.planned() == 0
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == expected


def test_with_acks_1_as_with_all(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    with producer(proxy, acks=1) as ours:
        proxy.plan(PRODUCE, LOST, UNHEARD)
        assert ours.send(name, b"v").result(WAIT_S).offset == 1
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == [b"v", b"v"]


def test_acks_0_loses_what_the_connection_loses_and_goes_on(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    with producer(proxy, acks=0) as ours:
        proxy.plan(PRODUCE, LOST)
        lost = ours.send(name, b"lost").result(WAIT_S)
        assert not lost.has_offset
        # The end of the connection is news that may come after the next record left.
        until(lambda: metric(ours, "connection-close-total") > 0, "the end of the connection")
        assert not ours.send(name, b"kept").result(WAIT_S).has_offset
        ours.flush(WAIT_S)
        until(lambda: read_all(kafka.bootstrap_servers, name), "the record")
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == [b"kept"]


def test_records_expire_while_every_answer_is_late(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    """Their fate is unknown to the producer, and what it sends later is neither lost nor doubled."""
    name, proxy = topic(kafka), proxied(kafka)
    delivery_ms = within_ms(600)
    with producer(proxy, **{"delivery.timeout.ms": delivery_ms}) as ours:
        ours.send(name, b"before").result(WAIT_S)
        proxy.plan(PRODUCE, *[late(REQUEST_TIMEOUT_MS * 2)] * 3)
        error = ours.send(name, b"in doubt").exception(WAIT_S)
        assert isinstance(error, KafkaTimeoutError)
        found = re.match(
            rf"Expiring 1 record\(s\) for {name}-0:(\d+) ms has passed since batch creation", error.message
        )
        assert found and delivery_ms <= int(found[1]) < delivery_ms + within_ms(100)
        proxy.clear_plans()
        ours.send(name, b"after").result(WAIT_S)
    values = [record.value for record in read_all(kafka.bootstrap_servers, name)]
    assert values == [b"before", b"in doubt", b"after"]
