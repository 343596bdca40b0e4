"""Partition choice: hashes, the sticky partition, round-robin, librdkafka's default, users' own code."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._accumulator.partitioner import (
    BuiltInPartitioner,
    ConsistentRandomPartitioner,
    PartitionerAdapter,
    PartitionRandom,
    RoundRobinPartitioner,
    consistent_partition,
    key_partition,
)
from forebay._runtime import primitives as _prim
from forebay.errors import IllegalArgumentError, IllegalStateError
from forebay.model import Node, PartitionInfo
from forebay.model._cluster import Cluster

NODE = Node(0, "localhost", 9092)
LONG_KEY = b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"
COUNTS = (2, 3, 7, 10, 12, 100)

# Signed results of murmur2, and the partitions for COUNTS (java_checks A1 to A3).
VECTORS = {
    b"21": (-973932308, (0, 0, 3, 0, 0, 40)),
    b"foobar": (-790332482, (0, 0, 0, 6, 6, 66)),
    b"a-little-bit-long-string": (-985981536, (0, 2, 1, 2, 8, 12)),
    b"a-little-bit-longer-string": (-1486304829, (1, 2, 0, 9, 11, 19)),
    LONG_KEY: (-58897971, (1, 2, 3, 7, 5, 77)),
    b"abc": (479470107, (1, 0, 4, 7, 3, 7)),
    b"": (275646681, (1, 0, 2, 1, 9, 81)),
    b"key": (-1079937367, (1, 1, 4, 1, 1, 81)),
}


def sequential() -> Callable[[], int]:
    numbers = itertools.count()
    return lambda: next(numbers)


def cluster_of(topics: dict[str, Iterable[tuple[int, bool]]]) -> Cluster:
    infos = [
        PartitionInfo(topic, number, NODE if led else None)
        for topic, partitions in topics.items()
        for number, led in partitions
    ]
    return Cluster([NODE], infos)


def sticky(count: int, *, size: int = 1, available: tuple[int, ...] | None = None) -> BuiltInPartitioner:
    partitioner = BuiltInPartitioner("test", size, sequential())
    partitioner.set_partitions(count, tuple(range(count)) if available is None else available)
    return partitioner


def signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


class TestKeyPartition:
    @pytest.mark.parametrize("key", VECTORS)
    def test_murmur2(self, key: bytes) -> None:
        """A1 A2 testMurmur2: the hash itself, as a signed number."""
        assert signed(_prim.murmur2(key, len(key))) == VECTORS[key][0]

    @pytest.mark.parametrize("key", VECTORS)
    def test_partition(self, key: bytes) -> None:
        """A3 testMurmur2: the sign bit is cut off, not turned around."""
        assert tuple(key_partition(key, count) for count in COUNTS) == VECTORS[key][1]

    def test_many_keys_equal_the_formula(self) -> None:
        """O6 partition equality: 10,000 keys of all lengths, against a second implementation of the hash."""
        source = PartitionRandom(6)
        for number in range(10_000):
            key = bytes(source() & 0xFF for _ in range(number % 23))
            count = 1 + source() % 200
            assert key_partition(key, count) == (_prim.murmur2(key, len(key)) & 0x7FFFFFFF) % count

    def test_no_partitions(self) -> None:
        assert key_partition(b"key", 0) == -1

    @given(st.binary(max_size=64), st.integers(1, 2**31 - 1))
    def test_always_in_range(self, key: bytes, count: int) -> None:
        assert 0 <= key_partition(key, count) < count


class TestPartitionRandom:
    def test_known_numbers(self) -> None:
        # SplitMix64 from seed 0 starts with e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f.
        source = PartitionRandom(0)
        assert [source() for _ in range(3)] == [
            0xE220A8397B1DCDAF >> 33,
            0x6E789E6AA1B965F4 >> 33,
            0x06C45D188009454F >> 33,
        ]

    @given(st.integers(0, 2**64 - 1))
    def test_never_negative(self, seed: int) -> None:
        source = PartitionRandom(seed)
        assert all(0 <= source.next() < 2**31 for _ in range(50))


class TestSticky:
    def test_changes_after_its_share(self) -> None:
        """D testStickyPartitioning: unchanged after one and two bytes of three, changed after the third."""
        partitioner = sticky(3, size=3)
        first = partitioner.current()
        assert not partitioner.update(1, True) and not partitioner.is_changed(first)
        assert not partitioner.update(1, True) and not partitioner.is_changed(first)
        assert partitioner.update(1, True)
        assert partitioner.is_changed(first)
        assert partitioner.peek() == 1 and partitioner.produced == 0

    def test_single_partition(self) -> None:
        """D testStickyPartitioning: a topic of one partition stays there."""
        partitioner = sticky(1)
        for _ in range(10):
            assert partitioner.current() == 0
            partitioner.update(1, True)

    def test_leaderless_is_never_chosen(self) -> None:
        """D unavailablePartitionsTest: the available ones only, and all of them."""
        partitioner = BuiltInPartitioner("a", 1, PartitionRandom(7))
        partitioner.set_partitions(3, (0, 2))
        picks = set()
        for _ in range(101):
            picks.add(partitioner.current())
            partitioner.update(1, True)
        assert picks == {0, 2}

    def test_only_one_available(self) -> None:
        """D unavailablePartitionsTest: topic B, only partition 1 has a leader."""
        partitioner = sticky(2, available=(1,))
        for _ in range(10):
            assert partitioner.current() == 1
            partitioner.update(1, True)

    def test_none_available(self) -> None:
        """D unavailablePartitionsTest: topic C, its only partition has no leader and is still taken."""
        assert sticky(1, available=()).current() == 0

    def test_adaptive(self) -> None:
        """D adaptivePartitionsTest: picks in proportion to the weights."""
        queues = [5, 0, 3, 0, 1]
        partitioner = sticky(5)
        partitioner.update_stats(queues, [0, 1, 2, 3, 4])
        picks: Counter[int] = Counter()
        for _ in range(2 * (1 + 6 + 3 + 6 + 5)):
            picks[partitioner.current()] += 1
            partitioner.update(1, True)
        assert [picks[number] for number in range(5)] == [2 * (6 - queue) for queue in queues]

    def test_sticky_size_must_be_positive(self) -> None:
        """D testStickyBatchSizeMoreThatZero: 0 is refused, 1 is not."""
        with pytest.raises(IllegalArgumentError, match="topic test .* got 0"):
            BuiltInPartitioner("test", 0, sequential())
        assert BuiltInPartitioner("test", 1, sequential()).sticky_size == 1

    def test_held_back_switch(self) -> None:
        partitioner = sticky(3, size=10)
        assert partitioner.current() == 0
        assert not partitioner.update(15, False)
        assert partitioner.peek() == 0
        assert partitioner.update(0, True)
        assert partitioner.peek() == 1

    def test_twice_the_share_switches_regardless(self) -> None:
        partitioner = sticky(3, size=10)
        assert partitioner.current() == 0
        assert not partitioner.update(19, False)
        assert partitioner.update(1, False)
        assert partitioner.peek() == 1

    def test_peek_before_the_first_choice(self) -> None:
        partitioner = sticky(3)
        assert partitioner.peek() == -1
        assert partitioner.is_changed(0)

    def test_unknown_topic(self) -> None:
        with pytest.raises(IllegalStateError, match="topic test"):
            BuiltInPartitioner("test", 1, sequential()).current()


class TestNewMetadata:
    def test_lost_leader_is_left_at_once(self) -> None:
        partitioner = sticky(3, size=100)
        assert partitioner.current() == 0
        partitioner.update(50, True)
        assert partitioner.set_partitions(3, (1, 2))
        assert partitioner.peek() == 2 and partitioner.produced == 0

    def test_stays_if_nothing_else_is_available(self) -> None:
        partitioner = sticky(3)
        assert partitioner.current() == 0
        assert not partitioner.set_partitions(3, ())
        assert partitioner.peek() == 0

    def test_stays_if_still_available(self) -> None:
        partitioner = sticky(3)
        assert partitioner.current() == 0
        assert not partitioner.set_partitions(4, (0, 3))
        assert (partitioner.peek(), partitioner.count, partitioner.available) == (0, 4, (0, 3))

    def test_fewer_partitions(self) -> None:
        partitioner = sticky(3)
        partitioner.current()
        partitioner.update(1, True)
        assert partitioner.peek() == 1
        assert partitioner.set_partitions(1, ())
        assert partitioner.peek() == 0

    def test_topic_vanished(self) -> None:
        partitioner = sticky(3)
        partitioner.current()
        assert partitioner.set_partitions(0, ())
        assert partitioner.peek() == -1

    def test_no_choice_before_somebody_asks(self) -> None:
        partitioner = sticky(3)
        assert not partitioner.set_partitions(3, (1,))
        assert partitioner.peek() == -1


class TestLoads:
    def draw(self, partitioner: BuiltInPartitioner, times: int) -> list[int]:
        return [partitioner.next_partition() for _ in range(times)]

    def test_example(self) -> None:
        partitioner = sticky(3)
        partitioner.update_stats([0, 3, 1], [0, 1, 2])  # cumulative 4, 5, 8
        assert self.draw(partitioner, 8) == [0, 0, 0, 0, 1, 2, 2, 2]

    def test_excluded_partition(self) -> None:
        partitioner = sticky(3)
        partitioner.update_stats([2, 2], [0, 2])  # equal, but partition 1 is left out
        assert self.draw(partitioner, 4) == [0, 2, 0, 2]

    def test_equal_loads_are_not_used(self) -> None:
        partitioner = sticky(3, available=(1,))
        partitioner.update_stats([2, 2, 2], [0, 1, 2])
        assert self.draw(partitioner, 3) == [1, 1, 1]

    @pytest.mark.parametrize(("queues", "partitions"), [(None, None), ([], [])])
    def test_switched_off(self, queues: list[int] | None, partitions: list[int] | None) -> None:
        partitioner = sticky(2)
        partitioner.update_stats([0, 9], [0, 1])
        partitioner.update_stats(queues, partitions)
        assert self.draw(partitioner, 4) == [0, 1, 0, 1]

    def test_single_partition_topic(self) -> None:
        partitioner = sticky(1)
        partitioner.update_stats([7], [0])
        assert self.draw(partitioner, 2) == [0, 0]

    def test_new_metadata_drops_them(self) -> None:
        partitioner = sticky(2)
        partitioner.update_stats([0, 9], [0, 1])
        partitioner.set_partitions(2, (1,))
        assert self.draw(partitioner, 3) == [1, 1, 1]

    def test_lists_must_agree(self) -> None:
        with pytest.raises(IllegalArgumentError, match="2 queue sizes for 1 partitions"):
            sticky(2).update_stats([1, 2], [0])

    @given(st.lists(st.integers(0, 20), min_size=2, max_size=8))
    def test_frequencies_follow_the_weights(self, queues: list[int]) -> None:
        partitioner = sticky(len(queues))
        partitioner.update_stats(queues, list(range(len(queues))))
        weights = [max(queues) + 1 - queue for queue in queues]
        if len(set(queues)) == 1:
            weights = [1] * len(queues)
        picks = Counter(self.draw(partitioner, sum(weights)))
        assert [picks[number] for number in range(len(queues))] == weights


class TestDistribution:
    @pytest.mark.parametrize("record", [5_000, 16_384])
    def test_uniform_over_equal_brokers(self, record: int) -> None:
        """O8 sticky distribution: within 5 % of the mean."""
        partitioner = BuiltInPartitioner("test", 16384, PartitionRandom(8))
        partitioner.set_partitions(3, (0, 1, 2))
        sent: Counter[int] = Counter()
        for _ in range(120_000):
            sent[partitioner.current()] += record
            partitioner.update(record, True)
        mean = sum(sent.values()) / 3
        assert all(abs(sent[number] - mean) < 0.05 * mean for number in range(3))

    def test_slow_broker_gets_less(self) -> None:
        """O8 sticky distribution: fewer bytes for the long queue, none for an excluded one."""
        partitioner = BuiltInPartitioner("test", 1, PartitionRandom(9))
        partitioner.set_partitions(3, (0, 1, 2))
        partitioner.update_stats([0, 4], [0, 1])
        picks = Counter(partitioner.next_partition() for _ in range(6000))
        assert picks[2] == 0
        assert 3.5 < picks[0] / picks[1] < 7  # weights 5 and 1


class TestRoundRobin:
    def choose(self, partitioner: RoundRobinPartitioner, topic: str, cluster: Cluster, key: bytes | None = None) -> int:
        return partitioner.partition(topic, None, key, None, None, cluster)

    def test_available_only(self) -> None:
        """I RoundRobinPartitionerTest (1): partition 1 has no leader; 0 and 2 get 50 each."""
        cluster = cluster_of({"test": [(1, False), (2, True), (0, True)]})
        partitioner = RoundRobinPartitioner()
        picks = Counter(self.choose(partitioner, "test", cluster) for _ in range(100))
        assert picks == {0: 50, 2: 50}

    @pytest.mark.parametrize("key", [None, b"key"])
    def test_counters_per_topic(self, key: bytes | None) -> None:
        """I RoundRobinPartitionerTest (2, 3): every fifth call is for another topic; keys do not matter."""
        cluster = cluster_of({"a": [(n, True) for n in range(3)], "b": [(0, True), (1, True)]})
        partitioner = RoundRobinPartitioner()
        picks: Counter[int] = Counter()
        for number in range(30):
            picks[self.choose(partitioner, "a", cluster, key)] += 1
            if number % 5 == 0:
                self.choose(partitioner, "b", cluster, key)
        assert picks == {0: 10, 1: 10, 2: 10}

    def test_all_if_none_is_available(self) -> None:
        cluster = cluster_of({"test": [(0, False), (1, False)]})
        partitioner = RoundRobinPartitioner()
        assert [self.choose(partitioner, "test", cluster) for _ in range(4)] == [0, 1, 0, 1]

    def test_unknown_topic(self) -> None:
        with pytest.raises(IllegalArgumentError, match="topic nowhere"):
            self.choose(RoundRobinPartitioner(), "nowhere", Cluster())


class TestConsistentRandom:
    # What librdkafka's consistent_random chose for these keys on a topic of four partitions.
    KEYS = {b"k0": 3, b"k1": 1, b"k2": 3, b"k10": 1, b"k59": 1}

    def choose(self, key: bytes | None, cluster: Cluster, random: Callable[[], int] | None = None) -> int:
        return ConsistentRandomPartitioner(random or sequential()).partition("test", None, key, None, None, cluster)

    def test_known_partitions(self) -> None:
        assert {key: consistent_partition(key, 4) for key in self.KEYS} == self.KEYS

    @given(st.binary(min_size=1, max_size=40), st.integers(1, 500))
    def test_crc32_over_all_partitions(self, key: bytes, count: int) -> None:
        cluster = cluster_of({"test": [(number, number % 2 == 0) for number in range(count)]})
        assert self.choose(key, cluster) == zlib.crc32(key) % count

    @pytest.mark.parametrize("key", [None, b""])
    def test_null_and_empty_keys_are_random(self, key: bytes | None) -> None:
        cluster = cluster_of({"test": [(0, True), (1, False), (2, True)]})
        source = sequential()
        assert [self.choose(key, cluster, source) for _ in range(4)] == [0, 2, 0, 2]
        assert consistent_partition(key, 3) == -1

    def test_none_available(self) -> None:
        cluster = cluster_of({"test": [(0, False), (1, False)]})
        source = sequential()
        assert [self.choose(None, cluster, source) for _ in range(3)] == [0, 1, 0]

    def test_unknown_topic(self) -> None:
        with pytest.raises(IllegalArgumentError, match="topic test"):
            self.choose(b"key", Cluster())


class OwnPartitioner:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[Any, ...]] = []
        self.closed = 0

    def partition(self, *arguments: Any) -> Any:
        self.asked.append(arguments)
        return self.answer

    def close(self) -> None:
        self.closed += 1


class TestAdapter:
    cluster = cluster_of({"test": [(0, True), (1, False), (2, True)]})

    def choose(self, partitioner: Any) -> int:
        return PartitionerAdapter(partitioner).partition("test", "k", b"k", "v", b"v", self.cluster)

    def test_object(self) -> None:
        own = OwnPartitioner(1)
        assert self.choose(own) == 1
        assert own.asked == [("test", "k", b"k", "v", b"v", self.cluster)]

    def test_callable(self) -> None:
        assert self.choose(lambda topic, key, key_bytes, value, value_bytes, cluster: 2) == 2

    def test_negative(self) -> None:
        """H negativePartitionShouldThrow: the message names it."""
        with pytest.raises(IllegalArgumentError, match=r"OwnPartitioner .* topic test: -1\. .* non-negative"):
            self.choose(OwnPartitioner(-1))

    def test_beyond_the_topic(self) -> None:
        with pytest.raises(IllegalArgumentError, match="partition 3 for topic test, which has 3 partitions"):
            self.choose(OwnPartitioner(3))

    @pytest.mark.parametrize("answer", [None, "1", 1.0, True])
    def test_not_a_whole_number(self, answer: Any) -> None:
        with pytest.raises(IllegalArgumentError, match="must return an int"):
            self.choose(OwnPartitioner(answer))

    def test_not_a_partitioner(self) -> None:
        with pytest.raises(IllegalArgumentError, match="got int"):
            PartitionerAdapter(7)

    def test_what_it_raises_goes_through(self) -> None:
        def broken(*_: Any) -> int:
            raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            self.choose(broken)

    def test_close(self) -> None:
        """H testPartitionerClose: closed once; a callable has nothing to close."""
        own = OwnPartitioner(0)
        PartitionerAdapter(own).close()
        assert own.closed == 1
        PartitionerAdapter(lambda *_: 0).close()
