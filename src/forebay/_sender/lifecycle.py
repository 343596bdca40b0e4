"""The two moments when every producer of the process is concerned: interpreter exit and fork.

At exit, what is held for topics that are not known yet goes first.  Then each sender's thread that still runs is asked
to send what it has, and joined.  What was accepted is delivered while a broker answers.  What cannot be delivered ends
in an error that is logged, at the latest after ``delivery.timeout.ms``.  All producers' times begin together, so the
exit takes as long as the longest of them.  A thread that a callback holds is left to end with the process, and the log
counts its records.  The threads exist before exit begins, because from Python 3.12 on none can be started then.

In a forked child the producer's thread does not exist.  The one hook here marks each producer, so that its methods
say what it is instead of hanging, and closes the inherited descriptors; it takes no lock, since one may have been
held at the moment of the fork.  The parent is not touched.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref
from typing import Any, Protocol

from forebay._delivery.result import note_fork
from forebay._delivery.unheard import forget_left, say_left
from forebay._runtime.clock import Clock, SystemClock
from forebay._sender.thread import SenderThread

logger = logging.getLogger("forebay.producer")

FORCED_END_MS = 5_000.0
"""How long all threads together that were told to end at once, at exit, may take for it."""
LIMITED_END_MS = 500.0
"""The same where the end of the process is limited (``limit_end``)."""
HOLDERS_PART = 0.9
"""The part of the time that what is held may wait; what goes on then still has to be sent."""
HELPERS_END_MS = 1_000.0
"""How long the exit waits for a login's work: a token's provider may not return."""


class Forkable(Protocol):
    """What the fork hook does with each producer."""

    def _after_fork_in_child(self) -> None: ...


class Holder(Protocol):
    """Something that holds records which no sender has yet."""

    patience_ms: float
    """The time in which it can hand on what it holds, or never can."""

    def finish(self, end: float, clock: Clock) -> None:
        """Hands on what it holds, until ``end`` (monotonic ms) by ``clock`` at most; fails the rest, and says so."""


# Process-wide by nature.  The threads are held strongly: a producer that was dropped still has records to send.
_threads: set[SenderThread] = set()
_producers: weakref.WeakSet[Any] = weakref.WeakSet()
_holders: weakref.WeakSet[Any] = weakref.WeakSet()
"""One that holds something is kept alive by its own thread."""
_hooked_workers: set[int] = set()
"""This process's id, if it is a worker whose end is watched."""
_end_at: float | None = None
"""Monotonic ms at which the process has to end; one word, which a signal handler sets."""


def watch(producer: Forkable, thread: SenderThread) -> None:
    """Takes a new producer and its started thread under this module's care."""
    for known in list(_threads):
        if known.finished:
            _threads.discard(known)
    _threads.add(thread)
    _producers.add(producer)
    _watch_worker_exit()


def limit_end(seconds: float, clock: Clock | None = None) -> None:
    """The end of the process takes ``seconds`` from now at most.  For signal handlers: no lock, no wait."""
    global _end_at
    _end_at = (clock or SystemClock()).now() + seconds * 1000


def time_left(clock: Clock | None = None) -> float | None:
    """Seconds that are left of ``limit_end``; None if no end was limited."""
    return None if _end_at is None else max(0.0, (_end_at - (clock or SystemClock()).now()) / 1000)


def producers() -> list[Any]:
    """The producers of this process, those that are closed and not yet collected too.  Any thread."""
    return list(_producers)


def watch_forks(user: Forkable) -> None:
    """Takes something without a thread under the fork hook's care."""
    _producers.add(user)


def watch_holder(holder: Holder) -> None:
    """At exit it has to hand on what it holds."""
    _holders.add(holder)


def forget(thread: SenderThread) -> None:
    """The thread has ended."""
    _threads.discard(thread)


def end_all_at_exit(clock: Clock | None = None) -> None:
    """Ends every producer of the process, within the longest delivery.timeout.ms or the limit of ``limit_end``."""
    clock = clock or SystemClock()
    begun = clock.now()
    try:
        while True:
            try:
                _end_all(clock, begun)
                break
            except SystemExit:
                # Raised by the handler of another SIGTERM.  The process ends already, and records would be lost.
                continue
    finally:
        say_left(over=True)
    _end_helpers()
    recorder = sys.modules.get("forebay._insight.recorder")
    if recorder is not None:
        recorder.join_all()  # the files of traces


def _helpers() -> Any:
    """The module of the threads that help with logins, if it is loaded."""
    return sys.modules.get("forebay._network.credentials")


def _end_helpers() -> None:
    module = _helpers()
    if module is not None and not module.join_all(HELPERS_END_MS):
        logger.warning("The process ends although the work of a login (such as a token's provider) has not returned")


def _end_all(clock: Clock, begun: float) -> None:
    living = [thread for thread in list(_threads) if thread.is_alive()]
    threads = sorted(living, key=lambda thread: thread.patience_ms)
    holders = sorted(_holders, key=lambda holder: holder.patience_ms)
    late: list[SenderThread] = []
    try:
        for holder in holders:
            holder.finish(begun + HOLDERS_PART * (_end_of(begun, holder.patience_ms) - begun), clock)
        for thread in threads:
            thread.sender.request_close()
        for thread in threads:
            # One that was told to end at once, by close(timeout), has had its time.
            end = _end_of(begun, 0.0 if thread.sender.forced else thread.patience_ms)
            if not thread.join(max(0.0, end - clock.now())):
                if not thread.sender.forced:
                    limit = "delivery.timeout.ms" if _end_at is None else "the time that is left"
                    logger.error("A producer did not end within %s at interpreter exit; ending it by force", limit)
                thread.sender.request_force_close()
                late.append(thread)
    except KeyboardInterrupt:
        # Nobody wants to wait: each holder and each thread says how many records it had left.
        for holder in holders:
            holder.finish(begun, clock)
        _end_by_force(threads, clock)
        raise
    _end_by_force(late, clock)


def _end_of(begun: float, patience_ms: float) -> float:
    end = begun + patience_ms
    return end if _end_at is None else min(end, _end_at)


def _end_by_force(threads: list[SenderThread], clock: Clock) -> None:
    for thread in threads:
        thread.sender.request_force_close()
    end = clock.now() + (FORCED_END_MS if _end_at is None else LIMITED_END_MS)
    for thread in threads:
        if not thread.join(max(0.0, end - clock.now())):
            acknowledged, lost = thread.leave()
            logger.error(
                "A delivery callback does not return, and the process ends without the callbacks behind it: "
                "%d record(s) were acknowledged, %d record(s) were not and failed",
                acknowledged,
                lost,
            )


def _watch_worker_exit() -> None:
    """A worker of multiprocessing ends by os._exit, which skips exit handlers; it has a list of its own instead."""
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is None or process is None or process.parent_process() is None or os.getpid() in _hooked_workers:
        return
    _hooked_workers.add(os.getpid())
    # Behind the pools of the worker, which have higher priorities, and before its own children are joined.
    util.Finalize(None, end_all_at_exit, exitpriority=0)
    # A handler of SIGTERM that exits may interrupt that list's own code, whose rest is then left out.  What
    # ``threading._register_atexit`` has runs after that list in any case.  In a process that is not a worker it would
    # run before atexit's.
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(end_all_at_exit)


def _mark_all_in_child() -> None:
    global _end_at
    _end_at = None  # the parent's end is not the child's
    note_fork()
    _threads.clear()
    _holders.clear()
    forget_left()
    module = _helpers()
    if module is not None:
        module.forget_all()
    _hooked_workers.clear()
    for producer in list(_producers):
        producer._after_fork_in_child()


atexit.register(end_all_at_exit)
os.register_at_fork(after_in_child=_mark_all_in_child)
