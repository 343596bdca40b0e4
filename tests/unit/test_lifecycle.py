"""Interpreter exit and fork, with threads of the test's making; the real ones are in the integration tests."""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.util
import os
import weakref
from typing import Any

import pytest

from forebay import _lifecycle


class FakeThread:
    """A sender thread, and its sender, that ends when asked, when forced, or not at all."""

    def __init__(self, ends: str = "asked", interrupted: bool = False, signals: int = 0) -> None:
        self.ends = ends
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

    def join(self, timeout_ms: float) -> bool:
        self.calls.append(timeout_ms)
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        if self.signals:
            self.signals -= 1
            raise SystemExit
        self.finished = self.ends == "asked" or (self.ends == "forced" and "force" in self.calls)
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
    monkeypatch.setattr(_lifecycle, "_threads", threads)
    monkeypatch.setattr(_lifecycle, "_producers", weakref.WeakSet())
    monkeypatch.setattr(_lifecycle, "_hooked_workers", set())
    return threads


def test_all_are_asked_before_one_is_waited_for(watched: set[Any]) -> None:
    threads = [FakeThread() for _ in range(3)]
    order: list[str] = []
    for thread in threads:
        _lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
        thread.request_close = lambda: order.append("close")  # type: ignore[method-assign]
        thread.join = lambda timeout_ms: order.append("join") or True  # type: ignore[method-assign, func-returns-value]
    _lifecycle._end_all_at_exit()
    assert order == ["close"] * 3 + ["join"] * 3


def test_who_takes_too_long_is_ended_by_force(watched: set[Any], caplog: pytest.LogCaptureFixture) -> None:
    slow, stuck = FakeThread("forced"), FakeThread("never")
    for thread in (slow, stuck):
        _lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    _lifecycle._end_all_at_exit()
    assert slow.calls == stuck.calls == ["close", 1234.0, "force", _lifecycle.FORCED_END_MS]
    assert slow.finished and not stuck.finished
    assert caplog.text.count("did not end within delivery.timeout.ms at interpreter exit") == 2


def test_ctrl_c_at_exit_ends_all_by_force(watched: set[Any]) -> None:
    threads = [FakeThread("forced", interrupted=True), FakeThread("forced", interrupted=False)]
    for thread in threads:
        _lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    threads[1].patience_ms = threads[0].patience_ms
    threads[1].interrupted = True
    with pytest.raises(KeyboardInterrupt):
        _lifecycle._end_all_at_exit()
    assert all("force" in thread.calls for thread in threads)


def test_a_handler_that_exits_does_not_end_the_wait(watched: set[Any]) -> None:
    """The usual handler of SIGTERM, and the process ends already."""
    threads = [FakeThread(signals=2), FakeThread(signals=1)]
    for thread in threads:
        _lifecycle.watch(FakeProducer(), thread)  # type: ignore[arg-type]
    _lifecycle._end_all_at_exit()
    assert all(thread.finished and "force" not in thread.calls for thread in threads)


def test_those_that_have_ended_are_left_alone_and_forgotten(watched: set[Any]) -> None:
    ended, living = FakeThread(), FakeThread()
    _lifecycle.watch(FakeProducer(), ended)  # type: ignore[arg-type]
    ended.finished = True
    _lifecycle._end_all_at_exit()
    assert ended.calls == []
    _lifecycle.watch(FakeProducer(), living)  # type: ignore[arg-type]
    assert watched == {living}
    _lifecycle.forget(living)  # type: ignore[arg-type]
    assert watched == set()


def test_in_a_forked_child_each_producer_is_told(watched: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[str] = []
    monkeypatch.setattr(_lifecycle, "note_fork", lambda: forks.append("noted"))
    thread, producer, dropped = FakeThread(), FakeProducer(), FakeProducer()
    _lifecycle.watch(producer, thread)  # type: ignore[arg-type]
    _lifecycle.watch(dropped, FakeThread())  # type: ignore[arg-type]
    del dropped
    _lifecycle._mark_all_in_child()
    assert (producer.forked, forks, watched) == (1, ["noted"], set())
    _lifecycle._end_all_at_exit()
    assert thread.calls == []


def test_a_worker_s_end_is_watched_once(watched: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of multiprocessing skip the interpreter's exit handlers."""
    hooked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(multiprocessing.process, "parent_process", lambda: object())
    monkeypatch.setattr(multiprocessing.util, "Finalize", lambda *args, **more: hooked.append((*args, more)))
    for _ in range(3):
        _lifecycle.watch(FakeProducer(), FakeThread())  # type: ignore[arg-type]
    assert hooked == [(None, _lifecycle._end_all_at_exit, {"exitpriority": 0})]
    assert _lifecycle._hooked_workers == {os.getpid()}


def test_a_process_that_is_no_worker_needs_no_hook(watched: set[Any]) -> None:
    _lifecycle.watch(FakeProducer(), FakeThread())  # type: ignore[arg-type]
    assert _lifecycle._hooked_workers == set()
