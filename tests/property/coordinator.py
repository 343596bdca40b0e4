"""A transaction coordinator for the in-memory cluster, by Kafka's rules: epochs, ongoing transactions, markers.

Both generations (KIP-890): partitions added by the producer, one epoch for many transactions; or added by the brokers,
another epoch after each.  What was committed is kept in units, one for each transaction, so that a test can ask which
records became visible together.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from forebay._records.decoded import Batch
from tests.fakes.broker import INIT_PRODUCER_ID, METADATA, MODERN, Received
from tests.fakes.produce import NOT_LEADER, Answer, Where, batches_of
from tests.fakes.world import World
from tests.support.refusal import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    TXN_OFFSET_COMMIT,
    refusing,
)
from tests.support.rewrite import FIND_COORDINATOR

RANGES = {**MODERN, 10: (0, 6), 22: (0, 5), 24: (0, 3), 25: (0, 4), 26: (0, 5), 28: (0, 5)}
CALLS = (FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, END_TXN)
NOT_COORDINATOR, INVALID_EPOCH, INVALID_TXN_STATE, INVALID_PID_MAPPING, FENCED = 16, 47, 48, 49, 90
EMPTY, ONGOING, COMMITTED, ABORTED = "empty", "ongoing", "committed", "aborted"
LAST_EPOCH = 32766


@dataclass(frozen=True)
class Fault:
    """What becomes of a request: it is processed or not, and answered with the code, or its connection is cut."""

    code: int = 0
    processed: bool = False
    cut: bool = False


@dataclass
class Unit:
    """What a transaction made visible."""

    values: dict[Where, list[bytes]]
    offsets: dict[Where, int]


@dataclass
class Coordinator:
    """Serves one transactional.id; installed on all brokers of ``world``, and moves among them."""

    world: World
    generation: int
    node_id: int = 0
    producer_id: int = -1
    epoch: int = -1
    state: str = EMPTY
    next_id: int = 4711
    last_end: tuple[int, int, bool] = (-1, -1, False)
    last_bump: tuple[int, int] = (-1, -1)
    partitions: set[Any] = field(default_factory=set)
    open: defaultdict[Where, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    offsets: dict[Where, int] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    faults: defaultdict[int, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    on_commit: Callable[[Unit], None] = lambda unit: None

    def install(self) -> None:
        cluster = self.world.cluster
        for broker in cluster.brokers.values():
            broker.ranges = dict(RANGES)
            broker.finalized = (1, {"transaction.version": self.generation})
            for key in CALLS:
                broker.script[key] = self.answer
            broker.script[METADATA] = lambda request: request.answer(cluster.metadata(request))
        cluster.take = self.take  # type: ignore[method-assign]

    # -- requests ----------------------------------------------------------------------------------------

    def answer(self, request: Received) -> None:
        if request.link in self.world.cluster.cut:
            return
        faults = self.faults[request.api_key]
        fault = faults.popleft() if faults else None
        if fault is None:
            request.answer(self.process(request))
            return
        answer = self.process(request) if fault.processed else None
        if fault.cut:
            self.world.cluster.cut.append(request.link)
            request.link.reset()
        elif fault.code == 0 and answer is not None:
            request.answer(answer)
        else:
            request.answer(self.refused(request, fault.code))

    @staticmethod
    def refused(request: Received, code: int, **fields: Any) -> Any:
        message = refusing(request.api_key, request.version, request.body, code)
        if getattr(message, "coordinators", None):
            return replace(message, coordinators=tuple(replace(entry, **fields) for entry in message.coordinators))
        return replace(message, **fields)

    def process(self, request: Received) -> Any:
        if request.api_key == FIND_COORDINATOR:
            node = self.world.cluster.brokers[self.node_id].node
            return self.refused(request, 0, node_id=node.id, host=node.host, port=node.port)
        if request.broker.node.id != self.node_id:
            return self.refused(request, NOT_COORDINATOR)
        handlers: dict[int, Callable[[Received], Any]] = {
            INIT_PRODUCER_ID: self.init_producer_id,
            ADD_PARTITIONS_TO_TXN: self.add_partitions,
            ADD_OFFSETS_TO_TXN: self.add_offsets,
            TXN_OFFSET_COMMIT: self.commit_offsets,
            END_TXN: self.end,
        }
        return handlers[request.api_key](request)

    def init_producer_id(self, request: Received) -> Any:
        body = request.body
        asked = (getattr(body, "producer_id", -1), getattr(body, "producer_epoch", -1))
        repeated = asked[0] >= 0 and asked == self.last_bump
        if asked[0] >= 0 and not repeated and asked != (self.producer_id, self.epoch):
            return self.refused(request, FENCED)
        if not repeated:
            self.last_bump = asked
            self.complete(commit=False)
            self.state = EMPTY
            self.bump()
        return self.refused(request, 0, producer_id=self.producer_id, producer_epoch=self.epoch)

    def bump(self) -> None:
        self.epoch += 1
        if self.producer_id < 0 or self.epoch > LAST_EPOCH:
            self.producer_id, self.next_id, self.epoch = self.next_id, self.next_id + 1, 0

    def wrong_identity(self, producer_id: int, epoch: int) -> int:
        if producer_id != self.producer_id:
            return INVALID_PID_MAPPING
        return 0 if epoch == self.epoch else FENCED

    def add(self, *members: Any) -> None:
        self.partitions.update(members)
        self.state = ONGOING

    def add_partitions(self, request: Received) -> Any:
        body = request.body
        code = self.wrong_identity(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
        if code == 0:
            topics = body.v3_and_below_topics
            self.add(*((topic.name, partition) for topic in topics for partition in topic.partitions))
        return self.refused(request, code)

    def add_offsets(self, request: Received) -> Any:
        body = request.body
        code = self.wrong_identity(body.producer_id, body.producer_epoch)
        if code == 0:
            self.add(body.group_id)
        return self.refused(request, code)

    def commit_offsets(self, request: Received) -> Any:
        body = request.body
        code = self.wrong_identity(body.producer_id, body.producer_epoch)
        if code == 0 and request.version < 5 and body.group_id not in self.partitions:
            code = INVALID_TXN_STATE
        if code == 0:
            self.add(body.group_id)
            for topic in body.topics:
                for partition in topic.partitions:
                    self.offsets[topic.name, partition.partition_index] = partition.committed_offset
        return self.refused(request, code)

    def end(self, request: Received) -> Any:
        body = request.body
        code = self._end_code(request)
        repeated = self.last_end == (body.producer_id, body.producer_epoch, body.committed)
        if code == 0 and not (repeated and self.state != ONGOING):
            self.last_end = (body.producer_id, body.producer_epoch, body.committed)
            self.complete(commit=body.committed)
            self.state = COMMITTED if body.committed else ABORTED
            if request.version >= 5:
                self.bump()
        told = {"producer_id": self.producer_id, "producer_epoch": self.epoch} if request.version >= 5 else {}
        return self.refused(request, code, **(told if code == 0 else {}))

    def _end_code(self, request: Received) -> int:
        body = request.body
        asked = (body.producer_id, body.producer_epoch)
        if request.version >= 5 and self.state != ONGOING and asked == self.last_end[:2]:
            # Its answer was lost: the epoch was raised meanwhile.
            return 0 if body.committed == self.last_end[2] else INVALID_TXN_STATE
        code = self.wrong_identity(*asked)
        if code or self.state == ONGOING:
            return code
        if request.version >= 5:
            return INVALID_TXN_STATE if body.committed else 0
        return 0 if self.state == (COMMITTED if body.committed else ABORTED) else INVALID_TXN_STATE

    def complete(self, *, commit: bool) -> None:
        """Markers in every partition."""
        unit = Unit({where: values for where, values in self.open.items() if values}, self.offsets)
        self.open, self.offsets, self.partitions = defaultdict(list), {}, set()
        if commit:
            self.units.append(unit)
            self.on_commit(unit)

    def expire(self) -> None:
        """The transaction timed out: aborted, and its producer fenced."""
        if self.state == ONGOING:
            self.complete(commit=False)
            self.state = ABORTED
            self.bump()

    # -- records -----------------------------------------------------------------------------------------

    def take(self, request: Received) -> dict[Where, Answer]:
        """As ``ProducingCluster.take``, and the transaction is looked at."""
        cluster = self.world.cluster
        answers: dict[Where, Answer] = {}
        for where, batch in batches_of(request).items():
            code = self._produce_code(request, where, batch)
            fault = cluster.faults[where].popleft() if cluster.faults[where] else Answer()
            if fault.code == 0 or (fault.written and code == 0):
                answers[where] = Answer(code) if code else self._write(where, batch)
            if fault.code:
                answers[where] = fault
        return answers

    def _produce_code(self, request: Received, where: Where, batch: Batch) -> int:
        assert batch.is_transactional and request.body.transactional_id is not None
        assert (request.version >= 12) == (self.generation == 2)
        if self.world.cluster.topics[where[0]].partitions[where[1]].leader != request.broker.node.id:
            return NOT_LEADER
        if (batch.producer_id, batch.producer_epoch) != (self.producer_id, self.epoch):
            return INVALID_EPOCH
        if self.generation == 2:
            self.add(where)
        return 0 if where in self.partitions else INVALID_TXN_STATE

    def _write(self, where: Where, batch: Batch) -> Answer:
        log = self.world.cluster.logs[where]
        known = len(log.batches)
        verdict = log.append(batch)
        if len(log.batches) > known:
            self.open[where] += [record.value or b"" for record in batch.records]
        return Answer(verdict.code, verdict.base_offset, log_start_offset=log.start)
