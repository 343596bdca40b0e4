from __future__ import annotations

import logging
import socket
from typing import Any

import pytest

from forebay._assembly import Surroundings, assemble
from forebay._network.transport import Address
from forebay.config import ProducerConfig
from forebay.model import Node
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
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
    new = ["10.200.20.103", "10.200.20.104"]
    resolver = StaticHosts("broker.example", old)
    world = resolver.world()
    resolver.refuse(world, old[0])
    assert not world.client.ready(resolver.node, world.now)
    resolver.table(new)
    world.poll()
    world.clock.advance(10_000)
    world.until_ready(resolver.node)
    assert [resolver.tried(world, old), resolver.tried(world, new)] == [2, 0]
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
    assert world.client.states.failed(ghost.id)
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
    assert world.client.states.failed(slow.id)
    world.clock.advance(10_000)
    world.client.ready(slow, world.now)
    assert resolver.asked == ["slow.example"]  # the first question is still being answered
    resolver.release()
    world.until_ready(slow)


class Alias:
    """Two brokers behind one bootstrap name, each with a name of its own."""

    NODE = Node(-1, "kafka.example", 9009)
    NAMES = ("one.example", "two.example")

    def __init__(self, *, held: bool = False, **options: Any) -> None:
        hosts = {"kafka.example": ["10.0.0.1", "10.0.0.2"], "one.example": ["10.0.0.1"], "two.example": ["10.0.0.2"]}
        self.resolver = StaticResolver(hosts, held=held)
        self.resolver.names["kafka.example"] = list(self.NAMES)
        given = {"canonical_bootstrap": True, "reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 50, **options}
        self.world = World(resolver=self.resolver, bootstrap=[self.NODE], **given)
        for host in ("10.0.0.1", "10.0.0.2"):
            address = Address(int(socket.AF_INET), (host, 9009))
            self.world.selector.listen(address, self.world.broker(1))

    @property
    def bootstrap(self) -> set[tuple[int, str]]:
        return {(node.id, node.host) for node in self.world.metadata.cluster().nodes}

    @property
    def opened(self) -> list[str]:
        return [address.sockaddr[0] for address in self.world.selector.opened]


def test_bootstrap_servers_become_their_canonical_names(caplog: pytest.LogCaptureFixture) -> None:
    """client.dns.lookup=resolve_canonical_bootstrap_servers_only: asked first, then connected to by that name."""
    alias = Alias()
    with caplog.at_level(logging.INFO, logger="forebay"):
        alias.world.poll()
    assert alias.resolver.asked == ["kafka.example", "one.example"]
    assert alias.bootstrap == {(-1, "one.example"), (-2, "two.example")}
    assert "Bootstrap server kafka.example is taken as one.example, two.example" in caplog.text
    alias.world.settle()
    assert alias.world.metadata.version == 1
    assert alias.resolver.asked.count("kafka.example") == 1
    assert alias.opened[0] == "10.0.0.1"


def test_bootstrap_servers_keep_their_names_otherwise() -> None:
    alias = Alias(canonical_bootstrap=False)
    alias.world.poll()
    assert alias.bootstrap == {(-1, "kafka.example")}
    alias.world.settle()
    assert alias.world.metadata.version == 1


def test_canonical_names_do_not_hold_up_the_turn() -> None:
    """No connection before they are known, and no wait for them."""
    alias = Alias(held=True)
    alias.world.settle(3)
    assert (alias.opened, alias.resolver.asked) == ([], ["kafka.example"])
    alias.resolver.release()
    alias.world.settle()
    assert alias.world.metadata.version == 1


def test_the_address_of_a_canonical_name_may_take_its_time_too() -> None:
    alias = Alias(held=True)
    alias.world.poll()
    alias.resolver.release()
    alias.resolver.held = True
    alias.world.settle(3)
    assert (alias.opened, alias.resolver.asked) == ([], ["kafka.example", "one.example"])
    alias.resolver.release()
    alias.world.settle()
    assert alias.opened[0] == "10.0.0.1"
    assert alias.world.metadata.version == 1


def test_canonical_names_that_never_come_count_as_a_failed_attempt(caplog: pytest.LogCaptureFixture) -> None:
    alias = Alias(held=True)
    alias.world.poll()
    alias.world.clock.advance(5001)
    alias.world.poll()
    assert "its host name was not resolved within 5000 ms" in caplog.text
    assert alias.opened == []
    alias.resolver.release()
    for _ in range(10):
        alias.world.poll(100)
    assert alias.resolver.asked.count("kafka.example") == 1  # the first question was still being answered
    assert alias.world.metadata.version == 1


def test_an_alias_nobody_knows_is_looked_up_again() -> None:
    """After its back-off, and it is never connected to by its alias meanwhile."""
    alias = Alias()
    alias.resolver.names.clear()
    hosts = alias.resolver.hosts.pop("kafka.example")
    alias.world.settle(4)
    assert alias.world.client.states.failed(alias.NODE.id)
    assert "kafka.example" in str(alias.world.metadata.last_error("t"))
    alias.resolver.hosts["kafka.example"] = hosts
    alias.resolver.names["kafka.example"] = list(alias.NAMES)
    alias.world.clock.advance(150)
    alias.world.settle()
    assert alias.resolver.asked[:2] == ["kafka.example"] * 2
    assert alias.world.metadata.version == 1


def test_every_canonical_name_is_a_server_to_try() -> None:
    alias = Alias(random=0.0)
    alias.world.selector.refuse(Address(int(socket.AF_INET), ("10.0.0.1", 9009)))
    for _ in range(10):
        alias.world.poll(100)
    assert alias.opened[:2] == ["10.0.0.1", "10.0.0.2"]
    assert alias.world.metadata.version == 1


def test_only_bootstrap_servers_are_aliases() -> None:
    alias = Alias()
    alias.world.settle()
    learned = Node(3, "kafka.example", 9009)
    alias.world.until_ready(learned)
    assert alias.resolver.asked.count("kafka.example") == 2  # as an alias, and as a name
    assert alias.opened[-1] == "10.0.0.1"


def test_starting_over_keeps_the_canonical_names() -> None:
    """As in Java, which resolves them once, in the constructor."""
    alias = Alias(rebootstrap=True)
    alias.world.settle()
    alias.world.metadata.rebootstrap()
    assert alias.bootstrap == {(-1, "one.example"), (-2, "two.example")}
    alias.world.clock.advance(200)
    alias.world.settle()
    assert alias.resolver.asked.count("kafka.example") == 1
    assert not alias.world.metadata.is_bootstrap


@pytest.mark.parametrize(
    ("lookup", "asked"),
    [
        ("use_all_dns_ips", ["kafka.example"]),
        ("resolve_canonical_bootstrap_servers_only", ["kafka.example", "one.example"]),
    ],
)
def test_a_producer_is_assembled_with_its_lookup(lookup: str, asked: list[str]) -> None:
    clock = ManualClock()
    resolver = StaticResolver({"kafka.example": ["10.0.0.1"], "one.example": ["10.0.0.1"]})
    resolver.names["kafka.example"] = ["one.example"]
    around = Surroundings(
        clock=clock, random=lambda: 0.5, selector=lambda: MemorySelector(clock), resolver=lambda: resolver
    )
    config = ProducerConfig({"bootstrap.servers": "kafka.example:9009", "client.dns.lookup": lookup})
    parts = assemble(config, around)
    assert resolver.asked == [], "nothing is looked up before the sender's first turn"
    parts.client.poll(0, clock.now())
    assert resolver.asked == asked
    parts.client.close(clock.now())
