"""The plugin that pytest finds by itself: an embedded broker, topics, and what is in them.

Fixtures: ``kafka_broker``, ``kafka_broker_options``, ``kafka_topic``, ``kafka_records``, ``kafka_config``,
``kafka_producer``.  The marker ``kafka_topic(partitions=...)`` says how many partitions the test's topic has.  Under
pytest-xdist each worker has a broker of its own.

Nothing but this module is imported until a test asks for a fixture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from forebay.producer import KafkaProducer
    from forebay.testing.broker import EmbeddedBroker
    from forebay.testing.records import ReadRecord

_NUMBERS = count(1)
_LONGEST = 200
"""A topic's name has at most 249 characters."""


def pytest_configure(config: pytest.Config) -> None:
    """Tells pytest of the marker."""
    config.addinivalue_line("markers", "kafka_topic(partitions=1): the partitions of the topic of fixture kafka_topic")


@pytest.fixture(scope="session")
def kafka_broker_options() -> dict[str, Any]:
    """Arguments of the session's ``EmbeddedBroker``; override it to have others, such as ``{"nodes": 3}``."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_broker_options: dict[str, Any]) -> Iterator[EmbeddedBroker]:
    """The session's embedded broker; ``kafka_broker.faults`` disturbs it."""
    from forebay.testing.broker import EmbeddedBroker

    with EmbeddedBroker(**kafka_broker_options) as broker:
        yield broker


def _marked(partitions: int = 1) -> int:
    """What the marker says; Python itself refuses an argument that it has not."""
    return partitions


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: EmbeddedBroker) -> Iterator[str]:
    """A topic of the test's own, with one partition unless the marker says otherwise; deleted after the test."""
    marker = request.node.get_closest_marker("kafka_topic")
    partitions = 1 if marker is None else _marked(*marker.args, **marker.kwargs)
    name = re.sub(r"[^\w.-]", "-", request.node.name, flags=re.ASCII)[:_LONGEST] + f"-{next(_NUMBERS)}"
    kafka_broker.create_topic(name, partitions)
    yield name
    if kafka_broker.alive:
        kafka_broker.delete_topic(name)


@pytest.fixture
def kafka_records(kafka_broker: EmbeddedBroker, kafka_topic: str) -> Callable[..., list[ReadRecord]]:
    """``kafka_records()`` has the records of the test's topic; arguments are those of ``broker.records``."""

    def records(topic: str | None = None, **options: Any) -> list[ReadRecord]:
        return kafka_broker.records(kafka_topic if topic is None else topic, **options)

    return records


@pytest.fixture
def kafka_config(kafka_broker: EmbeddedBroker) -> dict[str, Any]:
    """Options with which a producer reaches the broker; a dict of the test's own."""
    return {"bootstrap.servers": kafka_broker.bootstrap_servers}


@pytest.fixture
def kafka_producer(kafka_config: dict[str, Any]) -> Iterator[KafkaProducer]:
    """A producer, closed after the test."""
    from forebay.producer import KafkaProducer

    with KafkaProducer(kafka_config) as producer:
        yield producer
