"""Mutex: exclusive among threads, and waiting for it lets the others run."""

from __future__ import annotations

import sys
import threading

import pytest

from forebay._accumulator.partitioner import RoundRobinPartitioner
from forebay._runtime import mutex as _mutex
from tests.unit._accumulator.test_partitioner import cluster_of


def test_the_interpreted_form_is_an_ordinary_lock() -> None:
    lock = _mutex.Mutex()
    taken: list[bool] = []

    def try_it() -> None:
        taken.append(lock.acquire(blocking=False))

    for held in (True, False):
        if held:
            _mutex.acquire(lock)
        other = threading.Thread(target=try_it)
        other.start()
        other.join()
        if held:
            _mutex.release(lock)
    assert taken == [False, True]


def test_the_interpreted_form_refuses_to_wait_for_its_own_thread() -> None:
    """A signal handler that sends amid a send: an error in words, and not a hang; the compiled form lets it."""
    lock = _mutex.Mutex()
    _mutex.acquire(lock)
    with pytest.raises(RuntimeError, match="only the compiled form allows this"):
        _mutex.acquire(lock)
    _mutex.release(lock)
    _mutex.acquire(lock)
    _mutex.release(lock)


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
