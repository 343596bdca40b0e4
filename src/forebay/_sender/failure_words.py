"""The errors of batches that failed: what, where, in which phase, after how long, and the last error before."""

from __future__ import annotations

import copy
from typing import Any

from forebay.errors import KafkaError, KafkaTimeoutError, RecordTooLargeError, UnknownTopicIdError
from forebay.errors._base import caused

IN_FLIGHT = "in flight"


def waiting_phase(batch: Any, now: float, *, client: Any, transactions: Any, schedule: Any) -> str:
    """What a batch that was not in flight waited for when its time ran out.  It is no longer in its queue.

    Args:
        batch: a ProducerBatch.
        client: says whether the leader's node can take a request, and why not.
        transactions: the gate, or None.
        schedule: says when batches were checked last, and how long they linger.
    """
    queue = batch.queue
    if queue.leader_id < 0:
        return "no leader known"
    if queue.muted:
        return "muted behind a batch in flight"
    reason = client.unready_reason(queue.leader_id, now)
    if reason is not None:
        return f"queued (node {queue.leader_id} not ready: {reason})"
    if batch.attempts > 0 and now < batch.retry_at:
        return "backing off"
    if transactions is not None and not transactions.has_producer_id:
        return "waiting for a producer id"
    if queue.in_flight > 0:
        return "held back until the batches before it are settled"
    if batch.attempts > 0:
        # The schedule was not checked since its back-off ended, so it was never free to go.
        return "backing off" if schedule.checked_at < batch.retry_at else "queued"
    return "lingering" if now - batch.created < schedule.linger_ms else "queued"


def expiry_error(batch: Any, phase: str, now: float) -> KafkaError:
    """The error for a batch older than ``delivery.timeout.ms``.

    Args:
        batch: a ProducerBatch.  Its ``last_error``, if it has one, becomes the cause.
        phase: the phase in which its time ran out.
        now: monotonic ms.
    """
    age = round(now - batch.created)
    error = KafkaTimeoutError(
        f"Expiring {batch.record_count} record(s) for {batch.topic}-{batch.partition}:{age} ms has passed since batch "
        "creation",
        phase=phase,
        attempts=batch.attempts + (1 if phase == IN_FLIGHT else 0),
        age_ms=age,
    )
    leader = batch.queue.leader_id
    if phase == IN_FLIGHT or (leader < 0 and batch.last_node >= 0):
        error.with_context(node=batch.last_node)
    else:
        error.with_context(node=leader if leader >= 0 else "unknown")
    return caused(error, batch.last_error)


def too_large(batch: Any, error: RecordTooLargeError) -> RecordTooLargeError:
    """The error for a single record that the broker refused as too large; it cannot be split."""
    said = "" if error.message == error.default_message() else f" (the broker: {error.message})"
    return RecordTooLargeError(
        f"A record of {batch.records.max_record_size} bytes, {batch.estimated_size()} in a batch of its own as it was "
        f"sent, is larger than the broker takes{said}; the limit is max.message.bytes of topic {batch.topic}, or "
        "message.max.bytes of the broker where the topic has none"
    )


def too_large_again(batch: Any, error: RecordTooLargeError) -> RecordTooLargeError:
    """The error for a batch that an earlier attempt may have written, and that is too large for a later one."""
    return RecordTooLargeError(
        f"{batch.record_count} record(s) for {batch.topic}-{batch.partition} may have been written: the answer to an "
        f"earlier attempt was lost, and now the batch of {batch.estimated_size()} bytes is larger than the broker "
        f"takes ({error.message}); sent in parts it could be written twice"
    )


def unknown_topic(error: KafkaError) -> str:
    """The line about a topic that a broker does not know, for its name and the partition."""
    if isinstance(error, UnknownTopicIdError):
        return (
            "Received unknown topic id error in produce request on partition %s-%d. The topic was deleted, and "
            "perhaps made again, or the broker does not know of it yet"
        )
    return (
        "Received unknown topic or partition error in produce request on partition %s-%d. The topic-partition "
        "may not exist or the user may not have Describe access to it"
    )


def explained(batch: Any, error: KafkaError, phase: str, now: float) -> KafkaError:
    """The batch's own copy of ``error``, with place and time: one lost connection is the error of many batches."""
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return own.with_context(
        phase=phase, node=batch.last_node, attempts=batch.attempts + 1, age_ms=round(now - batch.created)
    )
