"""Trace: what came to a real producer, recorded by ``record_trace``; it is replayed in place of a drawn load."""

from __future__ import annotations

import math
import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Self

from forebay._insight.trace_file import MARK, Block, TraceFileError, read_blocks, read_head
from forebay.tune._checks import TuneError, number
from forebay.tune.stalls import Stalls

MS = 1000
"""In us."""
KEPT = 4096
LEAST_LOOKS = 20
POLL_MS = 50.0
"""The recorder's sleep."""
MOST_RECORDS = 10_000_000
BEGIN = f'{{"{MARK}":'.encode()

Record = tuple[float, str, bytes, bytes | None, int | None]
"""As ``_world.callers.Record``."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The records in the order in which they came; times in us, without what a call was held for memory."""

    times: array[int]
    topics: array[int]
    partitions: array[int]
    """-1 for a record without key: any partition might have been its own."""
    keys: array[int]
    values: array[int]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A recorded load; ``Workload.replaying`` makes a load of it.

    Attributes:
        head: the first line of the file.
        blocks: columns of batches and of their records, as in the file.
        arrivals: the records.
        speed: by which it is replayed faster.
    """

    head: Mapping[str, Any]
    blocks: tuple[Block, ...]
    arrivals: Arrivals = field(repr=False)
    speed: float = 1.0

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a file.

        Raises:
            ConfigError: there is none, or it is no whole trace of this version.
        """
        try:
            with open(path, "rb") as file:
                head = read_head(file)
                count = head["kept"] * head["every"]
                if count > MOST_RECORDS:
                    raise TraceFileError(f"has {count:,} records; at most {MOST_RECORDS:,} are replayed")
                blocks = tuple(read_blocks(file, head["blocks"]))
            return cls.of(head, blocks)
        except OSError as error:
            raise TuneError(f"{path}: it cannot be read: {error.strerror}") from None
        except TraceFileError as error:
            raise TuneError(f"{path} {error}") from None
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise TuneError(f"{path} is damaged: {error!r}") from None

    @classmethod
    def of(cls, head: Mapping[str, Any], blocks: tuple[Block, ...]) -> Self:
        """From what a file holds.

        Raises:
            ConfigError: no record was recorded.
        """
        found = _arrivals(head, blocks)
        if not found.times:
            raise TuneError("the trace has no record: nothing was sent while it was recorded")
        return cls(head, blocks, found)

    @property
    def seconds(self) -> float:
        """How long a replay lasts, without holds of its own."""
        return max(0.001, float(self.head["seconds"]) - self.held_s) / self.speed

    @property
    def held_s(self) -> float:
        """How long calls were held for memory."""
        return sum(end - begin for begin, end in merged(self.head["holds"])) / (1000 * MS)

    @property
    def rate(self) -> float:
        """Records a second."""
        return len(self.arrivals.times) / self.seconds

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the producer, by Kafka's names, as far as they were given."""
        return dict(self.head["settings"])

    @property
    def topics(self) -> tuple[tuple[str, int], ...]:
        """Partitions by topic."""
        return tuple((name, max(1, len(self.head["leaders"][name]))) for name in self.head["topics"])

    @property
    def left_out(self) -> int:
        """Records that the recorder could not keep up with."""
        return int(self.head["left_out"]["records"])

    @property
    def stalls(self) -> Stalls | None:
        """Of the machine, as the recorder's thread overslept; None: it did not note that, or slept too few times.

        It sleeps long, so it wakes in a stall with the chance of the stall's length, and sees what is left of it.  That
        is on average as long as all of it, if stalls come and end at random.
        """
        noted = self.head.get("stalls")
        if noted is None or noted["looks"] < LEAST_LOOKS:
            return None
        long = tuple((float(when), float(ms)) for when, ms in noted["long"])
        if not long:
            return Stalls(seconds=noted["looks"] * POLL_MS / 1000)
        mean = math.fsum(ms for _when, ms in long) / len(long)
        return Stalls(seconds=noted["looks"] * mean / 1000, long=long)

    def homes(self, nodes: int) -> Mapping[str, Sequence[int]] | None:
        """Which node led each partition, from 1 on; None for a cluster of another number of nodes."""
        numbers = {node: at for at, node in enumerate(self.head["nodes"], 1)}
        if len(numbers) != nodes:
            return None
        return {
            name: [numbers.get(leader, 1) for leader in self.head["leaders"][name]] or [1] for name, _ in self.topics
        }

    def scaled(self, factor: float) -> Self:
        """The same records in a shorter time."""
        return replace(self, speed=self.speed * number("factor", factor, 0, 1000, above=True))

    def replay(self, begin: float, end: float, offset_s: float = 0.0) -> Iterator[Record]:
        """The records, due from ``begin`` until ``end`` (ms); what has come to its end begins anew.

        Args:
            offset_s: the second of the replay that it begins with.
        """
        found, names = self.arrivals, [name for name, _count in self.topics]
        made: dict[int, bytes] = {-1: b""}  # a null value takes as much as an empty one
        step = 1 / (MS * self.speed)
        whole = self.seconds * 1000
        at = bisect_left(found.times, offset_s / step * 1000)
        due = begin - offset_s * 1000
        while True:
            for index in range(at, len(found.times)):
                when = due + found.times[index] * step
                if when >= end:
                    return
                partition: int | None = found.partitions[index]
                key: bytes | None = _bytes(made, found.keys[index])
                if partition == -1:
                    partition = key = None
                yield when, names[found.topics[index]], _bytes(made, found.values[index]), key, partition
            at, due = 0, due + whole

    def answers_ms(self) -> dict[int, list[float]]:
        """By node, from sending to answer, of batches that were acknowledged at once; sorted."""
        found: dict[int, list[float]] = {node: [] for node in self.head["nodes"]}
        for block in self.blocks:
            columns = (block.batches[name] for name in ("node", "drained", "answered", "outcome", "attempts"))
            for node, drained, answered, outcome, attempts in zip(*columns, strict=True):
                if outcome == 1 and attempts == 0 and answered > drained and node in found:
                    found[node].append((answered - drained) / MS)
        return {node: sorted(times) for node, times in found.items()}

    def compression(self) -> float | None:
        """Bytes after compression by those before; None if there was no codec, or no whole batch."""
        if self.settings.get("compression.type", "none") == "none":
            return None
        raw = sum(sum(block.batches["raw"]) for block in self.blocks)
        sent = sum(sum(block.batches["size"]) - 61 * len(block.batches["size"]) for block in self.blocks)
        return None if raw <= 0 or sent <= 0 else round(min(2.0, sent / raw), 4)


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins as a trace does, of whatever version."""
    try:
        with open(path, "rb") as file:
            return file.read(len(BEGIN)) == BEGIN
    except OSError:
        return False


def _bytes(made: dict[int, bytes], size: int) -> bytes:
    """So many bytes; their content means nothing here.  Those of the first sizes are made once."""
    if size in made:
        return made[size]
    found = bytes(size)
    if len(made) < KEPT:
        made[size] = found
    return found


def _arrivals(head: Mapping[str, Any], blocks: Sequence[Block]) -> Arrivals:
    """Records of all batches by time; a moment of a sample stands for all those that were left out after it."""
    times, columns = array("q"), [array("i") for _ in range(4)]
    for block in blocks:
        _unpack(block, head["phase_us"], times, columns)
    order = sorted(range(len(times)), key=times.__getitem__)
    first = bisect_left(order, 0, key=times.__getitem__)
    order = order[first : bisect_right(order, head["seconds"] * 1000 * MS, key=times.__getitem__)]
    came: Iterable[int] = map(times.__getitem__, order)
    every = head["every"]
    if every > 1:
        later = sorted((times[at] + moment * MS, at) for at in order for moment in range(every))
        came, order = (time for time, _at in later), [at for _time, at in later]
    found = array("q", removed(came, merged(head["holds"])))
    return Arrivals(found, *(array("i", map(column.__getitem__, order)) for column in columns))


def _unpack(block: Block, phase_us: int, times: array[int], columns: Sequence[array[int]]) -> None:
    """Appends the records of a block: time; topic, partition, sizes of key and value."""
    topics, partitions, keys, values = columns
    at = 0
    names = ("topic", "partition", "kept", "created", "closed")
    for topic, partition, kept, created, closed in zip(*(block.batches[name] for name in names), strict=True):
        inside = slice(at, at + kept)
        own = [created + each for each in accumulate(block.records["time"][inside])]
        times.extend(spread(own, phase_us, closed))
        topics.extend([topic] * kept)
        partitions.extend(-1 if key < 0 else partition for key in block.records["key"][inside])
        keys.extend(block.records["key"][inside])
        values.extend(block.records["value"][inside])
        at += kept


def spread(times: Sequence[int], phase_us: int, closed_us: int) -> list[int]:
    """A batch's times with those of one millisecond spread evenly over what is left of it, and not past the closing.

    Timestamps are whole milliseconds of a clock whose milliseconds begin ``phase_us`` before those of the times.
    """
    found: list[int] = []
    at = 0
    while at < len(times):
        first = times[at]
        alike = at
        while alike < len(times) and times[alike] == first:
            alike += 1
        count = alike - at
        left = MS - (first + phase_us) % MS
        room = max(0, min(left, closed_us - first))
        found += (first + math.floor(each * room / count) for each in range(count))
        at = alike
    return found


def merged(spans: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """Spans (from, to) in order, with those that touch each other as one; empty ones are left out."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted((span[0], span[1]) for span in spans):
        if end <= begin:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def removed(times: Iterable[int], spans: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Ascending times as if the spans had not been: what is inside one comes at its begin.

    Args:
        spans: as ``merged`` gives them.
    """
    gone = at = 0
    for time in times:
        while at < len(spans) and spans[at][1] <= time:
            gone += spans[at][1] - spans[at][0]
            at += 1
        inside = time - spans[at][0] if at < len(spans) and spans[at][0] < time else 0
        yield time - gone - inside
