"""The end of client telemetry (KIP-714) with its producer, and the id that brokers know a producer by."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from forebay.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError, ProducerClosedError
from tests.fakes.telemetry import INSTANCE_TEXT, INTERVAL_MS, PUSH, world_with_receiver
from tests.fakes.waiting import meanwhile
from tests.fakes.world import PumpedThread, World

MINUTES_5 = 300_000
START_MS = 100


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "forebay.telemetry"]


def test_the_last_push_has_the_last_records() -> None:
    """KIP-714: terminating, with what was sent up to the end."""
    world, receiver = world_with_receiver(linger_ms=4000)
    PumpedThread(world)
    world.run(2 * INTERVAL_MS, 100)
    count = len(receiver.pushes)
    world.send()
    world.producer.close()
    (last,) = receiver.pushes[count:]
    assert last.terminating and last.value("producer.record.send.total") == 1
    assert not any(push.terminating for push in receiver.pushes[:count])


def test_the_last_push_while_another_has_no_answer() -> None:
    world, receiver = world_with_receiver()
    PumpedThread(world)
    receiver.delta = True
    world.send()
    world.run(START_MS + 50, 10)
    world.cluster.brokers[0].held.add(PUSH)
    world.until(lambda: bool(world.cluster.brokers[0].of(PUSH)))
    world.selector.call_at(world.now + 50, world.cluster.brokers[0].release)
    world.producer.close()
    assert [push.terminating for push in receiver.pushes] == [False, True]
    assert [push.value("producer.record.send.total") for push in receiver.pushes] == [1, 0]


def test_the_end_waits_a_second_for_the_last_push_and_no_longer() -> None:
    world, _ = world_with_receiver()
    PumpedThread(world)
    world.run(2 * INTERVAL_MS, 100)
    world.cluster.brokers[0].held.add(PUSH)
    begun = world.now
    world.producer.close()
    assert 900 <= world.now - begun <= 1_100


def test_a_close_with_less_time_ends_in_time_and_without_an_error() -> None:
    world, _ = world_with_receiver()
    PumpedThread(world)
    world.run(2 * INTERVAL_MS, 100)
    world.cluster.brokers[0].held.add(PUSH)
    begun = world.now
    future = world.send()
    world.producer.close(0.3)
    assert world.now - begun <= 310 and future.done()


@pytest.mark.parametrize("when", [0, START_MS - 10])
def test_without_a_subscription_the_end_tells_nobody(when: float) -> None:
    world, receiver = world_with_receiver()
    PumpedThread(world)
    world.run(when, 10)
    begun = world.now
    world.producer.close()
    assert receiver.pushes == [] and world.now - begun <= 20


def test_a_cluster_that_wanted_nothing_is_told_nothing_at_the_end() -> None:
    world, receiver = world_with_receiver()
    PumpedThread(world)
    receiver.metrics = ()
    world.run(INTERVAL_MS / 2, 100)
    world.producer.close()
    assert receiver.asked and receiver.pushes == []


def test_nothing_is_told_at_the_end_where_no_broker_is_connected() -> None:
    world, receiver = world_with_receiver()
    PumpedThread(world)
    world.run(2 * INTERVAL_MS, 100)
    count = len(receiver.pushes)
    world.cluster.down(0)
    world.settle()
    begun = world.now
    world.producer.close()
    assert len(receiver.pushes) == count and world.now - begun <= 20


# client_instance_id


def test_the_instance_id_is_waited_for() -> None:
    """C testClientInstanceId."""
    world, _ = world_with_receiver()
    begun = world.now
    assert meanwhile(world, lambda: world.producer.client_instance_id(5)) == INSTANCE_TEXT
    assert world.now - begun <= START_MS + 50
    assert world.producer.client_instance_id(0) == INSTANCE_TEXT


def test_no_instance_id_in_time() -> None:
    world = World()
    with pytest.raises(KafkaTimeoutError, match="no connected broker takes client telemetry"):
        world.producer.client_instance_id(0)
    world, _ = world_with_receiver()
    with pytest.raises(KafkaTimeoutError, match="no broker has answered GetTelemetrySubscriptions yet"):
        world.producer.client_instance_id(0)


def test_calls_that_cannot_be() -> None:
    """C testClientInstanceId: a timeout of -1, and without telemetry."""
    world, _ = world_with_receiver()
    with pytest.raises(IllegalArgumentError, match="The timeout cannot be negative: -1"):
        world.producer.client_instance_id(-1)
    with pytest.raises(IllegalStateError, match=r"set enable\.metrics\.push to true"):
        World(enable_metrics_push=False).producer.client_instance_id(0)


def test_a_wait_ends_with_the_producer() -> None:
    world = World()
    PumpedThread(world)
    ended = meanwhile(world, lambda: world.producer.client_instance_id(20), each=lambda: world.producer.close(0))
    assert isinstance(ended, ProducerClosedError)


def test_a_callback_cannot_wait_for_it() -> None:
    world, _ = world_with_receiver()
    raised: list[BaseException] = []

    def callback(report: Any) -> None:
        world.parts.thread.ident = threading.get_ident()
        try:
            world.producer.client_instance_id(1)
        except IllegalStateError as found:
            raised.append(found)

    world.send(on_delivery=callback)
    world.settle()
    assert "client_instance_id() cannot wait in a delivery callback" in str(raised[0])


def test_without_the_package_nobody_is_asked_and_the_call_says_what_is_missing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay._insight.telemetry.offer.is_installed", lambda: False)
    with caplog.at_level(logging.INFO):
        world, receiver = world_with_receiver(nodes=2)
        world.run(MINUTES_5, 10_000)
    assert receiver.asked == [] and world.sender.telemetry is None
    (line,) = lines(caplog)
    assert "The cluster takes metrics, but the package opentelemetry-proto is not installed: pip install" in line
    with pytest.raises(IllegalStateError, match=r"opentelemetry-proto is not installed: pip install 'forebay\[telem"):
        world.producer.client_instance_id(0)


def test_what_is_logged_where_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        world, _ = world_with_receiver()
        world.run(5 * INTERVAL_MS, 100)
    (line,) = lines(caplog)
    assert line.endswith(f"The cluster gets metrics each {INTERVAL_MS} ms; client instance id {INSTANCE_TEXT}")
