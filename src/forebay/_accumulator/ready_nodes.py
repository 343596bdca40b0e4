"""ReadyNodes: what a look at the schedule found."""

from __future__ import annotations

import math

import cython

INFINITY: cython.double = math.inf


@cython.final
@cython.freelist(8)
@cython.cclass
class ReadyNodes:
    """Made by ``no_nodes``.

    nodes: ids of brokers that something can be sent to now.
    next_check: ms until a batch that waits now can go; infinite if none does.
    leaderless: topics with batches whose partition has no leader; None where there is none, as nearly always.
    """

    if not cython.compiled:
        nodes: list[int]
        next_check: float
        leaderless: set[str] | None

    @cython.cfunc
    def note_leaderless(self, topic: str) -> object:
        if self.leaderless is None:
            self.leaderless = set()
        self.leaderless.add(topic)
        return None


@cython.cfunc
def no_nodes() -> ReadyNodes:
    """To be filled in."""
    found: ReadyNodes = ReadyNodes.__new__(ReadyNodes)
    found.nodes = []
    found.next_check = INFINITY
    found.leaderless = None
    return found
