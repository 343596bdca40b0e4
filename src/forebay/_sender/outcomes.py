"""What becomes of a batch: acknowledged, sent again, split, failed, given up.

Only this module applies outcomes: to the transaction manager's sequences, the batch's callbacks and waiters, the pool,
the metrics and the log.  Sender's thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import NOT_FINAL, SUCCEEDED

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.topic import PartitionQueue
from forebay._delivery.unheard import Unheard
from forebay._metrics.sensor import Sensor, TopicSensors
from forebay._protocol.produce_response import PartitionResponse
from forebay._runtime.backoff import SOON_MS
from forebay._runtime.threads import BackgroundImport
from forebay._sender.failure_words import (
    IN_FLIGHT,
    expiry_error,
    explained,
    too_large,
    too_large_again,
    unknown_topic,
    waiting_phase,
)
from forebay._sender.produce import error_in, record_errors_in
from forebay._transactions.manager import TransactionManager
from forebay.errors import (
    ConcurrentTransactionsError,
    KafkaError,
    KafkaStorageError,
    KafkaTimeoutError,
    NetworkError,
    NotEnoughReplicasAfterAppendError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from forebay.model import TopicPartition

FATE_UNKNOWN = (NetworkError, KafkaTimeoutError, NotEnoughReplicasAfterAppendError, KafkaStorageError)
"""After one of these a batch may be in the log although its attempt failed."""


@cython.final
@cython.cclass
class OutcomeHandler:
    """Applies outcomes.

    Args:
        accumulator: gets batches back for another attempt, or their memory.
        metadata: updated when an error says that it is stale.
        client: knows what was wrong with a node.
        transactions: keeps the sequences (idempotence), or None.
        metrics: the producer's sensors.
        log: a rate-limited log under ``forebay.sender``.
        report: called with what a user's callback raised and the batch's result; must not raise.
        retries: most times a batch is sent again.
        delivery_timeout_ms: age at which it is given up.
    """

    def __init__(
        self,
        *,
        accumulator: RecordAccumulator,
        metadata: Any,
        client: Any,
        transactions: TransactionManager | None,
        metrics: Any,
        log: Any,
        report: Callable[[BaseException, Any], None],
        retries: cython.int,
        delivery_timeout_ms: cython.double,
    ) -> None:
        self.accumulator = accumulator
        self.metadata = metadata
        self.client = client
        self.transactions = transactions
        self.metrics = metrics
        self.log = log
        self.report = report
        self.retries = retries
        self.delivery_timeout_ms = delivery_timeout_ms
        self.answer_in_progress: tuple[list[Any], list[Any] | None] | None = None
        self.unheard = Unheard(log.prefix, client.wakeup)
        self.failed_records = 0
        self.on_expiry: Callable[[float], object] = bool  # what is to be done once records have expired; may be set
        self.splitting = BackgroundImport(
            "forebay._accumulator.split", lambda error: log.exception("Cannot import what splits batches", error=error)
        )

    @cython.cfunc
    def apply(self, batch: ProducerBatch, answer: PartitionResponse | None, error: Any, now: cython.double) -> object:
        """The outcome of one attempt.

        Args:
            answer: the partition's part of the broker's answer, or None.
            error: None for success.
        """
        if error is None:
            self.acknowledge(batch, answer, now)
        else:
            self.refused(batch, answer, error, now)
        return None

    def refused(self, batch: ProducerBatch, answer: PartitionResponse | None, error: KafkaError, now: float) -> None:
        """The attempt failed; the error decides what follows."""
        batch.last_error = error
        if error.invalid_metadata:
            self.metadata.request_update(False)
        if batch.done:
            self._fail(batch, answer, error, now)  # only the sequences change
        elif isinstance(error, RecordTooLargeError):
            self._too_large(batch, answer, error, now)
        elif self._is_written(batch, error):
            self.acknowledge(batch, None, now)
        elif self._can_retry(batch, answer, error, now):
            self._retry(batch, error, now)
        elif error.retriable and batch.reached_delivery_timeout(self.delivery_timeout_ms, now):
            # Only the time is over.  The error is the same, whichever is noticed first.
            self.give_up(batch, IN_FLIGHT, now)
        else:
            self._fail(batch, answer, error, now)
        if isinstance(error, (UnknownTopicOrPartitionError, UnknownTopicIdError)):
            self._warn_of_unknown(batch, error, now)

    def _is_written(self, batch: ProducerBatch, error: KafkaError) -> bool:
        if self.transactions is None or not isinstance(error, OutOfOrderSequenceError):
            return False
        known = self._knows_topic(batch)
        return known and batch.maybe_written and self.transactions.is_written(batch, error)

    def _knows_topic(self, batch: ProducerBatch) -> bool:
        """Whether the log that found the batch out of order is of the incarnation that the batch went to.

        If the request named the topic by its name, only metadata requested since then can tell.  A topic that was
        created again may have a later batch, and not this one.
        """
        if batch.topic_id is None or not batch.by_name:
            return True
        known = batch.metadata_ticket < 0
        if batch.metadata_ticket > 0 and self.metadata.is_answered(batch.metadata_ticket):
            batch.metadata_ticket = -1  # the next attempt goes to the topic that metadata knows now
        elif batch.metadata_ticket <= 0:
            batch.metadata_ticket = self.metadata.ask_again()
        return known

    @cython.cfunc
    def acknowledge(self, batch: ProducerBatch, answer: PartitionResponse | None, now: cython.double) -> object:
        base_offset: cython.longlong = -1
        log_append_time: cython.longlong = -1
        if answer is not None:
            log_append_time = answer.log_append_time
            base_offset = answer.base_offset if answer.error_code == 0 else -1
        try:
            if self.transactions is not None:
                self.transactions.on_completed(batch, base_offset)
        finally:
            if batch.final_state == NOT_FINAL:  # before the callbacks, which may take long
                watch = self.accumulator.closer.watch  # read once: the recorder's thread takes it away
                if watch is not None:
                    watch.ended(batch, SUCCEEDED, now)
                span: cython.double = batch.records.max_timestamp - batch.records.base_timestamp
                self.topic_sensors(batch, now).count_acks(batch.record_count, span, batch.created, batch.drained, now)
            # False if it expired before: its callbacks have run and its memory is given back.
            if batch.complete(base_offset, log_append_time, self.report):
                self.accumulator.deallocate(batch)
        return None

    def _can_retry(self, batch: ProducerBatch, answer: Any, error: KafkaError, now: float) -> bool:
        if batch.attempts >= self.retries:
            return False
        if batch.reached_delivery_timeout(self.delivery_timeout_ms, now):
            return False
        if self.transactions is None:
            return error.retriable
        log_start: int = -1 if answer is None else answer.log_start_offset
        return bool(self.transactions.can_retry(batch, error, log_start))

    def _retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        # The log comes last, here and below: a user's filter or handler may raise.
        left: int = self.retries - batch.attempts
        if isinstance(error, FATE_UNKNOWN):
            batch.maybe_written = True
        self.accumulator.schedule.reenqueue(batch, now, self.transactions)
        if batch.transactional and isinstance(error, ConcurrentTransactionsError):
            # The previous transaction is just being finished, which is quicker than a back-off.
            batch.retry_at = min(batch.retry_at, now + SOON_MS)
        self.metrics.record_retries.record(batch.record_count)
        self.topic_sensors(batch, now).retries.record(batch.record_count)
        self.log.warning(
            (batch.topic, error.name),
            now,
            "Got error produce response from node %d on topic-partition %s, retrying (%d attempts left). Error: %s",
            batch.last_node,
            TopicPartition(batch.topic, batch.partition),
            left,
            error,
        )

    def _too_large(self, batch: ProducerBatch, answer: Any, error: RecordTooLargeError, now: float) -> None:
        if batch.reached_delivery_timeout(self.delivery_timeout_ms, now):
            self._fail(batch, None, expiry_error(batch, IN_FLIGHT, now), now, refused=True)
        elif batch.record_count == 1:
            self._fail(batch, answer, too_large(batch, error), now)
        elif batch.maybe_written and batch.has_sequence():
            # The broker knows the whole batch by its sequences, but not its parts.  It would accept them as new batches
            # under the next epoch.  So the batch fails.
            self._fail(batch, None, too_large_again(batch, error), now)
        else:
            self._split(batch, error, now)

    def _split(self, batch: ProducerBatch, refusal: KafkaError, now: float) -> None:
        if not self.splitting.is_there():
            self._retry(batch, refusal, now)  # it is sent and refused once more meanwhile
            return
        from forebay._accumulator.split import split_and_reenqueue as split

        # No return in an except clause: where memory lacks, compiled code drops a traceback on its way out that is not
        # there.
        parts = 0
        error: Any = None
        try:
            parts = split(self.accumulator, batch, self.transactions)
        except (KafkaError, MemoryError) as cause:
            error = KafkaError(f"Cannot split {batch.record_count} record(s) for {batch.topic}-{batch.partition}")
            error.__cause__ = cause
        if error is not None:
            self._fail(batch, None, error, now, refused=True)
            return
        self.metrics.batch_splits.record(1)
        self.log.warning(
            (batch.topic, "split"),
            now,
            "Message batch for %s-%d (%d records, %d bytes) was too large for node %d; it was split into %d batches, "
            "which are sent instead of it",
            batch.topic,
            batch.partition,
            batch.record_count,
            batch.estimated_size(),
            batch.last_node,
            parts,
        )

    def _fail(self, batch: ProducerBatch, answer: Any, error: KafkaError, now: float, *, refused: bool = False) -> None:
        if self.transactions is not None:
            # If it was refused for good, its sequences will never be written.  After the last retry, or if an earlier
            # attempt may have been written, this is not known.
            final = refused or (batch.attempts < self.retries and not error.retriable)
            self.transactions.on_failed(batch, error, final and not batch.maybe_written)
        record_errors = None
        if answer is not None:
            error, record_errors = record_errors_in(answer, error)
        self.fail(batch, explained(batch, error, IN_FLIGHT, now), record_errors, now)

    def fail(self, batch: ProducerBatch, error: KafkaError, record_errors: Any, now: float) -> None:
        """Ends a batch with ``error`` and counts it; what nobody hears of is logged (``Unheard``)."""
        if not batch.done:
            self._end_failed(batch, error, record_errors, now, is_told=False)

    def purge(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        """Fails a batch that purge() dropped; the caller has taken it out of its queue, and logs."""
        if batch.done:
            return
        if self.transactions is not None:
            # As when it expires: if it was sent, nobody knows whether it is in the log.
            self.transactions.on_failed(batch, error, False)
        self._end_failed(batch, error, None, now, is_told=True)

    def _end_failed(
        self, batch: ProducerBatch, error: KafkaError, record_errors: Any, now: float, *, is_told: bool
    ) -> None:
        if self.transactions is not None and self.transactions.dialog is not None:
            dialog: Any = self.transactions.dialog
            error = dialog.judge(error)
            record_errors = record_errors and {at: dialog.judge(own) for at, own in record_errors.items()}
        if not is_told:
            self.unheard.note(batch.result, error, record_errors, batch.record_count)
        if batch.fail(error, record_errors, self.report):
            self.accumulator.deallocate(batch)
        self.failed_records += batch.record_count
        self.metrics.record_errors.record(batch.record_count)
        self.topic_sensors(batch, now).errors.record(batch.record_count)

    def _warn_of_unknown(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        self.log.warning((batch.topic, "unknown"), now, unknown_topic(error), batch.topic, batch.partition)

    def expire(self, batch: ProducerBatch, now: float) -> None:
        """Fails a batch whose delivery timeout is over.  It is in flight, or it was taken out of its queue."""
        phase = IN_FLIGHT
        if not batch.in_flight:
            phase = waiting_phase(
                batch, now, client=self.client, transactions=self.transactions, schedule=self.accumulator.schedule
            )
        self.give_up(batch, phase, now)

    def give_up(self, batch: ProducerBatch, phase: str, now: float) -> None:
        """Fails a batch whose delivery timeout is over."""
        queue: PartitionQueue = batch.queue
        if batch.last_error is None:
            # No answer came for this batch.  Perhaps it is known why it was never sent.
            lost = self.client.states.last_error(queue.leader_id) if queue.leader_id >= 0 else None
            uncaught = self.metadata.uncaught_since(batch.created)
            batch.last_error = uncaught or lost or self.metadata.last_error(batch.topic)
        error = expiry_error(batch, phase, now)
        if self.transactions is not None:
            self.transactions.on_failed(batch, error, False)
        self.fail(batch, error, None, now)
        self.on_expiry(now)

    def abort(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Ends a batch without an outcome of its own: a forced close, or a producer that cannot go on."""
        if batch.done:
            return
        try:
            if self.transactions is not None and batch.has_sequence():
                # Whether it was written is unknown, and its partition must not wait for it for ever.
                self.transactions.on_failed(batch, error, False)
        finally:
            self.unheard.note(batch.result, error, None, batch.record_count)
            settled = batch.abort(error, self.report)
            self.accumulator.deallocate(batch)
        if settled:
            self.failed_records += batch.record_count
            self.metrics.record_errors.record(batch.record_count)

    def abort_each(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        """Ends each batch with ``error``, whatever becomes of the others."""
        for batch in batches:
            try:
                self.abort(batch, error)
            except Exception as failure:  # noqa: BLE001 - this one has ended, and the others have to end too
                self.log_failure(batch, failure)

    def fail_waiting(self, error: KafkaError) -> None:
        """Fails every batch that waits.  Those in flight still get their answers."""
        self.abort_each(self.accumulator.take_waiting(), error)

    def fail_all(self, error: KafkaError) -> None:
        """Fails every batch without an outcome, in flight or not.  Memory comes back when no socket needs it."""
        self.fail_waiting(error)
        # Not only those in flight: an error may have left one that is neither in flight nor in a queue.
        self.abort_each([batch for batch in self.accumulator.incomplete() if not batch.queue.has(batch)], error)

    def end_after_error(self, batch: ProducerBatch, failure: Exception) -> None:
        """Ends a batch whose outcome could not be applied to the end, unless it waits for another attempt."""
        if batch.done:
            self.accumulator.deallocate(batch)
        elif not batch.queue.has(batch):
            error = KafkaError(f"The outcome of a batch for {batch.topic}-{batch.partition} could not be applied")
            error.__cause__ = failure
            self.abort_each([batch], error)
        self.log_failure(batch, failure)

    def settle_early(self, error: KafkaError) -> tuple[int, int]:
        """Gives every batch its outcome while a callback holds the sender's thread, which runs the others later.

        Any thread; nothing is accepted any more.  A batch whose success is in the answer that is being applied is
        acknowledged, one without an outcome fails with ``error``.

        Returns:
            How many records were acknowledged, and how many failed, of those whose callbacks have not all run.
        """
        written = _written(self.answer_in_progress)
        acknowledged = failed = 0
        for batch in self.accumulator.incomplete():
            base_offset, log_append_time = written.get(batch, (-1, -1))
            own = None if batch in written else error
            if own is not None:
                self.unheard.note(batch.result, own, None, batch.record_count)
            if batch.result.settle_early(base_offset, log_append_time, own, batch.record_count):
                acknowledged += batch.record_count
            else:
                failed += batch.record_count
        self.unheard.leave()
        return acknowledged, failed

    @cython.cfunc
    def topic_sensors(self, batch: ProducerBatch, now: cython.double) -> TopicSensors:
        """The sensors of the batch's topic."""
        queue: PartitionQueue = batch.queue
        if queue.state.sensors is None:
            queue.state.sensors = self.metrics.topic(batch.topic, now)
        sensors: TopicSensors = queue.state.sensors  # type: ignore[assignment]
        return sensors

    def log_failure(self, batch: ProducerBatch, failure: Exception) -> None:
        """Logs an error that came while an outcome was applied; never raises."""
        try:
            self.log.exception("Uncaught error in the outcome of %r", batch, error=failure)
        except Exception:  # noqa: BLE001 - the user's log filter, perhaps the very error that led here
            pass


def _written(heard: tuple[list[Any], list[Any] | None] | None) -> dict[Any, tuple[int, int]]:
    """Base offset and append time of each batch that an answer acknowledges; -1 where they are not known."""
    if heard is None:
        return {}
    batches, answers = heard
    if answers is None:
        return dict.fromkeys(batches, (-1, -1))
    return {
        batch: (answer.base_offset if answer.error_code == 0 else -1, answer.log_append_time)
        for batch, answer in zip(batches, answers, strict=True)
        if answer is not None and error_in(answer) is None
    }


@cython.final
@cython.cclass
class RequestSensors:
    """The producer's sensors of its produce requests, looked up once; sender's thread only."""

    def __init__(self, metrics: Any) -> None:
        self.batch_size: Sensor = metrics.batch_size
        self.queue_time: Sensor = metrics.queue_time
        self.compression_rate: Sensor = metrics.compression_rate
        self.record_size: Sensor = metrics.record_size
        self.records_sent: Sensor = metrics.records_sent
        self.request_latency: Sensor = metrics.request_latency
        self.throttle_time: Sensor = metrics.produce_throttle_time

    @cython.cfunc
    def record(self, batches: list[Any], outcomes: OutcomeHandler, now: cython.double) -> object:
        """A request with ``batches`` is on its way."""
        records: cython.longlong = 0
        batch: ProducerBatch
        for batch in batches:
            size: cython.Py_ssize_t = batch.estimated_size()
            ratio: cython.double = batch.records.observed_ratio()
            records += batch.record_count
            self.batch_size.record(size)
            self.queue_time.record(batch.drained - batch.created)
            self.compression_rate.record(ratio)
            self.record_size.record_many(batch.records.raw_size, batch.record_count, batch.records.max_record_size)
            topic: TopicSensors = outcomes.topic_sensors(batch, now)
            topic.records.record(batch.record_count)
            topic.bytes.record(size)
            topic.compression_rate.record(ratio)
        self.records_sent.record(records)
        return None
