"""The accumulator's threads, switched at chosen lines (``interleavings``), in a process of its own that is interpreted.

Compiled code has the GIL where interpreted code is switched.  What it protects by accident is a race all the same.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.examples import size
from tests.support.pace import PROGRAM_S

SEEDS = {"small": 40, "whole": 300, "long": 20_000}


@pytest.mark.sized
def test_threads_that_are_switched_anywhere_lose_and_double_nothing() -> None:
    count = SEEDS[size()]
    command = [sys.executable, "-m", "tests.property.interleavings", "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{count} seeds from 0 on\n"


def test_threads_that_wait_for_each_other_are_told() -> None:
    code = """
from tests.property.interleavings import Deadlock, ExploredLock, Scheduler
def wait(first, second):
    first.acquire(); scheduler.switch(); second.acquire()
found = 0
for seed in range(20):
    scheduler = ExploredLock.scheduler = Scheduler(seed)
    one, other = ExploredLock(), ExploredLock()
    try:
        scheduler.run(lambda: wait(one, other), lambda: wait(other, one))
    except Deadlock:
        found += 1
print(found)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PROGRAM_S, check=True)
    assert int(done.stdout) > 0
