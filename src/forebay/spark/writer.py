"""One task's rows: appended, flushed, and every delivery looked at before ``write()`` returns.

Nothing is held back for a later task, because no later moment is certain to come.  The first failure ends the
task, with the reason and the number of rows; Spark then repeats the task, so delivery is at least once.  For exactly
once all rows are in one transaction, which is left open (``forebay.spark.exactly_once``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pyspark import TaskContext

from forebay._records.layout import BATCH_OVERHEAD
from forebay._runtime.clock import Clock, SystemClock
from forebay.errors import KafkaError
from forebay.spark import producers
from forebay.spark.columns import with_times
from forebay.spark.commit import TaskReport
from forebay.spark.exactly_once.protocol import LateTransactionError, Role, TakenOverError, TaskOutcome
from forebay.spark.exactly_once.task import TaskTransaction
from forebay.spark.options import SinkOptions
from forebay.spark.producers import RowProducer

Opener = Callable[[SinkOptions], RowProducer]


class DeliveryError(KafkaError):
    """Rows of a task could not be delivered; the message has the first reason, the cause is that error."""


class TaskId(NamedTuple):
    """Which task this is; -1 outside of Spark."""

    partition: int
    attempt: int
    query: str | None = None
    """The streaming query's id, which stays the same when it is started again; None in a batch job."""
    batch: str | None = None
    """The number of the micro-batch."""


def current_task() -> TaskId:
    """The task that this process runs now."""
    context = TaskContext.get()
    if context is None:
        return TaskId(-1, -1)
    query, batch = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
    return TaskId(context.partitionId(), context.attemptNumber(), query, batch)


def write(
    batches: Iterable[Any],
    options: SinkOptions,
    *,
    task: TaskId,
    transaction: TaskTransaction | None = None,
    opener: Opener = producers.acquire,
    dropper: Callable[[SinkOptions], None] = producers.discard,
    clock: Clock | None = None,
) -> TaskReport:
    """Writes the Arrow batches of one task and waits for every acknowledgement.

    Args:
        transaction: of an exactly-once write; it is left open.

    Raises:
        DeliveryError: a row was refused or not acknowledged; says how many and the first reason.
        LateTransactionError: there is not enough time left to commit the rows.
        TakenOverError: another query or job has taken the prefix.
        ImportError: the compiled part is not there; says what to install where.
    """
    clock = clock or SystemClock()
    if transaction is not None and transaction.role is Role.SKIP:
        return _skipped(batches, task, transaction, clock.wall())
    started = clock.wall()
    producer = opener(options)
    before = producer.counts()
    try:
        deliveries = _send(batches, options, producer, task, transaction, clock)
        outcome = None if transaction is None else transaction.leave_open(producer)
    except BaseException as error:
        reason = None
        if transaction is not None:
            reason = transaction.reason(error, clock.now())
            transaction.give_up(producer)
        dropper(options)
        if reason is not None:
            raise reason from error
        raise
    return _report(task, producer, deliveries, _difference(producer.counts(), before), (started, clock.wall()), outcome)


def _report(
    task: TaskId,
    producer: RowProducer,
    deliveries: Any,
    sent: dict[str, float],
    times: tuple[int, int],
    outcome: TaskOutcome | None,
) -> TaskReport:
    raw = deliveries.raw_bytes + deliveries.batches * BATCH_OVERHEAD
    return TaskReport(
        *task[:2],
        rows=deliveries.rows,
        acknowledged=deliveries.acknowledged,
        batches=deliveries.batches,
        bytes_sent=int(sent.get("byte-total", 0)),
        bytes_raw=raw,
        fill=raw / (deliveries.batches * max(producer.batch_size, 1)) if deliveries.batches else 0.0,
        started_ms=times[0],
        finished_ms=times[1],
        partitions={str(where): sum(run.records for run in runs) for where, runs in deliveries.partitions.items()},
        producer=sent,
        outcome=outcome,
    )


def _skipped(batches: Iterable[Any], task: TaskId, transaction: TaskTransaction, now: int) -> TaskReport:
    for _ in batches:
        pass  # Spark cuts its sources' metrics short, and ends the worker, if rows are left.
    return TaskReport(task.partition, task.attempt, 0, 0, 0, 0, 0, 0.0, now, now, outcome=transaction.skip())


def _send(
    batches: Iterable[Any],
    options: SinkOptions,
    producer: RowProducer,
    task: TaskId,
    transaction: TaskTransaction | None,
    clock: Clock,
) -> Any:
    from forebay.producer._columns import BatchDelivery, sink_columns

    deliveries = BatchDelivery()
    given = 0
    for batch in batches:
        columns = sink_columns(with_times(batch), options.topic)
        if not len(columns):
            continue
        try:
            producer.prepare(options.topic)
            if transaction is not None:
                transaction.begin(producer, clock.now())
            producer.append(columns, deliveries, given)
        except (LateTransactionError, TakenOverError):
            raise
        except KafkaError as error:
            raise DeliveryError(f"{_where(task)}: {error}", rows_before=deliveries.rows) from error
        if transaction is not None:
            transaction.add(columns)
        given += len(columns)
        deliveries._collect()
        if deliveries.failed:
            break
    producer.flush()
    unfinished = deliveries._collect()
    if deliveries.failed or unfinished or deliveries.acknowledged != given:
        raise _failure(deliveries, unfinished, task) from deliveries.first_error
    return deliveries


def _failure(deliveries: Any, unfinished: int, task: TaskId) -> DeliveryError:
    error = deliveries.first_error
    missing = deliveries.rows - deliveries.acknowledged
    if error is None:
        reason = f"{unfinished} batches have no outcome after the flush"
    else:
        reason = f"first, row {deliveries.first_failed_row}: {type(error).__name__}: {error}"
    return DeliveryError(f"{_where(task)}: {missing} of {deliveries.rows} rows were not acknowledged; {reason}")


def _where(task: TaskId) -> str:
    return f"Spark partition {task.partition}, attempt {task.attempt}"


def _difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
