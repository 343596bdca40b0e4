"""A task's side: one transaction of its own, begun with its first row and left open for the driver."""

from __future__ import annotations

from typing import Any

from forebay.errors import IllegalStateError, KafkaError
from forebay.spark.exactly_once.protocol import NO_VERSION, Claim, Outcome, Role, TaskWrite, Write, role, task_id
from forebay.spark.exactly_once.settings import Settings
from forebay.spark.producers import RowProducer

ABORT_TIMEOUT_S = 5.0
MASK = (1 << 64) - 1


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


class TaskTransaction:
    """The transaction of one task attempt.

    Args:
        claim: of the driver.
        write: which write this is a task of.
        prefix: of the transactional.id.

    Raises:
        UnfinishedWriteError: another write has to be finished first.
    """

    def __init__(self, claim: Claim, write: Write, prefix: str, partition: int, attempt: int) -> None:
        self.role: Role = role(claim, write, partition)
        """Whether this task has to write at all."""
        self._claim = claim
        self._write = write
        self._partition = partition
        self._attempt = attempt
        self._id = task_id(prefix, claim, partition, attempt)
        self._begun = False
        self._rows = 0
        self._fingerprint = 0

    def begin(self, producer: RowProducer) -> None:
        """To be called before rows are appended; the first call begins the transaction."""
        if not self._begun:
            producer.begin(self._id)
            self._begun = True

    def add(self, columns: Any) -> None:
        """Counts rows that were appended."""
        from forebay._columnar import fingerprint

        self._rows += len(columns)
        self._fingerprint = (self._fingerprint + fingerprint(columns)) & MASK

    def skip(self) -> Outcome:
        """What is told of a task that had nothing to write."""
        return Outcome(self._claim, self._write, self._partition, self._attempt, True)

    def leave_open(self, producer: RowProducer) -> Outcome:
        """After every row is acknowledged: what the driver needs to know to commit them."""
        task = None
        if self._begun:
            task = TaskWrite(self._partition, producer.detach(), self._rows, self._fingerprint)
        return Outcome(self._claim, self._write, self._partition, self._attempt, False, task)

    def give_up(self, producer: RowProducer) -> None:
        """After a failure: aborts, so that readers need not wait for the transaction to time out."""
        if not self._begun:
            return
        try:
            producer.abort(ABORT_TIMEOUT_S)
        except KafkaError:
            # The next run aborts it, or the coordinator does when it times out.
            pass
