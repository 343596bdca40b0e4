"""Transactions as Kafka keeps them (``transaction.version`` 2), in memory, and a control topic on top of them.

``before_step`` is called before everything that others can see; a test may raise there, which is a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forebay.errors import ProducerFencedError
from forebay.model import TransactionDescription, TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import State

TIMEOUT_MS = 900_000
EMPTY, ONGOING, COMMITTED, ABORTED = "Empty", "Ongoing", "CompleteCommit", "CompleteAbort"


@dataclass
class Entry:
    """What the coordinator keeps of one transactional.id."""

    producer_id: int
    epoch: int = -1
    state: str = EMPTY
    started_ms: float = -1
    rows: list[Any] = field(default_factory=list)


class World:
    """Coordinator, log and control topic of one prefix."""

    def __init__(self, prefix: str = "p") -> None:
        self.prefix = prefix
        self.entries: dict[str, Entry] = {}
        self.visible: list[Any] = []
        """The rows that a reader of committed records sees."""
        self.records: list[bytes] = []
        self.now_ms: float = 1_000_000
        self.steps: list[str] = []
        self.before_step: Callable[[str], None] = lambda name: None

    def step(self, name: str) -> None:
        self.before_step(name)
        self.steps.append(name)

    # The coordinator

    def init(self, transactional_id: str) -> TransactionIdentity:
        entry = self.entries.setdefault(transactional_id, Entry(len(self.entries) + 100))
        if entry.state == ONGOING:
            self._end(entry, False)
        entry.epoch += 1
        entry.state = EMPTY
        return TransactionIdentity(transactional_id, entry.producer_id, entry.epoch, 2)

    def produce(self, identity: TransactionIdentity, rows: Iterable[Any]) -> None:
        entry = self.entries[identity.transactional_id]
        if entry.epoch != identity.producer_epoch:
            raise ProducerFencedError("an old epoch")
        if entry.state != ONGOING:
            entry.state, entry.started_ms = ONGOING, self.now_ms
        entry.rows.extend(rows)

    def _end(self, entry: Entry, commit: bool) -> None:
        if commit:
            self.visible.extend(entry.rows)
        entry.rows = []
        entry.state = COMMITTED if commit else ABORTED
        entry.epoch += 1

    def end_in_coordinator(self, identity: TransactionIdentity, commit: bool) -> bool:
        entry = self.entries.get(identity.transactional_id)
        if entry is None:
            return False
        if entry.epoch == identity.producer_epoch and entry.state == ONGOING:
            self._end(entry, commit)
            return True
        # A repeated request is known by the epoch before.
        again = entry.epoch - 1 == identity.producer_epoch
        return again and entry.state == (COMMITTED if commit else ABORTED)

    def time_out(self) -> None:
        """All that is open runs out of time."""
        self.now_ms += TIMEOUT_MS
        for entry in self.entries.values():
            if entry.state == ONGOING:
                self._end(entry, False)

    # What ``forebay.spark.exactly_once.control_topic.ControlTopic`` wants

    def claim(self) -> TransactionIdentity:
        self.step("claim")
        return self.init(protocol.driver_id(self.prefix))

    def read(self) -> State:
        self.step("read")
        return protocol.decode(self.records[-1]) if self.records else State()

    def write(self, driver: TransactionIdentity, state: State) -> TransactionIdentity:
        self.step("write")
        entry = self.entries[driver.transactional_id]
        if entry.epoch != driver.producer_epoch:
            raise ProducerFencedError("an old driver")
        entry.state = ONGOING
        self.step("write: end")
        self._end(entry, True)
        self.records.append(protocol.encode(state))
        return driver._replace(producer_epoch=entry.epoch)

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        self.step("end")
        return self.end_in_coordinator(identity, commit)

    def describe(self, ids: Iterable[str]) -> Mapping[str, TransactionDescription | None]:
        self.step("describe")
        return {one: self._described(one) for one in ids}

    def _described(self, transactional_id: str) -> TransactionDescription | None:
        entry = self.entries.get(transactional_id)
        if entry is None:
            return None
        started = int(entry.started_ms) if entry.state == ONGOING else -1
        return TransactionDescription(entry.state, entry.producer_id, entry.epoch, TIMEOUT_MS, started, (), 0)

    def ongoing(self, prefix: str) -> list[str]:
        self.step("list")
        return [one for one, entry in self.entries.items() if entry.state == ONGOING and one.startswith(prefix)]

    def fence(self, transactional_id: str) -> None:
        self.step("fence")
        self.init(transactional_id)

    # Tasks

    def task(self, claim: protocol.Claim, write: protocol.Write, partition: int, attempt: int, rows: list[Any]) -> Any:
        """One task attempt from its beginning to its report."""
        if protocol.role(claim, write, partition) is protocol.Role.SKIP:
            return protocol.Outcome(claim, write, partition, attempt, True)
        if not rows:
            return protocol.Outcome(claim, write, partition, attempt)
        self.step(f"task {partition}: init")
        identity = self.init(protocol.task_id(self.prefix, claim, partition, attempt))
        self.step(f"task {partition}: produce")
        self.produce(identity, rows)
        digest = sum(hash(row) for row in rows) & (2**64 - 1)
        task = protocol.TaskWrite(partition, identity, len(rows), digest)
        return protocol.Outcome(claim, write, partition, attempt, False, task)
