"""How a record's partition is chosen: by the key's hash, as the sticky partition of its topic, or by the user's code.

A key is hashed over all partitions, also those without a leader, so it always goes to the same one.  Records without a
key go to the topic's sticky partition, which changes after ``batch.size`` bytes (KIP-480, KIP-794).  Two things differ
from the Java client.  A sticky partition that loses its leader is left at once if another one has a leader.  A user's
partitioner that names a partition which the topic does not have fails in ``send()``, not after the delivery timeout.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import cython
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release
from cython.cimports.forebay._runtime.primitives import MAX_INT32, bytes_pointer, murmur2

from forebay.errors import IllegalArgumentError, IllegalStateError

if TYPE_CHECKING:
    from forebay.model._cluster import Cluster

UNKNOWN = cython.declare(cython.int, -1)
MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
GOLDEN_GAMMA = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
FIRST_MIX = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
SECOND_MIX = cython.declare(cython.ulonglong, 0x94D049BB133111EB)


@cython.ccall
@cython.exceptval(check=False)
def key_partition(key: bytes, count: cython.int) -> cython.int:
    """The partition of ``key`` as Java chooses it: murmur2, sign bit cut off, modulo ``count``; -1 if count < 1."""
    if count < 1:
        return UNKNOWN
    return cython.cast(cython.int, (murmur2(bytes_pointer(key), len(key)) & MAX_INT32) % count)


@cython.ccall
@cython.exceptval(-2)
def consistent_partition(key: bytes | None, count: cython.int) -> cython.int:
    """The partition of ``key`` as librdkafka's ``consistent`` chooses it: CRC-32 modulo ``count``.

    -1 for a null or an empty key (librdkafka takes a random partition for both), and if count < 1.
    """
    if key is None or len(key) == 0 or count < 1:
        return UNKNOWN
    checksum: cython.longlong = crc32(key)
    return cython.cast(cython.int, checksum % count)


@cython.final
@cython.cclass
class PartitionRandom:
    """The random source for partitions: 31-bit numbers of SplitMix64, from a seed that the caller draws.

    A source of our own, because the sticky choice is made under a lock, where no Python code may run.
    It has no lock: threads that race may get the same number, which does no harm.
    """

    def __init__(self, seed: cython.ulonglong) -> None:
        self.state = seed & MASK64

    @cython.ccall
    @cython.exceptval(check=False)
    def next(self) -> cython.int:
        """The next number, 0 to 2^31 - 1."""
        z: cython.ulonglong = (self.state + GOLDEN_GAMMA) & MASK64
        self.state = z
        z = ((z ^ (z >> 30)) * FIRST_MIX) & MASK64
        z = ((z ^ (z >> 27)) * SECOND_MIX) & MASK64
        z = z ^ (z >> 31)
        return cython.cast(cython.int, z >> 33)

    def __call__(self) -> int:
        return self.next()


@cython.final
@cython.cclass
class BuiltInPartitioner:
    """The sticky partition of one topic, and the loads by which the next one is chosen.

    The lock of the sticky partition's queue guards the fields.  Two methods need no lock: ``peek`` reads a single word,
    and ``loads`` changes nothing.  A caller peeks, takes the lock and compares (``is_changed``) before it appends.

    Args:
        sticky_size: bytes after which the partition changes; max(1, ``batch.size``).
        random: non-negative whole numbers; called under that lock, so it must run no Python code
            (``PartitionRandom``).

    Raises:
        IllegalArgumentError: ``sticky_size`` below 1.
    """

    def __init__(self, topic: str, sticky_size: cython.Py_ssize_t, random: Callable[[], int]) -> None:
        if sticky_size < 1:
            raise IllegalArgumentError(f"The sticky size of topic {topic} must be at least 1 byte, got {sticky_size}")
        self.topic = topic
        self.sticky_size = sticky_size
        self.random = random
        self.produced = 0
        self.partition = UNKNOWN
        self.count = 0
        self.available: tuple[int, ...] = ()
        self.weights: tuple[int, ...] = ()
        self.weighted: tuple[int, ...] = ()

    @cython.ccall
    @cython.exceptval(check=False)
    def peek(self) -> cython.int:
        """The sticky partition, -1 before the first choice; the only method that needs no lock."""
        return self.partition

    @cython.ccall
    @cython.exceptval(-2)
    def current(self) -> cython.int:
        """The sticky partition; chooses one if there is none yet.

        Raises:
            IllegalStateError: ``set_partitions`` has not named any partition.
        """
        if self.partition == UNKNOWN:
            self.start_over()
        return self.partition

    @cython.ccall
    @cython.exceptval(check=False)
    def is_changed(self, partition: cython.int) -> cython.bint:
        """Whether ``partition``, peeked before the lock was taken, is not the sticky one any more."""
        return partition != self.partition

    @cython.ccall
    @cython.exceptval(-1)
    def update(self, appended: cython.Py_ssize_t, enable_switch: cython.bint) -> cython.bint:
        """Counts ``appended`` bytes to the sticky partition and changes it once it got ``sticky_size``; True if it did.

        A switch that was delayed is made later, by ``update(0, True)``.

        Args:
            enable_switch: the partition's last batch is full, or there is none.  Without it the switch is delayed until
                twice ``sticky_size``: an early switch would leave a partly filled batch behind that lingers.
        """
        self.produced += appended
        if self.produced < self.sticky_size or (not enable_switch and self.produced < 2 * self.sticky_size):
            return False
        self.start_over()
        return True

    @cython.ccall
    @cython.exceptval(-1)
    def set_partitions(self, count: cython.int, available: Sequence[int]) -> cython.bint:
        """Takes over new metadata; True if the sticky partition had to be left.

        Args:
            count: the number of all partitions of the topic.
            available: those that have a leader, as the tuple that the cluster keeps.
        """
        if count == self.count and available == self.available:
            return False
        self.count = count
        self.available = tuple(available)
        # The loads belonged to the former partitions; the next ready() brings new ones.
        self.weights = ()
        if self.partition == UNKNOWN or self.partition in available:
            return False
        if not available and self.partition < count:
            return False
        # There is no moment with none, because other threads peek.
        if count > 0:
            self.start_over()
        else:
            self.partition = UNKNOWN
        return True

    @cython.ccall
    def update_stats(self, queue_sizes: Sequence[int] | None, partitions: Sequence[int] | None) -> cython.void:
        """Sets the loads by which partitions are chosen: a queue of length q gets the weight (longest + 1 - q).

        Args:
            queue_sizes: how many batches wait, for each usable partition; None switches the weights off.
            partitions: the numbers of the usable partitions, in the same order.

        Raises:
            IllegalArgumentError: the lists differ in length.
        """
        self.set_loads(((), ()) if queue_sizes is None or partitions is None else self.loads(queue_sizes, partitions))

    def loads(self, queue_sizes: Sequence[int], partitions: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The argument for ``set_loads``, by the rule of ``update_stats``; changes nothing and needs no lock.

        Raises:
            IllegalArgumentError: the lists differ in length.
        """
        if len(queue_sizes) == 0 or self.count < 2:
            return (), ()
        if len(queue_sizes) != len(partitions):
            raise IllegalArgumentError(
                f"Topic {self.topic}: {len(queue_sizes)} queue sizes for {len(partitions)} partitions"
            )
        highest = max(queue_sizes)
        if len(queue_sizes) == self.count and min(queue_sizes) == highest:
            return (), ()  # equal loads and none left out: the plain random choice is the same, and cheaper
        total: cython.longlong = 0
        cumulative = []
        for size in queue_sizes:
            total += highest + 1 - size
            cumulative.append(total)
        return tuple(cumulative), tuple(partitions)

    def set_loads(self, loads: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        """Takes over the result of ``loads``; makes no object, because it runs under the lock."""
        self.weights, self.weighted = loads

    @cython.ccall
    @cython.exceptval(-2)
    def next_partition(self) -> cython.int:
        """Draws a partition: by load if loads are known, else among the available ones, else among all.

        Raises:
            IllegalStateError: ``set_partitions`` has not named any partition.
        """
        if self.count < 1:
            raise IllegalStateError(f"No partition of topic {self.topic} is known")
        number: cython.longlong = self.random()
        # Read once, because the sender may set new loads meanwhile.  A mix of two still gives a usable partition.
        weights: tuple[int, ...] = self.weights
        weighted: tuple[int, ...] = self.weighted
        size: cython.Py_ssize_t = len(weights)
        if 0 < size == len(weighted):
            last: cython.longlong = weights[size - 1]
            drawn: cython.longlong = number % last
            return weighted[bisect_right(weights, drawn)]
        size = len(self.available)
        if size > 0:
            return self.available[number % size]
        return cython.cast(cython.int, number % self.count)

    @cython.ccall
    def move_to(self, partition: cython.int) -> cython.void:
        """Makes ``partition`` the sticky one."""
        self.produced = 0
        # Last: from here on other threads see it.
        self.partition = partition

    @cython.cfunc
    def start_over(self) -> cython.void:
        self.move_to(self.next_partition())


@cython.final
@cython.cclass
class RoundRobinPartitioner:
    """Each topic's available partitions in turn (all, if none has a leader); keys are ignored.

    Any thread may call; ``counters`` is guarded by ``lock``.
    """

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        if not cython.compiled:
            self.lock = Mutex()

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Cluster
    ) -> int:
        """The next partition of ``topic``.

        Raises:
            IllegalArgumentError: ``cluster`` does not know the topic.
        """
        available = cluster.available_partitions(topic)
        count = len(available) or cluster.partition_count(topic)
        if count == 0:
            raise IllegalArgumentError(f"No partition of topic {topic} is known")
        acquire(self.lock)
        try:
            turn = self.counters.get(topic, 0)
            self.counters[topic] = (turn + 1) & MAX_INT32
        finally:
            release(self.lock)
        return available[turn % count] if available else turn % count

    def close(self) -> None:
        """Does nothing; part of a partitioner's interface."""


@cython.final
@cython.cclass
class ConsistentRandomPartitioner:
    """librdkafka's default, for topics that migrate from it: CRC-32 of the key over all partitions.

    A null or empty key takes a random partition, one that has a leader if any has.

    Args:
        random: non-negative whole numbers (``PartitionRandom``); any thread may call it.
    """

    def __init__(self, random: Callable[[], int]) -> None:
        self.random = random

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Cluster
    ) -> int:
        """The partition of ``key_bytes``.

        Raises:
            IllegalArgumentError: ``cluster`` does not know the topic.
        """
        count = cluster.partition_count(topic)
        if count == 0:
            raise IllegalArgumentError(f"No partition of topic {topic} is known")
        chosen = consistent_partition(key_bytes, count)
        if chosen >= 0:
            return chosen
        available = cluster.available_partitions(topic)
        number = self.random()
        return available[number % len(available)] if available else number % count

    def close(self) -> None:
        """Does nothing; part of a partitioner's interface."""


class PartitionerAdapter:
    """A user's partitioner behind the checks that its answers need.

    Args:
        partitioner: an object with ``partition(topic, key, key_bytes, value, value_bytes, cluster)``, or a callable
            that takes the same.

    Raises:
        IllegalArgumentError: it is neither.
    """

    def __init__(self, partitioner: Any) -> None:
        choose = getattr(partitioner, "partition", partitioner)
        if not callable(choose):
            raise IllegalArgumentError(
                "A partitioner must be callable or have a partition() method taking (topic, key, key_bytes, value,"
                f" value_bytes, cluster), got {type(partitioner).__name__}"
            )
        self._choose = choose
        self._close = getattr(partitioner, "close", None)
        self._name = getattr(partitioner, "__qualname__", type(partitioner).__qualname__)

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Cluster
    ) -> int:
        """The user's choice; what the user's code raises goes through.

        Raises:
            IllegalArgumentError: it is not a whole number, negative, or beyond the topic's partitions.
        """
        answer = self._choose(topic, key, key_bytes, value, value_bytes, cluster)
        if isinstance(answer, bool) or not hasattr(answer, "__index__"):
            raise IllegalArgumentError(
                f"The partitioner {self._name} must return an int for topic {topic}, got {answer!r}"
            )
        chosen = operator.index(answer)
        count = cluster.partition_count(topic)
        if chosen < 0:
            raise IllegalArgumentError(
                f"The partitioner {self._name} generated an invalid partition number for topic {topic}: {chosen}."
                " Partition number should always be non-negative."
            )
        if chosen >= count:
            raise IllegalArgumentError(
                f"The partitioner {self._name} generated partition {chosen} for topic {topic},"
                f" which has {count} partitions: 0 to {count - 1} are allowed"
            )
        return chosen

    def close(self) -> None:
        """Closes the user's partitioner if it has a ``close``; once, however often it is called."""
        close, self._close = self._close, None
        if callable(close):
            close()
