"""Connections that end, wait and are begun again: back-off, handshakes cut short, what completes how."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from forebay._network.inflight import ClientResponse
from forebay.errors import UnsupportedVersionError
from forebay.model import Node
from tests.fakes.broker import API_VERSIONS, METADATA, PRODUCE, Received

from .world import Sent, World

BROKER = Node(1, "127.0.0.1", 9001)


def test_a_first_request_that_cannot_be_made_gives_the_connection_up() -> None:
    """Its node goes on with what is left of the turn without a connection."""
    world = World(client_id="x" * 32_768)
    world.settle(5)
    assert world.client.in_flight == 0
    assert [request for broker in world.cluster.brokers.values() for request in broker.of(API_VERSIONS)] == []
    error = world.client.states.last_error(-1)
    assert error is not None and "client.id of 32768 bytes, at most 32767" in str(error)


def throttled(ms: int) -> Callable[[int, bytes], object]:
    return lambda version, payload: SimpleNamespace(throttle_time_ms=ms)


def fail_once(world: World) -> float:
    """An attempt at node 1 that fails; the back-off after it."""
    assert not world.client.ready(BROKER, world.now)
    world.settle(3)
    assert world.client.states.failed(BROKER.id)
    return world.client.states.connection_delay(BROKER.id, world.now)


@pytest.mark.parametrize(("draw", "factor"), [(0.0, 0.8), (0.25, 0.9), (0.9999, 1.2)])
def test_connection_delay_with_jitter(draw: float, factor: float) -> None:
    """M testConnectionDelayDisconnectedWithExponentialBackoff: 10000, then 20000, each 20 % either way."""
    world = World(reconnect_backoff_max_ms=100_000, bootstrap=[BROKER], random=draw)
    world.cluster.down(1)
    first = fail_once(world)
    assert first == pytest.approx(10_000 * factor, rel=0.001)
    world.clock.advance(first)
    assert fail_once(world) == pytest.approx(20_000 * factor, rel=0.001)


def test_no_exponential_backoff() -> None:
    """M testConnectionDelayDisconnected: with the maximum at the base every wait is the base, without jitter."""
    world = World(bootstrap=[BROKER], random=0.1)
    world.cluster.down(1)
    for _ in range(4):
        assert fail_once(world) == 10_000
        world.clock.advance(10_000)


def test_a_node_that_moved_is_named_anew(caplog: pytest.LogCaptureFixture) -> None:
    """Each address that cannot be reached gets its line; the same one again soon does not."""
    world = World(2, bootstrap=[BROKER], reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    moved = Node(1, "127.0.0.1", 9002)
    for node in (BROKER, BROKER, moved):
        world.cluster.down(node.port - 9000)
        assert not world.client.ready(node, world.now)
        world.settle(3)
        world.clock.advance(100)
    lines = [record.getMessage() for record in caplog.records if "could not be established" in record.getMessage()]
    assert [line.split(" (id 1)")[0] for line in lines] == [
        "Connection to node 127.0.0.1:9001",
        "Connection to node 127.0.0.1:9002",
    ]


def test_hanging_up_in_the_handshake_counts_as_a_failure() -> None:
    """M testServerDisconnectAfterInternalApiVersionRequest: never ready, each wait twice as long, up to the maximum."""
    world = World(reconnect_backoff_max_ms=100_000, bootstrap=[BROKER])
    world.broker().script[API_VERSIONS] = lambda request: request.link.close()
    waits = []
    for _ in range(5):
        waits.append(fail_once(world))
        assert not world.client.is_ready(BROKER, world.now)
        assert world.client.in_flight_count() == 0
        world.clock.advance(waits[-1])
    assert waits == pytest.approx([10_000, 20_000, 40_000, 80_000, 100_000])
    assert world.order == []
    world.broker().script.clear()
    world.until_ready()


def test_disconnect_in_the_handshake() -> None:
    """M testClientDisconnectAfterInternalApiVersionRequest: nothing is left in flight, and the next one is whole."""
    world = World(bootstrap=[BROKER])
    world.broker().held.add(API_VERSIONS)
    world.client.ready(BROKER, world.now)
    world.settle(2)
    assert world.client.in_flight_count(1) == 1
    world.client.disconnect(1, world.now)
    assert (world.client.in_flight_count(1), world.client.in_flight_count()) == (0, 0)
    assert world.client.states.failed(BROKER.id)
    world.settle(2)
    world.broker().held.clear()
    world.clock.advance(10_000)
    world.until_ready()
    assert len(world.broker().of(API_VERSIONS)) == 2


def test_a_broker_that_refuses_every_version_of_the_handshake() -> None:
    """M, beyond the list: asked twice on one connection, not for ever."""
    world = World(bootstrap=[BROKER])
    broker = world.broker()
    broker.script[API_VERSIONS] = lambda request: broker.answer_versions(request, error=35, ranges={})
    world.settle(20)
    assert [request.version for request in broker.of(API_VERSIONS)] == [4, 0]
    assert world.client.states.failed(BROKER.id)
    assert not broker.links[0].open


def test_setup_timeout_doubles() -> None:
    """M testConnectionSetupTimeout: the second attempt has twice the time, up to the maximum."""
    world = World(bootstrap=[BROKER], setup_timeout_max_ms=15_000, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    world.selector.swallow(world.cluster.address(1))
    for allowed in (5000, 10_000, 15_000, 15_000):
        assert not world.client.ready(BROKER, world.now)
        world.clock.advance(allowed)
        world.poll()
        assert not world.client.states.failed(BROKER.id)
        world.clock.advance(1)
        world.poll()
        assert world.client.states.failed(BROKER.id)
        world.clock.advance(50)


def test_a_lost_metadata_request_is_made_again() -> None:
    """M, beyond the list: after its back-off, by whatever node there is."""
    world = World(2)
    world.settle()
    version = world.metadata.version
    for broker in world.cluster.brokers.values():
        world.until_ready(broker.node)
        broker.held.add(METADATA)
    world.clock.advance(200)
    world.metadata.request_update()
    world.poll()
    asked = next(broker for broker in world.cluster.brokers.values() if broker.waiting)
    asked.drop()
    for broker in world.cluster.brokers.values():
        broker.held.clear()
    world.poll()
    assert world.metadata.version == version
    assert world.metadata.time_to_next_update(world.now) == 100
    world.clock.advance(100)
    for _ in range(10):
        world.poll(100)
    assert world.metadata.version == version + 1


def test_answers_that_came_before_the_end_count() -> None:
    """M, beyond the list: what was answered is answered, only the rest is lost."""
    world = World()
    world.echo()
    world.until_ready()
    world.broker().held.add(PRODUCE)
    sent = []
    for _ in range(3):
        sent.append(world.send())
        world.poll()
    answered, dropped, _ = list(world.broker().waiting)
    answered.answer_bytes(b"answer")
    dropped.link.close()
    world.settle(2)
    assert [one.response.body for one in sent] == [b"answer", None, None]
    assert [one.response.disconnected for one in sent] == [False, True, True]
    assert world.order == sent


def test_one_overdue_request_ends_all_of_its_connection() -> None:
    """M testRequestTimeout: the shorter time of a later request counts; order is kept, other nodes go on."""
    world = World(2)
    world.until_ready(world.node(1))
    world.until_ready(world.node(2))
    patient = world.send(1, timeout_ms=5000)
    elsewhere = world.send(2, timeout_ms=5000)
    world.poll()
    hasty = world.send(1, timeout_ms=1000)
    world.poll()
    world.clock.advance(1001)
    world.poll()
    assert world.order == [patient, hasty]
    assert [one.response.timed_out for one in (patient, hasty)] == [True, True]
    assert "within 1000 ms" in str(patient.response.error)
    assert (elsewhere.responses, world.client.in_flight_count(2)) == ([], 1)


def test_overdue_before_it_is_written() -> None:
    """M testRequestTimeout, O1: its buffers are let go, unwritten, before it completes."""
    world = World()
    world.until_ready()
    world.broker().links[-1].stalled = True
    told: list[str] = []
    sent = world.send(
        on_written=lambda written: told.append(f"written={written}"), on_complete=lambda response: told.append("done")
    )
    world.poll()
    world.clock.advance(1001)
    world.poll()
    assert told == ["written=False", "done"]
    assert sent.responses == []  # replaced by the one above
    assert world.client.in_flight_count() == 0


def test_connection_throttling() -> None:
    """M testConnectionThrottling: not ready for the 100 ms that a produce answer says, and ready then."""
    world = World()
    world.echo()
    world.until_ready()
    world.send(parse=throttled(100))
    world.settle()
    for left in (100, 50):
        assert not world.client.ready(world.node(), world.now)
        assert world.client.states.throttle_delay(1, world.now) == left
        world.clock.advance(50)
    assert world.client.ready(world.node(), world.now)
    assert world.client.states.throttle_delay(1, world.now) == 0


def test_throttled_from_the_handshake_on() -> None:
    """F testQuotaMetrics: 400 ms of the version check's answer are waited for."""
    world = World()
    world.settle()
    world.broker().throttle_ms = 400
    world.client.ready(world.node(), world.now)
    world.settle(3)
    world.broker().throttle_ms = 0
    assert not world.client.is_ready(world.node(), world.now)
    assert world.client.states.throttle_delay(1, world.now) == 400
    assert world.client.states.poll_delay(world.node().id, world.now) == 400
    world.clock.advance(399)
    assert not world.client.ready(world.node(), world.now)
    world.clock.advance(1)
    assert world.client.ready(world.node(), world.now)


def test_one_throttled_node_does_not_hold_up_another() -> None:
    """M, beyond the list: each connection for itself."""
    world = World(2)
    for node_id in (1, 2):
        world.echo(node_id)
        world.until_ready(world.node(node_id))
    world.send(1, parse=throttled(1000))
    world.settle()
    assert [world.client.is_ready(world.node(node_id), world.now) for node_id in (1, 2)] == [False, True]
    sent = world.send(2)
    world.settle()
    assert sent.response.body == b"answer"


def test_throttling_outlives_its_connection() -> None:
    """M, beyond the list: a broker that is to be left alone is not asked again after a reconnect."""
    world = World(bootstrap=[BROKER], reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    world.echo()
    world.until_ready()
    world.send(parse=throttled(1000))
    world.settle(3)
    world.broker().drop()
    world.poll()
    world.clock.advance(60)
    world.client.ready(BROKER, world.now)
    world.settle(3)
    assert not world.client.states.failed(BROKER.id)
    assert not world.client.is_ready(BROKER, world.now)
    world.clock.advance(1000)
    world.until_ready(BROKER)


def test_a_callback_may_send_the_next_request() -> None:
    """M, beyond the list: every one completes once, a turn after the other."""
    world = World()
    world.echo()
    world.until_ready()
    later: list[Sent] = []

    def again(response: ClientResponse) -> None:
        later.append(world.send())

    world.send(on_complete=again)
    world.settle(3)
    assert len(later) == 1
    world.settle(3)
    assert [one.response.body for one in later] == [b"answer"]


def test_a_callback_may_disconnect_its_node() -> None:
    """M testCallDisconnect: also in the middle of several answers; each request completes once."""
    world = World()
    world.echo()
    world.until_ready()
    world.broker().held.add(PRODUCE)
    first = world.send(on_complete=lambda response: world.client.disconnect(1, world.now))
    world.poll()
    others = [world.send()]
    world.poll()
    others.append(world.send())
    world.poll()
    for request in world.broker().waiting[:2]:
        request.answer_bytes(b"answer")
    world.settle(3)
    assert first.responses == []  # its own callback was called instead
    assert [one.response.body for one in others] == [b"answer", None]
    assert others[1].response.disconnected
    assert world.client.in_flight_count() == 0


def test_connection_count() -> None:
    """M, beyond the list: what stands is counted, not what is being made."""
    world = World(2, bootstrap=[Node(node_id, "127.0.0.1", 9000 + node_id) for node_id in (1, 2)])
    assert world.client.states.established_count() == 0
    world.until_ready(world.node(1))
    world.until_ready(world.node(2))
    assert world.client.states.established_count() == 2
    world.cluster.down(1)
    world.poll()
    assert world.client.states.established_count() == 1
    assert not world.client.ready(world.node(1), world.now)
    assert world.client.states.established_count() == 1
    world.client.close(world.now)
    assert world.client.states.established_count() == 0
    assert world.metrics.connections_closed.count == world.metrics.connections_created.count


def test_versions_are_asked_for_anew_after_a_reconnect() -> None:
    """M, beyond the list: a broker that was upgraded meanwhile is known by its new versions."""
    world = World(bootstrap=[BROKER])
    world.broker().ranges[PRODUCE] = (3, 8)
    world.until_ready()
    world.broker().drop()
    world.poll()
    assert world.client.versions.get(1) is None
    world.broker().ranges[PRODUCE] = (9, 12)
    world.clock.advance(10_000)
    world.until_ready()
    versions = world.client.versions.get(1)
    assert versions is not None
    assert versions.ranges[PRODUCE] == (9, 12)
    sent = world.send(versions=(3, 8))
    world.poll()
    assert isinstance(sent.response.error, UnsupportedVersionError)


def test_least_loaded_node_has_the_fewest_in_flight() -> None:
    """M, beyond the list: ready ones by what they have in flight, before any that has to be connected."""
    world = World(3, random=0.0)
    for node_id in (1, 2):
        world.until_ready(world.node(node_id))
    for node_id in (1, 2, 1):
        world.send(node_id)
        world.poll()
    assert world.client.least_loaded_node(world.now) == world.node(2)
    world.send(2)
    world.poll()
    world.send(2)
    world.poll()
    assert world.client.least_loaded_node(world.now) == world.node(1)
    world.until_ready(world.node(3))
    assert world.client.least_loaded_node(world.now) == world.node(3)


def test_an_answer_for_a_connection_that_is_gone_is_not_heard() -> None:
    """M, beyond the list: a late answer completes nothing twice, nor the next connection's request."""
    world = World(bootstrap=[BROKER])
    world.until_ready()
    late: list[Received] = []
    world.broker().script[PRODUCE] = late.append
    old = world.send()
    world.poll()
    world.client.disconnect(1, world.now)
    world.clock.advance(10_000)
    world.until_ready()
    new = world.send()
    world.poll()
    late[0].answer_bytes(b"late")
    world.settle(3)
    assert old.response.disconnected
    assert new.responses == []
    late[1].answer_bytes(b"answer")
    world.settle(3)
    assert new.response.body == b"answer"
