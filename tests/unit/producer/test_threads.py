"""KafkaProducer's life: flush, close, with, what it closes and what it says; no network and no thread of its own."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import weakref
from typing import Any

import pytest

from forebay.errors import (
    ForkedProducerError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
)
from tests.fakes.broker import PRODUCE
from tests.fakes.waiting import meanwhile
from tests.fakes.world import PumpedThread, Told, World


class Part:
    """A serializer, interceptor and partitioner in one, which counts how often it is set up and closed."""

    def __init__(self, fails: BaseException | None = None) -> None:
        self.fails = fails
        self.configured: list[dict[str, Any]] = []
        self.closed = 0

    def configure(self, configs: dict[str, Any], is_key: bool = False) -> None:
        self.configured.append(dict(configs))

    def serialize(self, topic: str, data: Any) -> bytes:
        return bytes(data)

    def partition(self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any) -> int:
        return 0

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        """Nothing to do."""

    def close(self) -> None:
        self.closed += 1
        if self.fails is not None:
            raise self.fails


def end(world: World) -> None:
    """Plays the thread that these producers do not have, up to its end."""
    world.until(lambda: not world.sender.has_work())
    world.parts.thread._end()


# -- flush ----------------------------------------------------------------------------------------------------


def test_flush_sends_what_lingers() -> None:
    world = World(linger_ms=60_000, delivery_timeout_ms=120_000)
    futures = [world.send(b"%d" % number) for number in range(3)]
    world.settle()
    assert world.cluster.requests() == []
    meanwhile(world, world.producer.flush)
    assert [future.result(0).offset for future in futures] == [0, 1, 2]
    assert not world.accumulator.flushing()
    assert world.metric("flush-time-ns-total") > 0


def test_flush_with_nothing_to_do() -> None:
    World().producer.flush(0)


def test_flush_waits_for_what_failed_too() -> None:
    """A record's error is its future's business: flush only says that all have an outcome."""
    world = World(retries=0)
    world.cluster.fail("test", 0, 19)
    future = world.send()
    meanwhile(world, world.producer.flush)
    assert isinstance(future.exception(0), KafkaError)


def test_flush_with_a_time_limit() -> None:
    """The message counts the records without an outcome, and linger counts again afterwards."""
    world = World(linger_ms=60_000, delivery_timeout_ms=120_000)
    world.cluster.brokers[0].held.add(PRODUCE)
    for number in range(5):
        world.send(b"v", partition=number % 2)
    error = meanwhile(world, lambda: world.producer.flush(0.05))
    assert isinstance(error, KafkaTimeoutError)
    assert error.message == "flush: 5 record(s) have no outcome after 0.05 s"
    assert error.context["phase"] == "flush"
    assert not world.accumulator.flushing()


def test_what_is_sent_after_flush_began_is_not_waited_for() -> None:
    world = World(linger_ms=60_000, delivery_timeout_ms=120_000)
    world.send(b"before")
    told: list[Any] = []

    def another(report: Any) -> None:
        told.append(world.send(b"after", partition=1))

    world.send(b"with it", on_delivery=another)
    meanwhile(world, world.producer.flush)
    assert len(told) == 1 and not told[0].done()


@pytest.mark.parametrize("call", ["flush", "close"])
def test_negative_time_limits(call: str) -> None:
    """H closeWithNegativeTimestampShouldThrow"""
    world = World()
    with pytest.raises(IllegalArgumentError, match="The timeout cannot be negative: -1"):
        getattr(world.producer, call)(-1)
    assert world.send() is not None


def test_flush_in_a_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    """O 2: refused instead of a deadlock (KIP-1118)."""
    world = World()
    monkeypatch.setattr(type(world.producer), "_on_sender_thread", lambda self: True)
    with pytest.raises(IllegalStateError, match="from a delivery callback"):
        world.producer.flush()


# -- close ----------------------------------------------------------------------------------------------------


def test_closed_for_everything_but_close() -> None:
    """H closeShouldBeIdempotent"""
    world = World()
    future = world.send()
    world.producer.close()
    end(world)
    world.producer.close()
    world.producer.close(0)
    assert future.result(0).offset == 0
    for call in (
        lambda: world.send(),
        lambda: world.producer.send_nowait("test", b"v"),
        lambda: world.producer.partitions_for("test"),
        lambda: world.producer.__enter__(),
    ):
        with pytest.raises(ProducerClosedError):
            call()
    assert len(world.producer.metrics()) == 0
    world.producer.flush(0)
    assert ": closed" in repr(world.producer)


def test_what_the_user_gave_is_closed_once() -> None:
    """H testSerializerClose, testInterceptorConstructClose, testPartitionerClose: instances are not configured."""
    parts = [Part() for _ in range(4)]
    world = World(
        key_serializer=parts[0], value_serializer=parts[1], interceptor_classes=[parts[2]], partitioner_class=parts[3]
    )
    assert [part.closed for part in parts] == [0, 0, 0, 0]
    world.producer.close()
    world.producer.close()
    assert [part.closed for part in parts] == [1, 1, 1, 1]
    assert parts[0].configured == parts[1].configured == []


def test_what_cannot_be_closed_does_not_keep_the_others_from_it() -> None:
    parts = [Part(ValueError("first")), Part(ValueError("second")), Part()]
    world = World(key_serializer=parts[0], value_serializer=parts[1], partitioner_class=parts[2])
    with pytest.raises(KafkaError, match="Failed to close kafka producer: first") as caught:
        world.producer.close()
    assert isinstance(caught.value.__cause__, ValueError)
    assert [part.closed for part in parts] == [1, 1, 1]
    world.producer.close()


def test_with_closes_also_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """The block's own error is the one that is seen; what close says then is logged."""
    world = World(value_serializer=Part(ValueError("of the serializer")))
    with pytest.raises(RuntimeError, match="of the block"), world.producer:
        raise RuntimeError("of the block")
    assert "of the serializer" in caplog.text
    with pytest.raises(ProducerClosedError):
        world.send()


@pytest.mark.parametrize("caught", [True, False])
def test_with_does_not_wait_for_what_close_gave_up(caplog: pytest.LogCaptureFixture, caught: bool) -> None:
    """A callback holds the sender's thread: only the call that gave up says so."""
    world = World()
    PumpedThread(world).stuck = True
    raised: list[BaseException] = []

    def use() -> None:
        with world.producer:
            try:
                world.producer.close(0.1)
            except KafkaTimeoutError as error:
                raised.append(error)
                if not caught:
                    raise

    world.cluster.brokers[0].held.add(PRODUCE)
    world.send()
    world.settle()
    if caught:
        use()
    else:
        with pytest.raises(KafkaTimeoutError) as other:
            use()
        assert other.value is raised[0]
    assert "1 record(s)" in str(raised[0])
    assert caplog.text == ""


def test_with_raises_what_close_says() -> None:
    world = World(value_serializer=Part(ValueError("of the serializer")))
    with pytest.raises(KafkaError, match="of the serializer"), world.producer:
        pass


def test_forced_close_fails_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """H testCloseIsForcedOnPendingInitProducerId, for records: each has its error, and the count is logged."""
    world = World()
    told = Told()
    world.cluster.brokers[0].held.add(PRODUCE)
    futures = [world.send(partition=number % 2, on_delivery=told) for number in range(4)]
    world.settle()
    futures.append(world.send(on_delivery=told))
    world.sender.request_force_close()
    with caplog.at_level(logging.ERROR, "forebay.sender"):
        world.parts.thread._end()
    assert {str(future.exception(0)) for future in futures} == {"Producer is closed forcefully."}
    assert len(told) == 5 and all(error is not None for _, error in told)
    assert "The producer ended with 5 record(s) not acknowledged" in caplog.text
    assert world.pool.available() == world.pool.total


# -- dropped, forked, copied ----------------------------------------------------------------------------------


def test_a_producer_that_is_dropped_asks_its_thread_to_end() -> None:
    world = World()
    future = world.send()
    kept = weakref.ref(world.producer)
    del world.producer
    gc.collect()
    assert kept() is None
    assert world.sender.closing
    end(world)
    assert future.result(0).offset == 0


def test_one_that_could_not_be_made_is_dropped_in_silence() -> None:
    from forebay.producer import KafkaProducer

    half_made = KafkaProducer.__new__(KafkaProducer)
    half_made.__del__()


def test_a_copy_in_a_forked_child() -> None:
    """As the fork hook leaves it: everything is refused but close, which has nothing to do."""
    world = World()
    producer = world.producer
    world.send()
    producer._after_fork_in_child()
    for call in (
        lambda: producer.send("test", b"v"),
        lambda: producer.send_nowait("test", b"v"),
        lambda: producer.flush(),
        lambda: producer.partitions_for("test"),
        lambda: producer.metrics(),
        lambda: producer.__enter__(),
    ):
        with pytest.raises(ForkedProducerError, match="belongs to the parent process"):
            call()
    producer.close()
    assert not world.sender.closing
    assert "a copy in a forked child, unusable" in repr(producer)
    producer.__del__()
    assert not world.sender.closing


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_no_copies(copying: Any) -> None:
    with pytest.raises(TypeError, match="cannot be pickled: it has sockets and a thread; pickle its config"):
        copying(World().producer)


# -- what it says ---------------------------------------------------------------------------------------------


def test_how_it_prints() -> None:
    world = World(client_id="orders")
    servers = ",".join(world.producer.config["bootstrap.servers"])
    assert repr(world.producer).startswith(f"<KafkaProducer orders of {servers}: open, <RecordAccumulator: ")
    world.send(b"v")
    assert " 1 batches, " in repr(world.producer)


def test_config_and_client_id() -> None:
    producer = World(client_id="orders").producer
    assert producer.client_id == producer.config["client.id"] == "orders"
    with pytest.raises(TypeError):
        producer.config["client.id"] = "other"  # type: ignore[index]


def test_metrics_by_java_s_names() -> None:
    world = World()
    for _ in range(3):
        world.send()
    world.settle()
    assert world.metric("record-send-total") == 3
    assert world.metric("buffer-total-bytes") == world.pool.total
    assert world.metric("buffer-available-bytes") == world.pool.total
    assert world.metric("requests-in-flight") == 0
    assert world.metric("connection-count") >= 1
