"""The sender's turns against a scripted broker: what goes out when, in which requests, and what the answers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay._records.reader import read_batches
from forebay.errors import (
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    NotLeaderOrFollowerError,
    UnsupportedVersionError,
)
from tests.fakes.answers import held, hold, reply
from tests.fakes.broker import PRODUCE, Received
from tests.fakes.produce import Answer, batches_of
from tests.fakes.tickets import CountingTicket
from tests.fakes.world import Told, World

NOT_LEADER = 6


def test_simple() -> None:
    """F testSimple: one request in flight, one batch of its partition; then offset 0 and nothing in flight."""
    world = World()
    hold(world)
    future = world.send()
    world.settle(2)
    assert (world.in_flight, world.queue().in_flight, len(world.sender.in_flight)) == (1, 1, 1)
    reply(world, (0, Answer(base_offset=0)))
    world.settle(2)
    assert (world.in_flight, world.queue().in_flight, len(world.sender.in_flight)) == (0, 0, 0)
    assert future.result(0).offset == 0
    assert world.pool.available() == world.pool.total


def test_one_request_for_all_partitions_of_a_node() -> None:
    world = World(topics={"test": 3, "other": 2})
    for partition in range(3):
        world.send(partition=partition)
    world.send(topic="other", partition=1)
    world.settle()
    (request,) = world.cluster.requests()
    assert sorted(batches_of(request)) == [("other", 1), ("test", 0), ("test", 1), ("test", 2)]


def test_max_request_size_parts_the_request() -> None:
    world = World(topics={"test": 3}, max_request_size=3000)
    for partition in range(3):
        world.send(bytes(1500), partition=partition)
    world.until(lambda: len(world.cluster.requests()) == 3)
    assert [list(batches_of(request)) for request in world.cluster.requests()] == [
        [("test", 0)],
        [("test", 1)],
        [("test", 2)],
    ]


def test_an_old_broker_gets_old_messages() -> None:
    """F testMessageFormatDownConversion: magic 1 in a version 2 request; offset 0."""
    world = World(known=False)
    broker = world.cluster.brokers[0]
    broker.ranges[PRODUCE] = (0, 2)
    seen: list[int] = []

    def answer(request: Received) -> None:
        assert request.version == 2
        # acks, timeout, one topic "test", one partition 0, the message set
        (message,) = read_batches(request.payload[2 + 4 + 4 + 2 + 4 + 4 + 4 + 4 :])
        seen.append(message.magic)
        request.answer_bytes(b"\0\0\0\1\0\4test\0\0\0\1" + b"\0\0\0\0" + b"\0\0" + bytes(8) + b"\xff" * 8 + b"\0\0\0\0")

    broker.script[PRODUCE] = answer
    world.learn("test")
    future = world.send()
    world.settle()
    assert (seen, future.result(0).offset) == ([1], 0)


def test_idempotence_with_an_old_broker_fails_with_a_way_out() -> None:
    """B testIdempotenceWithOldMagic: by the broker's produce version, at sending time."""
    world = World(known=False, idempotent=True)
    world.cluster.brokers[0].ranges[PRODUCE] = (0, 2)
    world.learn("test")
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, UnsupportedVersionError) and "enable.idempotence=false" in str(error)


def test_throttled() -> None:
    """F testQuotaMetrics, O11: nothing is sent until the time is over, however short the request timeout."""
    world = World(request_timeout_ms=50)
    world.cluster.throttles.extend([100, 200, 300])
    for number, throttle in enumerate((100, 200, 300)):
        world.send(b"%d" % number)
        world.settle()
        assert len(world.values()) == number + 1
        assert world.parts.client.states.throttle_delay(0, world.now) == throttle
        world.send(b"waits", partition=1)
        world.run(throttle - 1, 9)
        assert len(world.cluster.requests()) == 2 * number + 1, "a request to a node that throttles"
        world.cluster.throttles.appendleft(0)
        world.run(2, 1)
        assert len(world.values(partition=1)) == number + 1
    assert world.metric("produce-throttle-time-max") == 300
    assert world.metric("produce-throttle-time-avg") == 100  # three answers of the six were not throttled
    assert world.metric("connection-creation-total") == 2  # the bootstrap server's and the broker's


def test_order_with_one_in_flight() -> None:
    """F testSendInOrder: max.in.flight 1; a move to another broker does not let the second batch pass the first."""
    world = World(nodes=2, max_in_flight_requests_per_connection=1, retries=1)
    hold(world, 1)
    world.send(b"first", partition=1)
    world.settle()
    assert world.in_flight == 1 and world.queue(partition=1).muted
    world.advance(900)
    world.send(b"second", partition=1)
    world.cluster.move("test", 1, 0)
    world.metadata.request_update(True)
    world.run(200)
    assert world.cluster.requests(0) == [] and len(held(world, 1)) == 1
    reply(world, (1, Answer(NOT_LEADER)), node=1)
    world.run(200)
    assert world.values(partition=1) == [b"first", b"second"]
    assert not world.queue(partition=1).muted


def test_appends_in_the_callbacks_of_an_expiry() -> None:
    """F testAppendInExpiryCallback: ten expire, each callback appends; no dead-lock, one new batch of ten."""
    world = World(delivery_timeout_ms=10_000, request_timeout_ms=9_000)
    hold(world)
    errors: list[BaseException | None] = []

    def again(report: Any) -> None:
        errors.append(report.error)
        world.send(b"again", partition=1)

    for _ in range(10):
        world.send(b"first", partition=1, on_delivery=again)
    world.settle()
    world.cluster.down(0)
    world.run(10_100, 500)
    assert [type(error) for error in errors] == [KafkaTimeoutError] * 10
    assert [batch.record_count for batch in world.queue(partition=1).batches] == [10]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(acks: str) -> None:
    world = World(acks=acks)
    told = Told()
    future = world.send(on_delivery=told)
    world.settle()
    assert future.done() and world.values() == [b"v"]
    (request,) = world.cluster.requests()
    assert request.body.acks == {"0": 0, "1": 1, "all": -1}[acks]
    offset = -1 if acks == "0" else 0
    assert (future.result(0).offset, told[0][0].offset) == (offset, offset)
    assert future.result(0).timestamp == world.clock.wall()
    assert world.pool.available() == world.pool.total


def test_without_acks_a_lost_connection_is_retried() -> None:
    world = World(acks="0", batch_size=1 << 20)
    world.selector.links[-1].stalled = True
    future = world.send(bytes(500_000))
    world.settle()
    assert not future.done()
    world.cluster.brokers[0].links[-1].reset()
    world.run(2000)
    assert future.done() and world.values() == [bytes(500_000)]


def test_log_append_time() -> None:
    world = World()
    hold(world)
    future = world.send(timestamp=5)
    world.settle()
    reply(world, (0, Answer(base_offset=3, log_append_time=1_600_000_000_000)))
    world.settle()
    assert (future.result(0).offset, future.result(0).timestamp) == (3, 1_600_000_000_000)


def test_no_more_in_flight_than_allowed() -> None:
    world = World(max_in_flight_requests_per_connection=2)
    hold(world)
    for number in range(4):
        world.send(b"%d" % number)
        world.settle(2)
    assert len(held(world)) == 2
    for offset in range(3):
        reply(world, (0, Answer(base_offset=offset)))
        world.settle(3)
    assert (world.queue().batches == [] and len(held(world)) == 0) or len(world.cluster.requests()) >= 3


def test_lingering() -> None:
    world = World(linger_ms=50)
    world.send(b"a")
    world.run(49, 7)
    assert world.cluster.requests() == []
    world.send(b"b")
    world.run(2, 1)
    assert world.values() == [b"a", b"b"]
    assert len(world.cluster.requests()) == 1


def test_the_turn_waits_until_the_linger_is_over() -> None:
    world = World(linger_ms=50)
    world.send()
    begun = world.now
    while not world.cluster.requests():
        world.wait()
    assert world.now - begun == pytest.approx(50, abs=1.5)


def test_a_full_batch_does_not_linger() -> None:
    world = World(linger_ms=50, batch_size=200)
    for _ in range(5):
        world.send(bytes(60))
    world.settle()
    assert len(world.values()) >= 4


def test_a_full_pool_sends_small_batches_only_when_nothing_else_can_go() -> None:
    world = World(linger_ms=1000, batch_size=1000, buffer_memory=2000, topics={"test": 2})
    world.send(b"small", partition=0)
    world.send(b"small", partition=1)
    world.settle()
    assert world.cluster.requests() == []
    ticket = CountingTicket()
    assert world.pool.allocate(1900, 0, ticket) is None
    world.settle()
    assert ticket.woken == 1
    assert world.values() == [b"small"] and world.values(partition=1) == [b"small"]


def test_linger_ends_in_time_also_while_somebody_waits_for_memory() -> None:
    world = World(linger_ms=20, batch_size=1000, buffer_memory=4000)
    world.cluster.brokers[0].held.add(PRODUCE)
    world.send(bytes(900), partition=0)
    world.run(20)
    assert len(world.sender.in_flight) == 1
    world.send(b"small", partition=1)
    sent = world.now
    assert world.pool.allocate(4000, 0, CountingTicket()) is None and world.pool.starved()
    while len(world.sender.in_flight) < 2:
        world.wait()
        assert world.now <= sent + 20
    assert world.now == sent + 20


def test_everything_goes_at_close() -> None:
    world = World(linger_ms=4000)
    futures = [world.send(partition=partition) for partition in (0, 1)]
    world.settle()
    assert world.cluster.requests() == []
    world.sender.request_close()
    world.accumulator.close()
    assert world.sender.has_work()
    world.settle()
    assert all(future.done() for future in futures)
    assert not world.sender.has_work()


def test_forced_end_fails_what_is_left() -> None:
    """C shouldCloseProperly (by force): waiting and in flight; memory when the connection is closed."""
    world = World(linger_ms=4000)
    hold(world)
    in_flight = world.send(partition=0)
    world.accumulator.begin_flush()
    world.settle()
    world.accumulator.end_flush()
    waiting = world.send(partition=1)
    world.settle(1)
    assert world.accumulator.unfinished_records() == 2
    world.accumulator.close()
    error = KafkaError("Producer is closed forcefully.")
    world.sender.outcomes.fail_all(error)
    assert [repr(future.exception(0)) for future in (in_flight, waiting)] == [repr(error)] * 2
    assert not world.accumulator.has_incomplete()
    assert world.pool.available() < world.pool.total
    world.parts.client.close(world.now)
    assert world.pool.available() == world.pool.total


def test_metrics_of_a_request() -> None:
    world = World()
    for number in range(4):
        world.send(bytes(10 * number))
    world.settle()
    assert world.metric("record-send-total") == 4
    assert world.metric("records-per-request-avg") == 4
    assert world.metric("record-send-total", "producer-topic-metrics", topic="test") == 4
    assert world.metric("batch-size-avg") == world.metric("batch-size-max") > 61
    assert world.metric("requests-in-flight") == 0
    assert world.metric("buffer-available-bytes") == world.metric("buffer-total-bytes")


def test_answers_come_in_the_order_of_the_requests() -> None:
    """O12: callbacks of a partition follow the order of the appends."""
    world = World(idempotent=True)
    order: list[bytes] = []

    def note(value: bytes) -> Callable[..., None]:
        return lambda report: order.append(value)

    for number in range(20):
        world.send(b"%d" % number, on_delivery=note(b"%d" % number))
        if number % 3 == 0:
            world.settle(2)
    world.settle()
    assert order == [b"%d" % number for number in range(20)] == world.values()


def test_a_request_on_its_way_out_is_not_followed_by_more() -> None:
    world = World(batch_size=1 << 20)
    world.selector.links[-1].stalled = True
    world.send(bytes(300_000), partition=0)
    world.settle(2)
    world.send(b"grows", partition=1)
    world.settle(2)
    world.send(b"with this", partition=1)
    world.settle(2)
    world.selector.links[-1].stalled = False
    world.settle()
    assert len(world.cluster.requests()) == 2
    assert world.values(partition=1) == [b"grows", b"with this"]


def test_a_network_error_names_the_node() -> None:
    world = World(retries=0)
    world.cluster.lose(processed=False)
    future = world.send()
    world.settle()
    error = future.exception(0)
    assert isinstance(error, NetworkError) and error.context["node"] == 0


def test_moving_on_after_a_stale_leader() -> None:
    world = World(nodes=2, topics={"test": 1})
    world.cluster.move("test", 0, 1)
    future = world.send()
    world.run(500)
    assert future.result(0).offset == 0
    assert NotLeaderOrFollowerError.invalid_metadata
    assert len(world.cluster.requests(1)) == 1


def test_windows_of_metrics_end_although_nobody_reads() -> None:
    """A reader that comes after two windows finds what was sent in the second one, and not what was sent before."""
    world = World()
    world.send(bytes(1_000))
    world.run(35_000, 100)
    world.send(bytes(10))
    world.run(26_000, 100)
    assert world.metric("record-size-max") < 1_000
