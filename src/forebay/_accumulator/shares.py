"""Shares: how many bytes of the pool each owner, a broker, holds; and how many it may."""

from __future__ import annotations

from typing import Any

import cython


# Without a reference to anything, the garbage collector knows no share: one may be made under the pool's lock.
@cython.final
@cython.cclass
class Share:
    """What an owner holds, in bytes, and in which look through the pool's line he last had to be passed over."""

    def __init__(self) -> None:
        self.used = 0
        self.stopped_at = 0


@cython.final
@cython.cclass
class Shares:
    """Guarded by the pool's lock.

    Args:
        limit: most bytes of one owner; 0 for no limit.
    """

    def __init__(self, limit: cython.longlong) -> None:
        self.limit = limit
        self.by_owner: dict[Any, Share] = {}
        self.last = Share()
        self.last_owner: Any = self.last  # nobody's

    @cython.cfunc
    def of(self, owner: Any) -> Share:
        """Made on first use.  The last one stays at hand: a batch's way is several questions after the same owner."""
        if owner is not self.last_owner and owner != self.last_owner:
            share: Share | None = self.by_owner.get(owner)
            if share is None:
                share = self.by_owner[owner] = Share()
            self.last = share
            self.last_owner = owner
        return self.last

    @cython.cfunc
    @cython.exceptval(-1)
    def lacks(self, size: cython.Py_ssize_t, owner: Any, overdraft: cython.longlong) -> cython.bint:
        """Whether ``size`` bytes more would be above what the owner may hold, with so much above the limit."""
        return self.limit > 0 and self.of(owner).used + size > self.limit + overdraft

    @cython.cfunc
    @cython.exceptval(-1)
    def count(self, owner: Any, size: cython.longlong) -> cython.int:
        """So many bytes more are the owner's."""
        share: Share = self.of(owner)
        share.used += size
        return 0

    @cython.cfunc
    def move(self, before: Any, owner: Any, size: cython.longlong) -> cython.void:
        """Bytes of one owner are another's from now on."""
        self.count(before, -size)
        self.count(owner, size)

    def held(self) -> list[tuple[Any, int]]:
        """Who holds how many bytes, the largest first; nobody who holds none."""
        some = [(owner, share.used) for owner, share in list(self.by_owner.items()) if share.used > 0]
        return sorted(some, key=lambda one: -one[1])

    def __repr__(self) -> str:
        return f"<Shares: {self.held()}, at most {self.limit or 'all'} each>"


def share_used_up(pool: Any, leader: int) -> str:
    """Whose share of the memory is used up, and how much that is, for the message."""
    who = f"Node {leader}" if leader >= 0 else "What waits for partitions without a leader"
    held = dict(pool.holders()).get(leader, 0)
    return (
        f"{who} holds {held} bytes, and its share is {pool.owner_limit} (buffer.memory.max.node.share); sending to "
        "other nodes goes on. "
    )


def held_by(pool: Any) -> str:
    """Who holds most of the memory, for the message."""
    named = [
        f"{size} for {f'node {owner}' if owner >= 0 else 'partitions without a leader'}"
        for owner, size in pool.holders()[:3]
    ]
    return f"; held: {', '.join(named)}" if named else ""
