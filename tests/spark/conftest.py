"""One Spark session, embedded broker and real Kafka for all tests here; they need Java and take seconds to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

import forebay
from forebay.testing import EmbeddedBroker
from tests.support.fixtures import kafka
from tests.support.pace import HANG_S
from tools.spark_jvm import quick_start

__all__ = ["kafka"]

IDLE_POLLS = 5


@pytest.fixture(scope="session", autouse=True)
def workers() -> Iterator[None]:
    """Spark's workers and the drivers started here run this Python and import this very package."""
    here = str(Path(forebay.__file__).parents[1])
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", here, prepend=os.pathsep)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("SPARK_SUBMIT_OPTS", quick_start())
        yield


@pytest.fixture(scope="session")
def spark(workers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("forebay tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "768m")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    """A fresh topic of 3 partitions, named after the test."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[-200:]
    broker.create_topic(name, 3)
    return name


@pytest.fixture
def sink(broker: EmbeddedBroker, topic: str) -> dict[str, str]:
    """The options every write here needs."""
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "kafka.linger.ms": "5"}


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    return tmp_path / "counters.json"


ReadAll = Callable[[str], list[Any]]


@pytest.fixture
def read_all(broker: EmbeddedBroker) -> ReadAll:
    """Reads a whole topic with a consumer that is not ours, CRCs checked."""

    def read(topic: str) -> list[Any]:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "tests",
                "check.crcs": True,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
            }
        )
        try:
            partitions = consumer.list_topics(topic, timeout=HANG_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=HANG_S)[1] for p in partitions}
            messages: list[Any] = []
            idle = 0
            while len(messages) < sum(ends.values()) and idle < IDLE_POLLS:
                more = consumer.consume(5000, 1.0)
                idle = 0 if more else idle + 1
                for message in more:
                    assert message.error() is None, message.error()
                messages += more
            return messages
        finally:
            consumer.close()

    return read
