"""Brokers that fail, move, stall and come back under load: nothing acknowledged is missing, order is kept.

The embedded broker checks no sequences, so whether idempotence keeps records from being written twice is judged
by the real one alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import KafkaTimeoutError, RecordTooLargeError
from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S, Ledger, Load, good, judge, metric
from tests.support.fixtures import Broker, ProxyFactory, TopicFactory
from tests.support.pace import until, within, within_ms
from tests.support.proxy import KafkaProxy
from tests.support.rewrite import PRODUCE
from tools.kafka import RealKafka

QUICK: dict[str, Any] = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "request.timeout.ms": within_ms(400),
    "delivery.timeout.ms": within_ms(20_000),
    "linger.ms": 1,
}
DELIVERY_S = QUICK["delivery.timeout.ms"] / 1000 + 1
PLAIN = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1}
BOTH = pytest.mark.parametrize("settings", [{}, PLAIN], ids=["idempotent", "plain"])


def producer(bootstrap_servers: str, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": bootstrap_servers, **QUICK, **options})


def closed(ours: KafkaProducer, count: int = 1) -> Callable[[], bool]:
    """Whether so many connections were lost, or could not be made, since now."""
    before = metric(ours, "connection-close-total")
    return lambda: metric(ours, "connection-close-total") >= before + count


# -- nodes of the embedded broker -----------------------------------------------------------------------------


@BOTH
def test_a_node_goes_down_and_comes_up_again(settings: dict[str, Any]) -> None:
    with (
        EmbeddedBroker(nodes=3, topics={"t": 6}) as broker,
        producer(broker.bootstrap_servers, **settings) as ours,
    ):
        with Load(ours, "t", 6) as load:
            load.until_more()
            for node in broker.nodes:
                broker.node_down(node)
                load.until_more()
                broker.node_up(node)
                load.until_more()
        verdict = judge(load.ledger, broker, timeout_s=DELIVERY_S)
    assert verdict.errors == []
    assert verdict.acknowledged == len(load.ledger.sent)


@BOTH
def test_all_nodes_are_away_for_a_while(settings: dict[str, Any]) -> None:
    with (
        EmbeddedBroker(nodes=2, topics={"t": 4}) as broker,
        producer(broker.bootstrap_servers, **settings) as ours,
    ):
        with Load(ours, "t", 4) as load:
            for _ in range(3):
                load.until_more()
                attempts = closed(ours, 4)
                broker.node_down()
                until(attempts, "attempts at connections")
                broker.node_up()
                load.until_more()
        verdict = judge(load.ledger, broker, timeout_s=DELIVERY_S)
    assert verdict.errors == []


@BOTH
def test_leaders_move_under_load(settings: dict[str, Any]) -> None:
    with (
        EmbeddedBroker(nodes=3, topics={"t": 3}) as broker,
        producer(broker.bootstrap_servers, **settings) as ours,
    ):
        with Load(ours, "t", 3) as load:
            for turn in range(12):
                load.until_more(20)
                broker.set_leader("t", turn % 3, (turn // 3 + turn) % 3 + 1)
            load.until_more()
        verdict = judge(load.ledger, broker, timeout_s=DELIVERY_S)
        assert metric(ours, "record-retry-total") > 0
    assert verdict.errors == []
    assert verdict.doubled == 0


@BOTH
def test_answers_later_than_the_request_timeout(
    embedded: EmbeddedBroker, topic: TopicFactory, settings: dict[str, Any]
) -> None:
    name = topic(embedded, 2)
    with producer(embedded.bootstrap_servers, **settings) as ours:
        with Load(ours, name, 2) as load:
            load.until_more()
            embedded.set_rtt(within_ms(1000))
            until(lambda: metric(ours, "record-retry-total") > 0, "records are sent again")
            embedded.set_rtt(0)
            load.until_more()
        verdict = judge(load.ledger, embedded, timeout_s=DELIVERY_S)
        # The whole connection is given up: what follows on it would answer for something else.
        assert metric(ours, "connection-close-total") >= 1
    assert verdict.errors == []


def test_one_dead_node_of_three_does_not_stop_the_others() -> None:
    with (
        EmbeddedBroker(nodes=3, topics={"t": 3}) as broker,
        producer(broker.bootstrap_servers, **{"delivery.timeout.ms": within_ms(1500), "linger.ms": 0}) as ours,
    ):
        dead = {each.partition: good_leader(each) for each in ours.partitions_for("t")}
        for partition in range(3):
            ours.send("t", b"first", partition=partition).result(WAIT_S)
        broker.node_down(dead[1])
        begun = time.monotonic()
        doomed = [ours.send("t", b"doomed", partition=1) for _ in range(20)]
        for number in range(200):
            partition = number % 2 * 2
            future = ours.send("t", b"%d" % number, partition=partition)
            assert future.result(WAIT_S).partition == partition
        assert not any(future.done() for future in doomed)
        errors = [future.exception(WAIT_S) for future in doomed]
        assert time.monotonic() - begun < within(1.5 + 1)
    for error in errors:
        assert isinstance(error, KafkaTimeoutError)
        assert error.message.startswith("Expiring ") and " record(s) for t-1:" in error.message


def good_leader(info: Any) -> int:
    assert info.leader is not None
    return int(info.leader.id)


# -- records that run out of time -----------------------------------------------------------------------------

SHORT = {"request.timeout.ms": within_ms(200), "delivery.timeout.ms": within_ms(500)}


def expiry(future: Any, name: str, count: int = 1) -> KafkaTimeoutError:
    begun = time.monotonic()
    error = future.exception(WAIT_S)
    assert time.monotonic() - begun < within(0.5 + 1)
    assert isinstance(error, KafkaTimeoutError)
    age = error.context["age_ms"]
    assert error.message == (f"Expiring {count} record(s) for {name}-0:{age} ms has passed since batch creation")
    assert within_ms(500) <= int(str(age)) < within_ms(1500)
    return error


def test_expiry_while_no_node_can_be_reached(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    with producer(embedded.bootstrap_servers, **SHORT) as ours:
        ours.send(name, b"1").result(WAIT_S)
        embedded.node_down()
        until(lambda: metric(ours, "connection-count") == 0, "the connection is lost")
        error = expiry(ours.send(name, b"2"), name)
        # Nobody is left who could say who leads, and that is why.
        assert (error.context["phase"], error.context["attempts"]) == ("no leader known", 0)
        assert str(error.context["last_error"]).startswith("DisconnectError: ")
        assert "Connection refused" in str(error.context["last_error"])
        embedded.node_up()
        assert ours.send(name, b"3").result(WAIT_S).offset == 1


def test_expiry_in_flight(embedded: EmbeddedBroker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(embedded)
    proxy = proxied(embedded)
    with producer(proxy.bootstrap_servers, **{**SHORT, "request.timeout.ms": within_ms(500) - 1}) as ours:
        ours.send(name, b"1").result(WAIT_S)
        proxy.stall()
        error = expiry(ours.send(name, b"2"), name)
        assert error.context["attempts"] in (1, 2)
        assert error.context["node"] == 1
        proxy.resume()
        assert ours.send(name, b"3").result(WAIT_S).offset > 0


def test_expiry_between_two_tries(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.push_request_errors(PRODUCE, *[19] * 1000)
    with producer(embedded.bootstrap_servers, **SHORT, **{"linger.ms": 0}) as ours:
        error = expiry(ours.send(name, b"1"), name)
        assert error.context["phase"] == "backing off"
        assert int(str(error.context["attempts"])) > 3
        assert error.context["node"] == 1
        assert str(error.context["last_error"]).startswith("NotEnoughReplicasError: ")
        assert type(error.__cause__).__name__ == "NotEnoughReplicasError"
        embedded.clear_request_errors(PRODUCE)
        assert ours.send(name, b"2").result(WAIT_S).offset == 0


def test_every_record_of_a_long_outage_ends_in_time(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    with producer(embedded.bootstrap_servers, **SHORT) as ours:
        ledger = Ledger(ours)
        ledger.send(name, b"first").result(WAIT_S)
        embedded.node_down()
        for number in range(3000):
            ledger.send(name, b"%d" % number)
        ended = [error for _, error in ledger.outcomes(within(0.5 + 1))][1:]
        assert {type(error) for error in ended} == {KafkaTimeoutError}
        assert metric(ours, "record-error-total") == 3000
        until(lambda: metric(ours, "buffer-available-bytes") == 32 << 20, "all memory came back")
        embedded.node_up()
        assert ours.send(name, b"after").result(WAIT_S).has_offset


# -- the real broker ------------------------------------------------------------------------------------------


def cut_before(proxy: KafkaProxy, ours: KafkaProducer) -> None:
    """Requests do not reach the broker, then the connection goes."""
    proxy.stall(answers=False, requests=True)
    seen = len(proxy.requests)
    until(lambda: len(proxy.requests) > seen, "a request is held")
    proxy.cut()
    proxy.resume()


def cut_after(proxy: KafkaProxy, ours: KafkaProducer) -> None:
    """The broker does the work and nobody hears of it."""
    lost = closed(ours)
    proxy.lose_answers(PRODUCE)
    until(lost, "the connection is lost")


def stall(proxy: KafkaProxy, ours: KafkaProducer) -> None:
    """Answers are held until the client gives the connection up, and are lost then."""
    given_up = closed(ours)
    proxy.stall()
    until(given_up, "the connection is given up")
    proxy.resume()


def delay(proxy: KafkaProxy, ours: KafkaProducer) -> None:
    """Each answer comes later than the request timeout."""
    given_up = closed(ours)
    proxy.delay_ms = within_ms(600)
    until(given_up, "the connection is given up")
    proxy.delay_ms = 0


def refuse(proxy: KafkaProxy, ours: KafkaProducer) -> None:
    """The broker is gone and comes back on the same port."""
    lost = closed(ours)
    proxy.refuse()
    until(lost, "the connection is lost")
    proxy.accept()


FAULTS = (cut_before, cut_after, stall, delay, refuse)


@pytest.mark.parametrize("fault", FAULTS)
@BOTH
def test_a_connection_that_fails_under_load(
    kafka: RealKafka,
    topic: TopicFactory,
    proxied: ProxyFactory,
    fault: Callable[[KafkaProxy, KafkaProducer], None],
    settings: dict[str, Any],
) -> None:
    name = topic(kafka, 3)
    proxy = proxied(kafka)
    with producer(proxy.bootstrap_servers, **settings) as ours:
        with Load(ours, name, 3, senders=2) as load:
            for _ in range(3):
                load.until_more()
                fault(proxy, ours)
            load.until_more()
        verdict = judge(load.ledger, kafka, timeout_s=DELIVERY_S)
        assert metric(ours, "connection-close-total") >= 1
    assert verdict.errors == []
    if not settings:
        assert verdict.doubled == 0


def test_many_cuts_in_a_row_double_nothing(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(kafka, 3)
    proxy = proxied(kafka)
    with producer(proxy.bootstrap_servers, **{"linger.ms": 0, "batch.size": 100}) as ours:
        with Load(ours, name, 3, senders=2, ahead=500) as load:
            for _ in range(40):
                load.until_more(5)
                proxy.cut()
            load.until_more()
        verdict = judge(load.ledger, kafka, timeout_s=DELIVERY_S)
        assert metric(ours, "connection-creation-total") >= 40
    assert (verdict.errors, verdict.doubled) == ([], 0)


@BOTH
def test_a_frozen_broker_goes_on(kafka: RealKafka, topic: TopicFactory, settings: dict[str, Any]) -> None:
    name = topic(kafka, 3)
    with producer(kafka.bootstrap_servers, **settings) as ours:
        with Load(ours, name, 3) as load:
            load.until_more()
            kafka.freeze_node(0)
            try:
                until(lambda: metric(ours, "record-retry-total") > 0, "a request is given up")
            finally:
                kafka.thaw_node(0)
            load.until_more()
        verdict = judge(load.ledger, kafka, timeout_s=DELIVERY_S)
        assert metric(ours, "record-retry-total") > 0
    assert verdict.errors == []
    if not settings:
        assert verdict.doubled == 0


def test_refused_records_leave_no_gap_between_the_others(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka, 2, config={"max.message.bytes": "2000"})
    with producer(kafka.bootstrap_servers, **{"linger.ms": 0, "batch.size": 1000}) as ours:
        ledger = Ledger(ours)
        for number in range(300):
            ledger.send(name, b"%d" % number * (3000 if number % 20 == 7 else 1), partition=number % 2)
        outcomes = ledger.outcomes()
        refused = [number for number, (_, end) in enumerate(outcomes) if isinstance(end, RecordTooLargeError)]
        assert refused == list(range(7, 300, 20))
        assert all(good(end).has_offset for number, (_, end) in enumerate(outcomes) if number not in refused)
        verdict = judge(ledger, kafka, timeout_s=DELIVERY_S)
    assert verdict.doubled == 0


def test_a_broker_that_forgot_its_topic_gets_it_again(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 2)
    with producer(any_broker.bootstrap_servers) as ours:
        for partition in (0, 1):
            assert ours.send(name, b"before", partition=partition).result(WAIT_S).offset == 0
        delete_topic(any_broker, name)
        any_broker.create_topic(name, 2)
        for partition in (0, 1, 0, 1):
            assert ours.send(name, b"after", partition=partition).result(WAIT_S).has_offset


def delete_topic(broker: Broker, name: str) -> None:
    if isinstance(broker, EmbeddedBroker):
        broker.delete_topic(name)
        return
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([name])[name].result(WAIT_S)
    until(lambda: name not in admin.list_topics(timeout=WAIT_S).topics, f"{name} is gone")


# -- distance -------------------------------------------------------------------------------------------------


def test_requests_that_wait_follow_one_another_without_an_answer() -> None:
    """What is ready at once goes out up to max.in.flight.requests.per.connection, not one for each round trip."""
    rtt_ms, in_flight, count = within_ms(500), 5, 8
    far: dict[str, Any] = {
        "request.timeout.ms": within_ms(10_000),
        "linger.ms": 9_000,  # all batches wait for flush(), which wakes the sender once
        "max.in.flight.requests.per.connection": in_flight,
        "max.request.size": 1500,  # one batch a request
    }
    with EmbeddedBroker(topics={"t": count}) as broker, producer(broker.bootstrap_servers, **far) as ours:
        ours.send("t", b"first", partition=0)
        ours.flush()
        broker.set_rtt(rtt_ms)
        broker.start_request_log()
        for partition in range(count):
            ours.send("t", b"x" * 1000, partition=partition)
        ours.flush()
        arrived = [one.timestamp_us / 1000 for one in broker.requests([PRODUCE])]
    assert len(arrived) == count
    assert arrived[in_flight - 1] - arrived[0] < rtt_ms * 0.8
    assert arrived[in_flight] - arrived[0] >= rtt_ms * 0.8
