from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import ProtocolError, SslAuthenticationError, UnsupportedVersionError
from forebay.model import Node
from forebay.testing.resolver import StaticResolver
from tests.fakes.broker import API_VERSIONS, METADATA

from .world import World


def test_unsupported_version_during_metadata_request() -> None:
    """M testUnsupportedVersionDuringInternalMetadataRequest: reaches everybody who waits for metadata."""
    world = World()
    world.broker().ranges[METADATA] = (14, 15)
    world.settle()
    with pytest.raises(UnsupportedVersionError, match=r"Metadata versions 14 to 15 only.*node="):
        world.metadata.raise_if_failed()
    assert world.broker().of(METADATA) == []


def test_failure_of_one_node_keeps_the_metadata_of_another() -> None:
    """M testAuthenticationFailureWithInFlightMetadataRequest: the update asked of node 1 arrives."""
    world = World(2)
    world.settle()
    world.until_ready(world.node(1))
    version = world.metadata.version
    world.clock.advance(200)
    for node in world.cluster.brokers.values():
        node.held.add(METADATA)
    world.metadata.request_update()
    world.poll()
    asked = next(broker for broker in world.cluster.brokers.values() if broker.waiting)
    other = next(broker for broker in world.cluster.brokers.values() if not broker.waiting)
    world.client.ready(other.node, world.now)
    world.settle(3)
    refused = SslAuthenticationError("bad certificate")
    other.links[-1]._end(refused)  # type: ignore[arg-type]  # as a failed TLS handshake will
    world.settle(3)
    assert world.client.states.authentication_error(other.node.id) is refused
    assert world.client.states.failed(other.node.id)
    with pytest.raises(SslAuthenticationError):
        world.metadata.raise_if_failed()
    asked.release()
    world.settle(3)
    assert world.metadata.version == version + 1
    world.metadata.raise_if_failed()


def test_metadata_goes_first() -> None:
    """Not ready while an update is due: it gets the next turn's place."""
    world = World()
    world.until_ready()
    world.clock.advance(200)
    world.metadata.request_update()
    assert not world.client.is_ready(world.node(), world.now)
    world.poll()
    assert world.client.is_ready(world.node(), world.now)
    world.settle()
    assert world.metadata.version == 2


def test_rebootstrap_when_no_known_broker_can_be_reached() -> None:
    """KIP-899: the learned brokers are gone, the bootstrap name leads to others."""
    resolver = StaticResolver({"kafka.example": ["127.0.0.1"]})
    world = World(
        resolver=resolver,
        rebootstrap=True,
        topics=["t"],
        reconnect_backoff_ms=50,
        bootstrap=[Node(-1, "kafka.example", 9001)],
    )
    world.settle()
    assert [node.id for node in world.metadata.cluster().nodes] == [1]
    world.cluster.down(1)
    del world.cluster.brokers[1]
    broker = world.cluster.add(2, "127.0.0.2")
    world.selector.listen(world.cluster.address(2)._replace(sockaddr=("127.0.0.2", 9001)), broker)
    resolver.hosts["kafka.example"] = ["127.0.0.2"]
    world.metadata.request_update()
    for _ in range(60):
        world.poll(100)
    assert [node.id for node in world.metadata.cluster().nodes] == [2]


def test_without_rebootstrap_the_client_stays_with_what_it_knows() -> None:
    world = World(reconnect_backoff_ms=50)
    world.settle()
    world.cluster.down(1)
    world.metadata.request_update()
    for _ in range(60):
        world.poll(100)
    assert [node.id for node in world.metadata.cluster().nodes] == [1]


def test_rebootstrap_when_the_broker_asks_for_it() -> None:
    """KIP-1102: top-level error 129 of Metadata v13."""
    world = World(rebootstrap=True, reconnect_backoff_ms=50)
    world.until_ready()
    world.clock.advance(200)
    world.cluster.error = 129
    world.metadata.request_update()
    world.poll()
    world.poll()
    assert world.metadata.is_bootstrap
    assert [node.id for node in world.metadata.cluster().nodes] == [-1]
    world.cluster.error = 0
    for _ in range(20):
        world.poll(100)
    assert [node.id for node in world.metadata.cluster().nodes] == [1]


def test_rebootstrap_after_too_long_without_metadata() -> None:
    """KIP-1102: metadata.recovery.rebootstrap.trigger.ms without an update."""
    world = World(rebootstrap=True, rebootstrap_trigger_ms=5000, reconnect_backoff_ms=50)
    world.until_ready()
    world.broker().held.add(METADATA)
    world.clock.advance(200)
    world.metadata.request_update()
    began = world.now
    while world.now - began <= 4900:
        world.poll(100)
        assert not world.metadata.is_bootstrap
    while world.now - began <= 5300:
        world.poll(100)
    assert world.metadata.is_bootstrap


def test_unreachable_brokers_are_tried_again_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(2, reconnect_backoff_ms=50, reconnect_backoff_max_ms=1000)
    for node_id in (1, 2):
        world.cluster.down(node_id)
    began = world.now
    turns = world.selector.turns
    while world.now - began < 20_000:
        world.poll(60_000)
    assert world.selector.turns - turns < 400
    assert len(world.selector.opened) > 10
    lines = [record.getMessage() for record in caplog.records if "could not be established" in record.getMessage()]
    assert len(lines) == 2
    assert {"bootstrap server 127.0.0.1:9001", "bootstrap server 127.0.0.1:9002"} == {
        line.removeprefix("Connection to ").split(" could")[0] for line in lines
    }
    world.cluster.up(2)
    world.poll(3000)
    for _ in range(20):
        world.poll(500)
    assert world.metadata.version >= 1


@pytest.mark.parametrize("how", ["swallows", "is silent"])
def test_a_server_that_says_nothing_does_not_hold_up_the_start(how: str) -> None:
    world = World(3, random=0.0)
    for node_id in (1, 2):
        if how == "swallows":
            world.selector.swallow(world.cluster.address(node_id))
        else:
            world.broker(node_id).held.add(API_VERSIONS)
    began = world.now
    for _ in range(20):
        if world.metadata.version == 0:
            world.poll(60_000)
    assert world.metadata.version == 1
    assert 2000 <= world.now - began < 2100
    assert len(world.selector.opened) == 3


STRANGERS = {
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "TLS": b"\x15\x03\x03\x00\x02\x02\x46",
    "mail": b"220 mail.example ESMTP\r\n",
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_stranger_on_the_port_is_told_once_it_was_recognised_three_times(kind: str) -> None:
    world = World(reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    seen: list[Any] = []

    def answer(request: Any) -> None:
        seen.append(request)
        request.link.send(STRANGERS[kind])

    world.broker().script[API_VERSIONS] = answer
    for _ in range(60):
        world.settle(1)
        if len(seen) < 3:
            world.metadata.raise_if_failed()
        world.clock.advance(50)
        if len(seen) >= 3:
            break
    world.settle(1)
    assert len(seen) >= 3
    with pytest.raises(ProtocolError, match="No address of bootstrap.servers answers as a Kafka: .*looks like"):
        world.metadata.raise_if_failed()


def test_bytes_that_are_not_recognised_are_waited_for() -> None:
    world = World(reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    world.broker().script[API_VERSIONS] = lambda request: request.link.send(b"\x7f\xff\xff\xffwhat")
    for _ in range(40):
        world.settle(1)
        world.clock.advance(100)
    world.metadata.raise_if_failed()


def test_a_stranger_beside_a_broker_fails_nothing() -> None:
    world = World(2, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    first, _second = world.cluster.brokers.values()
    first.script[API_VERSIONS] = lambda request: request.link.send(STRANGERS["HTTP"])
    for _ in range(40):
        world.settle(1)
        world.clock.advance(100)
    world.metadata.raise_if_failed()
    assert world.metadata.cluster().nodes
