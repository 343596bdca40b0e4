"""Queues that linger are looked at again when something happened to them, and not before."""

from __future__ import annotations

import gc
import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from forebay._accumulator import lingering as module
from tests.unit._accumulator.shelf import TOPIC, VALUE, Shelf

LINGER = 10.0
ROOM = 61 + 3 * 15
"""A batch of three records."""


def lingering(*, leaders: tuple[int, ...] = (0, 0, 1), records: int = 1, delivery: float = 3200) -> Shelf:
    """A record in each partition, looked at once."""
    shelf = Shelf(batch_size=ROOM, linger=LINGER, leaders=leaders, delivery=delivery)
    for partition in range(len(leaders)):
        shelf.append(partition, records)
    found = shelf.ready()
    assert (found.nodes, found.next_check) == ([], LINGER)
    return shelf


def test_a_turn_looks_at_none_that_lingers() -> None:
    shelf = lingering(leaders=(0,) * 50)
    assert shelf.schedule.watched == []
    shelf.clock.advance(4)
    assert shelf.ready().next_check == LINGER - 4
    shelf.append(7, 1)
    assert shelf.ready().nodes == [] and shelf.schedule.watched == []
    shelf.clock.advance(6)
    assert shelf.ready().nodes == [0]
    assert len(shelf.schedule.watched) == 50
    assert len(shelf.drain(0)) == 50
    found = shelf.ready()
    assert (found.nodes, found.next_check, shelf.schedule.watched) == ([], math.inf, [])


def test_a_batch_that_gets_full_does_not_linger() -> None:
    shelf = lingering(records=2)
    shelf.append(2)
    assert shelf.ready().nodes == [1]
    assert shelf.drain_partitions(1) == [2]
    assert shelf.ready().nodes == []


def test_a_batch_that_the_next_record_does_not_fit_into_does_not_linger() -> None:
    shelf = lingering(records=2)
    shelf.append(2, value=VALUE * 2)
    assert shelf.ready().nodes == [1]
    assert [batch.record_count for batch in shelf.drain(1)] == [2]
    # What follows began now, whatever the first batch's time was.
    shelf.clock.advance(4)
    shelf.append(2)
    assert shelf.ready().next_check == LINGER - 4


def test_what_lingers_goes_along_and_the_next_batch_has_its_own_time() -> None:
    shelf = lingering()
    shelf.clock.advance(4)
    shelf.append(0, 2)
    assert shelf.ready().nodes == [0]
    assert shelf.drain_partitions(0) == [0, 1]
    shelf.clock.advance(3)
    shelf.append(1)
    assert shelf.ready().next_check == LINGER - 7  # partition 2
    shelf.clock.advance(3)
    assert shelf.ready().nodes == [1]
    assert shelf.drain_partitions(1) == [2]
    assert shelf.ready().next_check == LINGER - 3
    shelf.clock.advance(7)
    assert shelf.ready().nodes == [0]
    assert shelf.drain_partitions(0) == [1]


def test_a_drain_says_what_follows_at_once_and_what_later() -> None:
    shelf = Shelf(batch_size=ROOM, linger=LINGER, leaders=(0,))
    shelf.append(0, 6)
    shelf.clock.advance(2)
    shelf.append(0)
    assert shelf.ready().nodes == [0]
    assert len(shelf.drain(0)) == 1 and shelf.accumulator.drain.more
    assert len(shelf.drain(0)) == 1 and not shelf.accumulator.drain.more
    assert shelf.accumulator.drain.behind_check == LINGER
    shelf.clock.advance(LINGER)
    assert shelf.ready().nodes == [0]
    assert len(shelf.drain(0)) == 1 and not shelf.accumulator.drain.more
    assert shelf.accumulator.drain.behind_check == math.inf


def test_flush_and_close_wait_for_nobody() -> None:
    shelf = lingering()
    assert sorted(shelf.ready(send_all=True).nodes) == [0, 1]
    assert shelf.drain_partitions(0, 1) == [0, 1, 2]


def test_the_seal_closes_what_lingers() -> None:
    shelf = lingering()
    shelf.accumulator.seal()
    assert sorted(shelf.ready().nodes) == [0, 1]
    shelf.accumulator.unseal()
    assert shelf.drain_partitions(0, 1) == [0, 1, 2]


def test_another_leader() -> None:
    shelf = lingering()
    shelf.move(2, -1)
    assert shelf.ready().leaderless == {TOPIC}
    shelf.move(2, 0)
    found = shelf.ready()
    assert (found.nodes, found.next_check, found.leaderless) == ([], LINGER, None)
    shelf.clock.advance(LINGER)
    assert shelf.ready().nodes == [0]
    assert shelf.drain_partitions(0, 1) == [0, 1, 2]


def test_what_expires_while_it_lingers_is_followed_by_others() -> None:
    shelf = Shelf(batch_size=ROOM, linger=1000, leaders=(0,), delivery=50)
    shelf.append()
    assert shelf.ready().nodes == []
    shelf.clock.advance(50)
    (gone,) = shelf.schedule.expired(shelf.now)
    assert gone.record_count == 1
    shelf.append()
    assert shelf.ready().next_check == 1000
    assert shelf.schedule.next_expiry_at() == shelf.now + 50
    shelf.append(0, 2)
    assert shelf.ready().nodes == [0]


def test_a_retry_is_looked_at_although_the_queue_lingered() -> None:
    shelf = Shelf(batch_size=ROOM, linger=LINGER, leaders=(0,))
    shelf.append(0, 3)
    shelf.ready()
    (first,) = shelf.drain(0)
    shelf.append()
    assert shelf.ready().next_check == LINGER
    shelf.schedule.reenqueue(first, shelf.now, None)
    wait = first.retry_at - shelf.now
    assert wait > LINGER
    assert shelf.ready().next_check == wait
    shelf.clock.advance(wait)
    assert shelf.ready().nodes == [0]
    assert shelf.drain(0) == [first] and shelf.accumulator.drain.more


STEPS = st.lists(
    st.tuples(st.sampled_from(("append", "append", "append", "wait")), st.integers(0, 24), st.integers(1, 6)),
    max_size=120,
)


@given(STEPS)
def test_the_next_look_is_when_the_first_of_those_that_linger_is_due(steps: list[tuple[str, int, int]]) -> None:
    shelf = Shelf(batch_size=ROOM, linger=LINGER, leaders=(0,) * 25, delivery=10**6)
    begun: dict[int, list[list[float]]] = {partition: [] for partition in range(25)}
    for step, partition, number in steps:
        if step == "wait":
            shelf.clock.advance(number / 2)
        else:
            shelf.append(partition)
            batches = begun[partition]
            if not batches or batches[-1][1] == 3:
                batches.append([shelf.now, 0])
            batches[-1][1] += 1
        found = shelf.ready()
        waiting = [batches for batches in begun.values() if batches]
        due = [batches for batches in waiting if len(batches) > 1 or batches[0][1] == 3]
        due += [batches for batches in waiting if batches[0][0] + LINGER <= shelf.now]
        assert found.nodes == ([0] if due else [])
        if not due:
            assert (
                found.next_check == min((batches[0][0] for batches in waiting), default=math.inf) + LINGER - shelf.now
            )
            continue
        for batch in shelf.accumulator.drain.drain(0, number * ROOM, shelf.now, None):
            (created, count), *begun[batch.partition] = begun[batch.partition]
            assert (batch.created, batch.record_count) == (created, count)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 39), st.floats(0, 100)), max_size=150))
def test_any_queue_can_leave_the_heap(steps: list[tuple[bool, int, float]]) -> None:
    """Queues go in and out as a random walk says, by way of the schedule; the first to come is always the first due."""
    shelf = Shelf(leaders=(0,) * 40, linger=50, batch_size=ROOM)
    waiting: dict[int, float] = {}
    for fill, partition, pause in steps:
        shelf.clock.advance(pause / 10)
        if partition not in waiting:
            shelf.append(partition)
            waiting[partition] = shelf.now + 50
        elif fill:
            shelf.append(partition, 3)  # full, so that it is announced
            waiting[partition] = -math.inf
        shelf.ready()
        parked = [queue.partition for queue in shelf.schedule.parked.heap]
        lingering = {number for number, due in waiting.items() if due > shelf.now}
        assert len(parked) == len(set(parked)) and set(parked) == lingering
        heap = [waiting[number] for number in parked]
        assert all(heap[(at - 1) // 2] <= heap[at] for at in range(1, len(heap)))


def test_one_that_waits_is_nothing_for_the_garbage_collector() -> None:
    """It would walk all that waits again and again."""
    shelf = Shelf(leaders=(0,) * 50, linger=LINGER)
    shelf.append(0)
    shelf.ready()
    gc.collect()  # what other tests left must not go in between
    before = Counter(type(each) for each in gc.get_objects())
    for partition in range(1, 50):
        shelf.append(partition)
    shelf.ready()
    after = Counter(type(each) for each in gc.get_objects())
    kept = {kind: count for kind, count in (after - before).items() if count > 40}
    # Interpreted, every object is one.
    interpreted = str(module.__file__).endswith(".py")
    assert (kept != {}) == interpreted
