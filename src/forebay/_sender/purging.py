"""purge(): records that were accepted fail at once, instead of being sent or waited for.

The thread that calls takes down which batches there are, so that a record which it sends later is not touched.  The
sender's thread does the rest in its next turn, because only it may end a batch.  As in librdkafka, what was never sent
is told apart from what was: nobody knows whether that is in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.incomplete import IncompleteBatches
from forebay._sender.failure_words import IN_FLIGHT
from forebay._sender.outcomes import OutcomeHandler
from forebay._transactions.result import TransactionalResult
from forebay.errors import PurgedError

QUEUED = "queued"


class Purge(NamedTuple):
    """One call of ``purge``."""

    batches: list[ProducerBatch]
    """Those without an outcome when it was called."""
    in_queue: bool
    in_flight: bool
    result: TransactionalResult

    @classmethod
    def of(cls, incomplete: IncompleteBatches, *, in_queue: bool, in_flight: bool) -> Self:
        """For the batches that there are now.  Any thread."""
        # Only batches that were never sent can still take a record.
        batches = incomplete.closed_for_appends() if in_queue else incomplete.listed(0)
        return cls(batches, in_queue, in_flight, TransactionalResult())


def apply_all(purges: list[Purge], *rest: Any) -> None:
    """Applies each of ``purges``, which stands there until that is done: its callbacks may hold the thread.

    Args:
        rest: as those of ``apply``.
    """
    while purges:
        try:
            apply(purges[0], *rest)
        finally:
            del purges[0]


def apply(
    request: Purge,
    accumulator: RecordAccumulator,
    in_flight: Iterable[Any],
    outcomes: OutcomeHandler,
    log: Any,
    now: float,
) -> None:
    """Fails the request's batches: those in flight, then those in queues, in their order.  Sender's thread.

    Args:
        in_flight: the batches that requests carry, oldest first.
    """
    counts = {QUEUED: 0, IN_FLIGHT: 0}
    try:
        for batch in _taken(request, accumulator, in_flight):
            phase = IN_FLIGHT if _was_sent(batch) else QUEUED
            try:
                outcomes.purge(batch, _error(batch, phase), now)
            except Exception as failure:  # noqa: BLE001 - the others are in no queue any more and have to end too
                outcomes.end_after_error(batch, failure)
            counts[phase] += batch.record_count
    finally:
        request.result.settle()
    if any(counts.values()):
        log.warning(
            "purge",
            now,
            "purge() dropped %d record(s) that were not sent, and %d record(s) in flight, which may have been written",
            counts[QUEUED],
            counts[IN_FLIGHT],
        )


def _taken(request: Purge, accumulator: RecordAccumulator, in_flight: Iterable[Any]) -> list[Any]:
    """The batches to fail, which are in no queue any more."""
    results = _with_parts(batch.result for batch in request.batches)
    wanted = {
        batch
        for batch in accumulator.incomplete()
        if batch.result in results and (request.in_flight if _was_sent(batch) else request.in_queue)
    }
    queues = dict.fromkeys(batch.queue for batch in wanted)
    found = [batch for batch in in_flight if batch in wanted]
    for queue in queues:
        found += queue.take_these(wanted)
    # An error in the middle of a turn may leave a batch that is neither in flight nor in a queue.
    return found + list(wanted.difference(found))


def _with_parts(results: Iterable[Any]) -> set[Any]:
    """Results of batches; in place of one that was split since, its parts."""
    found: set[Any] = set()
    waiting = list(results)
    while waiting:
        result = waiting.pop()
        found.add(result)
        waiting.extend(result.parts or ())
    return found


def _was_sent(batch: Any) -> bool:
    """Whether a request carries it, or carried it; drained for the first time it has its sequence."""
    return bool(batch.in_flight or batch.attempts > 0 or batch.has_sequence())


def _error(batch: Any, phase: str) -> PurgedError:
    where = f"{batch.topic}-{batch.partition}"
    text = (
        f"{batch.record_count} record(s) for {where} were purged before they were sent"
        if phase == QUEUED
        else f"{batch.record_count} record(s) for {where} were purged in flight: they may or may not have been written"
    )
    return PurgedError(text, phase=phase, partition=where, attempts=batch.attempts)
