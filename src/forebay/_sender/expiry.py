"""The words for a batch that failed: what, where, in which phase, after how long, and what was heard last."""

from __future__ import annotations

import copy
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


def explained(batch: Any, error: KafkaError, phase: str, now: float) -> KafkaError:
    """The batch's own copy of ``error`` with where and when; one lost connection is the error of many batches."""
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return own.with_context(
        phase=phase, node=batch.last_node, attempts=batch.attempts + 1, age_ms=round(now - batch.created)
    )
