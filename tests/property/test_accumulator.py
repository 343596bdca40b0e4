"""RecordAccumulator under random appends, drains, retries, splits and expiry, sealed, flushed and closed at any time.

Each record has one outcome, what is sent is in the order of the appends, and the pool counts what is held.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from forebay import DeliveryReport
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.split import split_and_reenqueue
from forebay._accumulator.states import OPEN
from forebay._records.compression import CompressionType, compressor
from forebay.errors import KafkaError, ProducerClosedError
from tests.property.profile import SeededMachine, test_case
from tests.unit._accumulator.shelf import APPENDED, Shelf, quiet, read

BATCH, PARTITIONS = 500, 3
PARTITION = st.integers(-1, PARTITIONS - 1)


class AccumulatorMachine(SeededMachine):
    """The model is what was appended to each partition, in order."""

    codec: CompressionType | None = None
    pool = 20_000

    @initialize()
    def begin(self) -> None:
        self.compressor = None if self.codec is None else compressor(self.codec)
        self.shelf = Shelf(
            batch_size=BATCH, pool=self.pool, linger=20, delivery=2000, leaders=(0, 1, 0), compressor=self.compressor
        )
        self.expected: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
        self.outcomes: dict[int, list[tuple[bytes, BaseException | None]]] = {
            number: [] for number in range(PARTITIONS)
        }
        self.in_flight: list[ProducerBatch] = []
        self.number = 0
        self.sealed = self.closed = False
        self.flushes = 0

    @rule(partition=PARTITION, size=st.integers(0, 700), repeat=st.integers(1, 8))
    def append(self, partition: int, size: int, repeat: int) -> None:
        for _ in range(repeat):
            self.number += 1
            value = b"%d:" % self.number + bytes(size)

            def told(report: DeliveryReport, value: bytes = value) -> None:
                self.outcomes[report.metadata.partition].append((value, report.error))

            try:
                status, future = self.shelf.accumulator.appender.append_bytes(
                    self.shelf.topic, partition, value, now=self.shelf.now, callback=told
                )
            except ProducerClosedError:
                assert self.sealed or self.closed
                return
            assert not self.sealed and not self.closed
            if status & APPENDED:
                self.expected[future._batch.partition].append(value)
                assert partition in (-1, future._batch.partition)
            else:
                # Beside the chunk there has to be room for what a record with a callback costs.
                assert self.shelf.pool.available() < max(BATCH, size + 90) + 1000

    @rule(node=st.integers(0, 1), limit=st.sampled_from([100, 600, 1500, 1 << 20]))
    def drain(self, node: int, limit: int) -> None:
        ready = self.shelf.ready()
        batches = self.shelf.drain(node, limit) if node in ready.nodes else []
        assert len({batch.partition for batch in batches}) == len(batches), "two batches of one partition"
        assert all(self.shelf.leaders[batch.partition] == node for batch in batches)
        self.shelf.accumulator.closer.close_drained(batches)
        sizes = [batch.estimated_size() for batch in batches]
        assert sum(sizes) <= limit or len(sizes) == 1 or self.codec is not None
        self.in_flight += batches

    @rule(at=st.integers(0, 9))
    def acknowledge(self, at: int) -> None:
        if self.in_flight:
            self.shelf.finish(self.in_flight.pop(at % len(self.in_flight)))

    @rule(at=st.integers(0, 9))
    def fail(self, at: int) -> None:
        if self.in_flight:
            batch = self.in_flight.pop(at % len(self.in_flight))
            batch.fail(KafkaError("refused"), None, quiet)
            self.shelf.accumulator.deallocate(batch)

    @rule(at=st.integers(0, 9))
    def split(self, at: int) -> None:
        """The broker found it too large: its parts take its place."""
        if not self.in_flight:
            return
        batch = self.in_flight[at % len(self.in_flight)]
        if batch.record_count < 2:
            return
        self.in_flight.remove(batch)
        before = set(self.shelf.accumulator.incomplete())
        parts = split_and_reenqueue(self.shelf.accumulator, batch, None)
        children = set(self.shelf.accumulator.incomplete()) - before
        assert len(children) == parts >= 2
        assert sum(child.record_count for child in children) == batch.record_count

    @rule()
    def seal(self) -> None:
        """As between transactions: nothing is taken, and what is open can be sent."""
        self.shelf.accumulator.seal()
        self.sealed = True
        assert all(batch.life != OPEN for batch in self.shelf.accumulator.incomplete())

    @precondition(lambda self: self.sealed)
    @rule()
    def unseal(self) -> None:
        self.shelf.accumulator.unseal()
        self.sealed = False

    @rule()
    def begin_flush(self) -> None:
        assert set(self.shelf.accumulator.begin_flush()) == set(self.shelf.accumulator.incomplete())
        self.flushes += 1

    @precondition(lambda self: self.flushes)
    @rule()
    def end_flush(self) -> None:
        assert self.shelf.accumulator.flushing()
        self.shelf.accumulator.end_flush()
        self.flushes -= 1
        assert self.shelf.accumulator.flushing() == (self.flushes > 0)

    @rule(sure=st.integers(0, 5))
    def close(self, sure: int) -> None:
        """What is in batches is still sent."""
        if sure == 0:
            self.shelf.accumulator.close()
            self.closed = True

    @rule(sure=st.integers(0, 5))
    def take_all_that_waits(self, sure: int) -> None:
        """A forced end, or an abort."""
        if sure:
            return
        waiting = {batch for number in range(PARTITIONS) for batch in self.shelf.batches(number)}
        taken = self.shelf.accumulator.take_waiting()
        assert set(taken) == waiting and len(taken) == len(waiting)
        for batch in taken:
            assert batch.abort(KafkaError("aborted"), quiet)
            self.shelf.accumulator.deallocate(batch)

    @rule()
    def retry_all(self) -> None:
        """Newest first, so that each partition's batches stand in their old order again."""
        for batch in reversed(self.in_flight):
            self.shelf.schedule.reenqueue(batch, self.shelf.now, None)
        self.in_flight.clear()

    @rule(ms=st.sampled_from([1, 19, 20, 100, 1000, 2000]))
    def time_passes(self, ms: int) -> None:
        self.shelf.clock.advance(ms)
        for batch in self.shelf.schedule.expired(self.shelf.now):
            assert self.shelf.now - batch.created >= 2000
            batch.fail(KafkaError("expired"), None, quiet)
            self.shelf.accumulator.deallocate(batch)

    @rule(partition=st.integers(0, PARTITIONS - 1), leader=st.integers(-1, 1))
    def leader_moves(self, partition: int, leader: int) -> None:
        self.shelf.move(partition, leader)

    @invariant()
    def memory_is_true(self) -> None:
        incomplete = self.shelf.accumulator.incomplete()
        held = sum(buffer.size for batch in incomplete for buffer in batch.records.buffers)
        charged = sum(batch.account.charged for batch in incomplete)
        assert self.shelf.pool.available() == self.pool - held - charged
        waiting = [batch for number in range(PARTITIONS) for batch in self.shelf.batches(number)]
        assert set(incomplete) == set(waiting) | set(self.in_flight)
        assert all(batch.record_count > 0 for batch in incomplete)

    @invariant()
    def nothing_that_waits_is_forgotten(self) -> None:
        ready = self.shelf.ready(send_all=True)
        for number in range(PARTITIONS):
            batches = self.shelf.batches(number)
            if not batches:
                continue
            if self.shelf.leaders[number] < 0:
                assert ready.leaderless == {"test"}
            elif batches[0].retry_at <= self.shelf.now:
                assert self.shelf.leaders[number] in ready.nodes

    def teardown(self) -> None:
        if not hasattr(self, "shelf"):
            return
        self.retry_all()
        for number in range(PARTITIONS):
            self.shelf.move(number, 0)
        self.shelf.clock.advance(1500)
        sent: dict[int, list[bytes | None]] = {number: [] for number in range(PARTITIONS)}
        while batches := self.shelf.drain(0):
            for batch in batches:
                sent[batch.partition] += [record.value for record in read(batch, self.compressor).records]
                self.shelf.finish(batch)
        for number in range(PARTITIONS):
            told = [value for value, _ in self.outcomes[number]]
            assert sorted(told) == sorted(self.expected[number]), "each record has one outcome"
            waiting = [value for value in self.expected[number] if value in set(sent[number])]
            assert waiting == sent[number], "the order of appends"
        assert not self.shelf.accumulator.has_incomplete()
        assert self.shelf.pool.available() == self.pool


class CompressingMachine(AccumulatorMachine):
    codec = CompressionType.LZ4


class CrampedMachine(AccumulatorMachine):
    """Batches that cannot grow, because the others hold the memory."""

    pool = 3000


TestAccumulator = test_case(AccumulatorMachine, runs=120, steps=40)
TestCompressing = test_case(CompressingMachine, runs=60, steps=40)
TestCramped = test_case(CrampedMachine, runs=60, steps=40)
