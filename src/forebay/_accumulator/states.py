"""The states of a queue and of a batch, and the moves between them, as tables.

Compiled code takes the words from ``states.pxd``, where they are constants; a test holds both to the same numbers.
A move is made by
``PartitionQueue.move`` or ``ProducerBatch.become``, under the queue's lock where another thread may make one.
"""

from __future__ import annotations

from collections.abc import Mapping

IDLE, ANNOUNCED, WATCHED, PARKED = range(4)
"""A queue's place in the schedule.

IDLE: it had no batch when the sender looked last.
ANNOUNCED: it has got a batch, or its batch became full; it stands in the list that the sender takes over.
WATCHED: the sender looks at it in every turn.
PARKED: its only batch lingers; it stands in the heap by the time at which the batch is due.
"""

PLACES = ("IDLE", "ANNOUNCED", "WATCHED", "PARKED")

PLACE_MOVES: Mapping[int, frozenset[int]] = {
    IDLE: frozenset({ANNOUNCED, WATCHED}),
    ANNOUNCED: frozenset({WATCHED, IDLE}),
    WATCHED: frozenset({PARKED, IDLE}),
    PARKED: frozenset({ANNOUNCED, WATCHED, IDLE}),
}
"""For each place those that may follow it.  Any thread announces; all other moves are the sender's."""

OPEN, FULL, LEFT, CLOSING, CLOSED, ABANDONED = range(6)
"""A batch's life, as far as its bytes go.

OPEN: it takes records.
FULL: it takes none any more, and its bytes are the sender's to close.
LEFT: it stands in ``PartitionQueue.to_close`` for the thread that filled it, which compresses it.
CLOSING: a thread is compressing it; the sender keeps off.
CLOSED: its bytes are final.
ABANDONED: it got its outcome while it was LEFT or CLOSING; that thread lets its memory go.
"""

LIVES = ("OPEN", "FULL", "LEFT", "CLOSING", "CLOSED", "ABANDONED")

LIFE_MOVES: Mapping[int, frozenset[int]] = {
    OPEN: frozenset({FULL}),
    FULL: frozenset({LEFT, CLOSED}),
    LEFT: frozenset({CLOSING, FULL, ABANDONED}),
    CLOSING: frozenset({CLOSED, FULL, ABANDONED}),
    CLOSED: frozenset(),
    ABANDONED: frozenset(),
}
"""For each state of a batch those that may follow it.  Without compression CLOSED follows FULL, by the sender."""

NOT_FINAL, SUCCEEDED, FAILED, ABORTED, SPLIT = range(5)
"""A batch's outcome, set once by the sender's thread.  A batch may be in flight still when it fails: it expired."""

NO_ROOM = 0
CHUNK_FULL = -1
"""What a write of a record answers in the place of its size.  CHUNK_FULL: there would be room in a further chunk."""

WAIT = 0
APPENDED = 1
MADE_FULL = 2
BEGUN = 4
WORTH_WAKING = MADE_FULL | BEGUN
"""What an append answers.  WAIT: there is no memory now.  APPENDED, with the other bits where the sender is woken: the
record made its batch full, or began a batch, whose linger has begun."""

QUEUED, GRANTED, ENDED = range(3)
"""A waiter for memory: QUEUED until it is granted, GRANTED until it takes the memory, then ENDED."""

NO_LEADER = -1
"""A queue's line while nobody leads its partition."""
NO_LINE = -2
"""A queue's line while it stands in none."""

STICKY = -1
"""In the place of a partition's number: the topic's sticky partition."""


def packed(moves: Mapping[int, frozenset[int]]) -> int:
    """A table of moves as one integer: bit ``8 * from + to`` is set for each move."""
    return sum(1 << (8 * source + target) for source, targets in moves.items() for target in targets)
