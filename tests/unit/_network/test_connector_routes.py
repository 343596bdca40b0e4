"""Where a node is reached: mapped addresses, a proxy, and one family of addresses."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from forebay._network.proxy import HTTP, Proxy, Tunnel
from forebay._network.transport import Address
from forebay.model import Node
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
from forebay.testing.resolver import StaticResolver

from .world import World


def at(number: str, port: int) -> Address:
    return Address(int(socket.AF_INET6 if ":" in number else socket.AF_INET), _sockaddr(number, port))


def _sockaddr(number: str, port: int) -> tuple[Any, ...]:
    return (number, port, 0, 0) if ":" in number else (number, port)


class FilterSelector(MemorySelector):
    """Keeps the filters that it was given."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.filters: list[Any] = []

    def open(self, address: Address, **arguments: Any) -> Any:
        self.filters.append(arguments["stream_filter"])
        return super().open(address, **arguments)


def test_a_broker_behind_a_forwarded_port() -> None:
    names: list[str] = []

    class Silent:
        def __init__(self, name: str) -> None:
            names.append(name)

    world = World(
        resolver=StaticResolver({"gate": ["10.0.0.9"]}),
        address_map=lambda host, port: ("gate", port + 10_000),
        tls=Silent,
    )
    node = world.cluster.bootstrap()[0]
    world.selector.listen(at("10.0.0.9", node.port + 10_000), world.broker())
    world.poll()
    world.poll()
    assert world.resolver.asked[0] == "gate"
    assert world.selector.opened == [at("10.0.0.9", node.port + 10_000)]
    assert names == [node.host], "the name that the certificate must have is the advertised one"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(lambda host, port: 1 / 0, "ZeroDivisionError"), (lambda host, port: ("a", 0), "not a host and a port")],
)
def test_a_callable_that_fails(answer: Any, reason: str) -> None:
    world = World(address_map=answer)
    node = world.node()
    world.client.ready(node, world.now)
    text = world.client.unready_reason(node.id, world.now)
    assert text is not None and "broker.address.map" in text and reason in text and node.host in text
    assert world.selector.opened == []


def test_a_callable_that_fails_for_a_canonical_name() -> None:
    """It is asked again amid the turn in which the name became known, and the turn goes on."""
    resolver = StaticResolver({"alias.example": ["10.0.0.1"], "real.example": ["10.0.0.1"]})
    resolver.names["alias.example"] = ["real.example"]

    def only_the_alias(host: str, port: int) -> tuple[str, int]:
        if host != "alias.example":
            raise LookupError(host)
        return host, port

    bootstrap = Node(-1, "alias.example", 9092)
    world = World(resolver=resolver, bootstrap=[bootstrap], canonical_bootstrap=True, address_map=only_the_alias)
    world.settle()
    text = world.client.unready_reason(bootstrap.id, world.now)
    assert text is not None and "LookupError('real.example')" in text


def test_a_proxy_is_what_is_connected_to() -> None:
    proxy = Proxy(HTTP, "proxy.example", 8080)
    clock = ManualClock()
    selector = FilterSelector(clock)
    world = World(
        resolver=StaticResolver({"proxy.example": ["10.0.0.9"]}),
        selector=selector,
        clock=clock,
        proxy=proxy,
        address_map=lambda host, port: ("inner.example", 7),
    )
    world.client.ready(world.node(), world.now)
    assert world.resolver.asked == ["proxy.example"]
    assert selector.opened == [at("10.0.0.9", 8080)]
    (tunnel,) = selector.filters
    assert isinstance(tunnel, Tunnel)
    tunnel.start()
    assert tunnel.outgoing().startswith(b"CONNECT inner.example:7 HTTP/1.1\r\n")
    world.client.poll(0, clock.now())
    text = world.client.unready_reason(world.node().id, clock.now())
    assert text is not None and "ECONNREFUSED" in text
    assert "(proxy.url is http://proxy.example:8080)" in text


@pytest.mark.parametrize(("family", "number"), [(socket.AF_INET, "10.0.0.1"), (socket.AF_INET6, "::1")])
def test_one_family(family: int, number: str) -> None:
    world = World(resolver=StaticResolver({"both.example": ["::1", "10.0.0.1"]}), family=int(family))
    node = world.node()._replace(host="both.example")
    world.client.ready(node, world.now)
    assert world.selector.opened == [at(number, node.port)]


def test_no_address_of_that_family() -> None:
    world = World(resolver=StaticResolver({"four.example": ["10.0.0.1"]}), family=int(socket.AF_INET6))
    node = world.node()._replace(host="four.example")
    world.client.ready(node, world.now)
    text = world.client.unready_reason(node.id, world.now)
    assert text is not None and "broker.address.family" in text and "10.0.0.1" in text
