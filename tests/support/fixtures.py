"""The fixtures of tests that need a broker.

``FOREBAY_WITHOUT_KAFKA=1`` says that there is none to be had here: tests of the real broker are then skipped
with that reason, without it they fail with the reason why it cannot be started.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pytest

from forebay.testing import EmbeddedBroker
from tests.support.pace import factor
from tests.support.proxy import KafkaProxy
from tests.support.readback import ReadBack
from tests.support.rewrite import Hook
from tools.kafka import LEGACY_KAFKA_VERSION, JarsUnavailable, KafkaFailed, Listener, RealKafka, ensure_archive

WITHOUT = "FOREBAY_WITHOUT_KAFKA"

LOCAL = "LOCAL"
"""The listener of the session's broker that advertises localhost, while it listens on 127.0.0.1."""
PROPERTIES = {
    # Tests wait for both: transactions that time out, and the cleaner of compacted topics.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "log.cleaner.backoff.ms": "100",
}

_NUMBERS = itertools.count()


class Broker(Protocol):
    """What the embedded broker and a real one have in common."""

    @property
    def bootstrap_servers(self) -> str: ...

    def create_topic(self, name: str, partitions: int, *, replication: int = 1) -> None: ...


class TopicFactory(Protocol):
    """Makes a topic with a name of its own and returns the name; further options go to ``create_topic``."""

    def __call__(self, broker: Broker, partitions: int = 1, **options: Any) -> str: ...


class ReadBackFactory(Protocol):
    """Starts a reader of a topic that is closed at the end of the test."""

    def __call__(self, broker: Broker, topic: str, **properties: Any) -> ReadBack: ...


class ProxyFactory(Protocol):
    """Puts a proxy before a broker that is closed at the end of the test."""

    def __call__(self, broker: Broker, *, hooks: Sequence[Hook] = ()) -> KafkaProxy: ...


@contextlib.contextmanager
def real_kafka(**options: Any) -> Iterator[RealKafka]:
    """A real Kafka, or the skip or failure that says why there is none; for fixtures with other settings."""
    if os.environ.get(WITHOUT) == "1":
        pytest.skip(f"{WITHOUT}=1: no real Kafka")
    try:
        if "version" not in options:
            ensure_archive()  # the others are started too seldom
        kafka = RealKafka(quick_start=True, patience=factor(), **options)
        kafka.start()
    except (JarsUnavailable, KafkaFailed) as error:
        pytest.fail(f"{error} (set {WITHOUT}=1 to skip the tests of a real Kafka)", pytrace=False)
    try:
        yield kafka
    finally:
        kafka.stop()


@pytest.fixture(scope="session")
def kafka() -> Iterator[RealKafka]:
    """One real broker for the whole run: do not stop it, start your own with :func:`real_kafka` for that."""
    with real_kafka(properties=PROPERTIES, listeners=[Listener(LOCAL, "PLAINTEXT", {}, "localhost")]) as broker:
        yield broker


@pytest.fixture(scope="session")
def strict_kafka() -> Iterator[RealKafka]:
    """A broker that makes no topic because somebody asks for it: ours do, with every metadata request."""
    with real_kafka(properties={"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.fixture(scope="session")
def legacy_kafka() -> Iterator[RealKafka]:
    """A Kafka 3.9 broker, which still takes Produce v0 to v2."""
    with real_kafka(version=LEGACY_KAFKA_VERSION) as broker:
        yield broker


@pytest.fixture
def embedded() -> Iterator[EmbeddedBroker]:
    """An embedded broker of this test only, so that its faults are too."""
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(params=["embedded", "kafka"])
def any_broker(request: pytest.FixtureRequest) -> Broker:
    """The test runs twice: on the embedded broker and on a real Kafka."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> TopicFactory:
    """``topic(broker, 6)``: a fresh topic, named after the test."""
    base = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:200]

    def make(broker: Broker, partitions: int = 1, **options: Any) -> str:
        # The process id, because a session's broker may outlive one run of the tests.  The number is never used twice
        # in a process, because two files may have a test of the same name.
        name = f"{base}-{os.getpid()}-{next(_NUMBERS)}"
        broker.create_topic(name, partitions, **options)
        return name

    return make


@pytest.fixture
def read_back() -> Iterator[ReadBackFactory]:
    """``read_back(broker, topic)``: an independent reader that starts at once and reads while the test writes."""
    with contextlib.ExitStack() as stack:

        def start(broker: Broker, topic: str, **properties: Any) -> ReadBack:
            return stack.enter_context(ReadBack(broker.bootstrap_servers, topic, properties=properties))

        yield start


@pytest.fixture
def proxied() -> Iterator[ProxyFactory]:
    """``proxied(broker, hooks=[...])``: a proxy that can delay, hold, cut and rewrite."""
    with contextlib.ExitStack() as stack:

        def start(broker: Broker, *, hooks: Sequence[Hook] = ()) -> KafkaProxy:
            return stack.enter_context(KafkaProxy(broker.bootstrap_servers, hooks=hooks))

        yield start
