"""Messages for topics that are not known yet: their order, their end, and what purging leaves."""

from __future__ import annotations

from typing import Any

from forebay.compat._held import FULL_TURN_MS, HeldMessages
from forebay.errors import ProducerClosedError, TimeoutError
from tests.fakes.world import World


class Case:
    """HeldMessages whose thread's turns are taken by the test."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[Any] = []
        self.failed: list[tuple[Any, BaseException]] = []
        self.started: list[str] = []
        self.full = False
        self.held = HeldMessages(
            world.producer,
            self.send,
            lambda arguments, error: self.failed.append((arguments, error)),
            lambda run, name: self.started.append(name),
        )

    def send(self, topic: str, arguments: Any) -> None:
        if self.full:
            raise BufferError("full")
        if arguments == ("bad",):
            raise ValueError("bad")
        self.sent.append((topic, *arguments))


def test_they_go_in_their_order_once_the_topic_is_known() -> None:
    case = Case(World(known=False))
    for value in "abc":
        case.held.add("test", (value,))
    assert case.started == ["forebay-compat-held"] and "test" in case.held.topics and case.held.count() == 3
    assert case.held.turn() != 0 and not case.sent
    case.world.settle(12)
    assert case.held.turn() == 0
    assert case.sent == [("test", "a"), ("test", "b"), ("test", "c")]
    assert "test" not in case.held.topics and case.held.count() == 0 and case.held.turn() is None
    case.held.add("test", ("d",))
    assert len(case.started) == 2  # the first thread has ended


def test_a_full_buffer_holds_them_up() -> None:
    case = Case(World())
    case.full = True
    case.held.add("test", ("a",))
    case.held.add("test", ("b",))
    assert case.held.turn() == FULL_TURN_MS and case.held.count() == 2
    case.full = False
    assert case.held.turn() == 0 and case.sent == [("test", "a"), ("test", "b")]


def test_what_cannot_be_sent_fails_alone() -> None:
    case = Case(World())
    for value in ("a", "bad", "b"):
        case.held.add("test", (value,))
    case.held.turn()
    assert [value for _, value in case.sent] == ["a", "b"]
    assert [(arguments, type(error)) for arguments, error in case.failed] == [(("bad",), ValueError)]


def test_each_fails_after_its_own_time() -> None:
    case = Case(World(max_block_ms=1000))
    case.held.add("absent", ("a",))
    case.held.turn()
    case.world.run(600)
    case.held.add("absent", ("b",))
    case.held.turn()
    case.world.run(401)
    case.held.turn()
    assert [arguments for arguments, _ in case.failed] == [("a",)] and case.held.count() == 1
    assert isinstance(case.failed[0][1], TimeoutError)
    for _ in range(2):
        case.world.run(600)
        case.held.turn()
    assert [arguments for arguments, _ in case.failed] == [("a",), ("b",)] and case.held.turn() is None


def test_another_topic_is_not_held_up() -> None:
    case = Case(World())
    case.held.add("absent", ("a",))
    case.held.add("test", ("b",))
    assert case.held.turn() == 0 and case.sent == [("test", "b")] and "absent" in case.held.topics


def test_they_are_taken_out_and_fail_with_a_closed_producer() -> None:
    case = Case(World())
    case.held.add("absent", ("a",))
    assert case.held.take_all() == [("a",)] and case.held.count() == 0
    case.held.add("absent", ("b",))
    case.world.producer._set_state(1)
    case.held.turn()
    assert [(arguments, type(error)) for arguments, error in case.failed] == [(("b",), ProducerClosedError)]
