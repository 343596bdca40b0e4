"""Look-ups on helper threads: what comes back, what goes wrong, what ends."""

from __future__ import annotations

import gc
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from forebay._network import resolver as module
from forebay._network.resolver import (
    Helpers,
    Resolution,
    Resolver,
    addresses_of,
    canonical_names,
    helpers_of_process,
    name_of_address,
)
from forebay._network.transport import Address
from forebay.errors import NetworkError
from tests.support.pace import HANG_S

V4, V6 = socket.AF_INET, socket.AF_INET6
STREAM = socket.SOCK_STREAM


def row(family: int, host: str, port: int = 9092) -> tuple[Any, ...]:
    sockaddr = (host, port) if family == V4 else (host, port, 0, 0)
    return (family, STREAM, 6, "", sockaddr)


class Names:
    """A name server: a table, look-ups that can be held up, and what was asked."""

    def __init__(self, table: dict[str, list[tuple[Any, ...]]]) -> None:
        self.table = table
        self.held: dict[str, threading.Event] = {}
        self.reached = threading.Event()
        self.asked: list[str] = []
        self.threads: set[str] = set()

    def __call__(self, host: str, port: int, type: int = 0, flags: int = 0) -> list[tuple[Any, ...]]:
        if flags & socket.AI_NUMERICHOST:
            return socket.getaddrinfo(host, port, type=type, flags=flags)
        self.asked.append(host)
        self.threads.add(threading.current_thread().name)
        if host in self.held:
            self.reached.set()
            self.held[host].wait(HANG_S)
        if host not in self.table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.table[host]


class Asker:
    """Asks, and waits for the wake-up."""

    def __init__(self, ask: Callable[..., Resolution], host: str) -> None:
        self._woken = threading.Event()
        self.wakes = 0
        self.resolution = ask(host, 9092, self._wake)

    def _wake(self) -> None:
        self.wakes += 1
        self._woken.set()

    def answer(self) -> Resolution:
        assert self._woken.wait(HANG_S)
        assert self.resolution.done
        return self.resolution


@pytest.fixture
def names() -> Iterator[Names]:
    made = Names({"kafka": [row(V4, "10.0.0.1"), row(V4, "10.0.0.2"), row(V4, "10.0.0.1")]})
    yield made
    for event in made.held.values():
        event.set()


@pytest.fixture
def resolver(names: Names) -> Iterator[Resolver]:
    made = Resolver(names, helpers=Helpers())
    yield made
    made.close()


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", Address(V4, ("127.0.0.1", 9092))), ("::1", Address(V6, ("::1", 9092, 0, 0)))],
)
def test_a_number_is_its_own_answer_at_once(resolver: Resolver, names: Names, host: str, address: Address) -> None:
    asker = Asker(resolver.resolve, host)
    assert asker.resolution.done and asker.resolution.error is None
    assert asker.resolution.addresses == (address,)
    assert (names.asked, asker.wakes) == ([], 0)


def test_a_name_is_looked_up_elsewhere_and_told_once(resolver: Resolver, names: Names) -> None:
    asker = Asker(resolver.resolve, "kafka")
    answer = asker.answer()
    assert answer.addresses == (Address(V4, ("10.0.0.1", 9092)), Address(V4, ("10.0.0.2", 9092)))
    assert (answer.error, asker.wakes) == (None, 1)
    assert all(name.startswith("forebay-resolver-") for name in names.threads)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (
            [row(V4, "10.0.0.1"), row(V4, "10.0.0.2"), row(V6, "::5")],
            ["10.0.0.1:9092", "10.0.0.2:9092", "[::5]:9092"],
        ),
        ([row(V6, "::1"), row(V4, "127.0.0.1")], ["[::1]:9092", "127.0.0.1:9092"]),
        ([row(V4, "10.0.0.2"), row(V6, "::5"), row(V4, "10.0.0.2")], ["10.0.0.2:9092", "[::5]:9092"]),
        ([(socket.AF_UNIX, STREAM, 0, "", "path"), row(V4, "10.0.0.9")], ["10.0.0.9:9092"]),
    ],
)
def test_the_addresses_of_both_families_are_kept(rows: list[tuple[Any, ...]], kept: list[str]) -> None:
    """Not as M ClientUtilsTest filterPreferredAddresses, which keeps those of the family of the first."""
    assert [str(address) for address in addresses_of("kafka", 9092, Names({"kafka": rows}))] == kept


@pytest.mark.parametrize("host", ["nowhere", "empty", "two..dots"])
def test_a_host_that_cannot_be_resolved_is_named(names: Names, resolver: Resolver, host: str) -> None:
    """M testDnsLookupFailure: the error is an answer, nothing is raised."""
    names.table["empty"] = []
    if host == "two..dots":
        resolver = Resolver()  # the system's own refuses it before asking anybody
    answer = Asker(resolver.resolve, host).answer()
    assert isinstance(answer.error, NetworkError) and repr(host) in str(answer.error)
    assert answer.addresses == ()
    resolver.close()


def test_one_slow_name_holds_up_no_other(resolver: Resolver, names: Names) -> None:
    names.held["slow"] = threading.Event()
    names.table["slow"] = [row(V4, "10.0.0.3")]
    slow = Asker(resolver.resolve, "slow")
    assert Asker(resolver.resolve, "kafka").answer().addresses
    assert not slow.resolution.done
    names.held["slow"].set()
    assert [str(address) for address in slow.answer().addresses] == ["10.0.0.3:9092"]


def test_a_failing_wake_up_or_name_server_does_not_end_the_thread(
    names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    resolver = Resolver(names, helpers=Helpers(threads=1))

    def fail() -> None:
        raise ValueError("nobody there")

    names.table["odd"] = [(V4,)]  # not what getaddrinfo gives
    with caplog.at_level(logging.ERROR, logger="forebay.network"):
        resolver.resolve("kafka", 9092, fail)
        odd = Asker(resolver.resolve, "odd").answer()
        assert Asker(resolver.resolve, "kafka").answer().addresses
    assert "nobody there" in caplog.text and "'odd'" in str(odd.error)
    resolver.close()


def test_after_the_end_everything_is_answered_with_an_error(names: Names) -> None:
    resolver = Resolver(names, helpers=Helpers(threads=1))
    names.held["slow"] = threading.Event()
    slow = Asker(resolver.resolve, "slow")
    waiting = Asker(resolver.resolve, "kafka")
    assert names.reached.wait(HANG_S)
    resolver.close()
    resolver.close()
    assert "closed" in str(waiting.answer().error)
    late = Asker(resolver.resolve, "kafka")
    assert late.wakes == 1 and "closed" in str(late.answer().error)
    assert names.asked == ["slow"]
    names.held["slow"].set()
    assert slow.answer().done


@pytest.mark.parametrize("end", ["close", "drop"])
def test_the_threads_end_with_the_last_resolver(names: Names, end: str) -> None:
    before = set(threading.enumerate())
    helpers = Helpers()
    resolvers = [Resolver(names, helpers=helpers) for _ in range(3)]
    del helpers
    started = set(threading.enumerate()) - before
    assert len(started) == 2 and all(thread.daemon for thread in started)
    while resolvers:
        assert Asker(resolvers[0].resolve, "kafka").answer().addresses
        assert all(thread.is_alive() for thread in started)
        if end == "close":
            resolvers[0].close()
        del resolvers[0]
    gc.collect()
    for thread in started:
        thread.join(HANG_S)
        assert not thread.is_alive()


def test_resolvers_of_a_process_share_their_threads(names: Names) -> None:
    first, second = Resolver(names), Resolver(names)
    before = threading.active_count()
    third = Resolver(names)
    assert threading.active_count() == before
    assert helpers_of_process() is helpers_of_process()
    for resolver in (first, second, third):
        assert Asker(resolver.resolve, "kafka").answer().addresses
        resolver.close()


def test_a_forked_child_gets_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = helpers_of_process()
    monkeypatch.setattr(module, "_of_process", module._of_process)  # the rest of the process keeps what it has
    module._forget_in_child()
    assert helpers_of_process() is not parents


@pytest.mark.parametrize("can_start", [True, False], ids=["a thread can be started", "none can"])
def test_a_slow_name_server_holds_up_no_other_resolver(
    names: Names, monkeypatch: pytest.MonkeyPatch, can_start: bool
) -> None:
    """Each resolver has as many look-ups at a time as it had with threads of its own; where none starts, it waits."""
    if not can_start:

        def refuse(*_: object) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

        monkeypatch.setattr(module, "run_apart", refuse)
    helpers = Helpers(threads=1)
    mine, other = Resolver(names, helpers=helpers), Resolver(names, helpers=helpers)
    names.held["slow"] = threading.Event()
    names.table["slow"] = [row(V4, "10.0.0.3")]
    slow = Asker(mine.resolve, "slow")
    assert names.reached.wait(HANG_S)
    asked = Asker(other.resolve, "kafka")
    if can_start:
        assert asked.answer().addresses and not slow.resolution.done
    names.held["slow"].set()
    assert slow.answer().addresses and asked.answer().addresses
    # What was started beside the first has ended or ends now: two more look-ups need one thread.
    for _ in range(2):
        assert Asker(other.resolve, "kafka").answer().addresses
    mine.close()
    other.close()


def test_a_resolver_that_closes_leaves_the_look_ups_of_others_alone(names: Names) -> None:
    helpers = Helpers(threads=1)
    mine, other = Resolver(names, helpers=helpers), Resolver(names, helpers=helpers)
    for host in ("slow", "slower"):
        names.held[host] = threading.Event()
    slow = [Asker(mine.resolve, host) for host in ("slow", "slower")]  # as many as there may be threads
    assert names.reached.wait(HANG_S)
    mine_waits, other_waits = Asker(mine.resolve, "kafka"), Asker(other.resolve, "kafka")
    mine.close()
    assert "closed" in str(mine_waits.answer().error)
    for event in names.held.values():
        event.set()
    assert other_waits.answer().addresses and mine_waits.wakes == 1
    assert all(asker.answer().done for asker in slow)
    other.close()


def test_canonical_names_are_those_of_all_addresses_each_once(names: Names, resolver: Resolver) -> None:
    names.table["kafka"] = [row(V4, f"10.0.0.{number}") for number in (1, 2, 3)]
    reverse = {"10.0.0.1": "one.example", "10.0.0.2": "one.example"}

    def name_of(sockaddr: tuple[Any, ...], flags: int) -> tuple[str, str]:
        if sockaddr[0] not in reverse:
            raise socket.gaierror(socket.EAI_NONAME, "no reverse entry")
        return reverse[sockaddr[0]], str(sockaddr[1])

    assert canonical_names("kafka", 9092, names, name_of) == ("one.example", "10.0.0.3")
    other = Resolver(names, name_of)
    assert Asker(other.canonical, "kafka").answer().names == ("one.example", "10.0.0.3")
    assert "'gone'" in str(Asker(other.canonical, "gone").answer().error)
    other.close()


def test_a_resolution_says_what_it_is() -> None:
    resolution = Resolution("kafka", 9092)
    assert repr(resolution) == "<Resolution of kafka:9092: pending>"
    resolution.addresses, resolution.done = (Address(V4, ("10.0.0.1", 9092)),), True
    assert "10.0.0.1:9092" in repr(resolution)


NAMES = {"10.0.0.7": "kafka.example", "10.0.0.8": "lies.example", "2001:db8::7": "kafka.example"}
ADDRESSES = {"kafka.example": ("10.0.0.7", "2001:db8::7"), "lies.example": ("10.0.0.9",)}


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("10.0.0.7", "kafka.example"),
        ("2001:db8::7", "kafka.example"),
        ("10.0.0.8", "10.0.0.8"),
        ("10.0.0.10", "10.0.0.10"),
        ("kafka.example", "kafka.example"),
    ],
)
def test_the_name_of_an_address_leads_back_to_it(host: str, name: str) -> None:
    def lookup(host: str, port: int, *, type: int, flags: int = 0) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            return socket.getaddrinfo(host, port, type=type, flags=flags)
        family = socket.AF_INET
        return [(family, type, 6, "", (address, port)) for address in ADDRESSES[host]]

    def name_of(address: tuple[Any, ...], flags: int) -> tuple[str, str]:
        assert flags == socket.NI_NAMEREQD
        if address[0] not in NAMES:
            raise socket.gaierror("no name")
        return NAMES[address[0]], "0"

    assert name_of_address(host, lookup, name_of) == name
