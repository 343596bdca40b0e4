"""Interpreter exit and fork, with threads of the test's making; the real ones are in the integration tests."""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.util
import os
import weakref
from typing import Any

import pytest

from forebay._sender import lifecycle
from forebay.testing.clock import ManualClock


class FakeThread:
    """A sender thread, and its sender, that ends when asked, when forced, or not at all."""

    def __init__(
        self, ends: str = "asked", interrupted: bool = False, signals: int = 0, clock: ManualClock | None = None
    ) -> None:
        self.ends = ends
        self.clock = clock or ManualClock()
        self.forced = False
        self.interrupted = interrupted
        self.signals = signals
        self.finished = False
        self.patience_ms = 1234.0
        self.calls: list[Any] = []

    @property
    def sender(self) -> FakeThread:
        return self

    def is_alive(self) -> bool:
        return not self.finished

    def request_close(self) -> None:
        self.calls.append("close")

    def request_force_close(self) -> None:
        self.calls.append("force")
        self.forced = True

    def leave(self) -> tuple[int, int]:
        self.calls.append("leave")
        return 3, 2

    def join(self, timeout_ms: float) -> bool:
        self.calls.append(timeout_ms)
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        if self.signals:
            self.signals -= 1
            raise SystemExit
        self.finished = self.ends == "asked" or (self.ends == "forced" and self.forced)
        if not self.finished:
            self.clock.advance(timeout_ms)
        return self.finished


class FakeProducer:
    def __init__(self) -> None:
        self.forked = 0

    def _after_fork_in_child(self) -> None:
        self.forked += 1


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> set[Any]:
    """Registers of the test's own: those of the process belong to other tests' producers."""
    threads: set[Any] = set()
    monkeypatch.setattr(lifecycle, "_threads", threads)
    monkeypatch.setattr(lifecycle, "_producers", weakref.WeakSet())
    monkeypatch.setattr(lifecycle, "_holders", weakref.WeakSet())
    monkeypatch.setattr(lifecycle, "_hooked_workers", set())
    return threads


def test_all_are_asked_before_one_is_waited_for(watched: set[Any]) -> None:
    threads = [FakeThread() for _ in range(3)]
    order: list[str] = []
    for thread in threads:
        lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
        thread.request_close = lambda: order.append("close")  # type: ignore[method-assign]
        thread.join = lambda timeout_ms: order.append("join") or True  # type: ignore[method-assign, func-returns-value]
    lifecycle.end_all_at_exit()
    assert order == ["close"] * 3 + ["join"] * 3


def test_who_takes_too_long_is_ended_by_force(watched: set[Any], caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    slow, stuck = FakeThread("forced", clock=clock), FakeThread("never", clock=clock)
    for thread in (slow, stuck):
        lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    lifecycle.end_all_at_exit(clock)
    assert [call for call in slow.calls if isinstance(call, str)] == ["close", "force", "force"]
    assert [call for call in stuck.calls if isinstance(call, str)] == ["close", "force", "force", "leave"]
    assert slow.finished and not stuck.finished
    assert caplog.text.count("did not end within delivery.timeout.ms at interpreter exit") == 2
    assert "3 record(s) were acknowledged, 2 record(s) were not and failed" in caplog.text


def test_the_patience_of_all_begins_together(watched: set[Any]) -> None:
    """Many producers whose callbacks do not return take no longer than one."""
    clock = ManualClock()
    threads = [FakeThread("never", clock=clock) for _ in range(5)]
    threads[2].patience_ms = 2000.0
    for thread in threads:
        lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    begun = clock.now()
    lifecycle.end_all_at_exit(clock)
    assert clock.now() - begun == 2000 + lifecycle.FORCED_END_MS
    assert [thread.calls[-1] for thread in threads] == ["leave"] * 5


def test_signals_do_not_prolong_it(watched: set[Any]) -> None:
    clock = ManualClock()
    stuck, signalled = FakeThread("never", clock=clock), FakeThread("never", clock=clock, signals=1)
    signalled.patience_ms = 1500.0
    for thread in (stuck, signalled):
        lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    begun = clock.now()
    lifecycle.end_all_at_exit(clock)
    assert clock.now() - begun == 1500 + lifecycle.FORCED_END_MS


def test_what_close_could_not_end_is_not_waited_for_again(watched: set[Any], caplog: pytest.LogCaptureFixture) -> None:
    """Its callback gets the time of a forced end."""
    clock = ManualClock()
    stuck = FakeThread("never", clock=clock)
    stuck.forced = True
    lifecycle.watch(FakeProducer(), stuck)  # type: ignore[arg-type]
    begun = clock.now()
    lifecycle.end_all_at_exit(clock)
    assert clock.now() - begun == lifecycle.FORCED_END_MS
    assert "delivery.timeout.ms" not in caplog.text


class FakeHolder:
    """Takes all the time that it is given."""

    patience_ms = 2000.0

    def __init__(self, interrupted: bool = False) -> None:
        self.ends: list[float] = []
        self.interrupted = interrupted

    def finish(self, end: float, clock: Any) -> None:
        self.ends.append(end)
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        clock.advance(max(0.0, end - clock.now()))


def test_what_is_held_goes_on_before_the_threads_are_asked(watched: set[Any]) -> None:
    """And leaves a part of the time to them."""
    clock, holder = ManualClock(), FakeHolder()
    thread = FakeThread(clock=clock)
    thread.patience_ms = 2000.0
    lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    lifecycle.watch_holder(holder)
    begun = clock.now()
    lifecycle.end_all_at_exit(clock)
    assert holder.ends == [begun + 1800] and thread.calls == ["close", pytest.approx(200)]


def test_what_is_held_ends_with_the_time_of_a_limited_end(watched: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clock, holder = ManualClock(), FakeHolder()
    monkeypatch.setattr(lifecycle, "_end_at", clock.now() + 1000)
    lifecycle.watch_holder(holder)
    lifecycle.end_all_at_exit(clock)
    assert clock.now() == holder.ends[0] == lifecycle._end_at - 100  # type: ignore[operator]


def test_ctrl_c_while_something_is_held_ends_all(watched: set[Any]) -> None:
    clock = ManualClock()
    holders = [FakeHolder(interrupted=True) for _ in range(2)]
    holders[1].interrupted = False
    holders[1].patience_ms = 3000.0
    thread = FakeThread("forced", clock=clock)
    lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    for holder in holders:
        lifecycle.watch_holder(holder)
    begun = clock.now()
    with pytest.raises(KeyboardInterrupt):
        lifecycle.end_all_at_exit(clock)
    assert holders[0].ends == [begun + 1800, begun] and holders[1].ends == [begun] and "force" in thread.calls


def test_a_forked_child_has_nothing_held(watched: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "note_fork", lambda: None)
    holder = FakeHolder()
    lifecycle.watch_holder(holder)
    lifecycle._mark_all_in_child()
    lifecycle.end_all_at_exit(ManualClock())
    assert holder.ends == []


def test_ctrl_c_at_exit_ends_all_by_force(watched: set[Any]) -> None:
    threads = [FakeThread("forced", interrupted=True), FakeThread("forced", interrupted=False)]
    for thread in threads:
        lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    threads[1].patience_ms = threads[0].patience_ms
    threads[1].interrupted = True
    with pytest.raises(KeyboardInterrupt):
        lifecycle.end_all_at_exit()
    assert all("force" in thread.calls for thread in threads)


def test_a_handler_that_exits_does_not_end_the_wait(watched: set[Any]) -> None:
    """The usual handler of SIGTERM, and the process ends already."""
    threads = [FakeThread(signals=2), FakeThread(signals=1)]
    for thread in threads:
        lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    lifecycle.end_all_at_exit()
    assert all(thread.finished and "force" not in thread.calls for thread in threads)


def test_those_that_have_ended_are_left_alone_and_forgotten(watched: set[Any]) -> None:
    ended, living = FakeThread(), FakeThread()
    lifecycle.watch(FakeProducer(), ended)  # type: ignore[arg-type]
    ended.finished = True
    lifecycle.end_all_at_exit()
    assert ended.calls == []
    lifecycle.watch(FakeProducer(), living)  # type: ignore[arg-type]
    assert watched == {living}
    lifecycle.forget(living)  # type: ignore[arg-type]
    assert watched == set()


def test_in_a_forked_child_each_producer_is_told(watched: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[str] = []
    monkeypatch.setattr(lifecycle, "note_fork", lambda: forks.append("noted"))
    thread, producer, dropped = FakeThread(), FakeProducer(), FakeProducer()
    lifecycle.watch(producer, thread)  # type: ignore[arg-type]
    lifecycle.watch(dropped, FakeThread())  # type: ignore[arg-type]
    del dropped
    lifecycle._mark_all_in_child()
    assert (producer.forked, forks, watched) == (1, ["noted"], set())
    lifecycle.end_all_at_exit()
    assert thread.calls == []


def test_a_worker_s_end_is_watched_once(watched: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of multiprocessing skip the interpreter's exit handlers."""
    hooked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(multiprocessing.process, "parent_process", lambda: object())
    monkeypatch.setattr(multiprocessing.util, "Finalize", lambda *args, **more: hooked.append((*args, more)))
    for _ in range(3):
        lifecycle.watch(FakeProducer(), FakeThread())  # type: ignore[arg-type]
    assert hooked == [(None, lifecycle.end_all_at_exit, {"exitpriority": 0})]
    assert lifecycle._hooked_workers == {os.getpid()}


def test_a_process_that_is_no_worker_needs_no_hook(watched: set[Any]) -> None:
    lifecycle.watch(FakeProducer(), FakeThread())  # type: ignore[arg-type]
    assert lifecycle._hooked_workers == set()
