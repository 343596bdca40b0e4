from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from forebay.errors import DisconnectError, IllegalStateError, ProtocolError, UnsupportedVersionError
from forebay.model import Node
from tests.fakes.broker import API_VERSIONS, PRODUCE

from .world import World


def test_send_to_unready_node() -> None:
    """M testSendToUnreadyNode: refused, and the request stays the caller's."""
    world = World()
    with pytest.raises(IllegalStateError, match="node 1 which is not ready"):
        world.send()
    assert world.client.in_flight_count() == 0


def test_simple_request_response() -> None:
    """M testSimpleRequestResponse: completes once, with the answer to this request."""
    world = World()
    world.echo()
    world.until_ready()
    sent = world.send()
    assert world.client.in_flight_count(1) == 1
    world.settle()
    assert sent.response.body == b"answer"
    assert (sent.response.error, sent.response.disconnected, sent.response.timed_out) == (None, False, False)
    assert sent.written == [True]
    request = world.broker().of(PRODUCE)[0]
    assert request.correlation_id == sent.response.request.correlation_id
    assert (request.version, request.client_id, request.payload) == (8, "mock", b"body of version 8")
    assert world.client.in_flight_count() == 0
    assert world.client.is_ready(world.node(), world.now)


def test_answer_in_single_bytes() -> None:
    world = World()
    world.echo()
    world.until_ready()
    world.broker().links[0].split = 1
    sent = world.send()
    world.settle(30)
    assert sent.response.body == b"answer"


def test_several_answers_at_once() -> None:
    world = World()
    world.echo()
    world.until_ready()
    world.broker().held.add(PRODUCE)
    sent = []
    for _ in range(3):
        sent.append(world.send())
        world.poll()
    world.broker().release()
    world.poll()
    assert [one.response.body for one in sent] == [b"answer"] * 3
    assert world.order == sent


def test_close() -> None:
    """M testClose: what is in flight completes as disconnected, the node is not ready."""
    world = World()
    world.until_ready()
    sent = world.send()
    world.poll()
    assert world.client.in_flight_count() == 1
    world.client.close(world.now)
    assert world.client.in_flight_count() == 0
    assert sent.response.disconnected
    assert not world.client.is_ready(world.node(), world.now)
    assert not world.client.ready(world.node(), world.now)


def test_close_lets_go_of_unwritten_buffers() -> None:
    world = World()
    world.until_ready()
    sent = world.send()
    world.client.close(world.now)
    assert sent.written == [False]
    assert sent.response.disconnected


def test_an_answer_before_the_request_is_written_costs_the_connection() -> None:
    """The buffers are let go by the closed channel, and only then does the request complete."""
    world = World()
    world.until_ready()
    link = world.broker().links[-1]
    link.stalled = True
    sent = world.send()
    world.poll()
    assert sent.written == []
    link.send(b"\0\0\0\x04" + bytes(4))
    world.settle()
    assert isinstance(sent.response.error, ProtocolError)
    assert "answered before its Produce request was written in full" in str(sent.response.error)
    assert (sent.response.disconnected, sent.written) == (True, [False])
    assert not world.client.is_ready(world.node(), world.now)


def throttled(ms: int) -> Callable[[int, bytes], object]:
    return lambda version, payload: SimpleNamespace(throttle_time_ms=ms)


def test_connection_timeout_after_throttling() -> None:
    """M testConnectionTimeoutAfterThrottling: the time a broker throttles does not count for other requests."""
    world = World()
    world.echo()
    world.until_ready()
    world.broker().held.add(PRODUCE)
    first = world.send(timeout_ms=1000, parse=throttled(1000))
    world.poll()
    second = world.send(timeout_ms=1000)
    world.poll()
    assert len(world.broker().waiting) == 2
    held = world.broker().waiting.pop(0)
    held.answer_bytes(b"")
    world.poll()
    assert first.response.throttle_ms == 1000
    assert not world.client.is_ready(world.node(), world.now)
    assert world.client.states.throttle_delay(1, world.now) == 1000
    world.clock.advance(1500)
    world.poll()
    assert second.responses == []
    assert world.client.in_flight_count(1) == 1
    assert world.client.is_ready(world.node(), world.now)


def test_old_brokers_throttle_by_themselves() -> None:
    """M testThrottlingNotEnabledForConnectionToOlderBroker, O item 11: below Produce v6 we do not throttle."""
    world = World()
    world.echo()
    world.until_ready()
    sent = world.send(versions=(3, 5), parse=throttled(1000))
    world.settle()
    assert sent.response.throttle_ms == 0
    assert world.client.ready(world.node(), world.now)
    assert world.client.states.throttle_delay(1, world.now) == 0


def test_connection_delay() -> None:
    """M testConnectionDelay, testConnectionDelayConnected, testConnectionDelayDisconnected: 0, infinite, back-off."""
    world = World(bootstrap=[Node(1, "127.0.0.1", 9001)])
    assert world.client.states.connection_delay(world.node().id, world.now) == 0
    world.until_ready()
    assert world.client.states.connection_delay(world.node().id, world.now) == float("inf")
    world.cluster.down(1)
    world.poll()
    assert world.client.states.connection_delay(world.node().id, world.now) == pytest.approx(10_000)


def test_connection_delay_grows() -> None:
    """M testConnectionDelayDisconnectedWithExponentialBackoff: about twice as long after the second failure."""
    world = World(reconnect_backoff_max_ms=100_000, bootstrap=[Node(1, "127.0.0.1", 9001)])
    world.until_ready()
    world.cluster.down(1)
    world.poll()
    first = world.client.states.connection_delay(world.node().id, world.now)
    world.clock.advance(first)
    assert not world.client.ready(world.node(), world.now)
    world.poll()
    assert world.client.states.connection_delay(world.node().id, world.now) == pytest.approx(2 * first, rel=0.01)


def test_disconnect_with_multiple_in_flights() -> None:
    """M testDisconnectWithMultipleInFlights: both fail in the order they were sent."""
    world = World()
    world.until_ready()
    sent = []
    for _ in range(2):
        sent.append(world.send())
        world.poll()
    world.broker().links[-1].close()
    world.poll()
    assert [one.response.disconnected for one in sent] == [True, True]
    assert [isinstance(one.response.error, DisconnectError) for one in sent] == [True, True]
    assert world.order == sent
    assert world.metadata.update_requested


def test_disconnect_during_user_request() -> None:
    """M testDisconnectDuringUserMetadataRequest: the user's response says so."""
    world = World()
    world.until_ready()
    sent = world.send()
    world.poll()
    world.broker().links[-1].reset()
    world.poll()
    assert sent.response.disconnected
    assert not sent.response.timed_out


def test_call_disconnect() -> None:
    """M testCallDisconnect: failed, not to be tried; calling again does not prolong the back-off."""
    world = World()
    world.until_ready()
    world.client.disconnect(1, world.now)
    assert not world.client.is_ready(world.node(), world.now)
    assert world.client.states.failed(world.node().id)
    delay = world.client.states.connection_delay(world.node().id, world.now)
    assert delay > 0
    world.clock.advance(delay / 2)
    world.client.disconnect(1, world.now)
    assert world.client.states.connection_delay(world.node().id, world.now) == pytest.approx(delay / 2)


def test_correlation_ids() -> None:
    """M testCorrelationId: 100 distinct ones, below those set apart for authentication."""
    world = World()
    world.until_ready()
    for _ in range(100):
        world.send()
        world.poll()
    ids = {request.correlation_id for request in world.broker().of(PRODUCE)}
    assert len(ids) == 100
    assert max(ids) < 0x7FFFFFFF - 7


def test_user_disconnect_completes_in_the_next_turn() -> None:
    world = World()
    world.until_ready()
    sent = world.send()
    world.client.disconnect(1, world.now)
    assert (sent.responses, sent.written) == ([], [False])
    world.poll(5000)
    assert sent.response.disconnected


def test_wrong_correlation_id_is_a_protocol_error() -> None:
    world = World()
    world.until_ready()
    world.broker().script[PRODUCE] = lambda request: request.link.send(b"\0\0\0\x06\0\x01\xe2\x40ok")
    sent = world.send()
    world.settle(2)
    assert isinstance(sent.response.error, ProtocolError)
    assert sent.response.disconnected
    assert "correlation id 123456" in str(sent.response.error)
    assert not world.broker().links[-1].open


@pytest.mark.parametrize(
    ("said", "guess"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP server"), (b"\x15\x03\x03\x00\x02\x02\x46", "TLS listener")],
)
def test_something_that_is_not_kafka(said: bytes, guess: str, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.broker().script[API_VERSIONS] = lambda request: request.link.send(said)
    world.settle()
    lines = [record.getMessage() for record in caplog.records if "Kafka protocol" in record.getMessage()]
    assert len(lines) == 1
    assert guess in lines[0]
    assert "127.0.0.1:9001" in lines[0]


def test_garbage_from_a_parser_closes_the_connection() -> None:
    world = World()
    world.echo()
    world.until_ready()

    def parse(version: int, payload: bytes) -> object:
        raise KeyError("partition")

    sent = world.send(parse=parse)
    world.settle(2)
    assert isinstance(sent.response.error, ProtocolError)
    assert "cannot read its Produce v8 answer: KeyError('partition')" in str(sent.response.error)


def test_answer_nobody_asked_for() -> None:
    world = World()
    world.until_ready()
    world.broker().links[-1].send(b"\0\0\0\x05\0\0\0\x01x")
    world.poll()
    assert not world.client.is_ready(world.node(), world.now)


def test_no_common_version_completes_with_the_reason() -> None:
    world = World()
    world.until_ready()
    sent = world.send(versions=(0, 2))
    assert sent.responses == []
    world.poll(5000)
    assert isinstance(sent.response.error, UnsupportedVersionError)
    assert not sent.response.disconnected
    assert sent.written == [False]
    assert "Produce versions 3 to 13 only" in str(sent.response.error)
    assert "127.0.0.1:9001" in str(sent.response.error)
    assert world.client.is_ready(world.node(), world.now)


def test_a_request_that_cannot_be_built_completes() -> None:
    world = World()
    world.until_ready()

    def build(version: int) -> list[bytes]:
        raise ZeroDivisionError

    sent = world.send(build=build)
    world.poll()
    assert "ZeroDivisionError" in str(sent.response.error)
    assert sent.written == [False]
    assert world.client.in_flight_count() == 0


class NoBuffer:
    """Has a length and no bytes."""

    def __len__(self) -> int:
        return 4


@pytest.mark.parametrize("expect_response", [True, False])
def test_buffers_that_cannot_be_written_leave_nothing_behind(expect_response: bool) -> None:
    world = World()
    world.echo()
    world.until_ready()
    sent = world.send(build=lambda version: [b"head", NoBuffer()], expect_response=expect_response)
    world.poll()
    assert "NoBuffer" in str(sent.response.error)
    assert sent.written == [False]
    assert world.client.in_flight_count() == 0
    after = world.send()
    world.settle(3)
    assert after.response.body == b"answer"


def test_no_answer_expected() -> None:
    world = World()
    world.until_ready()
    sent = world.send(expect_response=False)
    assert sent.responses == []
    world.poll()
    assert sent.response.body is None
    assert sent.response.error is None
    assert not sent.response.disconnected
    assert world.client.in_flight_count() == 0
    again = world.send(expect_response=False)
    world.poll()
    assert again.response.error is None
    assert len(world.broker().of(PRODUCE)) == 2


def test_no_answer_expected_behind_one_that_is() -> None:
    world = World()
    world.echo()
    world.until_ready()
    world.broker().held.add(PRODUCE)
    first = world.send()
    world.poll()
    second = world.send(expect_response=False)
    world.poll()
    assert second.response.error is None
    assert first.responses == []
    world.broker().waiting.pop()
    world.broker().release()
    world.poll()
    assert first.response.body == b"answer"


def test_not_ready_while_the_last_request_is_being_written() -> None:
    world = World()
    world.until_ready()
    world.broker().links[-1].stalled = True
    world.send()
    world.poll()
    assert not world.client.is_ready(world.node(), world.now)
    world.broker().links[-1].stalled = False
    world.poll()
    assert world.client.is_ready(world.node(), world.now)


def test_not_ready_at_the_in_flight_limit() -> None:
    world = World(max_in_flight=2)
    world.until_ready()
    for _ in range(2):
        assert world.client.is_ready(world.node(), world.now)
        world.send()
        world.poll()
    assert not world.client.is_ready(world.node(), world.now)


def test_close_connecting_node() -> None:
    """M testCloseConnectingNode: the other nodes stay usable."""
    world = World(2)
    world.until_ready(world.node(1))
    world.selector.swallow(world.cluster.address(2))
    world.client.ready(world.node(2), world.now)
    world.client.disconnect(2, world.now)
    world.cluster.up(2)
    world.echo()
    sent = world.send(1)
    world.settle(3)
    assert sent.response.body == b"answer"
    world.clock.advance(10_000)
    world.until_ready(world.node(2))
    assert world.client.is_ready(world.node(2), world.now)


def test_a_failing_callback_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.echo()
    world.until_ready()

    def explode(response: object) -> None:
        raise RuntimeError("user code")

    world.send(on_complete=explode)
    world.poll()
    second = world.send()
    world.settle(3)
    assert second.response.body == b"answer"
    assert any("Uncaught error in request completion" in record.getMessage() for record in caplog.records)


def test_magic_and_features_follow_the_brokers() -> None:
    world = World(2)
    world.broker(2).ranges[PRODUCE] = (0, 2)
    world.broker(1).finalized = (1, {"transaction.version": 2})
    world.until_ready(world.node(1))
    world.until_ready(world.node(2))
    assert world.client.versions.max_usable_produce_magic == 1
    assert world.client.versions.features.levels["transaction.version"] == (0, 2)
    world.cluster.down(2)
    world.poll()
    world.settle(2)
    world.client.disconnect(-2, world.now)
    assert world.client.versions.max_usable_produce_magic == 2


def test_metrics_count_requests_and_connections() -> None:
    world = World()
    world.echo()
    world.until_ready()
    before = world.metrics.requests.count
    size_before = world.metrics.bytes_out.total
    world.send()
    world.settle(3)
    assert world.metrics.requests.count == before + 1
    assert world.metrics.bytes_out.total - size_before == 4 + 10 + 4 + 17
    assert world.metrics.connections_created.count == 2
    assert world.metrics.node(1, world.now).latency.count >= 1
