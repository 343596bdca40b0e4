"""A task's side: one transaction of its own, begun with its first row and left open for the driver."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from forebay.errors import (
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
)
from forebay.spark.exactly_once.protocol import (
    FENCED_BY_ENDS,
    NO_VERSION,
    Claim,
    LateTransactionError,
    Role,
    TaskOutcome,
    TaskWrite,
    Write,
    is_late,
    late,
    role,
    taken_over,
    task_id,
)
from forebay.spark.exactly_once.settings import TIMEOUT_MS, Settings
from forebay.spark.producers import RowProducer

ABORT_TIMEOUT_S = 5.0
MASK = (1 << 64) - 1
_ENDED = (ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError, InvalidPidMappingError)


def batch_write(settings: Settings, claim: Claim) -> Write:
    """Which write a ``df.write`` is; without an id of the user's one that is never repeated."""
    if settings.app is None or settings.version is None:
        return Write(f"without txnAppId, {claim.driver.producer_id}, {claim.driver.producer_epoch}", NO_VERSION)
    return Write(settings.app, settings.version)


def stream_write(query: str | None, batch: str | None) -> Write:
    """Which write a micro-batch is, by what Spark tells a task.

    Raises:
        IllegalStateError: Spark does not tell.
    """
    if not query or batch is None:
        raise IllegalStateError(
            "Spark does not tell this task its query and micro-batch, so that a repeated one could not be told from a "
            "new one: use deliveryGuarantee=at-least-once, or forebay.spark.write_batches with foreachBatch"
        )
    return Write(query, int(batch))


class _Used(NamedTuple):
    """What a worker has used under a prefix."""

    name: str
    claim: tuple[int, int]
    """Producer id and epoch of the driver."""
    number: int


class Worker:
    """The transactional.ids of one Python worker process: its random name, and a number from 0 under each claim.

    A process runs one task at a time, so no two attempts of any stage, run or driver share an id, whatever Spark
    numbers twice.  The number 0 comes back with a later claim: then all that was decided before is settled, and what
    was not is never committed.  The road not taken: an id for each attempt, for a coordinator keeps each for days.
    Below ``transaction.version`` 2 each claim has a name of its own: there an older driver fences by name what it has
    found open, and must not meet a task of a newer claim.

    Args:
        draw: a random number from 0 on, below 1.
    """

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._used: dict[str, _Used] = {}

    def next_id(self, prefix: str, claim: Claim) -> str:
        """For the next transaction.

        Raises:
            TakenOverError: this process has seen a later claim.
        """
        claimed, used = claim.driver[1:3], self._used.get(prefix)
        # Epochs of two producer ids do not say which claim is later: another name makes that no matter.
        known = used if used is not None and used.claim[0] == claimed[0] else None
        if known is not None and known.claim > claimed:
            raise taken_over(prefix)
        if known is None or (known.claim != claimed and claim.driver.transaction_version < FENCED_BY_ENDS):
            known = _Used("".join(f"{int(self._draw() * 2**32):08x}" for _ in range(2)), claimed, -1)
        number = known.number + 1 if known.claim == claimed else 0
        self._used[prefix] = _Used(known.name, claimed, number)
        return task_id(prefix, known.name, number)


_workers: dict[int, Worker] = {}
"""Of this process, by its id: a forked child has a name of its own."""


def this_worker() -> Worker:
    """The worker that this process is."""
    worker = _workers.get(os.getpid())
    if worker is None:
        from forebay._assembly import system_surroundings

        worker = _workers[os.getpid()] = Worker(system_surroundings().random)
    return worker


class TaskTransaction:
    """The transaction of one task attempt.

    Args:
        claim: of the driver.
        write: which write this is a task of.
        prefix: of the transactional.id.
        worker: which runs the task.
        timeout_ms: ``transaction.timeout.ms``.

    Raises:
        UnfinishedWriteError: another write has to be finished first.
    """

    def __init__(
        self,
        claim: Claim,
        write: Write,
        prefix: str,
        partition: int,
        worker: Worker | None = None,
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self.role: Role = role(claim, write, partition)
        """Whether this task has to write at all."""
        self._claim = claim
        self._write = write
        self._partition = partition
        self._prefix = prefix
        self._worker = worker
        self._timeout_ms = timeout_ms
        self._begun: float | None = None
        self._rows = 0
        self._fingerprint = 0

    def begin(self, producer: RowProducer, now: float) -> None:
        """To be called before rows are appended; the first call begins the transaction.

        Args:
            now: monotonic ms.

        Raises:
            LateTransactionError: begun so long ago that the driver could not decide on it any more.
        """
        if self._begun is None:
            producer.begin((self._worker or this_worker()).next_id(self._prefix, self._claim))
            self._begun = now
        elif is_late(self._age(now), self._timeout_ms):
            raise self._late(now)

    def _age(self, now: float) -> float:
        return 0.0 if self._begun is None else now - self._begun

    def _late(self, now: float) -> LateTransactionError:
        return late(f"Task {self._partition}: its transaction", self._age(now), self._timeout_ms)

    def reason(self, error: BaseException, now: float) -> KafkaError | None:
        """What a failure means, if it is that somebody has ended the transaction: its timeout or another driver."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, _ENDED):
            cause = cause.__cause__
        if cause is None:
            return None
        return self._late(now) if is_late(self._age(now), self._timeout_ms) else taken_over(self._prefix)

    def add(self, columns: Any) -> None:
        """Counts rows that were appended."""
        from forebay.producer._columns import fingerprint

        self._rows += len(columns)
        self._fingerprint = (self._fingerprint + fingerprint(columns)) & MASK

    def skip(self) -> TaskOutcome:
        """What is told of a task that had nothing to write."""
        return TaskOutcome(self._claim, self._write, self._partition, True)

    def leave_open(self, producer: RowProducer) -> TaskOutcome:
        """After every row is acknowledged: what the driver needs to know to commit them."""
        task = None
        if self._begun is not None:
            task = TaskWrite(self._partition, producer.detach(), self._rows, self._fingerprint)
        return TaskOutcome(self._claim, self._write, self._partition, False, task)

    def give_up(self, producer: RowProducer) -> None:
        """After a failure: aborts, so that readers need not wait for the transaction to time out."""
        if self._begun is None:
            return
        try:
            producer.abort(ABORT_TIMEOUT_S)
        except KafkaError:
            # The next run aborts it, or the coordinator does when it times out.
            pass
