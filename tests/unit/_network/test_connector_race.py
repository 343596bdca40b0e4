"""Addresses of one name, of both families: which are tried, when, and what is said of those that failed (RFC 8305)."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from forebay._network._io import CLOSED
from forebay._network.transport import Address
from forebay.model import Node
from forebay.testing.resolver import StaticResolver
from tests.fakes.broker import ScriptedBroker

from .world import World

DELAY, GRACE, SETUP = 250, 3000, 5000
SIX, FOUR = "::1", "127.0.0.1"


class Scene:
    """A broker under one name with several addresses; nobody listens on any of them unless the test says so."""

    NODE = Node(7, "kafka.example", 9007)

    def __init__(self, *numbers: str, held: bool = False, **options: Any) -> None:
        self.resolver = StaticResolver({self.NODE.host: list(numbers)}, held=held)
        self.world = World(resolver=self.resolver, **options)
        self.broker = ScriptedBroker(self.world.cluster, self.NODE)  # metadata does not name it
        self.world.settle()  # metadata by the first node, whose address is a number
        self.began = self.world.now

    @staticmethod
    def address(number: str) -> Address:
        if ":" in number:
            return Address(int(socket.AF_INET6), (number, 9007, 0, 0))
        return Address(int(socket.AF_INET), (number, 9007))

    def listen(self, number: str, connect_ms: float = 0) -> None:
        self.world.selector.listen(self.address(number), self.broker, connect_ms=connect_ms)

    def refuse(self, number: str, code: int = errno.ECONNREFUSED) -> None:
        self.world.selector.refuse(self.address(number), code)

    def swallow(self, *numbers: str) -> None:
        for number in numbers:
            self.world.selector.swallow(self.address(number))

    def ready(self) -> bool:
        return bool(self.world.client.ready(self.NODE, self.world.now))

    def begin(self) -> None:
        assert not self.ready()

    def wait(self, ms: float) -> None:
        """Turns as the sender's thread takes them: each waits for the next thing that happens."""
        end = self.world.now + ms
        while self.world.now < end:
            self.world.poll(end - self.world.now)
        self.world.settle(3)

    def until_decided(self, limit_ms: float = 60_000) -> float:
        """Turns until the node is ready or the attempt has failed; ms since the scene began."""
        end = self.world.now + limit_ms
        while not self.world.client.is_ready(self.NODE, self.world.now) and self.world.now < end:
            if self.failed:
                break
            self.world.poll(end - self.world.now)
        return self.world.now - self.began

    @property
    def failed(self) -> bool:
        return bool(self.world.client.states.failed(self.NODE.id))

    @property
    def is_ready(self) -> bool:
        return bool(self.world.client.is_ready(self.NODE, self.world.now))

    @property
    def tried(self) -> list[str]:
        return [host for host, port, *_ in (address.sockaddr for address in self.world.selector.opened) if port == 9007]

    @property
    def connected_to(self) -> str:
        return str(self.broker.links[-1].channel.peer)

    @property
    def reason(self) -> str:
        return str(self.world.client.states.last_error(self.NODE.id))

    @property
    def being_made(self) -> int:
        """Connections that neither stand nor have failed."""
        return sum(link is None for _channel, link in self.world.selector._near.values())


@pytest.mark.parametrize(("first", "second"), [(SIX, FOUR), (FOUR, SIX)])
@pytest.mark.parametrize("code", [errno.ECONNREFUSED, errno.ENETUNREACH, errno.EAFNOSUPPORT])
def test_after_an_address_that_fails_at_once_the_next_is_tried_at_once(first: str, second: str, code: int) -> None:
    """The issue's case: localhost is ::1 and 127.0.0.1, and the broker listens on one of them."""
    scene = Scene(first, second)
    scene.refuse(first, code)
    scene.listen(second)
    scene.begin()
    scene.world.settle()
    assert scene.is_ready and scene.tried == [first, second]
    assert scene.world.now == scene.began
    assert scene.resolver.asked.count(scene.NODE.host) == 1


@pytest.mark.parametrize(("first", "second"), [(SIX, FOUR), (FOUR, SIX)])
def test_beside_an_address_that_is_silent_the_next_is_tried_after_a_quarter_of_a_second(
    first: str, second: str
) -> None:
    scene = Scene(first, second)
    scene.swallow(first)
    scene.listen(second)
    scene.begin()
    scene.wait(DELAY - 1)
    assert scene.tried == [first]
    assert DELAY <= scene.until_decided() <= DELAY + 2
    assert scene.is_ready and scene.tried == [first, second]
    assert scene.being_made == 0, "the silent one is given up"


def test_a_slow_address_wins_over_a_silent_one_that_was_tried_after_it() -> None:
    scene = Scene(SIX, FOUR)
    scene.listen(SIX, connect_ms=400)
    scene.swallow(FOUR)
    scene.begin()
    assert scene.until_decided() == 400
    assert scene.is_ready and scene.tried == [SIX, FOUR]
    assert (scene.connected_to, scene.being_made) == ("[::1]:9007", 0)


def test_of_two_that_stand_in_the_same_turn_one_is_kept() -> None:
    scene = Scene(SIX, FOUR)
    scene.listen(SIX, connect_ms=400)
    scene.listen(FOUR, connect_ms=400 - DELAY - 1)
    scene.begin()
    scene.until_decided()
    assert scene.is_ready and scene.tried == [SIX, FOUR]
    assert sorted(link.open for link in scene.broker.links) == [False, True]
    assert scene.world.client.states.established_count() == 2  # and the first node's
    scene.wait(1000)
    assert scene.is_ready


def test_families_take_turns_and_each_address_is_tried_once() -> None:
    """RFC 8305, section 4: the system's order, but for the interleaving."""
    six, four = [f"::{number}" for number in (2, 3, 4)], ["10.0.0.1", "10.0.0.2"]
    scene = Scene(*six, *four)
    scene.swallow(*six, *four)
    scene.begin()
    seen: list[tuple[float, str]] = []
    while not scene.failed:
        seen += [(scene.world.now - scene.began, number) for number in scene.tried[len(seen) :]]
        scene.world.poll(10_000)
    assert [number for _when, number in seen] == ["::2", "10.0.0.1", "::3", "10.0.0.2", "::4"]
    assert [round(when / DELAY) for when, _number in seen] == [0, 1, 2, 3, 4]


def test_the_setup_timeout_is_for_the_whole_attempt() -> None:
    """socket.connection.setup.timeout.ms: from the look-up on, over all addresses."""
    scene = Scene(SIX, FOUR)
    scene.swallow(SIX, FOUR)
    scene.begin()
    assert SETUP < scene.until_decided() <= SETUP + 2
    assert scene.failed and scene.being_made == 0
    assert f"timed out: no connection within {SETUP} ms ([::1]:9007: no answer; 127.0.0.1:9007: no answer)" in (
        scene.reason
    )


def test_a_setup_timeout_below_the_delay_ends_the_attempt_and_the_next_one_goes_on() -> None:
    """The words name the address that was not tried; the next attempt begins with it, without another look-up."""
    scene = Scene(SIX, FOUR, setup_timeout_ms=100, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    scene.swallow(SIX)
    scene.listen(FOUR)
    scene.begin()
    scene.wait(102)
    assert scene.failed and scene.tried == [SIX]
    assert "([::1]:9007: no answer; 127.0.0.1:9007: not tried yet)" in scene.reason
    scene.wait(50)
    scene.begin()
    scene.world.settle()
    assert scene.is_ready and scene.tried == [SIX, FOUR]
    assert scene.resolver.asked.count(scene.NODE.host) == 1


def test_when_all_have_failed_the_words_name_each_with_its_reason() -> None:
    scene = Scene(SIX, FOUR, "10.0.0.9")
    scene.refuse(SIX, errno.ENETUNREACH)
    scene.refuse("10.0.0.9", errno.EHOSTUNREACH)
    scene.begin()
    scene.world.settle()
    assert scene.failed and scene.world.now == scene.began
    for words in (
        "cannot connect to [::1]:9007: ENETUNREACH: ",
        "; 127.0.0.1:9007: ECONNREFUSED: ",
        "; 10.0.0.9:9007: EHOSTUNREACH: ",
    ):
        assert words in scene.reason
    assert scene.world.client.states.connection_delay(scene.NODE.id, scene.world.now) == 10_000, "one back-off for all"


def test_a_name_with_one_address_has_the_words_it_had() -> None:
    scene = Scene(FOUR)
    scene.begin()
    scene.world.settle()
    assert scene.reason.endswith(": cannot connect to 127.0.0.1:9007: ECONNREFUSED: Connection refused")


@pytest.mark.parametrize("order", [(SIX, FOUR), (FOUR, SIX)])
def test_a_silent_address_does_not_hold_up_the_next_attempt_at_one_that_refused(order: tuple[str, str]) -> None:
    """A broker that is started again refuses for a moment; its other address drops packets for good."""
    scene = Scene(*order, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    scene.swallow(SIX)
    scene.begin()
    took = scene.until_decided()
    assert scene.failed and GRACE <= took <= GRACE + DELAY + 3
    assert "[::1]:9007: no answer" in scene.reason and "127.0.0.1:9007: ECONNREFUSED" in scene.reason
    assert scene.being_made == 0
    scene.listen(FOUR)
    scene.wait(50)
    scene.begin()
    scene.wait(DELAY + 3)
    assert scene.is_ready and scene.connected_to == "127.0.0.1:9007"


def test_a_lone_silent_address_has_the_whole_setup_timeout() -> None:
    scene = Scene(SIX)
    scene.swallow(SIX)
    scene.begin()
    assert SETUP < scene.until_decided() <= SETUP + 2


def test_the_family_that_worked_goes_first_the_next_time() -> None:
    """A family that drops packets costs its delay once, not with each connection."""
    scene = Scene(SIX, FOUR, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    scene.swallow(SIX)
    scene.listen(FOUR)
    scene.begin()
    scene.until_decided()
    scene.broker.drop()
    scene.world.poll()
    scene.wait(50)
    scene.begin()
    again = scene.world.now
    scene.world.settle()
    assert scene.is_ready and scene.world.now == again
    assert scene.tried == [SIX, FOUR, FOUR]
    assert scene.resolver.asked.count(scene.NODE.host) == 2


def test_the_working_address_changes() -> None:
    """From the one family to the other, and to an address that the name did not have before."""
    scene = Scene(SIX, FOUR, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    scene.listen(SIX)
    for now_at, numbers in (
        (SIX, [SIX, FOUR]),
        (FOUR, [SIX, FOUR]),
        ("10.0.0.8", [SIX, "10.0.0.8"]),
        ("::8", ["::8"]),
    ):
        scene.resolver.hosts[scene.NODE.host] = numbers
        scene.broker.drop()
        for number in (SIX, FOUR, "10.0.0.8"):
            scene.refuse(number)
        scene.listen(now_at)
        scene.world.poll()
        scene.wait(50)
        assert not scene.ready(), "a new connection"
        scene.world.settle()
        assert scene.is_ready and now_at in scene.connected_to


def test_a_server_that_hangs_up_at_once_is_not_the_only_one_to_be_tried() -> None:
    """Something else listens on the first address: the next attempt goes on with the others, each once."""
    scene = Scene(SIX, "::2", FOUR, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    for number in (SIX, "::2"):
        scene.world.selector.listen(scene.address(number), Rude())
    scene.listen(FOUR, connect_ms=10)
    for _attempt in range(3):
        if not scene.ready():
            scene.wait(60)
    assert scene.is_ready and scene.tried[0] == SIX
    assert scene.connected_to == "127.0.0.1:9007"
    assert scene.resolver.asked.count(scene.NODE.host) == 1


def test_what_was_begun_beside_the_first_is_tried_again_when_the_first_turns_out_to_be_useless() -> None:
    scene = Scene(SIX, FOUR, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50)
    scene.world.selector.listen(scene.address(SIX), Rude(), connect_ms=DELAY + 50)
    scene.listen(FOUR, connect_ms=500)
    scene.begin()
    scene.until_decided()
    assert scene.failed and scene.tried == [SIX, FOUR]
    scene.wait(50)
    scene.begin()
    scene.wait(510)
    assert scene.is_ready and scene.tried == [SIX, FOUR, FOUR]


class Rude:
    """Accepts and hangs up."""

    def connected(self, link: Any) -> None:
        link.close(delay_ms=5)

    def received(self, link: Any, data: bytes) -> None:
        """Does not listen."""

    def closed(self, link: Any) -> None:
        """Has gone before."""


@pytest.mark.parametrize("end", ["disconnect", "close"])
def test_all_that_is_being_made_ends_with_the_attempt(end: str) -> None:
    scene = Scene(SIX, FOUR)
    scene.swallow(SIX, FOUR)
    scene.begin()
    scene.wait(DELAY + 10)
    assert scene.being_made == 2
    channels = [channel for channel, link in scene.world.selector._near.values() if link is None]
    if end == "disconnect":
        scene.world.client.disconnect(scene.NODE.id, scene.world.now)
    else:
        scene.world.client.close(scene.world.now)
    assert scene.being_made == 0
    assert [channel.state for channel in channels] == [CLOSED, CLOSED]


def test_the_look_up_counts_against_the_setup_timeout_and_not_against_the_delay() -> None:
    scene = Scene(SIX, FOUR, held=True)
    scene.swallow(SIX)
    scene.listen(FOUR)
    scene.begin()
    scene.wait(2000)
    assert scene.tried == []
    scene.resolver.release()
    scene.world.poll()
    assert scene.tried == [SIX]
    took = scene.until_decided()
    assert scene.is_ready and 2000 + DELAY <= took <= 2000 + DELAY + 3


def test_a_bootstrap_server_of_both_families_is_reached() -> None:
    """README's first snippet on a machine whose localhost is ::1 first."""
    resolver = StaticResolver({"localhost": [SIX, FOUR]})
    world = World(resolver=resolver, bootstrap=[Node(-1, "localhost", 9001)])
    began = world.now
    world.settle()
    assert world.metadata.version == 1
    assert [address.sockaddr[0] for address in world.selector.opened[:2]] == [SIX, FOUR]
    assert world.now == began, "nothing was waited for"


def test_closed_connections_are_counted_each() -> None:
    scene = Scene(SIX, FOUR)
    scene.swallow(SIX)
    scene.listen(FOUR)
    before = scene.world.metrics.connections_closed.count, scene.world.metrics.connections_created.count
    scene.begin()
    scene.until_decided()
    after = scene.world.metrics.connections_closed.count, scene.world.metrics.connections_created.count
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
