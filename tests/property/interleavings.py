"""Threads of an accumulator, switched at chosen lines: `python -m tests.property.interleavings --first 0 --count 100`.

One thread runs at a time, as Python, and before a line of the accumulator's code it may hand over to another.  A seed
decides each switch and each call, so a seed is a test case and can be run again.  Threads append, close, purge and fill
batches, while the sender drains, compresses, splits, sends again, expires and follows its purges.
"""

from __future__ import annotations

import os
import sys

os.environ["FOREBAY_INTERPRETED"] = "1"

import argparse
import gc
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

from forebay._runtime import mutex
from tests.support.pace import HANG_S

TRACED = ("/forebay/_accumulator/", "/forebay/_delivery/", "/forebay/_sender/purging.py")
CHANCES = (0.02, 0.1, 0.3)
"""Of a switch before a line; each finds other faults."""


class Deadlock(AssertionError):
    """No thread can go on."""


class Scheduler:
    """Lets one of its threads run at a time.

    Args:
        seed: of all that is chosen at random.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.chance = self.random.choice(CHANCES)
        self.batons: dict[int, threading.Lock] = {}
        self.waits_for: dict[int, ExploredLock | None] = {}
        """For each thread that has not ended, the lock that it lacks."""
        self.failure: BaseException | None = None
        self.over = threading.Event()

    def run(self, *works: Callable[[], None]) -> None:
        """Runs each on a thread of its own; raises what one of them raised first."""
        threads = [threading.Thread(target=self._run_one, args=(work,), daemon=True) for work in works]
        ready = threading.Barrier(len(threads) + 1)
        self._ready = ready
        for thread in threads:
            thread.start()
        ready.wait(HANG_S)
        self._pass_on(None)
        assert self.over.wait(HANG_S), "the threads neither end nor go on"
        if self.failure is not None:
            raise self.failure

    def _run_one(self, work: Callable[[], None]) -> None:
        me = threading.get_ident()
        self.batons[me] = threading.Lock()
        self.batons[me].acquire()
        self.waits_for[me] = None
        self._ready.wait(HANG_S)
        self.batons[me].acquire()
        sys.settrace(self._trace)
        try:
            if self.failure is None:
                work()
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self.failure = self.failure or error
        finally:
            sys.settrace(None)
            del self.waits_for[me]
            self._pass_on(None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._line if any(part in frame.f_code.co_filename for part in TRACED) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and self.random.random() < self.chance:
            self.switch()
        return self._line

    def switch(self) -> None:
        """Another thread may run first."""
        me = threading.get_ident()
        if me in self.waits_for:
            self._pass_on(me)

    def _pass_on(self, me: int | None) -> None:
        able = [each for each, lock in self.waits_for.items() if lock is None or lock.owner is None]
        if not able and self.waits_for and self.failure is None:
            self.failure = Deadlock(f"{len(self.waits_for)} threads wait for each other's locks")
        if self.failure is not None:
            able = [each for each in self.waits_for if each != me]  # the others end, one after the other
        if able:
            chosen = self.random.choice(able)
            if chosen != me:
                self.batons[chosen].release()
                if me is not None:
                    self.batons[me].acquire()
        elif not self.waits_for:
            self.over.set()
        if me is not None and self.failure is not None:
            raise SystemExit  # of this thread: another one has failed


class ExploredLock:
    """In the place of the accumulator's locks: a thread that lacks one hands over to another."""

    scheduler: Scheduler | None = None

    def __init__(self) -> None:
        self.owner: int | None = None

    def _is_owned(self) -> bool:
        return self.owner == threading.get_ident()

    def acquire(self) -> None:
        me = threading.get_ident()
        scheduler = self.scheduler
        while self.owner is not None:
            assert scheduler is not None and me in scheduler.waits_for
            scheduler.waits_for[me] = self
            scheduler._pass_on(me)
            scheduler.waits_for[me] = None
        self.owner = me

    def release(self) -> None:
        assert self._is_owned()
        self.owner = None


mutex.Mutex = ExploredLock  # type: ignore[assignment]  # before what uses it is imported

from forebay._accumulator.split import split_and_reenqueue  # noqa: E402
from forebay._accumulator.states import CLOSED, FULL  # noqa: E402
from forebay._records.compression import CompressionType, compressor  # noqa: E402
from forebay._runtime.owner import check_owner  # noqa: E402, F401
from forebay._sender import purging  # noqa: E402
from forebay.errors import KafkaError, ProducerClosedError  # noqa: E402
from forebay.model._gate import Gate  # noqa: E402
from tests.unit._accumulator.shelf import APPENDED, Shelf, quiet, read  # noqa: E402

APPENDERS, RECORDS, PARTITIONS = 3, 20, 2
MOST_TURNS = 2_000
BATCH, POOLS, DELIVERY_MS, LINGER_MS = 300, (40_000, 6_000), 500.0, 5.0


class SlowCodec:
    """A codec in whose calls other threads run, and that no two threads may give the same records at a time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.real: Any = compressor(CompressionType.LZ4)
        self.type = self.real.type
        self.scheduler = scheduler
        self.inside: set[bytes] = set()

    def compress_to_pieces(self, chunks: Any, topic: str = "") -> Any:
        return self._alone([chunks], lambda: self.real.compress_to_pieces(chunks, topic))

    def compress_many(self, batches: Any, topics: Any) -> Any:
        return self._alone(batches, lambda: self.real.compress_many(batches, topics))

    def _alone(self, batches: Any, work: Callable[[], Any]) -> Any:
        # The values are unique, so equal bytes are the same batch.
        inside = {b"".join(bytes(piece) for piece in chunks) for chunks in batches}
        assert not inside & self.inside, "two threads compress one batch"
        self.inside |= inside
        self.scheduler.switch()
        made = work()
        self.scheduler.switch()
        self.inside -= inside
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class SlowGate(Gate):
    """Gives sequences; other threads run while it is asked, and now and then it allows no drain."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.next: defaultdict[int, int] = defaultdict(int)

    def may_drain(self, queue: Any, batch: Any) -> bool:
        for _ in range(self.scheduler.random.randrange(40)):
            self.scheduler.switch()
        return self.scheduler.random.random() < 0.9

    def stamp(self, queue: Any, batch: Any) -> int:
        if not batch.has_sequence():
            batch.set_producer_state(1, 0, self.next[queue.partition], False)
            self.next[queue.partition] += batch.record_count
        return 0

    def comes_before(self, batch: Any, other: Any) -> bool:
        return bool(other.base_sequence < 0 or batch.base_sequence < other.base_sequence)

    def on_split(self, batch: Any, children: Any) -> int:
        at = batch.base_sequence
        for child in children:
            child.set_producer_state(1, 0, at, False)
            at += child.record_count
        return 0


class Outcomes:
    """What ``purging.apply`` asks of the sender's outcomes."""

    def __init__(self, explored: Explored) -> None:
        self.explored = explored

    def purge(self, batch: Any, error: KafkaError, now: float) -> None:
        self.explored.fail(batch, error)

    def end_after_error(self, batch: Any, failure: Exception) -> None:
        raise failure


class Log:
    def warning(self, *said: object) -> None:
        """Nobody reads it."""


class Explored:
    """One accumulator, its threads, and what became of each record."""

    def __init__(self, seed: int) -> None:
        self.scheduler = ExploredLock.scheduler = Scheduler(seed)
        self.random = self.scheduler.random
        codec: Any = SlowCodec(self.scheduler) if self.random.random() < 0.85 else None
        self.codec = None if codec is None else codec.real
        self.shelf = Shelf(
            batch_size=BATCH,
            pool=self.random.choice(POOLS),
            linger=self.random.choice((0.0, LINGER_MS)),
            delivery=DELIVERY_MS,
            leaders=(0, 0),
            compressor=codec,
        )
        self.accumulator = self.shelf.accumulator
        self.accumulator.closer.helpers = None
        self.gate = SlowGate(self.scheduler) if self.random.random() < 0.85 else None
        self.accepted: list[bytes] = []
        self.outcomes: defaultdict[bytes, list[BaseException | None]] = defaultdict(list)
        self.logs: defaultdict[int, list[tuple[int, list[bytes]]]] = defaultdict(list)
        """Of each partition: base sequence and values of the batches that were acknowledged."""
        self.in_flight: list[Any] = []
        self.purges: list[Any] = []
        self.working = APPENDERS + 1

    def run(self) -> None:
        appenders = [lambda name=name: self._append(name) for name in range(APPENDERS)]
        self.scheduler.run(self._send, self._interfere, *appenders)
        self.check()

    # Threads

    def _append(self, name: int) -> None:
        try:
            for number in range(RECORDS):
                self._append_one(b"%d:%04d:" % (name, number))
        except ProducerClosedError:
            pass
        finally:
            self.working -= 1

    def _append_one(self, begin: bytes) -> None:
        value = begin + self.random.randbytes(self.random.choice((20, 120, 250)))
        partition = self.random.randrange(PARTITIONS)

        def told(report: Any) -> None:
            self.outcomes[value].append(report.error)

        while True:
            status, _ = self.accumulator.appender.append_bytes(
                self.shelf.topic, partition, value, now=self.shelf.now, callback=told
            )
            if status & APPENDED:
                self.accepted.append(value)
                return
            self.scheduler.switch()  # no memory

    def _interfere(self) -> None:
        """What other threads do: purge, flush, seal, and at last close."""
        for _ in range(6):
            for _ in range(self.random.randrange(30)):
                self.scheduler.switch()
            chosen = self.random.randrange(4)
            if chosen == 0:
                request = purging.Purge.of(
                    self.accumulator.incomplete_batches, in_queue=True, in_flight=self.random.random() < 0.5
                )
                self.purges.append(request)
            elif chosen == 1:
                self.accumulator.begin_flush()
                self.scheduler.switch()
                self.accumulator.end_flush()
            elif chosen == 2:
                self.accumulator.incomplete_batches.closed_for_appends()
                self.accumulator.schedule.make_all_due()
            else:
                self.shelf.clock.advance(self.random.choice((1.0, LINGER_MS, DELIVERY_MS)))
        if self.random.random() < 0.5:
            self.accumulator.close()
        self.working -= 1

    def _send(self) -> None:
        """The sender's thread: turns until all threads have ended and every record has its outcome."""
        turns = told = 0
        while self.working or self.accumulator.has_incomplete():
            # Since the last outcome: a batch may back off for hundreds of turns, several times.
            turns, told = (turns + 1 if told == len(self.outcomes) else 0), len(self.outcomes)
            assert turns < MOST_TURNS, f"{self.accumulator.incomplete()} get no outcome"
            self._turn()
            self.scheduler.switch()

    def _turn(self) -> None:
        schedule, now = self.accumulator.schedule, self.shelf.now
        for batch in schedule.expired(now):
            self.fail(batch, KafkaError("expired"))
        while self.purges:
            request = self.purges.pop(0)
            purging.apply(request, self.accumulator, list(self.in_flight), Outcomes(self), Log(), now)  # type: ignore[arg-type]
        found = schedule.ready(now, self.working == 0)
        self.accumulator.drain.begin()
        for node in found.nodes:
            self._drain(node, now)
        self.shelf.pool.serve_deferred(now, True)
        while self.in_flight:
            self._answer(self.in_flight.pop(0))
        if not found.nodes:
            self.shelf.clock.advance(1.0)

    def _drain(self, node: int, now: float) -> None:
        limit = self.random.choice((BATCH, 2 * BATCH, 1 << 20))
        batches = self.accumulator.drain.drain(node, limit, now, self.gate)
        size = sum(batch.estimated_size() for batch in batches)
        assert all(batch.life in (FULL, CLOSED) for batch in batches), f"drained, but not the sender's: {batches}"
        assert len(batches) <= 1 or size <= limit, f"{size} bytes in a request of {limit}"
        self.accumulator.closer.close_drained(batches)
        assert all(batch.closed for batch in batches), batches
        self.in_flight += batches

    def _answer(self, batch: Any) -> None:
        self.scheduler.switch()
        if batch.done:
            return
        chosen = self.random.random()
        if chosen < 0.6:
            values = [record.value or b"" for record in read(batch, self.codec).records]
            self.logs[batch.partition].append((batch.base_sequence, values))
            assert batch.complete(0, -1, quiet)
            self.accumulator.deallocate(batch)
        elif chosen < 0.75 and batch.record_count > 1:
            split_and_reenqueue(self.accumulator, batch, self.gate)
        elif chosen < 0.9:
            self.accumulator.schedule.reenqueue(batch, self.shelf.now, self.gate)
        else:
            self.fail(batch, KafkaError("refused"))

    def fail(self, batch: Any, error: KafkaError) -> None:
        if batch.fail(error, None, quiet):
            self.accumulator.deallocate(batch)

    # What must hold

    def check(self) -> None:
        """Each record has one outcome, what was written is what was acknowledged, and all memory is back."""
        assert sorted(self.outcomes) == sorted(self.accepted)
        assert all(len(told) == 1 for told in self.outcomes.values())
        written = [value for log in self.logs.values() for _, values in log for value in values]
        assert sorted(written) == sorted(value for value, told in self.outcomes.items() if told == [None])
        for log in self.logs.values() if self.gate is not None else ():
            in_order = [value for _, values in sorted(log) for value in values]
            for name in range(APPENDERS):
                own = [value[:7] for value in in_order if value.startswith(b"%d:" % name)]
                assert own == sorted(own), f"out of order: {own}"
        assert not any(queue.batches or queue.to_close for queue in self.shelf.topic.queues)
        assert self.shelf.pool.available() == self.shelf.pool.total, "memory is missing"


def explore(seeds: range) -> None:
    """Runs each seed; raises with the first that fails."""
    gc.disable()
    for seed in seeds:
        try:
            Explored(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}: python -m tests.property.interleavings --first {seed} --count 1")
            raise
        gc.collect()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    explore(range(given.first, given.first + given.count))
    print(f"{given.count} seeds from {given.first} on")
