"""Sequences and their manager against brokers that check them, under everything that may happen to a partition.

The model is Kafka's own check: a producer state per log (epoch, last sequence, the last five batches).  Records are
numbered as they are appended, so a log that strictly ascends has no double and no reordering in it; what is missing at
the end was reported as failed, or was in the log until the cluster lost it.  Two partitions share one producer id, so
that a gap in one and its epoch bump meet the other at every stage.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from forebay._transactions.sequences import PartitionSequences, decrement_sequence, increment_sequence
from forebay.errors import (
    DisconnectError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    UnknownProducerIdError,
)
from tests.property.profile import SeededMachine, test_case
from tests.unit._transactions.fakes import FakeBatch, FakePartition, give_id, new_manager

Stamp = tuple[int, int, int]
REMEMBERED, IN_FLIGHT, LAST_EPOCH = 5, 5, 32767
PARTITIONS = 2
PARTITION = st.integers(0, PARTITIONS - 1)
WHICH = st.integers(0, 3)


@dataclass
class Write:
    """One batch in a log."""

    stamp: Stamp
    records: tuple[int, ...]
    offset: int


class Log:
    """A partition's log, and what its leader knows of producers.

    Args:
        begins_at_0: as brokers before 2.5 have it: a producer that is not known has to begin at sequence 0.  Newer ones
            take whatever comes first.  Here that has to be the ``lowest`` in flight: where a producer is forgotten in
            mid-life, the batch ahead is put off and the second is taken, the first can never be written as it is, and
            no client can mend that (the manager sends the first batch of all alone for this reason).
    """

    def __init__(self, begins_at_0: bool) -> None:
        self.begins_at_0 = begins_at_0
        self.writes: list[Write] = []
        self.start = 0
        self.states: dict[int, tuple[int, int]] = {}
        self.recent: dict[int, deque[Write]] = {}

    @property
    def records(self) -> list[int]:
        return [record for write in self.writes for record in write.records]

    @property
    def end(self) -> int:
        return self.writes[-1].offset + len(self.writes[-1].records) if self.writes else 0

    def append(self, stamp: Stamp, records: tuple[int, ...], lowest: bool) -> Write | KafkaError:
        producer_id, epoch, base = stamp
        for write in self.recent.get(producer_id, ()):
            if write.stamp == stamp and len(write.records) == len(records):
                return write
        if producer_id in self.states:
            known_epoch, last = self.states[producer_id]
            if epoch < known_epoch:
                return InvalidProducerEpochError()
            if base != (0 if epoch > known_epoch else increment_sequence(last, 1)):
                return OutOfOrderSequenceError()
        elif base != 0 and self.begins_at_0:
            return UnknownProducerIdError()
        elif not lowest:
            return OutOfOrderSequenceError()
        write = Write(stamp, records, self.end)
        self._take(write)
        return write

    def _take(self, write: Write) -> None:
        producer_id, epoch, base = write.stamp
        self.writes.append(write)
        self.states[producer_id] = (epoch, increment_sequence(base, len(write.records) - 1))
        self.recent.setdefault(producer_id, deque(maxlen=REMEMBERED)).append(write)

    def restart(self) -> None:
        """The leader starts again: its snapshot has the last batch of each producer."""
        for recent in self.recent.values():
            while len(recent) > 1:
                recent.popleft()

    def forget_producers(self) -> None:
        """All records were deleted, and with them what was known of who wrote them."""
        self.start = self.end
        self.states.clear()
        self.recent.clear()

    def truncated(self, count: int) -> Log:
        """The log of a new leader that lacks the last ``count`` batches (unclean election)."""
        shorter = Log(self.begins_at_0)
        # Known from before the log that is modelled.
        shorter.states.update({key: state for key, state in self.states.items() if not self.recent.get(key)})
        for write in self.writes[: len(self.writes) - count]:
            shorter._take(write)
        return shorter


@dataclass
class Request:
    batch: FakeBatch
    stamp: Stamp
    records: tuple[int, ...]
    answer: Write | KafkaError | None = None
    log_start: int = -1


@dataclass
class Connection:
    """To one leader of the partition; requests in the order sent, the first of them processed."""

    leads: bool = True
    requests: deque[Request] = field(default_factory=deque)

    def next_unprocessed(self) -> Request | None:
        return next((request for request in self.requests if request.answer is None), None)


class Side:
    """One partition: the producer's half and the brokers' half, and what became of each record."""

    def __init__(self, machine: SequencesMachine, number: int) -> None:
        self.machine = machine
        self.client = FakePartition(machine.manager, number)
        self.log = Log(machine.old_brokers)
        self.connections = [Connection()]
        self.ghosts: deque[Request] = deque()
        """Requests that a broker still has of a connection that the client has given up."""
        self.appended = 0
        self.acknowledged: set[int] = set()
        self.refused: set[int] = set()
        self.in_doubt: set[int] = set()
        self.lost: set[int] = set()
        """Written once, and lost by the cluster."""
        self.too_large: set[int] = set()
        self.written: set[int] = set()
        """Acknowledged without an offset: a later one is in the log."""

    # -- the sender --------------------------------------------------------------------------------------

    def append(self, count: int) -> None:
        records = range(self.appended, self.appended + count)
        self.appended += count
        self.client.append(count, records)

    def send(self) -> None:
        connection = self.connections[-1]
        if len(connection.requests) < IN_FLIGHT:
            batch = self.client.drain()
            if batch is not None:
                connection.requests.append(Request(batch, batch.stamp, batch.records))

    def take(self, request: Request) -> None:
        batch, answer = request.batch, request.answer
        if isinstance(answer, Write):
            assert answer.records == batch.records, "acknowledged by the write of something else"
            if not batch.done:
                self.acknowledged.update(batch.records)
            self.client.ack(batch, answer.offset)
        elif batch.done or answer is None:
            pass
        elif not self.client.refuse(batch, answer, request.log_start):
            assert isinstance(answer, RecordTooLargeError), f"{answer!r} is no reason to give up"
            (self.in_doubt if batch.maybe_written else self.refused).update(batch.records)
        elif batch.done:
            self.written.update(batch.records)

    def expire(self, which: int) -> bool:
        sequences = self.client.queue.gate_state
        in_flight = [] if sequences is None else sequences.in_flight
        if not in_flight:
            return False
        batch = in_flight[which % len(in_flight)]
        self.client.give_up(batch, KafkaTimeoutError("expired"), adjust=False)
        self.in_doubt.update(batch.records)
        return True

    # -- the brokers -------------------------------------------------------------------------------------

    def connection(self, which: int) -> Connection:
        return self.connections[which % len(self.connections)]

    def process(self, connection: Connection, instead: KafkaError | None = None, *, write: bool = True) -> None:
        """The broker takes the next request, and answers ``instead`` if it is given."""
        request = connection.next_unprocessed()
        if request is None:
            return
        if not connection.leads:
            request.answer = NotLeaderOrFollowerError()
        elif self.too_large & set(request.records):
            request.answer = RecordTooLargeError()
        else:
            answer = self.write(request) if write else None
            request.answer = answer if instead is None else instead
            request.log_start = self.log.start

    def write(self, request: Request) -> Write | KafkaError:
        sequences = self.client.queue.gate_state
        lowest = sequences is not None and sequences.is_lowest(request.batch)
        return self.log.append(request.stamp, request.records, lowest)

    def respond(self, connection: Connection) -> None:
        if connection.requests and connection.requests[0].answer is not None:
            self.take(connection.requests.popleft())

    def give_up_connection(self, connection: Connection, processed: int, *, ghosts: bool) -> None:
        """All answers are lost; of what was not processed the broker may still work off all, or the first few."""
        for _ in range(processed):
            self.process(connection)
        requests, connection.requests = connection.requests, deque()
        for request in requests:
            if request.answer is None and ghosts and connection.leads:
                self.ghosts.append(Request(request.batch, request.stamp, request.records))
            request.answer = DisconnectError()
            self.take(request)

    def work_off_a_ghost(self) -> None:
        if self.ghosts:
            ghost = self.ghosts.popleft()
            if not self.too_large & set(ghost.records):
                self.write(ghost)

    def refuse_as_too_large(self, connection: Connection) -> None:
        """A broker checks sizes before sequences, and always to the same end: so it must not be there already."""
        request = connection.next_unprocessed()
        if request is not None and connection.leads and not set(request.records) & set(self.log.records):
            self.too_large.update(request.records)

    def stamped(self) -> list[FakeBatch]:
        return [batch for batch in self.client.queue.batches if batch.base_sequence >= 0]

    def is_settled(self) -> bool:
        """Nothing was written whose answer the producer does not have."""
        pending = {id(request.batch) for connection in self.connections for request in connection.requests}
        waiting = {id(batch) for batch in self.client.queue.batches if batch.base_sequence >= 0}
        return not pending and not waiting and not self.ghosts

    def truncate(self, count: int) -> None:
        before = set(self.log.records)
        self.log = self.log.truncated(min(count, len(self.log.writes)))
        self.lost |= before - set(self.log.records)
        self.move_leader()

    def recreate(self) -> None:
        self.lost |= set(self.log.records)
        self.log = Log(self.machine.old_brokers)
        self.ghosts.clear()
        self.move_leader()

    def move_leader(self) -> None:
        self.connections[-1].leads = False
        # What went to the old leader is refused there.
        self.ghosts.clear()
        self.connections = [one for one in self.connections if one.requests] + [Connection()]

    # -- what must hold ----------------------------------------------------------------------------------

    def check_order(self) -> None:
        records = self.log.records
        assert all(one < following for one, following in itertools.pairwise(records)), records

    def check_end(self) -> None:
        assert not self.client.queue.batches and not any(connection.requests for connection in self.connections)
        sequences = self.client.queue.gate_state
        assert sequences is None or sequences.in_flight == []
        written = set(self.log.records)
        everything = set(range(self.appended))
        told = self.acknowledged | self.written
        assert told | self.refused | self.in_doubt == everything, "a record without an outcome"
        assert self.refused.isdisjoint(written)
        assert told <= written | self.lost, "acknowledged, and nobody has it"
        assert everything - written <= self.refused | self.in_doubt | self.lost


class SequencesMachine(SeededMachine):
    """The sender's turns, and what happens to them."""

    @initialize(
        start=st.sampled_from([0, 1, 2**31 - 1, 2**31 - 2, 2**31 - 7]),
        epoch=st.sampled_from([0, LAST_EPOCH - 2, LAST_EPOCH - 1, LAST_EPOCH]),
        old_brokers=st.booleans(),
    )
    def begin(self, start: int, epoch: int, old_brokers: bool) -> None:
        self.old_brokers = old_brokers
        self.manager = new_manager(1, epoch, confirm_first=True)
        self.next_id = 2
        self.sides = [Side(self, number) for number in range(PARTITIONS)]
        self.losses = 0
        for side in self.sides:
            side.client.queue.gate_state = PartitionSequences("test", side.client.queue.partition, False)
            side.client.sequences.start(1, epoch, start)
            if start > 0:
                side.log.states[1] = (epoch, decrement_sequence(start, 1))

    @rule(partition=PARTITION, counts=st.lists(st.integers(1, 3), min_size=1, max_size=6))
    def append(self, partition: int, counts: list[int]) -> None:
        for count in counts:
            self.sides[partition].append(count)

    @rule(turns=st.integers(1, 5))
    def turn(self, turns: int) -> None:
        for _ in range(turns):
            self.manager.begin_turn()
            if self.manager.needs_producer_id(1e9, True):
                give_id(self.manager, self.next_id)
                self.next_id += 1
                # Nothing fences the old id: what a broker still has of it could be written after all (so in Java).
                for side in self.sides:
                    side.ghosts.clear()
            for side in self.sides:
                side.send()

    @rule(partition=PARTITION, which=WHICH, times=st.integers(1, 5))
    def process(self, partition: int, which: int, times: int) -> None:
        side = self.sides[partition]
        for _ in range(times):
            side.process(side.connection(which))

    @rule(partition=PARTITION, which=WHICH, times=st.integers(1, 5))
    def respond(self, partition: int, which: int, times: int) -> None:
        side = self.sides[partition]
        for _ in range(times):
            side.respond(side.connection(which))

    @rule(partition=PARTITION, which=WHICH, error=st.sampled_from([NotEnoughReplicasError, KafkaTimeoutError]))
    def refuse_for_now(self, partition: int, which: int, error: type[KafkaError]) -> None:
        side = self.sides[partition]
        side.process(side.connection(which), error(), write=False)

    @rule(
        partition=PARTITION,
        which=WHICH,
        error=st.sampled_from([NotEnoughReplicasAfterAppendError, KafkaTimeoutError]),
    )
    def write_and_say_otherwise(self, partition: int, which: int, error: type[KafkaError]) -> None:
        side = self.sides[partition]
        side.process(side.connection(which), error())

    @rule(partition=PARTITION, which=WHICH)
    def refuse_as_too_large(self, partition: int, which: int) -> None:
        side = self.sides[partition]
        side.refuse_as_too_large(side.connection(which))

    @rule(partition=PARTITION, which=WHICH, processed=st.integers(0, 4), ghosts=st.booleans())
    def give_up_connection(self, partition: int, which: int, processed: int, ghosts: bool) -> None:
        """Lost, or overdue: then the broker may work off what it has."""
        side = self.sides[partition]
        side.give_up_connection(side.connection(which), processed, ghosts=ghosts and self.may_haunt())

    def may_haunt(self) -> bool:
        return bool(self.manager.producer_epoch < LAST_EPOCH)

    @rule(partition=PARTITION)
    def work_off_a_ghost(self, partition: int) -> None:
        self.sides[partition].work_off_a_ghost()

    @rule(partition=PARTITION)
    def move_leader(self, partition: int) -> None:
        if len(self.sides[partition].connections) < 4:
            self.sides[partition].move_leader()

    @rule(partition=PARTITION)
    def restart(self, partition: int) -> None:
        self.sides[partition].log.restart()

    @rule(partition=PARTITION, which=WHICH)
    def expire(self, partition: int, which: int) -> None:
        self.sides[partition].expire(which)

    # What a cluster may do to a log, and no client can mend: only so much is promised then.

    @precondition(lambda self: self.losses < 2)
    @rule(partition=PARTITION, count=st.integers(1, 4))
    def truncate(self, partition: int, count: int) -> None:
        self.losses += 1
        self.sides[partition].truncate(count)

    @precondition(lambda self: self.losses < 2)
    @rule(partition=PARTITION)
    def recreate_topic(self, partition: int) -> None:
        self.losses += 1
        self.sides[partition].recreate()

    @rule(partition=PARTITION)
    def forget_producers(self, partition: int) -> None:
        """Its records were deleted by age.  With answers outstanding a retry could be written twice."""
        if self.sides[partition].is_settled():
            self.sides[partition].log.forget_producers()

    @invariant()
    def every_log_is_in_order(self) -> None:
        for side in getattr(self, "sides", ()):
            side.check_order()

    @invariant()
    def sequences_in_flight_follow_each_other(self) -> None:
        """Per stamp's id and epoch, in the order of the records from some one on, and no more than the broker
        remembers; those that wait stand in the same order."""
        for side in getattr(self, "sides", ()):
            sequences = side.client.queue.gate_state
            in_flight = [] if sequences is None else sequences.in_flight
            assert len(in_flight) <= IN_FLIGHT
            steps = [one.records[-1] > other.records[0] for one, other in itertools.pairwise(in_flight)]
            assert sum(steps) <= 1
            waiting = [] if sequences is None else [sequences.position(one) for one in side.stamped()]
            assert -1 not in waiting and waiting == sorted(waiting)
            for one, other in itertools.pairwise(in_flight):
                if one.stamp[:2] == other.stamp[:2]:
                    assert other.base_sequence >= 0

    def teardown(self) -> None:
        """No more faults: everything comes to its end."""
        if not hasattr(self, "sides"):
            return
        rounds = 40 + 12 * sum(side.appended for side in self.sides)
        for attempt in range(43 + self.losses * 40):
            self.work(rounds if attempt == 0 else 60)
            stuck = [side for side in self.sides if side.client.queue.batches]
            if not stuck:
                break
            # Only where the cluster lost what it had confirmed, or nobody can ask for one that was given up; the
            # delivery timeout ends it then.
            assert self.losses or all(side.in_doubt for side in stuck), [
                repr(side.client.queue.gate_state) for side in stuck
            ]
            for side in stuck:
                side.expire(0)
        for side in self.sides:
            side.check_order()
            side.check_end()

    def work(self, rounds: int) -> None:
        for _ in range(rounds):
            self.turn(1)
            for side in self.sides:
                side.work_off_a_ghost()
                for connection in side.connections:
                    side.process(connection)
                    side.respond(connection)


TestSequences = test_case(SequencesMachine, runs=200, steps=60)
