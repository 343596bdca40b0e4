"""_accumulator.watching: records are read out of the bytes of a batch that closes, and its outcome is noted once."""

from __future__ import annotations

import sys
from array import array

import pytest

from forebay._accumulator.watching import BatchWatch
from forebay._records.compression import CompressionType, compressor
from tests.fakes.world import World
from tests.unit._accumulator.shelf import Shelf

TOPIC, PARTITION, COUNT, KEPT, CREATED, CLOSED, DRAINED, ANSWERED, NODE, ATTEMPTS, OUTCOME, RAW, SIZE = range(13)


def numbers(column: bytes, kind: str = "i") -> list[int]:
    found = array(kind, column)
    if sys.byteorder == "little":
        found.byteswap()
    return list(found)


def taken(watch: BatchWatch) -> list[tuple[list[int], bytes, bytes, bytes]]:
    """What is done: numbers of a batch, and columns of times, keys and values."""
    done = watch.take()
    return [(numbers(done[at], "q"), done[at + 1], done[at + 2], done[at + 3]) for at in range(0, len(done), 4)]


def watched(shelf: Shelf, *, every: int = 1, most: int = 1 << 20) -> BatchWatch:
    return BatchWatch(shelf.clock, every, most)


def noted(shelf: Shelf, watch: BatchWatch, partition: int = 0) -> tuple[list[int], bytes, bytes, bytes]:
    """What is noted of the partition's first batch, acknowledged 1 ms later."""
    batch = shelf.batches(partition)[0]
    watch.closing([batch])
    watch.ended(batch, 1, shelf.now + 1)
    (found,) = taken(watch)
    return found


def wall(shelf: Shelf, after: float) -> int:
    return int(shelf.clock.wall() + after)


def test_sizes_and_times_stand_in_the_encoded_records() -> None:
    shelf = Shelf(batch_size=4096)
    for ms, value, key in ((0, b"v" * 100, None), (3, None, b"k" * 70), (5, b"", b"")):
        shelf.append(0, 1, value, key, timestamp=wall(shelf, ms))
    shelf.clock.advance(10)
    watch = watched(shelf)
    own, times, keys, values = noted(shelf, watch)
    assert (
        list(watch.topics) == ["test"]
        and own[TOPIC] == 0
        and (own[PARTITION], own[COUNT], own[KEPT], own[OUTCOME]) == (0, 3, 3, 1)
    )
    assert (numbers(keys), numbers(values)) == ([-1, 70, 0], [100, -1, 0])
    assert numbers(times) == [0, 3000, 2000]
    assert own[CLOSED] - own[CREATED] == 10_000 and own[ANSWERED] - own[CLOSED] == 1000
    assert own[SIZE] == own[RAW] + 61


def test_records_of_many_sizes_are_read_wherever_they_stand() -> None:
    shelf = Shelf(batch_size=1 << 20)
    sizes = [*range(0, 300, 7), 9000, 70_000]
    for size in sizes:
        shelf.append(0, 1, bytes(size), bytes(size // 3), headers=[("h", b"v")], timestamp=wall(shelf, 0))
    _own, times, keys, values = noted(shelf, watched(shelf))
    assert numbers(values) == sizes and numbers(keys) == [size // 3 for size in sizes]
    assert set(numbers(times)) == {0}


@pytest.mark.parametrize("stamp", [1, -5_000_000, 1 << 60])
def test_times_of_events_say_nothing_of_when_they_came(stamp: int) -> None:
    shelf = Shelf(batch_size=4096)
    shelf.append(0, 4, timestamp=max(stamp, 0) if stamp > 0 else wall(shelf, stamp))
    shelf.clock.advance(8)
    _own, times, _keys, _values = noted(shelf, watched(shelf))
    assert numbers(times) == [0, 2000, 2000, 2000]


def test_a_sample_keeps_whole_moments() -> None:
    shelf = Shelf(batch_size=4096)
    watch = watched(shelf, every=4)
    first = wall(shelf, 0)
    stamps = [first + ms for ms in (0, 1, 1, 2, 3, 4, 4, 5, 8, 9)]
    for stamp in stamps:
        shelf.append(0, 1, bytes(stamp - first), timestamp=stamp)
    shelf.clock.advance(20)
    own, times, _keys, values = noted(shelf, watch)
    kept = [stamp - first for stamp in stamps if stamp % 4 == 0]
    assert numbers(values) == kept and (own[COUNT], own[KEPT]) == (10, len(kept))
    assert sum(numbers(times)) == 1000 * kept[-1]


def test_a_batch_without_a_moment_of_the_sample_is_not_walked() -> None:
    shelf = Shelf()
    watch = watched(shelf, every=1000)
    shelf.append(0, 2, timestamp=wall(shelf, 1))
    shelf.append(1, 2, timestamp=wall(shelf, 0))
    assert wall(shelf, 0) % 1000 == 0
    shelf.clock.advance(2)
    shelf.append(2, 2, timestamp=wall(shelf, 0))
    kept = [noted(shelf, watch, partition)[0][KEPT] for partition in (0, 1, 2)]
    assert kept == [1, 2, 0]


def test_a_second_look_and_an_outcome_of_what_was_not_noted_do_nothing() -> None:
    shelf = Shelf()
    shelf.append(0, 3)
    watch = watched(shelf)
    (batch,) = shelf.batches()
    watch.ended(batch, 1, 0.0)
    watch.closing([batch, batch])
    watch.closing([batch])
    assert len(watch.open) == 1 and not watch.take()
    watch.end_all()
    ((own, *_columns),) = taken(watch)
    assert (own[OUTCOME], own[ANSWERED]) == (0, 0) and not watch.open
    shelf.accumulator.closer.close_batch(batch)
    watch.closing([batch])
    assert not watch.open and watch.failure is None


def test_what_there_is_no_room_for_is_counted() -> None:
    shelf = Shelf()
    for partition in (0, 1, 2):
        shelf.append(partition, 3)
    watch = watched(shelf, most=1100)
    watch.closing([shelf.batches(partition)[0] for partition in (0, 1, 2)])
    assert (len(watch.open), watch.left_out_batches, watch.left_out_records) == (2, 1, 3)
    watch.taken(536)
    watch.closing([shelf.batches(2)[0]])
    assert len(watch.open) == 3


def test_an_error_of_the_watch_is_kept_and_not_raised() -> None:
    shelf = Shelf()
    watch = watched(shelf)
    watch.closing(["no batch"])
    watch.ended("no batch", 1, 0.0)
    assert isinstance(watch.failure, TypeError | AttributeError)


def test_the_clock_is_known_to_the_best_of_what_was_seen() -> None:
    shelf = Shelf()
    watch = watched(shelf)
    ahead = watch.ahead_us
    shelf.clock.advance(0.4)  # the wall's millisecond is the same
    watch.tune_clock()
    assert watch.ahead_us == ahead
    shelf.clock.advance(0.6)
    watch.tune_clock()
    assert watch.ahead_us == ahead


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_the_closer_tells_it_of_each_batch_once_before_compression(codec: str) -> None:
    shelf = Shelf(compressor=None if codec == "none" else compressor(CompressionType.LZ4), batch_size=4096)
    watch = shelf.accumulator.closer.watch = watched(shelf)
    shelf.append(0, 30, b"0123456789" * 5)
    shelf.append(1, 20, b"0123456789" * 5)
    batches = shelf.drain(0)
    shelf.accumulator.closer.close_drained(batches)
    shelf.accumulator.closer.close_drained(batches)
    watch.end_all()
    found = taken(watch)
    assert [own[COUNT] for own, *_columns in found] == [30, 20]
    assert all(numbers(values) == [50] * own[COUNT] for own, _times, _keys, values in found)
    assert (found[0][0][SIZE] < found[0][0][RAW]) == (codec == "lz4")


def test_outcomes_are_told_with_their_times() -> None:
    world = World(nodes=1, retries=0)
    watch = BatchWatch(world.clock, 1, 1 << 20)
    world.accumulator.closer.watch = watch
    world.send(b"refused", partition=1)
    world.cluster.fail("test", 1, 87)
    world.send()
    world.settle()
    found = [own for own, *_columns in taken(watch)]
    assert {own[PARTITION]: own[OUTCOME] for own in found} == {0: 1, 1: 2} and not watch.open
    assert {own[NODE] for own in found} == {0}
    assert all(own[CREATED] <= own[DRAINED] <= own[ANSWERED] for own in found)


def test_the_parts_of_a_batch_that_was_split_are_not_noted_again() -> None:
    world = World(nodes=1, batch_size=1000)
    watch = BatchWatch(world.clock, 1, 1 << 20)
    world.accumulator.closer.watch = watch
    for _ in range(4):
        world.producer.send_nowait("test", b"v" * 100, partition=0)
    world.cluster.fail("test", 0, 10)
    world.settle()
    assert len(world.values()) == 4
    assert [(own[OUTCOME], own[COUNT]) for own, *_columns in taken(watch)] == [(4, 4)] and not watch.open
