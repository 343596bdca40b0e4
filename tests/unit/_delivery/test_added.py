"""Callbacks that come after their record's ``send``, added by kafka-python's class: order, memory, threads, forks."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import weakref
from typing import Any

from tests.unit.compat.kafka.test_future_callbacks import Listeners, located
from tests.unit.compat.kafka.test_path import made, ours


def test_a_record_before_one_that_has_a_callback_gets_its_own_later() -> None:
    world = made()
    listeners, producer = Listeners(), ours(world)
    first, second, third = (producer.send("test", bytes(n), partition=0, timestamp_ms=1000 - n) for n in range(3))
    second.add_callback(listeners.functions[1])
    first.add_callback(listeners.functions[0])
    third.add_callback(listeners.functions[2])
    second.add_callback(listeners.functions[0])
    world.settle()
    assert sorted(listeners.heard) == [
        (0, located(0, 0)), (0, located(1, 1)), (1, located(1, 1)), (2, located(2, 2)),
    ]  # fmt: skip
    assert listeners.heard.index((1, located(1, 1))) < listeners.heard.index((0, located(1, 1)))


def test_a_callback_behind_one_that_the_future_keeps_is_called_after_it() -> None:
    world = made()
    told: list[Any] = []
    future = ours(world).send("test", b"v", partition=0).add_callback(lambda found: told.append("first"))
    future.native.add_done_callback(lambda native: told.append("second"))
    for name in ("third", "fourth"):
        future.add_callback(lambda found, name=name: told.append(name))
    world.settle()
    assert told == ["first", "second", "third", "fourth"]


def test_what_is_added_is_let_go_with_the_outcome() -> None:
    world = made()

    class Mine:
        def __call__(self, found: Any) -> None:
            assert future is not None

    mine = Mine()
    known = weakref.ref(mine)
    future = ours(world).send("test", b"v", partition=0).add_callback(mine).add_errback(mine)
    del mine
    gc.collect()
    assert known() is not None
    world.settle()
    gc.collect()
    assert known() is None and future.succeeded()


def test_what_is_added_is_paid_for() -> None:
    world = made(batch_size=1 << 20, linger_ms=60_000, delivery_timeout_ms=100_000)
    producer = ours(world)
    producer.send("test", b"v", partition=0)
    (batch,) = world.accumulator.incomplete()
    costs = [batch.account.charged]
    for step in range(3):
        for _ in range(1000):
            function = (lambda found: None) if step == 2 else id
            producer.send("test", b"v", partition=0).add_callback(function)
        costs.append(batch.account.charged)
    growth = [after - before for before, after in itertools.pairwise(costs)]
    # Numbers for each record, at most twice as many as there are; then functions, too.
    assert 24 * 1000 <= growth[0] <= 2 * 24 * 1000 + 1000 and growth[1] <= 4 * 24 * 1000
    assert growth[2] >= 1000 * 300
    world.run(70_000)
    assert batch.account.charged == 0 and not producer.native._parts.accumulator.has_incomplete()


def test_many_threads_add_to_the_records_of_one_batch() -> None:
    world = made(batch_size=1 << 20, linger_ms=60_000, delivery_timeout_ms=100_000)
    producer = ours(world)
    seen: list[tuple[int, int, int]] = []

    def work(thread: int) -> None:
        for number in range(300):
            future = producer.send("test", b"v", partition=0)
            future.add_callback(lambda found, at=(thread, number, 0): seen.append(at))
            future.add_callback(lambda found, at=(thread, number, 1): seen.append(at))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    world.run(70_000)
    assert sorted(seen) == [(thread, number, which) for thread in range(4) for number in range(300) for which in (0, 1)]
    places = {at: place for place, at in enumerate(seen)}
    assert all(places[(thread, number, 0)] < places[(thread, number, 1)] for thread, number, _ in seen)


def test_in_a_forked_child_none_is_added() -> None:
    world = made()
    future = ours(world).send("test", b"v", partition=0).add_callback(id)
    child = os.fork()
    if child == 0:
        try:
            future.add_callback(id)
        except BaseException as raised:  # noqa: BLE001 - the child ends here, whatever it is
            os._exit(17 if "belongs to the parent process" in str(raised) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
