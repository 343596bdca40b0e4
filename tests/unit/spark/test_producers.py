"""A worker keeps a producer a configuration, and few of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from forebay._metrics.registry import MetricName
from forebay.spark import producers, sizes
from forebay.spark.exactly_once.settings import Settings
from forebay.spark.options import SinkOptions
from tests.unit.spark.fakes import FakeProducer, options


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SinkOptions, FakeProducer]]:
    opened: list[tuple[SinkOptions, FakeProducer]] = []

    def open_fake(wanted: SinkOptions) -> FakeProducer:
        opened.append((wanted, FakeProducer()))
        return opened[-1][1]

    monkeypatch.setattr(producers, "_open", open_fake)
    monkeypatch.setattr(producers, "_kept", {})
    return opened


def test_the_next_task_gets_the_same_producer(made: list[tuple[SinkOptions, FakeProducer]]) -> None:
    assert producers.acquire(options()) is producers.acquire(options())
    assert len(made) == 1


def test_another_configuration_gets_another_one(made: list[tuple[SinkOptions, FakeProducer]]) -> None:
    assert producers.acquire(options(acks="1")) is not producers.acquire(options(acks="all"))
    assert len(made) == 2


def test_the_longest_unused_one_is_closed_when_there_are_too_many(made: list[tuple[SinkOptions, FakeProducer]]) -> None:
    first = producers.acquire(options(acks="0"))
    producers.acquire(options(acks="1"))
    producers.acquire(options(acks="0"))
    producers.acquire(options(acks="all"))
    assert [producer.closed_with for _, producer in made] == [None, producers.CLOSE_TIMEOUT_S, None]
    assert producers.acquire(options(acks="0")) is first


def test_a_failed_tasks_producer_is_not_used_again(made: list[tuple[SinkOptions, FakeProducer]]) -> None:
    first = producers.acquire(options())
    producers.discard(options())
    producers.discard(options())
    assert producers.acquire(options()) is not first
    assert made[0][1].closed_with == 0


def test_one_that_was_not_used_for_long_is_closed_when_a_task_comes(
    made: list[tuple[SinkOptions, FakeProducer]],
) -> None:
    producers.acquire(options(acks="1"), now=0)
    producers.acquire(options(acks="all"), now=producers.IDLE_MS - 1)
    assert made[0][1].closed_with is None
    producers.acquire(options(acks="all"), now=producers.IDLE_MS)
    assert made[0][1].closed_with == producers.CLOSE_TIMEOUT_S


def test_a_forked_child_opens_its_own_and_leaves_its_parents_alone(
    made: list[tuple[SinkOptions, FakeProducer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = producers.acquire(options())
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert producers.acquire(options()) is not mine
    producers.discard(options())
    assert [producer.closed_with for _, producer in made] == [None, 0]


def test_a_write_of_another_version_uses_the_same_producer(made: list[tuple[SinkOptions, FakeProducer]]) -> None:
    exactly = [replace(options(), exactly_once=Settings("p", "c", "a", version)) for version in (1, 2)]
    assert producers.acquire(exactly[0]) is producers.acquire(exactly[1])
    assert producers.acquire(options()) is not producers.acquire(exactly[0])


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(producers, "_set_apart", False)
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as it was: what the run has collected is set apart (tests/conftest.py)


def test_what_a_worker_has_when_its_producer_opens_is_not_gone_through_again(
    thawed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "_kept", {})
    gc.collect()  # or one in between takes some of them; some that live for ever are set apart by it in Python 3.12
    known = len(gc.get_objects())
    producers.acquire(options(**{"bootstrap.servers": "127.0.0.1:1"}))
    assert gc.get_freeze_count() >= known
    assert len(gc.get_objects()) < known
    producers.discard(options(**{"bootstrap.servers": "127.0.0.1:1"}))


def test_only_the_first_producer_of_a_worker_sets_its_objects_apart(
    thawed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later a closed producer may be among them, whose memory would never be freed."""
    monkeypatch.setattr(producers, "_kept", {})
    first, second = (options(**{"bootstrap.servers": "127.0.0.1:1", "acks": acks}) for acks in ("1", "all"))
    producers.acquire(first)
    frozen = gc.get_freeze_count()
    producers.acquire(second)
    assert gc.get_freeze_count() <= frozen
    producers.discard(first)
    producers.discard(second)


class Asked:
    """A KafkaProducer as far as ``ColumnProducer.prepare`` sees it."""

    partitions = 1

    def __init__(self, config: dict[str, str]) -> None:
        self.config = {"batch.size": int(config.get("batch.size", 16384))}
        self.asked: list[str] = []
        self.closed = False

    def partitions_for(self, topic: str) -> tuple[int, ...]:
        self.asked.append(topic)
        return tuple(range(self.partitions))

    def metrics(self) -> dict[MetricName, float]:
        return {MetricName("record-send-total", producers.PRODUCER_GROUP, ""): 7.0}

    def close(self, timeout: float) -> None:
        self.closed = True


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    opened: list[Asked] = []

    class Noted(Asked):
        def __init__(self, config: dict[str, str]) -> None:
            super().__init__(config)
            opened.append(self)

    monkeypatch.setattr("forebay.producer.KafkaProducer", Noted)
    return opened


def test_a_topic_of_few_partitions_keeps_large_batches_and_is_asked_for_once(asked: list[Asked]) -> None:
    producer = producers.ColumnProducer({})
    producer.prepare("t")
    producer.prepare("t")
    assert producer.batch_size == sizes.LARGEST
    assert [one.asked for one in asked] == [["t"]]


def test_a_topic_of_many_partitions_gets_a_producer_with_smaller_batches(
    asked: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = producers.ColumnProducer({})
    producer.prepare("few")
    monkeypatch.setattr(Asked, "partitions", 400)
    producer.prepare("many")
    assert producer.batch_size == 32 << 10
    assert [one.closed for one in asked] == [True, False]
    assert producer.counts() == {"record-send-total": 14.0}, "what the first one counted is not lost"


def test_topics_of_a_column_get_kafkas_batches(asked: list[Asked]) -> None:
    producer = producers.ColumnProducer({})
    producer.prepare(None)
    assert producer.batch_size == sizes.SMALLEST
    assert all(not one.asked for one in asked)


def test_a_size_that_the_user_gave_stays(asked: list[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asked, "partitions", 400)
    producer = producers.ColumnProducer({"batch.size": "1048576"})
    producer.prepare("t")
    assert producer.batch_size == 1 << 20
    assert [one.asked for one in asked] == [[]]
