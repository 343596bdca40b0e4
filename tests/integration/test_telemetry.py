"""Client telemetry (KIP-714) with a real broker whose plugin takes it, and beside what the Java producer tells it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import KafkaTimeoutError
from forebay.producer.aio import AsyncKafkaProducer
from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import until
from tests.support.readback import read_all
from tests.support.telemetry import Push, TelemetryKafka, telemetry_kafka
from tools.kafka import RealKafka

pytestmark = pytest.mark.rest("a broker with a plugin of its own")

INTERVAL_MS = 500
PREFIX = "org.apache.kafka.producer."
SENT = f"{PREFIX}record.send.total"
SENT_TO_TOPIC = f"{PREFIX}topic.record.send.total"
# Of the Java producer alone: two-phase commit, which is not here, and means of nothing, which Java tells as NaN.
JAVA_ALONE = {
    f"{PREFIX}txn.prepare.time.ns.total",
    f"{PREFIX}reauthentication.latency.avg",
    f"{PREFIX}reauthentication.latency.max",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelemetryKafka]:
    with telemetry_kafka(tmp_path_factory.mktemp("telemetry")) as started:
        yield started


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "forebay.telemetry"]


def test_the_broker_is_told_what_was_sent(broker: TelemetryKafka, topic: TopicFactory) -> None:
    """Differences, as Kafka's brokers want them: over all pushes they add up to what the log holds."""
    name = topic(broker, 2)
    broker.subscribe(name, "*", INTERVAL_MS)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=name) as producer:
        instance_id = producer.client_instance_id(WAIT_S)
        for count in (100, 250):
            for number in range(count):
                producer.send(name, b"value %d" % number)
            producer.flush(WAIT_S)
            broker.wait_for(name, len(broker.pushes(name)) + 2)
        for _ in range(7):
            producer.send(name, b"at the end")
        total = len(broker.pushes(name))
    pushes = broker.wait_for(name, total + 1)
    assert [push.is_last for push in pushes] == [False] * (len(pushes) - 1) + [True]
    assert {push.instance_id for push in pushes} == {instance_id}
    assert {push.content_type for push in pushes} == {"OTLP"}
    found = len(read_all(broker.bootstrap_servers, name))
    assert found == 357
    assert sum(push.sum_of(SENT) for push in pushes) == found
    assert sum(push.sum_of(SENT_TO_TOPIC, topic=name) for push in pushes) == found
    _adjoin(pushes)


def _adjoin(pushes: list[Push]) -> None:
    """Each push begins where the one before it ended."""
    points = [push.metrics()[SENT].sum.data_points[0] for push in pushes]
    for before, after in itertools.pairwise(points):
        assert before.time_unix_nano == after.start_time_unix_nano
    assert all(push.metrics()[SENT].sum.aggregation_temporality == 1 for push in pushes)


@pytest.mark.parametrize(
    "refused", [(), (4,), (4, 3), (4, 3, 1), (4, 3, 1, 2)], ids=["zstd", "lz4", "gzip", "snappy", "none"]
)
def test_the_broker_reads_every_codec(broker: TelemetryKafka, topic: TopicFactory, refused: tuple[int, ...]) -> None:
    """In the order of Kafka's preference; each is used where those before it cannot be."""
    name = topic(broker)
    broker.subscribe(name, "*", INTERVAL_MS)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=name) as producer:
        producer.client_instance_id(WAIT_S)
        reporter: Any = producer._parts.sender.telemetry
        reporter._refused_codecs.update(refused)
        producer.send(name, b"v").result(WAIT_S)
        broker.wait_for(name, 1)
        assert reporter._codec == next(number for number in (4, 3, 1, 2, 0) if number not in refused)
    assert sum(push.sum_of(SENT) for push in broker.wait_for(name, 2)) == 1


@contextmanager
def java_producer(broker: TelemetryKafka, topic: str, client_id: str) -> Iterator[None]:
    """Kafka's own producer sends until the block ends: one that ended by itself might do so before its first push."""
    command = broker.kafka.tool_command(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "1000000000", "--record-size", "100", "--throughput", "10000"),
        *("--bootstrap-server", broker.bootstrap_servers, "--command-property", f"client.id={client_id}"),
    )
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_the_names_are_those_of_the_java_producer(broker: TelemetryKafka, topic: TopicFactory) -> None:
    name = topic(broker)
    theirs_id = f"java-{name}"
    for client_id in (name, theirs_id):
        broker.subscribe(client_id, "*", INTERVAL_MS)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=name) as producer:
        producer.send(name, b"v").result(WAIT_S)
        ours = broker.wait_for(name, 1)[0].metrics()
    theirs: dict[str, Any] = {}
    with java_producer(broker, name, theirs_id):
        # Some of its metrics are there once it has sent.
        sent = lambda: [push for push in broker.pushes(theirs_id) if push.sum_of(SENT_TO_TOPIC, topic=name)]  # noqa: E731
        until(sent, "a push of what was sent")
        for push in broker.wait_for(theirs_id, len(broker.pushes(theirs_id)) + 1):
            theirs |= push.metrics()
    assert {each for each in ours if each not in theirs} == set()
    kinds = {each: ours[each].WhichOneof("data") for each in ours}
    assert kinds == {each: theirs[each].WhichOneof("data") for each in ours}
    assert len(ours) > 60 and set(theirs) - set(ours) == JAVA_ALONE


def test_a_push_that_the_plugin_refuses(
    broker: TelemetryKafka, topic: TopicFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """The plugin throws: said once, and every record arrives."""
    name = topic(broker)
    broker.subscribe(name, "*", INTERVAL_MS)
    with broker.refusing(), KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=name) as producer:
        sent = 0
        while not lines(caplog) or sent < 500:
            producer.send(name, b"%d" % sent).result(WAIT_S)
            sent += 1
            assert sent < 100_000
        for _ in range(100):
            producer.send(name, b"%d" % sent)
            sent += 1
    (line,) = lines(caplog)
    assert "No metrics are sent to brokers any more: node 0 refused them with INVALID_RECORD" in line
    assert [record.value for record in read_all(broker.bootstrap_servers, name)] == [b"%d" % at for at in range(sent)]
    assert broker.pushes(name) == []


def test_a_subscription_that_changes(broker: TelemetryKafka, topic: TopicFactory) -> None:
    name = topic(broker)
    broker.subscribe(name, f"{PREFIX}record.", INTERVAL_MS)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=name) as producer:
        producer.send(name, b"v").result(WAIT_S)
        first = broker.wait_for(name, 1)[0]
        assert first.sum_of(SENT) == 1 and all(each.startswith(f"{PREFIX}record.") for each in first.metrics())
        broker.subscribe(name, f"{PREFIX}topic.", INTERVAL_MS)
        until(lambda: SENT_TO_TOPIC in broker.pushes(name)[-1].metrics(), "what is wanted now")
        assert all(each.startswith(f"{PREFIX}topic.") for each in broker.pushes(name)[-1].metrics())
        broker.unsubscribe(name)
        dialog = producer._parts.sender.telemetry.dialog
        until(lambda: dialog.subscription.prefixes == (), "nothing is wanted any more")
        count = len(broker.pushes(name))
        time.sleep(4 * INTERVAL_MS / 1000)
        assert len(broker.pushes(name)) == count
    assert len(broker.pushes(name)) == count, "nobody wants the last push either"


async def told_by_asyncio(broker: TelemetryKafka, name: str) -> str:
    async with AsyncKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, client_id=name, transactional_id=name
    ) as producer:
        await producer.init_transactions(WAIT_S)
        async with producer.transaction():
            await producer.send_and_wait(name, b"v")
        return await producer.client_instance_id(WAIT_S)


def test_asyncio_and_transactions(broker: TelemetryKafka, topic: TopicFactory) -> None:
    name = topic(broker)
    broker.subscribe(name, SENT, INTERVAL_MS)
    instance_id = asyncio.run(told_by_asyncio(broker, name))
    last = broker.wait_for(name, 1)[-1]
    assert (last.instance_id, last.is_last) == (instance_id, True)
    assert last.sum_of(SENT) >= 1 and list(last.metrics()) == [SENT]
    (label,) = last.data.resource_metrics[0].resource.attributes
    assert (label.key, label.value.string_value) == ("transactional_id", name)


def test_a_broker_without_a_plugin_is_never_asked(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send(name, b"v").result(WAIT_S)
        assert producer._parts.sender.telemetry is None
        with pytest.raises(KafkaTimeoutError, match="no connected broker takes client telemetry"):
            producer.client_instance_id(0.1)


def test_the_embedded_broker_gives_an_instance_id_and_wants_nothing(embedded: EmbeddedBroker) -> None:
    with KafkaProducer(bootstrap_servers=embedded.bootstrap_servers) as producer:
        assert len(producer.client_instance_id(WAIT_S)) == 22
        assert producer._parts.sender.telemetry.dialog.subscription.prefixes == ()


def test_metrics_push_off(broker: TelemetryKafka, topic: TopicFactory) -> None:
    name = topic(broker)
    broker.subscribe(name, "*", 100)
    servers = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, client_id=name, enable_metrics_push=False) as producer:
        producer.send(name, b"v").result(WAIT_S)
        time.sleep(0.5)
    assert broker.pushes(name) == []


def test_what_is_logged(broker: TelemetryKafka, topic: TopicFactory, caplog: pytest.LogCaptureFixture) -> None:
    name = topic(broker)
    broker.subscribe(name, "*", INTERVAL_MS)
    with (
        caplog.at_level(logging.INFO),
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=name) as producer,
    ):
        instance_id = producer.client_instance_id(WAIT_S)
        broker.wait_for(name, 3)
    (line,) = lines(caplog)
    assert line.endswith(f"The cluster gets metrics each {INTERVAL_MS} ms; client instance id {instance_id}")
