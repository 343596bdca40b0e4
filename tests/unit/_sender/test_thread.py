"""The thread around the sender: it outlives what a turn trips over, drains, and says what it could not send."""

from __future__ import annotations

import dis
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from forebay._sender import thread as thread_module
from forebay._sender.thread import SenderThread
from forebay.errors import KafkaError
from forebay.testing.clock import ManualClock
from tests.fakes.steps import WHERE_IT_LOOKS, at_step, each_step
from tests.support.pace import HANG_MS

A_WHILE_MS = 20
"""In which a thread that goes on does not end."""


class FakeAccumulator:
    def __init__(self) -> None:
        self.closed = False
        self.left = 0

    def close(self) -> None:
        self.closed = True

    def unfinished_records(self) -> int:
        return self.left


class FakeMetadata:
    def __init__(self) -> None:
        self.uncaught: list[tuple[BaseException, float]] = []

    def note_uncaught(self, error: BaseException, now: float) -> None:
        self.uncaught.append((error, now))


class FakeSender:
    """Has ``work`` turns of work once it is asked to close."""

    def __init__(self, *, work: int = 0, turn: Callable[[], None] | None = None) -> None:
        self.accumulator = FakeAccumulator()
        self.metadata = FakeMetadata()
        self.closing = False
        self.forced = False
        self.work = work
        self.turns = 0
        self.turn = turn
        self.failed_before = 0
        self.failed: list[KafkaError] = []
        self.asked = threading.Event()
        self.refused_when_draining: list[bool] = []
        self.purges: list[Any] = []
        self.warm_ups: list[Any] = []

    def run_once(self, now: float) -> None:
        self.turns += 1
        if self.turn is not None:
            self.turn()
        if self.closing:
            self.refused_when_draining.append(self.accumulator.closed)
            self.work -= 1
        else:
            self.asked.wait(0.01)

    def has_work(self) -> bool:
        return self.work > 0

    def failed_records(self) -> int:
        return self.failed_before

    def give_up(self, error: KafkaError) -> None:
        self.failed.append(error)

    def settle_early(self) -> tuple[int, int]:
        return 4, 2

    def request_close(self) -> None:
        self.closing = True
        self.asked.set()

    def request_force_close(self) -> None:
        self.forced = True
        self.request_close()


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def thread_of(sender: FakeSender, *resources: Any) -> SenderThread:
    return SenderThread(name="t", sender=sender, clock=ManualClock(), patience_ms=1000, resources=resources)  # type: ignore[arg-type]


def test_it_drains_and_closes_its_resources_in_order() -> None:
    closed: list[str] = []
    sender = FakeSender(work=3)
    thread = thread_of(sender, lambda: closed.append("first"), lambda: closed.append("second"))
    thread.start()
    assert thread.is_alive() and thread.ident is not None and not thread.finished
    sender.request_close()
    assert thread.join(HANG_MS)
    assert (sender.work, closed, thread.finished, thread.lost) == (0, ["first", "second"], True, 0)


def test_nothing_is_accepted_while_it_drains() -> None:
    """Also for a producer that was dropped without close()."""
    sender = FakeSender(work=2)
    thread = thread_of(sender)
    thread.start()
    sender.request_close()
    assert thread.join(HANG_MS)
    assert sender.refused_when_draining[-2:] == [True, True]


def test_a_turn_that_raises_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    failures = [ValueError("broken")]

    def turn() -> None:
        if failures:
            raise failures.pop()

    sender = FakeSender(work=1, turn=turn)
    thread = thread_of(sender)
    with caplog.at_level(logging.ERROR, logger="forebay.sender"):
        thread.start()
        while failures:
            thread.join(1)
        sender.request_close()
        assert thread.join(HANG_MS)
    assert "Uncaught error in the producer's I/O thread" in caplog.text and "broken" in caplog.text
    assert sender.turns >= 2


def test_a_turn_that_always_raises_does_not_spin(caplog: pytest.LogCaptureFixture) -> None:
    def turn() -> None:
        raise ValueError("always")

    sender = FakeSender(turn=turn)
    thread = thread_of(sender)
    thread.start()
    thread.join(3 * thread_module.FAILED_TURN_PAUSE_MS)
    sender.request_close()
    assert thread.join(HANG_MS)
    assert 1 <= sender.turns <= 10
    assert "always" in caplog.text


def test_by_force(caplog: pytest.LogCaptureFixture) -> None:
    sender = FakeSender(work=1_000_000)
    sender.accumulator.left = 42
    thread = thread_of(sender)
    thread.start()
    sender.request_close()
    assert not thread.join(A_WHILE_MS)
    with caplog.at_level(logging.ERROR, logger="forebay.sender"):
        sender.request_force_close()
        assert thread.join(HANG_MS)
    assert thread.lost == 42
    assert "42 record(s) not acknowledged" in caplog.text
    assert [error.message for error in sender.failed] == ["Producer is closed forcefully."]


def test_leaving_a_thread_that_is_held() -> None:
    sender = FakeSender()
    assert thread_of(sender).leave() == (4, 2)


def test_what_failed_while_it_drained_is_counted_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """After interpreter exit or del perhaps no caller waits any more."""
    sender = FakeSender(work=1)
    sender.turn = lambda: setattr(sender, "failed_before", 5 if sender.closing else 0)
    thread = thread_of(sender)
    thread.start()
    with caplog.at_level(logging.ERROR, logger="forebay.sender"):
        sender.request_close()
        assert thread.join(HANG_MS)
    assert "ended with 5 record(s) not acknowledged" in caplog.text


def test_an_end_that_goes_wrong_is_still_an_end() -> None:
    """close() waits for it without a limit."""
    sender = FakeSender()
    sender.give_up = lambda error: 1 / 0  # type: ignore[method-assign, assignment]
    thread = thread_of(sender)
    hook, threading.excepthook = threading.excepthook, lambda arguments: None
    try:
        thread.start()
        sender.request_close()
        assert thread.join(HANG_MS)
    finally:
        threading.excepthook = hook
    assert thread.finished


def test_a_resource_that_cannot_be_closed_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []
    sender = FakeSender()
    thread = thread_of(sender, lambda: 1 / 0, lambda: closed.append("second"))
    thread.start()
    sender.request_close()
    assert thread.join(HANG_MS)
    assert closed == ["second"] and thread.finished
    assert "ZeroDivisionError" in caplog.text


def test_a_wait_may_be_endless() -> None:
    sender = FakeSender()
    thread = thread_of(sender)
    thread.start()
    sender.request_close()
    assert thread.join(float("inf"))


def test_a_handler_may_join_amid_a_join() -> None:
    """As a signal handler that closes the producer amid its close; at each step, those of Python's own join too."""
    places: list[str] = []

    def joined(number: int) -> bool:
        sender = FakeSender()
        thread = thread_of(sender)
        thread.start()
        sender.request_close()
        outcome: list[bool] = []

        def handler() -> None:
            places.append(sys._getframe(2).f_code.co_qualname)
            outcome.append(thread.join(HANG_MS))

        whole = at_step(
            number,
            lambda: outcome.append(thread.join(HANG_MS)),
            handler,
            is_step=lambda file: file in (thread_module.__file__, threading.__file__),
        )
        assert set(outcome) == {True}
        return whole

    assert each_step(joined, "a join with a handler") == len(places)
    # How many steps Python's own join has depends on its version; it has one where it begins, at least.
    ours = [found for found in dis.get_instructions(SenderThread.join) if found.opname in WHERE_IT_LOOKS]
    assert places.count("SenderThread.join") == len(ours) >= 3
    assert "Thread.join" in places


def test_a_start_that_is_interrupted_while_the_thread_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in Python's own wait for the new thread: that thread makes the end, and it has ended then."""
    ended_by: list[int] = []
    sender = FakeSender()
    thread = thread_of(sender, lambda: ended_by.append(threading.get_ident()))

    def start(run: Callable[[], None], name: str) -> None:
        threading.Thread(target=run, name=name, daemon=True).start()
        while not sender.turns:
            sender.asked.wait(0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(thread_module, "start_thread", start)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    assert ended_by == [thread.ident] != [threading.get_ident()]
    assert thread.finished and not thread.is_alive() and thread.join(0)


def test_a_start_that_is_interrupted_before_the_thread_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end is made here, and the thread does nothing should it begin later."""
    closed: list[str] = []
    sender = FakeSender()
    thread = thread_of(sender, lambda: closed.append("it"))
    late: list[Callable[[], None]] = []

    def start(run: Callable[[], None], name: str) -> None:
        late.append(run)
        raise KeyboardInterrupt

    monkeypatch.setattr(thread_module, "start_thread", start)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    assert thread.finished and closed == ["it"]
    late[0]()
    assert (sender.turns, closed) == (0, ["it"])


def test_a_start_may_be_interrupted_at_each_step() -> None:
    """Those of Python's own start too: one thread makes the end, once, before the start is over."""

    def interrupted(number: int) -> bool:
        closed: list[str] = []
        sender = FakeSender()
        thread = thread_of(sender, lambda: closed.append("it"))
        try:
            whole = at_step(
                number, thread.start, raise_interrupt, lambda file: file in (thread_module.__file__, threading.__file__)
            )
        except (KeyboardInterrupt, RuntimeError):  # Python's own wait may meet a lock that it has let go
            # At the first step nothing has begun, and there is nothing to end.
            assert (thread.finished, closed) == ((True, ["it"]) if number else (False, []))
            return True
        sender.request_close()
        assert thread.join(HANG_MS) and closed == ["it"]
        return whole

    assert each_step(interrupted, "a start with Ctrl-C") > 5
