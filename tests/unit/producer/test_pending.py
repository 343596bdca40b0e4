"""A record that waits without a thread takes the steps of ``send``, and leaves nothing behind when it gives up."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import (
    BufferExhaustedError,
    IllegalArgumentError,
    InvalidTopicError,
    KafkaTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
    SerializationError,
    TopicAuthorizationError,
)
from forebay.model import ProducerRecord
from forebay.producer._pending import PendingSend, pending_send
from tests.fakes.broker import METADATA, PRODUCE, Topic
from tests.fakes.tickets import CountingTicket
from tests.fakes.waiting import Watching
from tests.fakes.world import Told, World


def small(**config: Any) -> World:
    return World(batch_size=1000, buffer_memory=2000, **{"max_block_ms": 50, **config})


def record(value: Any = b"v", topic: str = "test", partition: int | None = 0, **more: Any) -> ProducerRecord:
    return ProducerRecord(topic, value, partition=partition, **more)


def full() -> World:
    world = small()
    world.cluster.brokers[0].held.add(PRODUCE)
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    return world


def test_it_is_taken_at_once_if_nothing_lacks() -> None:
    world = World()
    told = Told()
    pending = pending_send(world.producer, record(b"a", key=b"k", headers=[("h", b"1")]), told)
    sent = pending.step(CountingTicket())
    assert sent is not None
    world.settle()
    assert sent.result(0).offset == 0
    assert world.values() == [b"a"]
    assert [error for _metadata, error in told] == [None]


def test_it_stands_in_the_line_for_memory() -> None:
    world = full()
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(bytes(900)), None)
    assert pending.step(ticket) is None
    assert (world.pool.queued(), ticket.woken) == (1, 0)
    world.cluster.brokers[0].release()
    world.settle()
    assert ticket.woken > 0
    sent = pending.step(ticket)
    assert sent is not None
    pending.end(ticket)
    assert world.pool.queued() == 0
    world.settle()
    assert sent.result(0).has_offset


def test_giving_up_gives_back_the_place() -> None:
    world = full()
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(bytes(900)), None)
    assert pending.step(ticket) is None
    pending.end(ticket)
    assert world.pool.queued() == 0
    world.cluster.brokers[0].release()
    world.settle()
    assert world.pool.available() == 2000


def test_giving_up_gives_back_what_was_granted() -> None:
    world = full()
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(bytes(900)), None)
    assert pending.step(ticket) is None
    world.cluster.brokers[0].release()
    world.settle()
    assert ticket.grant is not None
    pending.end(ticket)
    assert world.pool.available() == 2000
    assert world.pool.queued() == 0


def test_memory_does_not_come_in_time() -> None:
    world = full()
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(bytes(900)), None)
    assert pending.step(ticket) is None
    world.advance(51)
    sent = pending.step(ticket)
    pending.end(ticket)
    assert sent is not None
    error = sent.exception(0)
    assert isinstance(error, BufferExhaustedError) and "within the configured max blocking time 50 ms" in str(error)
    assert world.pool.queued() == 0


def test_it_waits_for_metadata() -> None:
    world = World(known=False)
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(b"a"), None)
    assert pending.step(ticket) is None
    world.settle(12)
    assert ticket.woken == 1
    sent = pending.step(ticket)
    pending.end(ticket)
    assert sent is not None
    world.settle()
    assert sent.result(0).offset == 0


def test_metadata_does_not_come_in_time() -> None:
    world = World(known=False)
    world.cluster.brokers[0].held.add(METADATA)
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(b"a"), None)
    assert pending.step(ticket) is None
    assert pending.left() == 1000
    world.advance(1001)
    sent = pending.step(ticket)
    pending.end(ticket)
    assert sent is not None
    error = sent.exception(0)
    assert isinstance(error, KafkaTimeoutError) and "not present in metadata after 1000 ms" in str(error)


def test_only_the_topic() -> None:
    world = World(known=False)
    ticket = CountingTicket()
    pending = PendingSend(world.producer, record(), None)
    assert not pending.find_topic(ticket)
    world.settle(12)
    assert pending.find_topic(ticket)
    pending.end(ticket)


def test_a_topic_that_cannot_be() -> None:
    world = World()
    sent = PendingSend(world.producer, record(topic=""), None).step(CountingTicket())
    assert sent is not None and isinstance(sent.exception(0), InvalidTopicError)


def test_a_topic_that_a_broker_refuses() -> None:
    world = World(known=False)
    world.cluster.topics["secret"] = Topic(error=29)
    ticket = CountingTicket()
    pending = pending_send(world.producer, record(topic="secret"), None)
    assert pending.step(ticket) is None
    world.settle(12)
    sent = pending.step(ticket)
    pending.end(ticket)
    assert sent is not None and isinstance(sent.exception(0), TopicAuthorizationError)


def test_serializers_are_asked_once() -> None:
    asked: list[Any] = []

    def serialize(value: Any) -> bytes:
        asked.append(value)
        return bytes(900)

    world = small(value_serializer=serialize)
    world.cluster.brokers[0].held.add(PRODUCE)
    for partition in (0, 1):
        world.producer.send("test", "first", partition=partition)
    asked.clear()
    ticket = CountingTicket()
    pending = pending_send(world.producer, record("mine"), None)
    assert pending.step(ticket) is None
    assert pending.step(ticket) is None
    pending.end(ticket)
    assert asked == ["mine"]


def test_interceptors_are_told_once_and_of_what_is_raised() -> None:
    watching = Watching()
    world = World(interceptor_classes=[watching])
    pending = pending_send(world.producer, record(5), None)
    with pytest.raises(SerializationError):
        pending.step(CountingTicket())
    ((_metadata, error),) = watching.acknowledged
    assert isinstance(error, SerializationError)
    with pytest.raises(IllegalArgumentError):
        pending_send(world.producer, record(partition=1 << 31), None)
    assert len(watching.acknowledged) == 2


def test_interceptors_get_the_headers() -> None:
    class Hearing:
        heard: list[Any] = []

        def on_acknowledgement(self, metadata: Any, error: Any, headers: Any = ()) -> None:
            self.heard.append(headers)

    world = World(interceptor_classes=[Hearing()])
    pending_send(world.producer, ProducerRecord("test", b"v", headers=[("own", b"1")]), None).step(CountingTicket())
    world.settle()
    assert Hearing.heard == [(("own", b"1"),)]


def test_a_record_that_is_too_large_fails_in_its_future() -> None:
    world = small()
    sent = pending_send(world.producer, record(bytes(5000)), None).step(CountingTicket())
    assert sent is not None and isinstance(sent.exception(0), RecordTooLargeError)


def test_a_closed_producer() -> None:
    world = World()
    pending = pending_send(world.producer, record(), None)
    world.producer._set_state(1)
    with pytest.raises(ProducerClosedError):
        pending.step(CountingTicket())
