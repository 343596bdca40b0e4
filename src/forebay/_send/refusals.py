"""The errors of ``send()``: a record that is too large, and memory or metadata that did not come in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forebay._accumulator.waiters import held_by, share_used_up
from forebay.errors import BufferExhaustedError, RecordTooLargeError, TimeoutError

_CALLBACKS = "callbacks run on the sender's thread, which cannot wait for"


def record_too_large(size: int, limit: int) -> RecordTooLargeError:
    """More bytes than a request or the buffer may have."""
    return RecordTooLargeError(
        f"The message is {size} bytes when serialized which is larger than {limit}, which is the smaller of "
        "max.request.size and buffer.memory."
    )


def buffer_exhausted(
    pool: Any,
    size: int,
    leader: int,
    *,
    waits: bool,
    waited: float,
    max_block_ms: float,
    on_sender_thread: bool,
    node_error: Callable[[int], BaseException | None],
) -> BufferExhaustedError:
    """No memory within ``max.block.ms``, or at once: what was asked for, what there is, and which queues hold it.

    Args:
        size: bytes that were asked for.
        leader: the node that leads the record's partition; negative if none is known.
        waits: False for ``send_nowait`` and for callbacks.
        waited: ms.
        node_error: the last error of connecting to a node.
    """
    context: dict[str, object] = {"phase": "waiting for memory", "waited_ms": round(waited)}
    what, why = f"Failed to allocate memory within the configured max blocking time {max_block_ms:g} ms.", ""
    if on_sender_thread:
        what = f"No memory for the record now, and {_CALLBACKS} memory that it alone can free."
    elif not waits:
        what = (
            "No memory for the record now, and send_nowait() does not wait for it: call it again once records were "
            "acknowledged, or send(), which waits."
        )
    if pool.exceeds_share(size, leader):
        why += share_used_up(pool, leader)
        context["node"] = leader if leader >= 0 else "unknown"
        last_error = node_error(leader)
        if last_error is not None:
            context["last_error"] = f"{type(last_error).__name__}: {last_error}"
    return BufferExhaustedError(
        f"{what} {why}Requested at least {size} bytes; buffer.memory {pool.total}, available {pool.available()}, "
        f"batch.size {pool.poolable_size}, waiting {pool.queued()}{held_by(pool)}",
        **context,
    )


def not_in_metadata(
    topic: str,
    partition: int,
    count: int,
    *,
    waits: bool,
    waited: float,
    max_block_ms: float,
    on_sender_thread: bool,
    cause: Any,
) -> TimeoutError:
    """Metadata did not come within ``max.block.ms``, or does not know the topic, or not that partition of it.

    Args:
        count: the topic's partitions as far as known, 0 if it is not.
        waits: False for ``send_nowait`` and for callbacks.
        waited: ms.
        cause: the last error that a broker gave for the topic, or None.
    """
    what = f"Topic {topic} not present in metadata"
    if count > 0:
        what = f"Partition {partition} of topic {topic} with partition count {count} is not present in metadata"
    once = f"call again in a moment, or once before partitions_for({topic!r}), which waits."
    if on_sender_thread:
        what += f", and {_CALLBACKS} what it alone can fetch; it is asked for now: {once}"
    elif waits:
        what += f" after {max_block_ms:g} ms."
    else:
        what += f" yet, and send_nowait() does not wait for it; it is asked for now: {once}"
    error = TimeoutError(what, phase="waiting for metadata", waited_ms=round(waited))
    if cause is not None:
        error.with_context(last_error=f"{type(cause).__name__}: {cause.message}")
        error.__cause__ = cause
    return error
