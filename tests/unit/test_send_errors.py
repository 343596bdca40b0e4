"""What send() says when it waited in vain."""

from __future__ import annotations

from forebay._accumulator.pool import BufferPool
from forebay._send_errors import buffer_exhausted, not_in_metadata
from forebay.errors import KafkaError, UnknownTopicOrPartitionError


def test_no_memory_names_what_was_asked_for_and_who_has_it() -> None:
    pool = BufferPool(1000, 100)
    pool.charge(3, 950)
    error = buffer_exhausted(
        pool, 100, 3, waited=2000.4, max_block_ms=2000, on_sender_thread=False, node_error=lambda node: None
    )
    assert str(error).startswith("Failed to allocate memory within the configured max blocking time 2000 ms. ")
    assert "at least 100 bytes; buffer.memory 1000, available 50, batch.size 100, waiting 0" in str(error)
    assert error.context["waited_ms"] == 2000 and "node" not in error.context


def test_a_node_above_its_share_is_named_with_its_last_error() -> None:
    pool = BufferPool(1000, 100, 300)
    pool.charge(3, 290)
    error = buffer_exhausted(
        pool, 100, 3, waited=0, max_block_ms=10, on_sender_thread=True, node_error=lambda node: KafkaError(f"of {node}")
    )
    assert error.context["node"] == 3 and "of 3" in str(error.context["last_error"])
    assert "the sender's thread, which cannot wait for memory" in str(error)


def test_a_topic_that_did_not_come() -> None:
    cause = UnknownTopicOrPartitionError()
    error = not_in_metadata("t", -1, 0, waited=60.2, max_block_ms=60, cause=cause)
    assert "Topic t not present in metadata after 60 ms." in str(error)
    assert error.__cause__ is cause and "UnknownTopicOrPartitionError" in str(error.context["last_error"])


def test_a_partition_that_is_not_there() -> None:
    error = not_in_metadata("t", 7, 6, waited=60, max_block_ms=60, cause=None)
    assert "Partition 7 of topic t with partition count 6 is not present" in str(error)
    assert error.__cause__ is None and "last_error" not in error.context
