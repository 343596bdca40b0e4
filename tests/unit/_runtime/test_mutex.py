"""Mutex: exclusive among threads, and waiting for it lets the others run."""

from __future__ import annotations

import sys
import threading

from forebay._accumulator.partitioner import RoundRobinPartitioner
from forebay._runtime import mutex as _mutex
from tests.unit._accumulator.test_partitioner import cluster_of


def test_the_interpreted_form_is_an_ordinary_lock() -> None:
    lock = _mutex.Mutex()
    _mutex.acquire(lock)
    assert lock.locked()
    _mutex.release(lock)
    assert not lock.locked()


def test_no_turn_is_lost_among_threads() -> None:
    partitioner = RoundRobinPartitioner()
    cluster = cluster_of({"t": [(number, True) for number in range(3)]})
    turns: list[int] = []

    def take_turns() -> None:
        turns.extend([partitioner.partition("t", None, None, None, None, cluster) for _ in range(3_000)])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=take_turns) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [turns.count(number) for number in range(3)] == [4_000] * 3
