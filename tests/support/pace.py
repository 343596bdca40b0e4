"""How fast this machine is, and the time that a test gives because of it.

A limit in seconds is a bet on the machine, so no test has one of its own:

- A wait that only must not last for ever takes ``HANG_S`` (a whole program ``PROGRAM_S``), or ``until`` for a
  condition.  Only a hang reaches it.
- A limit that is tested, and an option of a client or a broker that must not expire meanwhile, takes ``within``.
- What must be cheap is counted (calls, turns, requests), or measured in the thread's own CPU time (``CpuTime``).
- What happens by itself is waited for; nothing is slept for.

The pace is measured once for a run: how long processes take that start and compute on all processors, and how late a
thread wakes.  ``make`` measures it before the first part begins (``python tests/support/pace.py``), because the parts
keep each other busy.  Processes that the run starts inherit it.  The machine may become slower after that, so
``HANG_S`` is long, and ``until`` counts its turns, which take longer then.
"""

from __future__ import annotations

import functools
import gc
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Self

VARIABLE = "FOREBAY_PACE"
"""Carries the factor to the processes of the run."""
ROUNDS = 3
"""The median of them counts: a busy machine is not busy at every moment."""
MOST = 10.0
"""Beyond it a test that has to wait for the end of a session would take longer than anybody waits for the test."""
PROCESSES = 2
"""At once, because a test has a client and a broker; on one processor they take turns."""
WORK = "for _ in range(1_000_000): pass"
WORK_S = 0.06
"""A round of processes on a quiet machine."""
WAKES = 10
WAKE_S = 0.002
LATE_S = 0.001
"""By which a thread of a quiet machine wakes late, at most."""
TURN_S = 0.005


def measured() -> float:
    """How many times longer than on a quiet machine things take now, from 1 to ``MOST``."""
    work = statistics.median(_processes() for _ in range(ROUNDS)) / WORK_S
    wakes = statistics.median(_wakes() for _ in range(ROUNDS)) / (WAKES * (WAKE_S + LATE_S))
    return round(min(max(1.0, work, wakes), MOST), 1)


def _processes() -> float:
    """Seconds of some processes that start, compute and end."""
    begun = time.perf_counter()
    running = [subprocess.Popen([sys.executable, "-I", "-S", "-c", WORK]) for _ in range(PROCESSES)]
    for process in running:
        process.wait()
    return time.perf_counter() - begun


def _wakes() -> float:
    """Seconds of some short waits."""
    begun, never = time.perf_counter(), threading.Event()
    for _ in range(WAKES):
        never.wait(WAKE_S)
    return time.perf_counter() - begun


@functools.cache
def factor() -> float:
    """The pace of this run; its first process measures it."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(measured())
    return float(os.environ[VARIABLE])


def within(seconds: float) -> float:
    """What takes ``seconds`` on a quiet machine at most, takes at most this on this one."""
    return seconds * factor()


def within_ms(milliseconds: int) -> int:
    """The same in whole milliseconds, as the options of clients and brokers want them."""
    return round(milliseconds * factor())


class CpuTime:
    """The CPU time that this thread needs for a block: ``with CpuTime() as took: ...``, then ``took.seconds``.

    No garbage is collected meanwhile: a collection looks at what all tests of the process hold, which is no cost of
    the block and takes seconds in a run of all.
    """

    seconds = 0.0

    def __enter__(self) -> Self:
        self._collecting = gc.isenabled()
        gc.disable()
        self._begun = time.thread_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.thread_time() - self._begun
        if self._collecting:
            gc.enable()


HANG_S = within(120)
"""For a wait that ends by itself.  Its size does not matter for a test that passes."""
HANG_MS = 1000 * HANG_S
PROGRAM_S = 3 * HANG_S
"""For a program that does several such waits, Spark's own among them."""
TEST_S = 6 * HANG_S
"""For a whole test: longer than its waits, so that a wait is what fails and says what did not come."""


def until(condition: Callable[[], object], what: str, seconds: float = HANG_S) -> None:
    """Waits until ``condition()`` is true; fails with ``what`` after so many seconds.

    A turn counts as the time of ``condition()`` and of a pause, however late this thread wakes from it.
    """
    pause, left = threading.Event(), seconds
    while True:
        begun = time.monotonic()
        if condition():
            return
        left -= time.monotonic() - begun + TURN_S
        assert left > 0, f"not within {seconds:g} s: {what}"
        pause.wait(TURN_S)


if __name__ == "__main__":
    print(factor())
