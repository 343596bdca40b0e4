"""The words for memory that is used up."""

from __future__ import annotations

from forebay._accumulator.holders import held_by, share_used_up
from forebay._accumulator.pool import BufferPool


def test_the_three_largest_holders() -> None:
    pool = BufferPool(1000, 10)
    assert held_by(pool) == ""
    for owner, size in ((1, 10), (2, 30), (-1, 20), (3, 5)):
        pool.charge(owner, size)
    assert held_by(pool) == "; held: 30 for node 2, 20 for partitions without a leader, 10 for node 1"


def test_a_share_that_is_used_up() -> None:
    pool = BufferPool(1000, 10, 500)
    pool.charge(2, 499)
    assert share_used_up(pool, 2) == (
        "Node 2 holds 499 bytes, and its share is 500 (buffer.memory.max.node.share); sending to other nodes goes on. "
    )
    assert share_used_up(pool, -1).startswith("What waits for partitions without a leader holds 0 bytes, and ")
