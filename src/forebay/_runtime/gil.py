"""GilClaim: how the sender's thread gets the GIL from threads that send without a pause.

CPython lets a thread keep the GIL for 5 ms after another thread asked for it (``sys.getswitchinterval``).  The sender
needs the GIL twice a turn, so such waits would stall every request.  A thread inside ``send()`` sees that the sender
waits and gives way.  It does so after 2 ms and not at once: a hand-over costs both threads, and records that gather
meanwhile leave in the same turn.  A thread that computes and does not send keeps its 5 ms; a shorter
``sys.setswitchinterval`` is the remedy there.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._runtime.parking import Parking, asleep_in, next_turn, park, turn_of

PATIENCE_MS = cython.declare(cython.double, 2.0)
"""A thread goes on sending for this time after the sender asked for the GIL."""
LOOK_EVERY = cython.declare(cython.int, 64)
"""Every 64th call of ``send()`` reads the clock, because reading it costs much of a call.  When several threads send, a
thread also makes at least that many calls between two hand-overs of the GIL."""
GIVE_WAY_NS = cython.declare(cython.long, 2_000_000)
"""The longest sleep of a thread that gives way.  A delivery callback may wait for a lock that the thread holds."""


@cython.final
@cython.cclass
class GilClaim:
    """Whether the sender's thread waits for the GIL.

    ``waiting`` and ``since`` (monotonic ms) are written by the sender's thread; any thread reads them.  ``passed``
    counts the calls of ``send()`` that found it waiting; any thread writes it.  All are hints: a race costs one wait.
    """

    def __init__(self) -> None:
        self.waiting = False
        self.passed = 0
        self.since = 0.0
        if not cython.compiled:
            self.lot = Parking()

    @property
    def asleep(self) -> int:
        """How many threads give way at the moment."""
        return asleep_in(self.lot)

    @cython.ccall
    @cython.nogil
    @cython.exceptval(check=False)
    def begin(self, now: cython.double) -> cython.void:
        """The sender's thread asks for the GIL."""
        self.passed = 0
        self.since = now
        self.waiting = True

    @cython.ccall
    @cython.exceptval(check=False)
    def end(self) -> cython.void:
        """The sender's thread has the GIL."""
        self.waiting = False
        next_turn(self.lot)

    @cython.ccall
    @cython.exceptval(check=False)
    def pass_by(self) -> cython.bint:
        """A call of ``send()`` found the sender waiting; True if it is time for ``give_way``."""
        self.passed += 1
        return self.passed % LOOK_EVERY == 0

    @cython.ccall
    @cython.exceptval(check=False)
    def give_way(self, now: cython.double) -> cython.void:
        """Sleeps without the GIL until the sender has had it, 2 ms at most; not before the sender has waited for 2 ms.

        Each turn of the sender wakes one thread, the one that has slept longest.  The road not taken: to wake all of
        them.  They would stand in CPython's queue for the GIL ahead of the sender's next turn.
        """
        if now - self.since < PATIENCE_MS:
            return
        seen: cython.int = turn_of(self.lot)
        with cython.nogil:
            if self.waiting and park(self.lot, seen, GIVE_WAY_NS):
                # The sender did not get the GIL, so a thread that computes has it.  This thread goes on for a while.
                self.since = now + GIVE_WAY_NS / 1e6
