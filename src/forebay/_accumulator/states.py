"""The states of a queue and of a batch, and the moves between them, as tables.

Compiled code has the same constants from ``states.pxd``; a test compares the two.  ``PartitionQueue.move`` and
``ProducerBatch.become`` make the moves, under the queue's lock where another thread may make one.
"""

from __future__ import annotations

from collections.abc import Mapping

IDLE, ANNOUNCED, WATCHED, PARKED = range(4)
"""A queue's place in the schedule.

IDLE: it had no batch when the sender checked it last.
ANNOUNCED: it got a batch, or its batch became full; it is in the list that the sender takes over.
WATCHED: the sender checks it in every turn.
PARKED: its only batch lingers; it is in the heap, by the time at which the batch is due.
"""

PLACES = ("IDLE", "ANNOUNCED", "WATCHED", "PARKED")

PLACE_MOVES: Mapping[int, frozenset[int]] = {
    IDLE: frozenset({ANNOUNCED, WATCHED}),
    ANNOUNCED: frozenset({WATCHED, IDLE}),
    WATCHED: frozenset({PARKED, IDLE}),
    PARKED: frozenset({ANNOUNCED, WATCHED, IDLE}),
}
"""The places that may follow each place.  Any thread announces; only the sender makes the other moves."""

OPEN, FULL, LEFT, CLOSING, CLOSED, ABANDONED = range(6)
"""A batch's life: which thread may write or compress its bytes.

OPEN: it takes records.
FULL: it takes no more records, and the sender closes it.
LEFT: it is in ``PartitionQueue.to_close``, for the thread that filled it to compress.
CLOSING: a thread is compressing it; the sender keeps off.
CLOSED: its bytes are final.
ABANDONED: it got its outcome while it was CLOSING; that thread releases its memory.
"""

LIVES = ("OPEN", "FULL", "LEFT", "CLOSING", "CLOSED", "ABANDONED")

LIFE_MOVES: Mapping[int, frozenset[int]] = {
    OPEN: frozenset({FULL}),
    FULL: frozenset({LEFT, CLOSED}),
    LEFT: frozenset({CLOSING, FULL}),
    CLOSING: frozenset({CLOSED, FULL, ABANDONED}),
    CLOSED: frozenset(),
    ABANDONED: frozenset(),
}
"""The states that may follow each state.  Without compression the sender makes a FULL batch CLOSED."""

NOT_FINAL, SUCCEEDED, FAILED, ABORTED, SPLIT = range(5)
"""A batch's outcome, set once by the sender's thread.  A batch that expires may still be in flight."""

NO_ROOM = 0
CHUNK_FULL = -1
CHUNK_SMALL = -3
"""What a write of a record answers in place of its size.

CHUNK_FULL: there would be room in a further chunk.  CHUNK_SMALL: there will be room once the chunk has grown; the write
sees to that, and no caller meets it.
"""

WAIT = 0
APPENDED = 1
MADE_FULL = 2
BEGUN = 4
WORTH_WAKING = MADE_FULL | BEGUN
"""Bits of an append's answer.

WAIT: there is no memory now.  APPENDED: the record is in a batch.  MADE_FULL: it made its batch full.  BEGUN: it began
a batch.  With either of the last two the sender is woken.
"""

QUEUED, GRANTED, ENDED = range(3)
"""A waiter for memory: QUEUED until it is granted, GRANTED until it takes the memory, then ENDED."""

NO_LEADER = -1
"""A queue's line while its partition has no leader."""
NO_LINE = -2
"""A queue's line while it is in none."""

STICKY = -1
"""In the place of a partition's number: the topic's sticky partition."""


def packed(moves: Mapping[int, frozenset[int]]) -> int:
    """A table of moves as one integer: bit ``8 * from + to`` is set for each move."""
    return sum(1 << (8 * source + target) for source, targets in moves.items() for target in targets)
