from __future__ import annotations

import socket

from forebay._network.transport import Address
from forebay.model import Node
from forebay.testing.resolver import StaticResolver

from .world import World


class StaticHosts:
    """One broker under a name with several addresses."""

    def __init__(self, name: str, numbers: list[str]) -> None:
        self.name = name
        self.numbers = numbers
        self.resolver = StaticResolver({name: numbers})
        self.node = Node(7, name, 9007)

    def world(self, more: list[str] | None = None) -> World:
        world = World(resolver=self.resolver, reconnect_backoff_ms=10_000)
        broker = world.cluster.add(7)
        for number in [*self.numbers, *(more or []), "10.200.20.103", "10.200.20.104"]:
            world.selector.listen(self.address(number), broker)
        return world

    @staticmethod
    def address(number: str) -> Address:
        return Address(int(socket.AF_INET), (number, 9007))

    def table(self, numbers: list[str]) -> None:
        self.resolver.hosts[self.name] = numbers

    def refuse(self, world: World, number: str) -> None:
        world.selector.refuse(self.address(number))

    def tried(self, world: World, numbers: list[str]) -> int:
        return sum(address.sockaddr[0] in numbers for address in world.selector.opened)


def test_reconnect_after_address_change() -> None:
    """M testReconnectAfterAddressChange: 1 old and 1 new address tried, 2 look-ups."""
    old, new = ["10.200.20.100", "10.200.20.101", "10.200.20.102"], ["10.200.20.103", "10.200.20.104"]
    resolver = StaticHosts("broker.example", old)
    world = resolver.world()
    world.until_ready(resolver.node)
    resolver.table(new)
    world.broker(7).drop()
    world.poll()
    world.clock.advance(10_000)
    world.until_ready(resolver.node)
    assert [resolver.tried(world, old), resolver.tried(world, new)] == [1, 1]
    assert world.resolver.asked.count("broker.example") == 2


def test_failed_connection_to_first_address() -> None:
    """M testFailedConnectionToFirstAddress: the second old one is tried, without another look-up."""
    old = ["10.200.20.100", "10.200.20.101", "10.200.20.102"]
    resolver = StaticHosts("broker.example", old)
    world = resolver.world()
    resolver.refuse(world, old[0])
    assert not world.client.ready(resolver.node, world.now)
    world.poll()
    world.clock.advance(10_000)
    world.until_ready(resolver.node)
    assert resolver.tried(world, old) == 2
    assert world.resolver.asked.count("broker.example") == 1


def test_failed_connection_to_first_address_after_reconnect() -> None:
    """M testFailedConnectionToFirstAddressAfterReconnect: 1 old, 2 new, 2 look-ups."""
    old, new = ["10.200.20.100", "10.200.20.101"], ["10.200.20.103", "10.200.20.104", "10.200.20.105"]
    resolver = StaticHosts("broker.example", old)
    world = resolver.world(new)
    world.until_ready(resolver.node)
    resolver.table(new)
    resolver.refuse(world, new[0])
    world.broker(7).drop()
    world.poll()
    for _ in range(2):
        world.clock.advance(10_000)
        world.client.ready(resolver.node, world.now)
        world.settle(4)
    assert world.client.is_ready(resolver.node, world.now)
    assert [resolver.tried(world, old), resolver.tried(world, new)] == [1, 2]
    assert world.resolver.asked.count("broker.example") == 2


def test_dns_lookup_failure() -> None:
    """M testDnsLookupFailure: not ready, no exception, and a later attempt looks again."""
    world = World(reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    ghost = Node(1234, "badhost", 1234)
    assert not world.client.ready(ghost, world.now)
    assert world.client.connection_failed(ghost)
    world.clock.advance(50)
    world.client.ready(ghost, world.now)
    assert world.resolver.asked.count("badhost") == 2


def test_dns_does_not_hold_up_the_turn() -> None:
    resolver = StaticResolver({"slow.example": ["127.0.0.1"]}, held=True)
    world = World(resolver=resolver, bootstrap=[Node(-1, "slow.example", 9001)])
    world.settle(3)
    assert world.selector.opened == []
    resolver.release()
    world.settle()
    assert world.metadata.version == 1


def test_dns_that_never_answers_counts_as_a_failed_attempt() -> None:
    resolver = StaticResolver({"slow.example": ["127.0.0.1"]}, held=True)
    slow = Node(1, "slow.example", 9001)
    world = World(resolver=resolver, bootstrap=[slow])
    world.client.ready(slow, world.now)
    world.clock.advance(5001)
    world.poll()
    assert world.client.connection_failed(slow)
    world.clock.advance(10_000)
    world.client.ready(slow, world.now)
    assert resolver.asked == ["slow.example"]  # the first question is still being answered
    resolver.release()
    world.until_ready(slow)
