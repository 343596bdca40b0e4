"""The protocol of an exactly-once write: its values, and every decision in it, without I/O.

A *write* is one ``df.write`` or one micro-batch; repeated after a crash it is the same write.  Three steps make it:

1. Before the tasks the driver takes its transactional.id, which fences an older driver, reads the last ``State`` from
   the control topic, ends what that one decided (``settle``), and gives the tasks a ``Claim``.
2. Each task attempt looks whether it has to write (``role``), writes in a transaction of its own, and leaves it open.
3. The driver compares what the tasks report with the state (``judge``), writes the decision into the control topic in
   a transaction under the claim's identity, and commits the tasks' transactions.

The record of the decision is the commit point.  Without it no transaction of a task is ever committed; with it every
driver goes on to commit the same ones.  A decided transaction that timed out before it was committed is *lost*.  Its
task writes its rows once more, and a new decision takes them if they are the same rows by number and fingerprint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from forebay.errors import IllegalStateError, KafkaError
from forebay.model import TransactionDescription, TransactionIdentity

FORMAT = 1
SLOTS = 8
"""Sets of tasks' transactional.ids that take turns, so that a late task of an old driver does not meet a new one's."""
MOST_APPS = 100
"""Applications under one prefix whose newest version is remembered; those written last stay."""
LEAST_LIFE_MS = 30_000
"""A transaction needs this much time before it times out, or half of its timeout if that is less, to be decided on."""
ONGOING = "Ongoing"
BUSY = frozenset(("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"))
"""States of the driver's transactional.id in which its last decision may be on its way."""


class NonDeterministicReplayError(KafkaError):
    """A repeated write has other rows than the first time, which was decided but not wholly committed."""


class UnfinishedWriteError(KafkaError):
    """A decided write whose transactions are not all committed; the same write, repeated, finishes it."""


class LateTransactionError(KafkaError):
    """A task's transaction has timed out, is about to, or was taken over: the write is aborted and can be repeated."""


class Write(NamedTuple):
    """What makes a repeated write the same: an application (a query's id, ``txnAppId``) and a number that grows."""

    app: str
    version: int

    def __str__(self) -> str:
        return f"{self.app}/{self.version}"


NO_VERSION = -1
"""Of a write without an id: no later one is a repetition of it."""


class Fate(Enum):
    """What became of a decided transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    LOST = "lost"


class TaskWrite(NamedTuple):
    """What the transaction of one task holds."""

    partition: int
    """Spark's number of the task."""
    identity: TransactionIdentity
    rows: int
    fingerprint: int
    """Sum of the rows' hashes, see ``forebay._columnar.fingerprint``."""
    fate: Fate = Fate.OPEN


class Decision(NamedTuple):
    """A write, and the transactions that make it up; tasks without rows have none."""

    write: Write
    tasks: tuple[TaskWrite, ...]

    def with_fate(self, fate: Fate) -> tuple[TaskWrite, ...]:
        """Its tasks of that fate."""
        return tuple(task for task in self.tasks if task.fate is fate)

    @property
    def done(self) -> bool:
        """Whether every row of it can be read."""
        return len(self.with_fate(Fate.COMMITTED)) == len(self.tasks)


class State(NamedTuple):
    """The last record of the control topic."""

    decision: Decision | None = None
    versions: tuple[tuple[str, int], ...] = ()
    """The newest decided version of each application, the one written last at the end."""

    def version_of(self, app: str) -> int:
        """The newest decided version, or ``NO_VERSION``."""
        return dict(self.versions).get(app, NO_VERSION)


class Claim(NamedTuple):
    """What a driver found when it took over; it goes to each task, and in its report to the commit."""

    driver: TransactionIdentity
    """The decision can be written under it, as long as no newer driver has taken over."""
    versions: tuple[tuple[str, int], ...] = ()
    unfinished: Write | None = None
    lost: tuple[int, ...] = ()
    """Spark's numbers of the tasks of ``unfinished`` that have to write their rows once more."""

    @property
    def slot(self) -> int:
        """Which set of transactional.ids its tasks use."""
        return self.driver.producer_epoch % SLOTS


@dataclass(frozen=True)
class Outcome:
    """What one task did."""

    claim: Claim
    write: Write
    partition: int
    attempt: int
    skipped: bool = False
    task: TaskWrite | None = None
    """None: no rows, or skipped."""


class Role(Enum):
    """What a task has to do."""

    WRITE = "write"
    SKIP = "skip"


def task_id(prefix: str, claim: Claim, partition: int, attempt: int) -> str:
    """The transactional.id of a task attempt."""
    return f"{prefix}-{claim.slot}-{partition}-{attempt}"


def driver_id(prefix: str) -> str:
    """The transactional.id of the driver."""
    return f"{prefix}-driver"


def ids_of(prefix: str, ids: Iterable[str], slot: int | None = None) -> list[str]:
    """Those of ``ids`` that tasks under this prefix use; a longer prefix that begins the same is another one."""
    number = r"\d+" if slot is None else str(slot)
    wanted = re.compile(rf"{re.escape(prefix)}-{number}-\d+-\d+")
    return [one for one in ids if wanted.fullmatch(one)]


def role(claim: Claim, write: Write, partition: int) -> Role:
    """What task ``partition`` of ``write`` has to do.

    Raises:
        UnfinishedWriteError: another write is decided and has lost rows, which only its own repetition brings back.
    """
    if claim.unfinished is not None:
        if claim.unfinished != write:
            raise unfinished(claim.unfinished, claim.lost)
        return Role.WRITE if partition in claim.lost else Role.SKIP
    if write.version != NO_VERSION and write.version <= dict(claim.versions).get(write.app, NO_VERSION):
        return Role.SKIP
    return Role.WRITE


def unfinished(write: Write, lost: Sequence[int]) -> UnfinishedWriteError:
    """The error that says how to go on after a write whose rows are partly lost."""
    tasks = ", ".join(str(partition) for partition in lost)
    return UnfinishedWriteError(
        f"Write {write} was decided, but the transactions of its tasks {tasks} timed out before they were committed. "
        "Repeat this write with the same rows: it adds what is missing. To leave those rows out for good, set the "
        f"option abandonUnfinished={write}"
    )


def settle(decision: Decision, fates: Mapping[int, Fate]) -> Decision:
    """The decision with what became of its open transactions, by Spark's number of the task."""
    return decision._replace(
        tasks=tuple(
            task._replace(fate=fates.get(task.partition, task.fate)) if task.fate is Fate.OPEN else task
            for task in decision.tasks
        )
    )


def abandon(decision: Decision, wanted: str | None) -> Decision:
    """The decision without its lost transactions, if it is the write that the user names; else as it is."""
    if wanted is None or wanted != str(decision.write):
        return decision
    return decision._replace(tasks=tuple(task for task in decision.tasks if task.fate is not Fate.LOST))


def claim_of(driver: TransactionIdentity, state: State) -> Claim:
    """What the tasks need to know of a state in which nothing is open any more."""
    decision = state.decision
    if decision is None or decision.done:
        return Claim(driver, state.versions)
    lost = tuple(task.partition for task in decision.with_fate(Fate.LOST))
    return Claim(driver, state.versions, decision.write, lost)


def agreed(outcomes: Sequence[Outcome]) -> Outcome:
    """The first of the outcomes, whose write and claim are those of all.

    Raises:
        IllegalStateError: there is none, or tasks of different writes are mixed.
    """
    if not outcomes:
        raise IllegalStateError("A write without tasks cannot be committed")
    first = outcomes[0]
    for outcome in outcomes:
        if (outcome.write, outcome.claim) != (first.write, first.claim):
            raise IllegalStateError(f"Tasks of two writes are mixed: {first.write} and {outcome.write}")
    return first


def judge(state: State, outcomes: Sequence[Outcome]) -> State | None:
    """The state that makes the tasks' open transactions count; None if every task skipped a write that is done.

    Args:
        state: as the claim of the tasks was made of it.

    Raises:
        NonDeterministicReplayError: a lost task has other rows now.
        IllegalStateError: tasks that do not belong together.
    """
    first = agreed(outcomes)
    claim, write = first.claim, first.write
    for outcome in outcomes:
        if (role(claim, write, outcome.partition) is Role.SKIP) is not outcome.skipped:
            raise IllegalStateError(f"Task {outcome.partition} of write {write} did not do what it was told")
    written = tuple(outcome.task for outcome in outcomes if outcome.task is not None)
    if claim.unfinished is not None:
        if state.decision is None or state.decision.write != write:
            raise IllegalStateError(f"The control topic does not have write {write} any more")
        return state._replace(decision=_redone(state.decision, written))
    if all(outcome.skipped for outcome in outcomes):
        return None
    return State(Decision(write, written), _newest(state.versions, write))


def _redone(decision: Decision, again: Sequence[TaskWrite]) -> Decision:
    found = {task.partition: task for task in again}
    tasks = []
    for task in decision.tasks:
        if task.fate is not Fate.LOST:
            tasks.append(task)
            continue
        new = found.get(task.partition)
        if new is None or (new.rows, new.fingerprint) != (task.rows, task.fingerprint):
            raise _other_rows(decision.write, task, 0 if new is None else new.rows)
        tasks.append(new)
    return decision._replace(tasks=tuple(tasks))


def _other_rows(write: Write, task: TaskWrite, rows: int) -> NonDeterministicReplayError:
    return NonDeterministicReplayError(
        f"Write {write}, task {task.partition}: the {task.rows} rows that were decided on and lost are not those that "
        f"the repetition has ({rows}). Other tasks of this write can be read already, so neither these rows nor the "
        "old ones can be added without loss or doubles. Make the query deterministic (no rand(), same splits, same "
        f"number of shuffle partitions), or leave the lost rows out for good with the option abandonUnfinished={write}"
    )


def _newest(versions: tuple[tuple[str, int], ...], write: Write) -> tuple[tuple[str, int], ...]:
    if write.version == NO_VERSION:
        return versions
    others = [pair for pair in versions if pair[0] != write.app]
    return (*others[-(MOST_APPS - 1) :], (write.app, write.version))


def check_alive(tasks: Iterable[TaskWrite], found: Mapping[str, TransactionDescription | None], now_ms: float) -> None:
    """Whether every transaction is still there, and will be for long enough to be committed.

    Args:
        found: what the coordinators say of each transactional.id.
        now_ms: Unix time; the broker's clock may differ, which the margin covers.

    Raises:
        LateTransactionError: one is not.
    """
    for task in tasks:
        identity = task.identity
        where = f"Task {task.partition}: its transaction {identity.transactional_id}"
        one = found.get(identity.transactional_id)
        if one is None or one.state != ONGOING or _who(one) != (identity.producer_id, identity.producer_epoch):
            state = "nothing" if one is None else f"{one.state}, producer {one.producer_id}, epoch {one.producer_epoch}"
            raise LateTransactionError(
                f"{where} is not open any more ({state}). It timed out, or another run with the same "
                "transactionalIdPrefix took over. A write must end within kafka.transaction.timeout.ms"
            )
        left = one.start_time_ms + one.timeout_ms - now_ms
        if left < min(LEAST_LIFE_MS, one.timeout_ms / 2):
            raise LateTransactionError(
                f"{where} times out in {max(left, 0):.0f} ms, too soon to be committed safely. Make writes smaller, or "
                "kafka.transaction.timeout.ms longer (the broker allows at most transaction.max.timeout.ms)"
            )


def _who(one: TransactionDescription) -> tuple[int, int]:
    return one.producer_id, one.producer_epoch


def undecided(state: State, tasks: Iterable[TaskWrite]) -> list[TransactionIdentity]:
    """Transactions that no decision has: an aborted write may abort these."""
    decided = {task.identity for task in state.decision.tasks} if state.decision else set()
    return [task.identity for task in tasks if task.identity not in decided]


def encode(state: State) -> bytes:
    """The state as a record's value: JSON."""
    decision = state.decision
    return json.dumps(
        {
            "format": FORMAT,
            "versions": dict(state.versions),
            "write": None if decision is None else list(decision.write),
            "done": decision is None or decision.done,
            "tasks": [
                [task.partition, *task.identity, task.rows, task.fingerprint, task.fate.value]
                for task in (decision.tasks if decision else ())
            ],
        }
    ).encode()


def decode(value: bytes | None) -> State:
    """The state of a record.

    Raises:
        IllegalStateError: it is not one, or of a newer version of this package.
    """
    try:
        read: dict[str, Any] = json.loads(value or b"")
        if read["format"] != FORMAT:
            raise IllegalStateError(
                f"The control topic has a record of format {read['format']!r}; this version knows {FORMAT}"
            )
        tasks = tuple(
            TaskWrite(partition, TransactionIdentity(*identity), rows, fingerprint, Fate(fate))
            for partition, *identity, rows, fingerprint, fate in read["tasks"]
        )
        write = read["write"]
        return State(None if write is None else Decision(Write(*write), tasks), tuple(read["versions"].items()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IllegalStateError(f"The control topic has a record that is none of this sink: {error!r}") from None
