"""Messages for topics that are not known yet: their order, their end, and what purging leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay.compat._topic_backlog import FULL_TURN_MS, TopicBacklog
from forebay.errors import IllegalStateError, InvalidTopicError, KafkaTimeoutError, ProducerClosedError, PurgedError
from forebay.testing.clock import ManualClock
from tests.fakes.names import FORBIDDEN_TOPICS
from tests.fakes.world import World


class Sliding(ManualClock):
    """Time passes when somebody looks, and the thread takes its turn."""

    def __init__(self, turn: Callable[[], object]) -> None:
        super().__init__()
        self.turn = turn

    def now(self) -> float:
        self.advance(400)
        self.turn()
        return super().now()


class Case:
    """TopicBacklog whose thread's turns are taken by the test."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[Any] = []
        self.failed: list[tuple[Any, BaseException]] = []
        self.started: list[str] = []
        self.full = False
        self.held = TopicBacklog(
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


def test_names_that_no_topic_has_fail_at_once() -> None:
    case = Case(World())
    for name in FORBIDDEN_TOPICS:
        case.held.add(name, (name,))
    case.held.add("test", ("good",))
    while case.held.turn() is not None:
        pass
    assert [(arguments, type(error)) for arguments, error in case.failed] == [
        ((name,), InvalidTopicError) for name in FORBIDDEN_TOPICS
    ]
    assert case.sent == [("test", "good")]


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
    assert isinstance(case.failed[0][1], KafkaTimeoutError)
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
    assert case.held.drop(PurgedError("x")) == 1 and case.held.count() == 0
    case.held.add("absent", ("b",))
    case.world.producer._set_state(1)
    case.held.turn()
    found = [(arguments, type(error)) for arguments, error in case.failed]
    assert found == [(("a",), PurgedError), (("b",), ProducerClosedError)]


def test_the_exit_waits_for_them_and_counts_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(World())
    for name in ("absent", "absent", "test"):
        case.held.add(name, (name,))
    clock = Sliding(case.held.turn)
    case.held.finish(clock.now() + 1000, clock)
    assert case.sent == [("test", "test")] and case.held.count() == 0
    assert [(arguments, type(error)) for arguments, error in case.failed] == [(("absent",), KafkaTimeoutError)] * 2
    assert "2 message(s) were not sent: The process ends before the topic is known" in caplog.text
    case.held.finish(clock.now() + 1000, clock)
    assert len(case.failed) == 2


def test_a_thread_that_cannot_be_started_takes_nothing() -> None:
    def refuse(run: Any, name: str) -> None:
        raise RuntimeError("can't start new thread")

    case = Case(World())
    case.held._start = refuse
    with pytest.raises(RuntimeError, match="can't start"):
        case.held.add("absent", ("a",))
    assert case.held.count() == 0
    case.held._start = lambda run, name: case.started.append(name)
    case.held.add("absent", ("b",))
    assert case.started and case.held.count() == 1


def test_one_that_finds_no_room_is_held_again_after_all_were_dropped() -> None:
    """As when a signal handler purges in the middle of it."""
    case = Case(World())
    case.held.add("test", ("a",))

    def send(topic: str, arguments: Any) -> None:
        case.held.drop(PurgedError("x"))
        raise BufferError("full")

    case.held._send = send
    assert not case.held.release("test") and case.held.count() == 1


def test_a_handler_that_interrupted_them_does_not_wait_for_their_thread() -> None:
    """Their thread waits for the locks of the interrupted call, and a flush would wait for their thread."""
    case = Case(World())
    sent: list[Any] = []

    def send(topic: str, arguments: Any) -> None:  # a signal handler comes here
        with pytest.raises(IllegalStateError, match="interrupted another call"):
            case.world.producer.flush(0)
        sent.append(arguments)

    held = TopicBacklog(case.world.producer, send, lambda *_: None, lambda *_: None)
    held.add("test", ("a",))
    with held._lock, pytest.raises(IllegalStateError, match="interrupted another call"):
        case.world.producer.flush(0)
    assert held.release("test") and sent == [("a",)]
    case.world.producer.flush(0)
