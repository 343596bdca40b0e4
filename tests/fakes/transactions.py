"""Transactions as Kafka's coordinator keeps them, in memory, and a control topic on top of them.

``transaction.version`` is 1 or 2.  An end is prepared first and complete when the next request meets it.  Whatever
others can see is announced by ``before_step``: a test may raise there, which is a crash, or let somebody else go on.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forebay.errors import InvalidPidMappingError, ProducerFencedError
from forebay.model import TopicPartition, TransactionDescription, TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import State
from forebay.spark.exactly_once.task import Worker

TIMEOUT_MS = 900_000
EMPTY, ONGOING, COMMITTED, ABORTED = "Empty", "Ongoing", "CompleteCommit", "CompleteAbort"
PLACES = (TopicPartition("t", 0),)
PREPARED = {"PrepareCommit": COMMITTED, "PrepareAbort": ABORTED}


@dataclass
class Entry:
    """What the coordinator keeps of one transactional.id."""

    producer_id: int
    epoch: int = -1
    state: str = EMPTY
    started_ms: float = -1
    rows: list[Any] = field(default_factory=list)

    def complete(self) -> None:
        """The markers are written."""
        self.state = PREPARED.get(self.state, self.state)


class World:
    """Coordinator, log and control topic of one prefix.

    Args:
        version: ``transaction.version``; from 2 on each end gives another epoch.
    """

    def __init__(self, prefix: str = "p", version: int = 2) -> None:
        self.prefix = prefix
        self.version = version
        self.entries: dict[str, Entry] = {}
        self.visible: list[Any] = []
        """The rows that a reader of committed records sees."""
        self.committed: set[tuple[str, int, int]] = set()
        """Id, producer id and epoch of what was committed."""
        self.records: list[bytes] = []
        self.now_ms: float = 1_000_000
        self.steps: list[str] = []
        self.workers: dict[str, Worker] = {}
        self.before_step: Callable[[str], None] = lambda name: None
        self._producer_ids = itertools.count(100)

    def step(self, name: str) -> None:
        self.before_step(name)
        self.steps.append(name)

    # The coordinator

    def init(self, transactional_id: str) -> TransactionIdentity:
        entry = self.entries.setdefault(transactional_id, Entry(-1))
        if entry.producer_id < 0:
            entry.producer_id = next(self._producer_ids)
        entry.complete()
        if entry.state == ONGOING:
            self._abort(entry)
            entry.complete()
        entry.epoch += 1
        entry.state = EMPTY
        return TransactionIdentity(transactional_id, entry.producer_id, entry.epoch, self.version)

    def init_in_steps(self, name: str, transactional_id: str) -> TransactionIdentity:
        """InitProducerId as a client sends it: again, if the first one had to abort."""
        self.step(name)
        entry = self.entries.get(transactional_id)
        if entry is not None and entry.state == ONGOING:
            self._abort(entry)
            self.step(f"{name} again")
        return self.init(transactional_id)

    def _abort(self, entry: Entry) -> None:
        """The coordinator's own, under an epoch of its own."""
        entry.epoch += 1
        entry.rows = []
        entry.state = "PrepareAbort"

    def produce(self, identity: TransactionIdentity, rows: Iterable[Any]) -> None:
        entry = self.entries.get(identity.transactional_id)
        if entry is None or entry.producer_id != identity.producer_id:
            raise InvalidPidMappingError
        if entry.epoch != identity.producer_epoch:
            raise ProducerFencedError("an old epoch")
        entry.complete()
        if entry.state != ONGOING:
            entry.state, entry.started_ms = ONGOING, self.now_ms
        entry.rows.extend(rows)

    def end_in_coordinator(self, identity: TransactionIdentity, commit: bool) -> bool:
        """EndTxn; False for INVALID_TXN_STATE, PRODUCER_FENCED and INVALID_PRODUCER_ID_MAPPING."""
        entry = self.entries.get(identity.transactional_id)
        if entry is None or entry.producer_id != identity.producer_id:
            return False
        bump = 1 if self.version >= 2 else 0
        if entry.state == ONGOING and entry.epoch == identity.producer_epoch:
            if commit:
                self.visible.extend(entry.rows)
                self.committed.add((identity.transactional_id, entry.producer_id, entry.epoch))
            entry.rows = []
            entry.state = "PrepareCommit" if commit else "PrepareAbort"
            entry.epoch += bump
            return True
        # A repeated request is known, by the epoch before if each end gives another one.
        if entry.epoch - bump != identity.producer_epoch:
            return False
        if entry.state != ("PrepareAbort" if commit else "PrepareCommit"):
            entry.complete()
        return entry.state == (COMMITTED if commit else ABORTED)

    def time_out(self) -> None:
        """All that is open runs out of time."""
        self.now_ms += TIMEOUT_MS
        for entry in self.entries.values():
            if entry.state == ONGOING:
                self._abort(entry)

    def expire(self) -> None:
        """``transactional.id.expiration.ms`` is over."""
        for entry in self.entries.values():
            entry.complete()
        self.entries = {one: entry for one, entry in self.entries.items() if entry.state == ONGOING}

    # What ``forebay.spark.exactly_once.control_topic.ControlTopic`` wants

    def claim(self) -> TransactionIdentity:
        return self.init_in_steps("claim", protocol.driver_id(self.prefix))

    def read(self) -> State:
        self.step("read")
        return self.last_state()

    def last_state(self) -> State:
        return protocol.decode(self.records[-1]) if self.records else State()

    def write(self, driver: TransactionIdentity, state: State) -> TransactionIdentity:
        self.step("write")
        self.produce(driver, ())
        self.step("write: end")
        if not self.end_in_coordinator(driver, True):
            raise ProducerFencedError("an old driver")
        self.records.append(protocol.encode(state))
        return driver._replace(producer_epoch=self.entries[driver.transactional_id].epoch)

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        self.step("end")
        return self.end_in_coordinator(identity, commit)

    def describe(self, ids: Iterable[str], *, settled: bool = False) -> Mapping[str, TransactionDescription | None]:
        self.step("describe")
        if settled:
            for entry in self.entries.values():
                entry.complete()
        return {one: self.described(one) for one in ids}

    def described(self, transactional_id: str) -> TransactionDescription | None:
        entry = self.entries.get(transactional_id)
        if entry is None:
            return None
        started = int(entry.started_ms) if entry.state == ONGOING else -1
        return TransactionDescription(entry.state, entry.producer_id, entry.epoch, TIMEOUT_MS, started, PLACES, 0)

    def ongoing(self, prefix: str) -> list[str]:
        self.step("list")
        return [one for one, entry in self.entries.items() if entry.state == ONGOING and one.startswith(prefix)]

    def fence(self, transactional_id: str) -> None:
        self.init_in_steps("fence", transactional_id)

    # Tasks

    def task(
        self, claim: protocol.Claim, write: protocol.Write, partition: int, rows: list[Any], *, worker: str = "w"
    ) -> Any:
        """One task attempt from its beginning to its report, in a worker of that name."""
        if protocol.role(claim, write, partition) is protocol.Role.SKIP:
            return protocol.TaskOutcome(claim, write, partition, True)
        if not rows:
            return protocol.TaskOutcome(claim, write, partition)
        transactional_id = self.worker(worker).next_id(self.prefix, claim)
        identity = self.init_in_steps(f"task {partition}: init", transactional_id)
        for row in rows:
            self.step(f"task {partition}: produce")
            self.produce(identity, [row])
        digest = sum(hash(row) for row in rows) & (2**64 - 1)
        task = protocol.TaskWrite(partition, identity, len(rows), digest)
        return protocol.TaskOutcome(claim, write, partition, False, task)

    def worker(self, name: str) -> Worker:
        """A Python worker process."""
        return self.workers.setdefault(name, Worker(random.Random(name).random))

    def doubled(self) -> list[Any]:
        """Rows that are there more than once."""
        return [row for row, times in Counter(self.visible).items() if times > 1]
