"""Random answers, retries, lost connections, leader moves, refusals and expiry against a broker that checks sequences.

The broker is a model of Kafka's own check: one producer state per partition (epoch, last sequence, the last five
batches).  Records are numbered as they are appended, so a log that strictly ascends has no duplicate and no
reordering; what is missing in it must have been reported as failed.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

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
    UnknownTopicIdError,
)
from tests.support.examples import examples

from .fakes import FakeBatch, FakePartition, give_id, new_manager

CACHED_BATCHES = 5


class ModelLog:
    """A partition's log and what its leader knows of the one producer; it takes any sequence of one it never met."""

    def __init__(self, producer_id: int, epoch: int, next_sequence: int) -> None:
        self.records: list[int] = []
        self.states: dict[int, tuple[int, int]] = {}
        if next_sequence > 0:
            self.states[producer_id] = (epoch, decrement_sequence(next_sequence, 1))
        self.recent: dict[int, deque[tuple[int, int, int, int]]] = {}

    def write(self, stamp: tuple[int, int, int], records: tuple[int, ...]) -> int | KafkaError:
        producer_id, epoch, base = stamp
        last = increment_sequence(base, len(records) - 1)
        recent = self.recent.setdefault(producer_id, deque(maxlen=CACHED_BATCHES))
        known_epoch, known_last = self.states.get(producer_id, (-1, -1))
        if epoch < known_epoch:
            return InvalidProducerEpochError()
        for other_epoch, other_base, other_last, offset in recent:
            if (other_epoch, other_base, other_last) == (epoch, base, last):
                return offset
        if known_epoch >= 0:
            expected = 0 if epoch > known_epoch else increment_sequence(known_last, 1)
            if base != expected:
                return OutOfOrderSequenceError()
        offset = len(self.records)
        self.records.extend(records)
        self.states[producer_id] = (epoch, last)
        recent.append((epoch, base, last, offset))
        return offset

    def forget_all_but_the_last(self) -> None:
        for recent in self.recent.values():
            while len(recent) > 1:
                recent.popleft()


@dataclass(slots=True)
class Request:
    batch: FakeBatch
    stamp: tuple[int, int, int]
    incarnation: int
    answer: int | KafkaError | None = None


@dataclass(slots=True)
class Connection:
    """Requests in the order sent; the first ``answered`` of them were processed by the broker."""

    leads: bool = True
    requests: deque[Request] = field(default_factory=deque)


class World:
    """The partition, its sender and its broker."""

    def __init__(self, next_sequence: int, epoch: int) -> None:
        self.manager = new_manager(1, epoch, confirm_first=True)
        self.partition = FakePartition(self.manager)
        self.partition.queue.gate_state = PartitionSequences("test", 0, False)
        self.partition.sequences.start(1, epoch, next_sequence)
        self.log = ModelLog(1, epoch, next_sequence)
        self.connections = [Connection()]
        self.appended = 0
        self.next_id = 2
        self.acknowledged: dict[int, int] = {}
        self.written: set[int] = set()
        self.refused: set[int] = set()
        self.in_doubt: set[int] = set()

    # what the application and the sender do

    def append(self, choice: int) -> None:
        count = 1 + choice % 3
        records = range(self.appended, self.appended + count)
        self.appended += count
        self.partition.append(count, records)

    def turn(self, choice: int = 0) -> None:
        """One turn of the sender: at most one batch goes out, on the leader's connection."""
        self.manager.begin_turn()
        if self.manager.needs_producer_id(1e9, True):
            give_id(self.manager, self.next_id)
            self.next_id += 1
        connection = self.connections[-1]
        if len(connection.requests) < 5:
            batch = self.partition.drain()
            if batch is not None:
                connection.requests.append(Request(batch, batch.stamp, batch.incarnation))

    def expire(self, choice: int) -> None:
        """A batch that was sent runs out of time, wherever it is."""
        in_flight = self.partition.sequences.in_flight
        if in_flight:
            batch = in_flight[choice % len(in_flight)]
            self.partition.give_up(batch, KafkaTimeoutError("expired"), adjust=False)
            self.in_doubt.update(batch.records)

    # what brokers and the network do

    def some(self, choice: int) -> Connection:
        return self.connections[choice % len(self.connections)]

    def process(self, choice: int) -> None:
        self.work(self.some(choice))

    def work(self, connection: Connection, instead: KafkaError | None = None, *, write: bool = True) -> None:
        """The broker takes the next request, and answers ``instead`` if it is given."""
        request = next((request for request in connection.requests if request.answer is None), None)
        if request is None:
            return
        if not connection.leads:
            request.answer = NotLeaderOrFollowerError()
            return
        answer: int | KafkaError | None = self.write(request) if write else None
        request.answer = answer if instead is None else instead

    def write(self, request: Request) -> int | KafkaError:
        return self.log.write(request.stamp, request.batch.records)

    def not_enough_replicas(self, choice: int) -> None:
        self.work(self.some(choice), NotEnoughReplicasError(), write=False)

    def not_enough_after_append(self, choice: int) -> None:
        self.work(self.some(choice), NotEnoughReplicasAfterAppendError())

    def refuse(self, choice: int) -> None:
        """As a broker that checks a size before it looks at sequences: so it must not be there already."""
        connection = self.some(choice)
        request = next((request for request in connection.requests if request.answer is None), None)
        if request is not None and not set(request.batch.records) & set(self.log.records):
            self.work(connection, RecordTooLargeError(), write=False)

    def respond(self, choice: int) -> None:
        connection = self.some(choice)
        if connection.requests and connection.requests[0].answer is not None:
            self.take(connection.requests.popleft())

    def take(self, request: Request) -> None:
        batch, answer = request.batch, request.answer
        if isinstance(answer, int):
            first = not batch.done
            self.partition.ack(batch, answer)
            if first:
                self.acknowledged.update(zip(batch.records, range(answer, answer + batch.record_count), strict=True))
        elif batch.done or answer is None:
            pass
        elif not self.partition.refuse(batch, answer):
            assert isinstance(answer, RecordTooLargeError), answer
            (self.in_doubt if batch.maybe_written else self.refused).update(batch.records)
        elif batch.done:
            self.written.update(batch.records)

    def disconnect(self, choice: int) -> None:
        """All answers are lost; of the requests that were not processed some still are, from the first on."""
        connection = self.some(choice)
        for _ in range(choice % 4):
            self.work(connection)
        requests, connection.requests = connection.requests, deque()
        for request in requests:
            request.answer = DisconnectError()
            self.take(request)

    def restart(self, choice: int) -> None:
        """The broker starts again and remembers of each producer what its log ends with."""
        self.log.forget_all_but_the_last()

    def move_leader(self, choice: int) -> None:
        if len(self.connections) < 4:
            self.connections[-1].leads = False
            self.connections.append(Connection())

    # how it ends

    def settle(self) -> None:
        """No more faults: everything must come to an end."""
        self.work_off()
        if self.in_doubt:
            # What one that was given up may stand behind in the log can only run out of time.
            while self.partition.sequences.in_flight:
                self.expire(0)
            self.work_off()

    def work_off(self) -> None:
        for _ in range(40 + 12 * self.appended):
            self.turn()
            for connection in self.connections:
                self.work(connection)
                if connection.requests and connection.requests[0].answer is not None:
                    self.take(connection.requests.popleft())

    def check_log(self) -> None:
        records = self.log.records
        assert all(one < following for one, following in itertools.pairwise(records)), records

    def check_end(self) -> None:
        assert not self.partition.queue.batches and not any(connection.requests for connection in self.connections)
        assert self.partition.sequences.in_flight == []
        written = set(self.log.records)
        assert self.refused.isdisjoint(written)
        assert set(range(self.appended)) - written <= self.refused | self.in_doubt
        told = set(self.acknowledged) | self.written
        assert told | self.refused | self.in_doubt == set(range(self.appended))
        assert self.written <= written
        assert all(self.log.records[offset] == record for record, offset in self.acknowledged.items())


BENIGN = ("append", "append", "turn", "turn", "turn", "process", "process", "respond", "respond")
FAULTS = ("not_enough_replicas", "not_enough_after_append", "disconnect", "move_leader", "restart")
steps = st.lists(st.tuples(st.sampled_from(BENIGN + FAULTS), st.integers(0, 11)), max_size=120)
ALL = (*BENIGN, *FAULTS, "refuse", "expire")
all_steps = st.lists(st.tuples(st.sampled_from(ALL), st.integers(0, 11)), max_size=120)
starts = st.sampled_from([0, 1, 2**31 - 1, 2**31 - 2, 2**31 - 7])
epochs = st.sampled_from([0, 32765, 32766, 32767])


def script_of(text: str) -> list[tuple[str, int]]:
    """``name`` or ``name:choice``, with ``*times`` after it."""
    script = []
    for word in text.split():
        step, _, times = word.partition("*")
        name, _, choice = step.partition(":")
        script.extend([(name, int(choice or 0))] * int(times or 1))
    return script


FIRST_CONFIRMED = "append*12 turn process respond "
# The second batch is written and its answer late; the new leader refuses the third; then the answer is lost.
UNKNOWN_AHEAD_OF_A_GAP = script_of(
    FIRST_CONFIRMED + "turn process move_leader turn refuse:1 respond:1 turn*2 disconnect turn"
)
# The second batch's answer is late while the new leader would confirm many more.
OVERTAKEN = script_of(FIRST_CONFIRMED + "turn process move_leader" + " turn process:1 respond:1" * 8 + " disconnect")


# Three are written and their answers lost; the broker starts again and knows the last of them alone.
FORGOTTEN = script_of(FIRST_CONFIRMED + "turn*3 process*3 disconnect restart")
# The same, and the last of the three is given up.
FORGOTTEN_AND_GIVEN_UP = script_of(FIRST_CONFIRMED + "turn*3 process*3 disconnect restart expire:2")


def run(world: World, script: list[tuple[str, int]]) -> None:
    for name, choice in script:
        getattr(world, name)(choice)
        world.check_log()
    world.settle()
    world.check_log()
    world.check_end()


@settings(max_examples=examples(300), deadline=None)
@example(OVERTAKEN, 0)
@example(OVERTAKEN, 2**31 - 7)
@example(FORGOTTEN, 0)
@example(FORGOTTEN, 2**31 - 7)
@given(steps, starts)
def test_nothing_lost_doubled_or_reordered(script: list[tuple[str, int]], start: int) -> None:
    """O3 property test: passing faults with five in flight; every record is there, once, in order, in one epoch."""
    world = World(start, 0)
    run(world, script)
    assert world.log.records == list(range(world.appended))
    assert world.manager.producer_epoch == 0


@settings(max_examples=examples(500), deadline=None)
@example(UNKNOWN_AHEAD_OF_A_GAP, 0, 0)
@example(UNKNOWN_AHEAD_OF_A_GAP, 2**31 - 1, 32767)
@example(FORGOTTEN_AND_GIVEN_UP, 0, 0)
@given(all_steps, starts, epochs)
def test_with_refusals_and_expiry(script: list[tuple[str, int]], start: int, epoch: int) -> None:
    """O3 O10 property test: with gaps to close, across the wrap of sequences and of epochs."""
    run(World(start, epoch), script)


class RemadeTopic(World):
    """The topic is deleted and made again, and the producer hears of it some time later.

    By name it hears when an answer leaves a batch's fate open, for then metadata is asked for, and nothing is refused
    for good: with two faults at once, and the old topic in mind, nobody could tell that the new log, which takes
    whatever comes first, has what came behind the first of them.

    Args:
        by_id: whether requests name topics by their ids (Produce v13), so that none reaches the wrong log.
    """

    def __init__(self, next_sequence: int, *, by_id: bool) -> None:
        super().__init__(next_sequence, 0)
        self.by_id = by_id
        self.partition.by_name = not by_id
        self.logs = [self.log]

    @property
    def incarnation(self) -> int:
        return len(self.logs) - 1

    def remake(self, choice: int) -> None:
        if len(self.logs) < 4:
            self.log = ModelLog(1, 0, 0)
            self.logs.append(self.log)

    def learn(self, choice: int = 0) -> None:
        self.partition.incarnation = self.incarnation

    def write(self, request: Request) -> int | KafkaError:
        if self.by_id and request.incarnation != self.incarnation:
            return UnknownTopicIdError()
        return super().write(request)

    def take(self, request: Request) -> None:
        if isinstance(request.answer, (DisconnectError, NotEnoughReplicasAfterAppendError)):
            self.learn()
        super().take(request)

    def settle(self) -> None:
        self.learn()
        super().settle()

    def check_log(self) -> None:
        for log in self.logs:
            assert len(log.records) == len(set(log.records)), log.records
            assert not self.by_id or log.records == sorted(log.records), log.records

    def check_end(self) -> None:
        assert not self.partition.queue.batches and not any(connection.requests for connection in self.connections)
        assert self.partition.sequences.in_flight == []
        told = set(self.acknowledged) | self.written
        assert told | self.in_doubt | self.refused == set(range(self.appended))
        for record in told:
            assert any(record in log.records for log in self.logs)


# Known at once; the first for the new log is put off and the next would be taken.
TAKEN_FIRST = script_of(FIRST_CONFIRMED + "remake learn turn*2 not_enough_replicas process respond*2")
# Of three in flight by name the first is put off, the third taken; of the second only the answer says that it is not.
STRAY = script_of(
    FIRST_CONFIRMED + "turn*3 remake not_enough_replicas not_enough_after_append process respond*3 turn process respond"
)
MADE_AGAIN = ("remake", "learn")
steps_by_id = st.lists(st.tuples(st.sampled_from((*ALL, *MADE_AGAIN)), st.integers(0, 11)), max_size=120)
# By name and without a broker's memory nobody could say whether the new log took a batch, or the one behind it, first.
passing = (*BENIGN, *(fault for fault in FAULTS if fault != "restart"), "expire", *MADE_AGAIN)
steps_by_name = st.lists(st.tuples(st.sampled_from(passing), st.integers(0, 11)), max_size=120)


@settings(max_examples=examples(300), deadline=None)
@example(TAKEN_FIRST, 0)
@example(STRAY, 0)
@given(steps_by_id, starts)
def test_a_topic_made_again_by_id(script: list[tuple[str, int]], start: int) -> None:
    """Whatever happens, each log has the records that it gets once and in their order."""
    run(RemadeTopic(start, by_id=True), script)


@settings(max_examples=examples(300), deadline=None)
@example(TAKEN_FIRST, 0)
@example(STRAY, 0)
@example(STRAY, 2**31 - 7)
@given(steps_by_name, starts)
def test_a_topic_made_again_by_name(script: list[tuple[str, int]], start: int) -> None:
    """Nothing is lost or written twice; the order may suffer until the producer knows of the new topic."""
    run(RemadeTopic(start, by_id=False), script)
