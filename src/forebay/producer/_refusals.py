"""The errors of ``send()``: an ended producer, a record that is too large, memory or metadata that came too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forebay._accumulator.waiters import held_by, share_used_up
from forebay.errors import (
    BufferExhaustedError,
    ForkedProducerError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
)
from forebay.errors._base import caused

if TYPE_CHECKING:
    from forebay._delivery.future import RecordFuture
    from forebay._runtime.times import Timestamp
    from forebay.model import DeliveryCallback, Headers, ProducerRecord, RecordMetadata

_CALLBACKS = "callbacks run on the sender's thread, which cannot wait for"


def send_shape(
    self: object,
    topic: str | ProducerRecord,
    value: Any = None,
    key: Any = None,
    *,
    headers: Headers | None = None,
    partition: int | None = None,
    timestamp: Timestamp | None = None,
    on_delivery: DeliveryCallback | None = None,
) -> RecordFuture:
    """How ``send`` is written."""
    raise NotImplementedError


def send_and_wait_shape(
    self: object,
    topic: str | ProducerRecord,
    value: Any = None,
    key: Any = None,
    *,
    headers: Headers | None = None,
    partition: int | None = None,
    timestamp: Timestamp | None = None,
) -> RecordMetadata:
    """How ``send_and_wait`` is written."""
    raise NotImplementedError


def not_open(*, is_made: bool, is_forked: bool) -> KafkaError:
    """The producer takes no records: it was closed, or belongs to another process, or is none at all."""
    if not is_made:
        return IllegalStateError("This producer was not made: a subclass has to call super().__init__()")
    return ForkedProducerError() if is_forked else ProducerClosedError()


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
    uncaught: KafkaError | None = None,
) -> BufferExhaustedError:
    """No memory within ``max.block.ms``, or at once: what was asked for, what there is, and which queues hold it.

    Args:
        size: bytes that were asked for.
        leader: the node that leads the record's partition; negative if none is known.
        waits: False for ``send_nowait`` and for callbacks.
        waited: ms.
        node_error: the last error of connecting to a node.
        uncaught: what the sender's thread tripped over meanwhile, or None.
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
    error = BufferExhaustedError(
        f"{what} {why}Requested at least {size} bytes; buffer.memory {pool.total}, available {pool.available()}, "
        f"batch.size {pool.poolable_size}, waiting {pool.queued()}{held_by(pool)}",
        **context,
    )
    return caused(error, uncaught)


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
) -> KafkaTimeoutError:
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
        what += f" after {min(max_block_ms, round(waited)):g} ms."  # less where the call had a timeout of its own
    else:
        what += f" yet, and send_nowait() does not wait for it; it is asked for now: {once}"
    return caused(KafkaTimeoutError(what, phase="waiting for metadata", waited_ms=round(waited)), cause)


def close_timeout(acknowledged: int, lost: int, timeout: float | None) -> KafkaTimeoutError:
    """A close that ended by force.

    Args:
        acknowledged: records that lack only their callbacks.
        lost: records that failed.
        timeout: of the close, in seconds.
    """
    said = []
    if lost:
        said.append(f"{lost} record(s) were not acknowledged within {timeout} s and failed")
    if acknowledged:
        said.append(
            f"{acknowledged} record(s) were acknowledged, but not all of their callbacks have run: one of them has "
            "not returned"
        )
    return KafkaTimeoutError(f"close: {'; '.join(said)}")
