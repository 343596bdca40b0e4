"""The words for a batch that ran out of time: what, where, in which phase, and what was heard last."""

from __future__ import annotations

from typing import Any

from forebay.errors import KafkaError, TimeoutError


def expiry_error(batch: Any, phase: str, now: float) -> KafkaError:
    """The error for a batch older than ``delivery.timeout.ms``.

    Args:
        batch: a ProducerBatch.
        phase: where its time ran out.
        now: monotonic ms.
    """
    age = round(now - batch.created)
    error = TimeoutError(
        f"Expiring {batch.record_count} record(s) for {batch.topic}-{batch.partition}:{age} ms has passed since batch "
        "creation",
        phase=phase,
        attempts=batch.attempts + (1 if phase == "in flight" else 0),
        age_ms=age,
    )
    if batch.last_node >= 0:
        error.with_context(node=batch.last_node)
    else:
        error.with_context(leader=batch.queue.leader_id if batch.queue.leader_id >= 0 else "unknown")
    if batch.last_error is not None:
        error.with_context(last_error=f"{type(batch.last_error).__name__}: {batch.last_error.message}")
        error.__cause__ = batch.last_error
    return error
