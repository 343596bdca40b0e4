"""GilClaim: how the sender's thread gets the GIL from threads that send without a pause.

CPython lets a thread keep the GIL for 5 ms after another asked for it.  With five requests in flight that is a stall
of the whole pipeline, and it comes once a turn.  A thread inside ``send()`` can do better: it sees the claim and gives
way, not at once, for each hand-over costs both threads some ten microseconds and what gathers meanwhile goes in the
same turn, but after a millisecond or two.  A thread that computes and does not send knows nothing of it and
keeps its 5 ms.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.forebay._codec._time import nap
else:
    from forebay._codec._time import nap

PATIENCE = cython.declare(cython.longlong, 2)
"""ms, by the records' timestamps, as a clock of its own would cost each call a fifth."""
KEPT_MS = cython.declare(cython.double, 3.0)
"""A wait for the GIL of so many ms: somebody keeps it for CPython's switch interval."""
FEW_CALLS = cython.declare(cython.int, 500)
"""Of a thread that sends now and then, while the sender waits for the GIL."""
MOST_CALLS = cython.declare(cython.int, 10_000)
"""Where timestamps say nothing, being the caller's: a millisecond of calls with little else in between."""
MOST_NAPS = cython.declare(cython.int, 20)
"""A millisecond or two.  The sender takes what it waits for within one, unless a thread that computes is quicker."""


@cython.final
@cython.cclass
class GilClaim:
    """Whether the sender's thread waits for the GIL.

    ``waiting`` is set by the sender's thread just before it asks for the GIL, with ``passed`` at 0 and ``since`` (in
    monotonic ms), and cleared as soon as it has it; any thread reads it.  ``passed`` counts the calls meanwhile, and
    ``first`` is the timestamp of the first of them.  All are hints: a race costs a nap.

    ``lasted`` is how many ms the sender's thread waited for the GIL, the longest of the last times; its own.
    """

    def __init__(self) -> None:
        self.waiting = False
        self.passed = 0
        self.first = 0
        self.since = 0.0
        self.lasted = 0.0

    @cython.ccall
    @cython.nogil
    @cython.exceptval(check=False)
    def early(self, timeout_ms: cython.double) -> cython.double:
        """How long to wait for something that is due in so many ms: the GIL should be there when it is."""
        return max(0.0, timeout_ms - self.lasted) if self.lasted >= KEPT_MS else timeout_ms

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
    def end(self, now: cython.double) -> cython.void:
        """The sender's thread has the GIL."""
        self.waiting = False
        # A thread that sends all the time kept it: what is due goes when that one gives way.
        waited: cython.double = now - self.since if self.passed < FEW_CALLS else 0.0
        self.lasted = max(waited, self.lasted * 0.8)

    @cython.ccall
    @cython.exceptval(check=False)
    def pass_by(self, timestamp: cython.longlong) -> cython.void:
        """A call of send() that found the claim; may wait for a nap or some.

        Args:
            timestamp: of its record, in ms.
        """
        if self.passed == 0:
            self.first = timestamp
        self.passed += 1
        if self.passed < MOST_CALLS and 0 <= timestamp - self.first < PATIENCE:
            return
        # Until the sender has it each call gives way, whichever thread's: others that wait for it may be quicker.
        self.passed = MOST_CALLS
        left: cython.int = MOST_NAPS
        with cython.nogil:
            while self.waiting and left > 0:
                left -= 1
                nap()
        if left == 0:
            # A thread that computes takes it each time: who goes on giving way gets nothing done, and helps nobody.
            self.passed = 1
            self.first = timestamp
