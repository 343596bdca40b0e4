"""PoolWaiters: the threads that wait for the pool's memory, in order; BrokerQuotas: what each broker's batches hold.

The order is first in, first out.  A waiter whose owner's share is used up holds up those behind it that want the same
share, so that small requests do not take what gathers for a large one.  It holds up no others.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import QUEUED


# Without a reference to anything, the garbage collector knows no share: one may be made under the pool's lock.
@cython.final
@cython.cclass
class BrokerQuota:
    """The bytes that an owner holds, and the scan of the waiters in which this share was last found used up."""

    def __init__(self) -> None:
        self.used = 0
        self.held_up_in = 0


@cython.final
@cython.cclass
class BrokerQuotas:
    """What each owner, a broker's id, holds of the pool.  The pool's lock guards it.

    Args:
        limit: most bytes of one owner; 0 for no limit.
    """

    def __init__(self, limit: cython.longlong) -> None:
        self.limit = limit
        self.by_owner: dict[Any, BrokerQuota] = {}
        self.last = BrokerQuota()
        self.last_owner: Any = self.last  # no owner's

    @cython.cfunc
    def of(self, owner: Any) -> BrokerQuota:
        """Made on first use.  The last one is kept at hand, because a batch asks for the same owner several times."""
        if owner is not self.last_owner and owner != self.last_owner:
            share: BrokerQuota | None = self.by_owner.get(owner)
            if share is None:
                share = self.by_owner[owner] = BrokerQuota()
            self.last = share
            self.last_owner = owner
        return self.last

    @cython.cfunc
    @cython.exceptval(-1)
    def lacks(self, size: cython.Py_ssize_t, owner: Any, overdraft: cython.longlong) -> cython.bint:
        """Whether ``size`` more bytes would take the owner above the limit and ``overdraft``."""
        return self.limit > 0 and self.of(owner).used + size > self.limit + overdraft

    @cython.cfunc
    @cython.exceptval(-1)
    def count(self, owner: Any, size: cython.longlong) -> cython.int:
        """The owner holds ``size`` more bytes."""
        share: BrokerQuota = self.of(owner)
        share.used += size
        return 0

    @cython.cfunc
    def move(self, before: Any, owner: Any, size: cython.longlong) -> cython.void:
        """``size`` bytes of one owner are another's from now on."""
        self.count(before, -size)
        self.count(owner, size)

    def held(self) -> list[tuple[Any, int]]:
        """The owners that hold anything, with their bytes, the largest first."""
        some = [(owner, share.used) for owner, share in list(self.by_owner.items()) if share.used > 0]
        return sorted(some, key=lambda one: -one[1])

    def __repr__(self) -> str:
        return f"<BrokerQuotas: {self.held()}, at most {self.limit or 'all'} each>"


@cython.final
@cython.cclass
class PoolWaiter:
    """A request for memory that waits; its ticket's ``grant`` refers to it.

    ``state`` is QUEUED, then GRANTED or ENDED; it changes under the pool's lock.

    Args:
        size: bytes.
        owner: the owner whose share they count against.
        ticket: woken when the memory is granted.
        roaming: the caller could use another owner's share.
    """

    def __init__(self, size: cython.Py_ssize_t, owner: Any, ticket: Any, roaming: cython.bint) -> None:
        self.size = size
        self.owner = owner
        self.roaming = roaming
        self.ticket = ticket
        self.state = QUEUED
        self.buffer: Any = None


@cython.final
@cython.cclass
class PoolWaiters:
    """The waiters in order.  The pool's lock is held in each call but ``wake``."""

    def __init__(self, shares: BrokerQuotas) -> None:
        self.waiting: list[Any] = []
        self.shares = shares
        self.scans = 0

    @cython.cfunc
    @cython.exceptval(-1)
    def lets_pass(self, owner: Any) -> cython.bint:
        """Whether a newcomer may have memory ahead of all: they wait for the shares of other owners."""
        self.scans += 1
        waiter: PoolWaiter
        for waiter in self.waiting:
            if waiter.owner == owner or not self.is_held_up(waiter):
                return False
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def is_held_up(self, waiter: PoolWaiter) -> cython.bint:
        # By its owner's share, which it lacks, or one ahead of it in this scan.
        if self.shares.limit == 0:
            return False
        share: BrokerQuota = self.shares.of(waiter.owner)
        if share.held_up_in != self.scans and share.used + waiter.size <= self.shares.limit:
            return False
        share.held_up_in = self.scans
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def wants_share(self, owner: Any) -> cython.bint:
        """Whether one waits for this owner's share."""
        waiter: PoolWaiter
        if self.shares.limit > 0:
            for waiter in self.waiting:
                if waiter.owner == owner and self.shares.lacks(waiter.size, owner, 0):
                    return True
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def lack_memory(self, left: cython.longlong) -> cython.bint:
        """Whether one wants more than the ``left`` bytes of the pool, whatever its share."""
        for waiter in self.waiting:
            if cython.cast(PoolWaiter, waiter).size > left:
                return True
        return False

    @cython.cfunc
    def next(self, left: cython.longlong) -> PoolWaiter | None:
        """Takes out the first that can be granted its memory; None if ``left`` bytes are not enough for it."""
        self.scans += 1
        waiter: PoolWaiter
        for waiter in self.waiting:
            if self.is_held_up(waiter):
                continue
            if left < waiter.size:
                return None
            self.waiting.remove(waiter)
            return waiter
        return None

    @cython.cfunc
    @cython.exceptval(-1)
    def wake(self, roaming_only: cython.bint) -> cython.int:
        """Wakes them to look around; they keep their places.  Outside the lock."""
        waiter: PoolWaiter
        for waiter in list(self.waiting):
            if waiter.roaming or not roaming_only:
                waiter.ticket.wake()
        return 0


def share_used_up(pool: Any, leader: int) -> str:
    """That the share of node ``leader`` is used up, and how much it is, for the message."""
    who = f"Node {leader}" if leader >= 0 else "What waits for partitions without a leader"
    held = dict(pool.holders()).get(leader, 0)
    return (
        f"{who} holds {held} bytes, and its share is {pool.owner_limit} (buffer.memory.max.node.share); sending to "
        "other nodes goes on. "
    )


def held_by(pool: Any) -> str:
    """The owners that hold most of the memory, for the message."""
    named = [
        f"{size} for {f'node {owner}' if owner >= 0 else 'partitions without a leader'}"
        for owner, size in pool.holders()[:3]
    ]
    return f"; held: {', '.join(named)}" if named else ""
