"""The protocol of an exactly-once write: its values, and every decision in it, without I/O.

A *write* is one ``df.write`` or one micro-batch; repeated after a crash it is the same write.  Three steps make it:

1. Before the tasks the driver takes its transactional.id, which fences an older driver, reads the last ``State`` from
   the control topic, ends what that one decided, writes down what became of it, and gives the tasks a ``Claim``.
2. Each task attempt looks whether it has to write (``role``), writes in a transaction of its own, and leaves it open.
3. The driver compares what the tasks report with the state (``judge``), writes the decision into the control topic in
   a transaction under the claim's identity, commits the tasks' transactions, and writes that down, too.

The record of the decision is the commit point.  Only what the newest decision names, by id, producer id and epoch, is
ever committed, so safety rests on nothing else: to abort what is left open serves readers.  A commit that is refused
is no loss yet.  It is *lost* if the coordinator says that this very transaction was aborted (``is_aborted``).  Its task
then writes its rows once more, and a new decision takes them if they are the same rows by number and fingerprint.
Anything else is unknown, and the user has to look.
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

FORMAT = 2
"""Of a record.  Format 1 is read too; its writers took each refused commit for a loss, so they must not read this."""
MOST_APPS = 100
"""Applications under one prefix whose newest version is remembered; those written last stay."""
LEAST_LIFE_MS = 30_000
"""A transaction needs this much time before it times out, or half of its timeout if that is less, to be decided on."""
ONGOING, ABORTED = "Ongoing", "CompleteAbort"
FENCED_BY_ENDS = 2
"""From this ``transaction.version`` on an end gives the next epoch, so who has been aborted cannot go on writing."""


class NonDeterministicReplayError(KafkaError):
    """A repeated write has other rows than the first time, which was decided but not wholly committed."""


class UnfinishedWriteError(KafkaError):
    """A decided write whose transactions are not all committed; the same write, repeated, finishes it."""


class UnknownOutcomeError(KafkaError):
    """Whether a decided transaction was committed cannot be told any more: the user has to look at its rows."""


class TakenOverError(KafkaError):
    """Another driver with the same transactionalIdPrefix has begun a write since this one did."""


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
    """Sum of the rows' hashes, see ``forebay.producer._columns.fingerprint``."""
    fate: Fate = Fate.OPEN
    places: str = ""
    """Kafka's partitions that its rows are in, for people."""


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


@dataclass(frozen=True)
class TaskOutcome:
    """What one task did."""

    claim: Claim
    write: Write
    partition: int
    skipped: bool = False
    task: TaskWrite | None = None
    """None: no rows, or skipped."""


class Role(Enum):
    """What a task has to do."""

    WRITE = "write"
    SKIP = "skip"


def task_id(prefix: str, worker: str, number: int) -> str:
    """The transactional.id of a task attempt: of the worker process that runs it, by its 16 hexadecimal digits."""
    return f"{prefix}-{worker}-{number}"


def driver_id(prefix: str) -> str:
    """The transactional.id of the driver."""
    return f"{prefix}-driver"


def ids_of(prefix: str, ids: Iterable[str]) -> list[str]:
    """Those of ``ids`` that tasks under this prefix use; a longer prefix that begins the same is another one."""
    # Three numbers: as tasks' ids were in format 1.
    wanted = re.compile(rf"{re.escape(prefix)}-(?:[0-9a-f]{{16}}-\d+|\d+-\d+-\d+)")
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


def taken_over(prefix: str) -> TakenOverError:
    """The error of a driver or a task that is too old."""
    return TakenOverError(
        f"Another query or job with transactionalIdPrefix={prefix} has begun a write since this one did. A prefix "
        "belongs to one query or job at a time; this one ends, the other goes on"
    )


def forgotten(prefix: str) -> LateTransactionError:
    """The error of a driver whose transactional.id the coordinator has dropped."""
    return LateTransactionError(
        f"Kafka has forgotten {driver_id(prefix)} since this write began (the brokers' transactional.id.expiration.ms)"
        ". What was decided before stays decided; repeat the write"
    )


def is_claimed(driver: TransactionIdentity, found: TransactionDescription | None) -> bool:
    """Whether the driver's transactional.id is still exactly as this driver has it."""
    return found is not None and _who(found) == driver[1:3]


def is_aborted(identity: TransactionIdentity, found: TransactionDescription | None) -> bool:
    """Whether a transaction whose commit was refused is known to be aborted, and not only gone.

    An abort gives another epoch or does not, by who asked and by the transaction's version.  The next transaction
    under the id cannot be taken for this one: nobody begins it before the control topic has this one's fate.
    """
    epochs = (identity.producer_epoch, identity.producer_epoch + 1)
    return (
        found is not None and found.state == ABORTED and _who(found) in {(identity.producer_id, one) for one in epochs}
    )


def settle(decision: Decision, fates: Mapping[int, Fate]) -> Decision:
    """The decision with what became of its open transactions, by Spark's number of the task."""
    return decision._replace(
        tasks=tuple(
            task if task.fate is not Fate.OPEN else task._replace(fate=fates.get(task.partition, Fate.OPEN))
            for task in decision.tasks
        )
    )


def answer(decision: Decision, *, abandon: str | None, rewrite: str | None) -> Decision:
    """The decision as the user wants it, if it is the write that is named.

    Args:
        decision: whose open transactions can be neither committed nor called lost.
        abandon: the write whose rows stay as they are.
        rewrite: the write whose unknown rows are written once more.
    """
    name = str(decision.write)
    if abandon == name:
        return decision._replace(tasks=decision.with_fate(Fate.COMMITTED))
    if rewrite == name:
        return settle(decision, {task.partition: Fate.LOST for task in decision.tasks})
    return decision


def unknown(decision: Decision, found: Mapping[str, TransactionDescription | None]) -> UnknownOutcomeError:
    """The error for open transactions whose commit was refused.

    Args:
        found: what the coordinators say of them.
    """
    each = "; ".join(
        f"task {task.partition}, {task.rows} rows in {task.places or 'unknown partitions'}, "
        f"{task.identity.transactional_id} with producer {task.identity.producer_id}, epoch "
        f"{task.identity.producer_epoch}, of which Kafka now has {_shown(found.get(task.identity.transactional_id))}"
        for task in decision.with_fate(Fate.OPEN)
    )
    write = decision.write
    return UnknownOutcomeError(
        f"Write {write} was decided, and Kafka cannot tell any more whether these transactions of it were committed: "
        f"{each}. Look with a read_committed consumer whether their rows are in these partitions, and set an option: "
        f"abandonUnfinished={write} leaves the rows as they are, rewriteUnfinished={write} writes them once more when "
        "the write is repeated. Until then nothing is written under this prefix"
    )


def claim_of(driver: TransactionIdentity, state: State) -> Claim:
    """What the tasks need to know of a state in which nothing is open any more."""
    decision = state.decision
    if decision is None or decision.done:
        return Claim(driver, state.versions)
    lost = tuple(task.partition for task in decision.with_fate(Fate.LOST))
    return Claim(driver, state.versions, decision.write, lost)


def agreed(outcomes: Sequence[TaskOutcome]) -> TaskOutcome:
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


def judge(state: State, outcomes: Sequence[TaskOutcome]) -> State | None:
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


def alive(decision: Decision, found: Mapping[str, TransactionDescription | None], now_ms: float) -> Decision:
    """The decision with the places of its rows, if each open transaction is there for long enough to be committed.

    Args:
        found: what the coordinators say of each transactional.id.
        now_ms: Unix time; the broker's clock may differ, which the margin covers.

    Raises:
        LateTransactionError: one is not.
    """
    placed = []
    for task in decision.tasks:
        if task.fate is Fate.OPEN:
            task = task._replace(places=_alive(task, found.get(task.identity.transactional_id), now_ms))
        placed.append(task)
    return decision._replace(tasks=tuple(placed))


def _alive(task: TaskWrite, one: TransactionDescription | None, now_ms: float) -> str:
    where = f"Task {task.partition}: its transaction {task.identity.transactional_id}"
    if one is None or one.state != ONGOING or _who(one) != task.identity[1:3]:
        raise LateTransactionError(
            f"{where} is not open any more ({_shown(one)}). A write must end within kafka.transaction.timeout.ms"
        )
    if is_late(now_ms - one.start_time_ms, one.timeout_ms):
        raise late(where, now_ms - one.start_time_ms, one.timeout_ms)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(one.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return "; ".join(f"{topic} {', '.join(map(str, numbers))}" for topic, numbers in by_topic.items())


def is_late(age_ms: float, timeout_ms: float) -> bool:
    """Whether a transaction of that age times out too soon to be decided on."""
    return timeout_ms - age_ms < min(LEAST_LIFE_MS, timeout_ms / 2)


def late(where: str, age_ms: float, timeout_ms: float) -> LateTransactionError:
    """The error that says so."""
    return LateTransactionError(
        f"{where} was begun {age_ms / 1000:.1f} s ago and cannot be committed safely in time: "
        f"kafka.transaction.timeout.ms is {timeout_ms / 1000:g} s, of which the last "
        f"{min(LEAST_LIFE_MS, timeout_ms / 2) / 1000:g} s are for the commit. Make writes smaller, or that option "
        "longer (the broker allows at most transaction.max.timeout.ms)"
    )


def _who(one: TransactionDescription) -> tuple[int, int]:
    return one.producer_id, one.producer_epoch


def _shown(one: TransactionDescription | None) -> str:
    return "nothing" if one is None else f"{one.state}, producer {one.producer_id}, epoch {one.producer_epoch}"


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
                [task.partition, *task.identity, task.rows, task.fingerprint, task.fate.value, task.places]
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
        if read["format"] not in (1, FORMAT):
            raise IllegalStateError(
                f"The control topic has a record of format {read['format']!r}; this version knows 1 to {FORMAT}"
            )
        tasks = tuple(
            TaskWrite(one[0], TransactionIdentity(*one[1:5]), one[5], one[6], Fate(one[7]), *one[8:])
            for one in read["tasks"]
        )
        write = read["write"]
        return State(None if write is None else Decision(Write(*write), tasks), tuple(read["versions"].items()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IllegalStateError(f"The control topic has a record that is none of this sink: {error!r}") from None
