"""What send() says when it waited in vain."""

from __future__ import annotations

from typing import Any

from forebay._accumulator.pool import BufferPool
from forebay.errors import BufferExhaustedError, KafkaError, KafkaTimeoutError, UnknownTopicOrPartitionError
from forebay.producer._refusals import buffer_exhausted, not_in_metadata


def exhausted(pool: BufferPool, **given: Any) -> BufferExhaustedError:
    usual: dict[str, Any] = {"waited": 0, "waits": True, "max_block_ms": 10, "on_sender_thread": False}
    return buffer_exhausted(pool, 100, 3, **{**usual, "node_error": lambda node: None, **given})


def absent(topic: str, partition: int, count: int, **given: Any) -> KafkaTimeoutError:
    usual: dict[str, Any] = {"waited": 60, "waits": True, "max_block_ms": 60, "on_sender_thread": False, "cause": None}
    return not_in_metadata(topic, partition, count, **{**usual, **given})


def test_no_memory_names_what_was_asked_for_and_who_has_it() -> None:
    pool = BufferPool(1000, 100)
    pool.charge(3, 950)
    error = exhausted(pool, waited=2000.4, max_block_ms=2000)
    assert str(error).startswith("Failed to allocate memory within the configured max blocking time 2000 ms. ")
    assert "at least 100 bytes; buffer.memory 1000, available 50, batch.size 100, waiting 0" in str(error)
    assert error.context["waited_ms"] == 2000 and "node" not in error.context


def test_a_node_above_its_share_is_named_with_its_last_error() -> None:
    pool = BufferPool(1000, 100, 300)
    pool.charge(3, 290)
    error = exhausted(pool, waits=False, on_sender_thread=True, node_error=lambda node: KafkaError(f"of {node}"))
    assert error.context["node"] == 3 and "of 3" in str(error.context["last_error"])
    assert error.message.startswith("No memory for the record now, and callbacks run on the sender's thread, which can")


def test_who_does_not_wait_is_told_what_to_do() -> None:
    error = exhausted(BufferPool(1000, 100), waits=False, max_block_ms=2000)
    assert error.message.startswith("No memory for the record now, and send_nowait() does not wait for it: ")
    assert "2000" not in error.message and "at least 100 bytes; buffer.memory 1000" in error.message
    missing = absent("t", -1, 0, waits=False, max_block_ms=2000)
    assert missing.message.startswith("Topic t not present in metadata yet, and send_nowait() does not wait for it; ")
    assert "partitions_for('t'), which waits" in missing.message and "2000" not in missing.message
    missing = absent("t", 7, 6, waits=False, on_sender_thread=True)
    assert missing.message.startswith("Partition 7 of topic t with partition count 6 is not present in metadata, and ")
    assert "callbacks run on the sender's thread" in missing.message


def test_a_topic_that_did_not_come() -> None:
    cause = UnknownTopicOrPartitionError()
    error = absent("t", -1, 0, waited=60.2, cause=cause)
    assert "Topic t not present in metadata after 60 ms." in str(error)
    assert error.__cause__ is cause and "UnknownTopicOrPartitionError" in str(error.context["last_error"])


def test_a_partition_that_is_not_there() -> None:
    error = absent("t", 7, 6)
    assert "Partition 7 of topic t with partition count 6 is not present" in str(error)
    assert error.__cause__ is None and "last_error" not in error.context
