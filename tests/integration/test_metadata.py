"""How a producer finds its brokers and topics: bootstrap, errors of topics, moved leaders, names and addresses."""

from __future__ import annotations

import itertools
import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from forebay import KafkaProducer
from forebay.errors import (
    InvalidTopicError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from forebay.testing import DISCONNECT, EmbeddedBroker
from tests.integration.workload import WAIT_S, Ledger, metric
from tests.support.fixtures import Broker, ProxyFactory, TopicFactory
from tests.support.pace import until, within, within_ms
from tests.support.rewrite import Answer, limit_versions, metadata_error
from tools.kafka import RealKafka

METADATA, API_VERSIONS = 3, 18
UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE = 3, 5
QUICK: dict[str, Any] = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "max.block.ms": within_ms(10_000),
}


def producer(bootstrap_servers: str, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": bootstrap_servers, **QUICK, **options})


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of 127.0.0.1 on which nobody listens: taken, so that nobody else gets it meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


# -- bootstrap ------------------------------------------------------------------------------------------------


def test_a_bootstrap_server_that_is_down_is_passed_over(
    any_broker: Broker, topic: TopicFactory, closed_port: int
) -> None:
    name = topic(any_broker)
    servers = f"127.0.0.1:{closed_port},no-such-host.invalid:9092,{any_broker.bootstrap_servers}"
    with producer(servers) as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


def test_host_names_are_resolved(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker)
    # Which may have an IPv6 address as well, where nobody listens.
    servers = any_broker.bootstrap_servers.replace("127.0.0.1", "localhost")
    with producer(servers) as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


def test_a_broker_that_comes_up_late_is_found(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.node_down()
    futures: list[Any] = []
    with producer(embedded.bootstrap_servers) as ours:
        thread = threading.Thread(target=lambda: futures.append(ours.send(name, b"v")))
        thread.start()
        until(lambda: metric(ours, "connection-close-total") > 2, "attempts at connections")
        embedded.node_up()
        thread.join(WAIT_S)
        assert futures[0].result(WAIT_S).offset == 0


def test_the_advertised_address_is_the_one_that_counts(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    host, port = embedded.address()
    embedded.advertise(1, "localhost", port)
    with producer(f"{host}:{port}") as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0
        (info,) = ours.partitions_for(name)
        assert info.leader is not None
        assert (info.leader.id, info.leader.host, info.leader.port) == (1, "localhost", port)


# -- topics ---------------------------------------------------------------------------------------------------


def test_partitions_for_names_leaders_and_replicas() -> None:
    with EmbeddedBroker(nodes=3) as broker, producer(broker.bootstrap_servers) as ours:
        broker.create_topic("t", 5, replication=2)
        found = ours.partitions_for("t")
    assert [info.partition for info in found] == [0, 1, 2, 3, 4]
    assert all(info.leader is not None and info.leader.id in info.replicas for info in found)
    assert {len(info.replicas) for info in found} == {2}


@pytest.mark.parametrize(("code", "kind"), [(29, TopicAuthorizationError), (17, InvalidTopicError)])
def test_errors_of_a_topic_that_do_not_pass_come_at_once(
    embedded: EmbeddedBroker, topic: TopicFactory, code: int, kind: type[Exception]
) -> None:
    name, other = topic(embedded), topic(embedded)
    embedded.set_topic_error(name, code)
    heard: list[Any] = []
    with producer(embedded.bootstrap_servers, **{"metadata.max.age.ms": 100}) as ours:
        begun = time.monotonic()
        error = ours.send(name, b"v", on_delivery=heard.append).exception(WAIT_S)
        assert time.monotonic() - begun < within(5)
        assert type(error) is kind
        assert name in str(error)
        (report,) = heard
        assert report.metadata == (name, -1, -1, -1, -1, -1)
        assert (type(report.error), str(report.error)) == (kind, str(error))
        with pytest.raises(kind, match=name):
            ours.partitions_for(name)
        assert ours.send(other, b"v").result(WAIT_S).offset == 0
        embedded.set_topic_error(name, 0)
        # An invalid name is believed until the next refresh, as in Java.
        until(lambda: ours.send(name, b"v").exception(WAIT_S) is None, "the topic can be written to")


@pytest.mark.parametrize(("code", "kind"), [(3, UnknownTopicOrPartitionError), (5, LeaderNotAvailableError)])
def test_errors_of_a_topic_that_may_pass_are_waited_for(
    embedded: EmbeddedBroker, topic: TopicFactory, code: int, kind: type[Exception]
) -> None:
    name = topic(embedded)
    embedded.set_topic_error(name, code)
    block_ms = within_ms(300)
    with producer(embedded.bootstrap_servers, **{"max.block.ms": block_ms}) as ours:
        error = ours.send(name, b"v").exception(WAIT_S)
        assert isinstance(error, KafkaTimeoutError)
        assert error.message == f"Topic {name} not present in metadata after {block_ms} ms."
        assert error.context["phase"] == "waiting for metadata"
        assert isinstance(error.__cause__, kind)
        embedded.set_topic_error(name, 0)
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


@pytest.mark.parametrize("of_partition", [True, False], ids=["no leader", "no topic"])
@pytest.mark.parametrize("newest", [1, 8, 13])
def test_metadata_is_asked_for_once_in_the_back_off(
    any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory, newest: int, of_partition: bool
) -> None:
    """For two seconds, by an idle producer with a partition without a leader, and by one send() without a topic."""
    name, other = topic(any_broker), topic(any_broker)
    code = LEADER_NOT_AVAILABLE if of_partition else UNKNOWN_TOPIC_OR_PARTITION
    answered: list[float] = []

    def refuse(answer: Answer) -> bytes:
        if answer.api_key == METADATA:
            answered.append(time.monotonic())
        return metadata_error(answer, name, code, [1], of_partition=of_partition)

    proxy = proxied(any_broker, hooks=[refuse, limit_versions({METADATA: (0, newest)})])
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, "max.block.ms": within_ms(2000)}) as ours:
        # Its leader is in each answer; without an epoch that counted as news.
        assert len(ours.partitions_for(other)) == 1
        if of_partition:
            assert len(ours.partitions_for(name)) == 1
            time.sleep(2)
        else:
            assert isinstance(ours.send(name, b"v").exception(WAIT_S), KafkaTimeoutError)
    versions = {request.version for request in proxy.requests if request.api_key == METADATA}
    assert len(versions) == 1 and max(versions) <= newest
    # Behind the first two or three answers (the brokers', the other topic's, the topic's) a new topic did not wait.
    waits = [after - before for before, after in itertools.pairwise(answered[2:])]
    assert 3 <= len(waits) <= 6 and min(waits) >= 0.1, waits


def test_a_lost_metadata_answer_is_asked_for_again(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.push_request_errors(METADATA, DISCONNECT, DISCONNECT, DISCONNECT)
    with producer(embedded.bootstrap_servers) as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0
        assert metric(ours, "connection-close-total") == 3


def test_a_lost_handshake_is_made_again(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.push_request_errors(API_VERSIONS, DISCONNECT, DISCONNECT)
    with producer(embedded.bootstrap_servers) as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


def test_an_old_broker_that_knows_only_the_oldest_api_versions(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.set_api_versions(API_VERSIONS, 0, 0)
    embedded.set_api_versions(METADATA, 0, 1)
    with producer(embedded.bootstrap_servers) as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


def test_new_partitions_are_used_after_a_refresh(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka, 2)
    with producer(kafka.bootstrap_servers, **{"metadata.max.age.ms": 200, "linger.ms": 0}) as ours:
        assert len(ours.partitions_for(name)) == 2
        assert ours.send(name, b"v", partition=1).result(WAIT_S).offset == 0
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.create_partitions([NewPartitions(name, 5)])[name].result(WAIT_S)
        # No waiting here: a partition that is not known yet is asked for.
        assert ours.send(name, b"v", partition=4).result(WAIT_S).offset == 0
        until(lambda: len(ours.partitions_for(name)) == 5, "five partitions")
        ledger = Ledger(ours)
        for number in range(100):
            ledger.send(name, b"v", b"%d" % number)
        assert {metadata.partition for _, metadata in ledger.acknowledged()} == {0, 1, 2, 3, 4}


def test_a_partition_without_a_leader_is_waited_for() -> None:
    with EmbeddedBroker(nodes=2, topics={"t": 2}) as broker, producer(broker.bootstrap_servers) as ours:
        # The mock crashes when a newer Produce asks for a partition without a leader.
        broker.set_api_versions(0, 0, 9)
        broker.set_leader("t", 1, None)
        led = [ours.send("t", b"led", partition=0) for _ in range(5)]
        waiting = ours.send("t", b"waits", partition=1)
        assert [future.result(WAIT_S).partition for future in led] == [0] * 5
        assert {ours.send("t", b"sticky").result(WAIT_S).partition for _ in range(20)} == {0}
        assert not waiting.done()
        broker.set_leader("t", 1, 2)
        assert waiting.result(WAIT_S).partition == 1


def test_idle_connections_are_closed_and_made_again(
    any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    # Long enough for a login: a slow machine would close each connection before it is used.
    with producer(proxy.bootstrap_servers, **{"connections.max.idle.ms": within_ms(150)}) as ours:
        assert ours.send(name, b"1").result(WAIT_S).offset == 0
        until(lambda: proxy.connections == 0, "all connections are closed")
        assert ours.send(name, b"2").result(WAIT_S).offset == 1


def test_all_brokers_move_to_other_ports(
    embedded: EmbeddedBroker, topic: TopicFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """What was learned is forgotten, and bootstrap.servers asked again (KIP-899)."""
    caplog.set_level(logging.DEBUG, "forebay.network")
    name = topic(embedded)
    host, port = embedded.address()
    with producer(f"{host}:{port}") as ours:
        assert ours.send(name, b"1").result(WAIT_S).offset == 0
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            embedded.advertise(1, "127.0.0.1", taken.getsockname()[1])
            embedded.node_down()
            waiting = ours.send(name, b"2")
            # Not a number of connections: they may all have been for the record, to the node that is still known.
            until(lambda: "starting over with bootstrap.servers" in caplog.text, "what was known cannot be reached")
            embedded.node_up()
            tried = f"Connecting to node 127.0.0.1:{taken.getsockname()[1]} (id 1)"
            until(lambda: tried in caplog.text, "the new address is tried")
            assert not waiting.done()
            embedded.advertise(1, host, port)
            assert waiting.result(WAIT_S).offset == 1
