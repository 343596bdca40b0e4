"""What each owner holds of the pool: counted by owner, also where questions after several take turns."""

from __future__ import annotations

import random

from forebay._accumulator.account import BatchAccount
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.waiters import BrokerQuotas, held_by, share_used_up


def test_owners_that_take_turns_are_counted_apart() -> None:
    pool = BufferPool(1 << 20, 100)
    draw = random.Random(1)
    held: dict[int, int] = {}
    for _ in range(500):
        # Numbers beyond those that Python keeps one object of: the same owner is another object each time.
        owner, size = int(draw.choice(["3", "100000", "100001"])), draw.randrange(-50, 100)
        held[owner] = held.get(owner, 0) + size
        pool.charge(owner, size) if size > 0 else pool.credit(owner, -size)
    expected = [(owner, size) for owner, size in held.items() if size > 0]
    assert pool.holders() == sorted(expected, key=lambda one: -one[1])


def test_what_is_lent_beyond_the_limit() -> None:
    pool = BufferPool(10_000, 100, 1000)
    pool.charge("one", 950)
    pool.charge("other", 10)
    assert (pool.exceeds_share(50, "one"), pool.exceeds_share(51, "one"), pool.exceeds_share(51, "other")) == (
        False,
        True,
        False,
    )


def test_a_batch_with_its_chunk_may_go_beyond_it_by_the_overdraft() -> None:
    pool = BufferPool(1 << 20, 100, 100_000)
    pool.charge("one", 100_000)
    account = BatchAccount(pool, "one")
    taken = 0
    while account.afford(print, True, 0, 1):
        taken += 24
    assert pool.share_overdraft - 24 < taken <= pool.share_overdraft == 12_500
    assert pool.holders() == [("one", 100_000 + taken)]


def test_repr() -> None:
    assert repr(BrokerQuotas(0)) == "<BrokerQuotas: [], at most all each>"
    assert repr(BrokerQuotas(10)) == "<BrokerQuotas: [], at most 10 each>"


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
