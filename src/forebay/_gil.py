"""GilClaim: how the sender's thread gets the GIL from threads that send without a pause.

CPython lets a thread keep the GIL for 5 ms after another asked for it.  With five requests in flight that is a stall
of the whole pipeline, and it comes once a turn.  A thread inside ``send()`` can do better: it sees the claim and gives
way, not at once, for each hand-over costs both threads some ten microseconds and what gathers meanwhile goes in the
same turn, but after a millisecond or two.  A thread that computes and does not send knows nothing of it and
keeps its 5 ms; beside one, whoever gives way gives it the GIL.  There the sender is let past it in the queue, and what
is due soon counts as due, because the next chance is 5 ms away.
"""

from __future__ import annotations

import math

import cython

if cython.compiled:
    from cython.cimports.forebay._codec._time import give_way
    from cython.cimports.forebay._parking import asleep_in, next_turn, park, turn_of
else:
    from forebay._codec._time import give_way
    from forebay._parking import Parking, asleep_in, next_turn, park, turn_of

PATIENCE = cython.declare(cython.longlong, 2)
"""ms, by the records' timestamps, as a clock of its own would cost each call a fifth."""
SWITCH_MS = cython.declare(cython.double, 5.0)
"""For so long CPython lets a thread keep the GIL after another asked for it (``sys.getswitchinterval``)."""
KEPT_MS = cython.declare(cython.double, 3.0)
"""A wait for the GIL of so many ms: somebody keeps it for CPython's switch interval."""
FEW_CALLS = cython.declare(cython.int, 500)
"""Of a thread that sends now and then, while the sender waits for the GIL."""
MOST_CALLS = cython.declare(cython.int, 10_000)
"""Where timestamps say nothing, being the caller's: a millisecond of calls with little else in between."""
BESIDE_MS = cython.declare(cython.double, 1000.0)
"""For so long after such a wait a thread counts as computing: each look whether it still does costs a record 5 ms."""
TWICE_MS = cython.declare(cython.double, 50.0)
"""Two such waits within so many ms: one alone may be a collection of garbage, or an import."""
FRESH_MS = cython.declare(cython.double, 0.1)
"""A claim of so few ms was made while the calling thread had the GIL.  One that is older was not kept from it by that
thread: one that sends all the time sees it as soon as it is made, goes on for a while and then gives way."""
GAP_MS = cython.declare(cython.double, 1.0)
"""Between two calls: the thread has waited meanwhile, most likely for the GIL."""
STEP_CALLS = cython.declare(cython.int, 500)
"""Of a thread that got the GIL in the sender's place, before it gives way too: a tenth of a millisecond of work beside
a hand-over that takes half of that.  Eight threads that gave way at once handed it round with nothing done meanwhile,
which cost 5 to 9 % of their records."""
GIVE_WAY_NS = cython.declare(cython.long, 2_000_000)
"""The sender takes what it waits for within one ms, unless a thread that computes is quicker."""


@cython.final
@cython.cclass
class GilClaim:
    """Whether the sender's thread waits for the GIL.

    ``waiting`` is set by the sender's thread just before it asks for the GIL, with ``passed`` at 0 and ``since`` (in
    monotonic ms), and cleared as soon as it has it; any thread reads it.  ``passed`` counts the calls meanwhile,
    ``first`` is the timestamp of the first of them.  ``seen`` is when the last of them looked at the clock, ``begun``
    when the first since a thread had the GIL did (monotonic ms).  All are hints: a race costs a wait of 2 ms at most.

    ``beside`` is set by the sender's thread for a while after one that computes kept the GIL from it; any thread reads
    it.
    """

    def __init__(self) -> None:
        self.waiting = False
        self.passed = 0
        self.first = 0
        self.since = 0.0
        self.long_at = self.kept_at = -math.inf
        self.seen = self.begun = -math.inf
        self.beside = False
        if not cython.compiled:
            self.lot = Parking()

    @property
    def turn(self) -> int:
        """How often the sender has had the GIL."""
        return turn_of(self.lot)

    @property
    def asleep(self) -> int:
        """How many threads have given way and not gone on."""
        return asleep_in(self.lot)

    @cython.ccall
    @cython.exceptval(check=False)
    def ahead(self) -> cython.double:
        """How many ms before it is due the sender should look at what is due: the GIL may be there that much later."""
        return SWITCH_MS if self.beside else 0.0

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
        next_turn(self.lot)
        # A thread that sends all the time kept it: what is due goes when that one gives way.
        waited: cython.double = now - self.since if self.passed < FEW_CALLS else 0.0
        if waited >= KEPT_MS:
            if now - self.long_at < TWICE_MS:
                self.kept_at = now
            self.long_at = now
        self.beside = now - self.kept_at < BESIDE_MS

    @cython.ccall
    @cython.exceptval(check=False)
    def is_long(self, now: cython.double) -> cython.bint:
        """Whether a call is the first that its thread makes with the GIL, and found a claim from before.

        A claim made since is let past a thread that computes.  CPython hands the GIL to whoever has waited the longest.
        A thread that computes began to wait when this one took the GIL from it; the sender, woken by this one's
        records, after that, and would get it 5 ms later than it.  Let go and taken again at once, the GIL wakes the
        first in the queue, who finds it taken and waits anew, at the end.
        """
        again: cython.bint = now - self.seen < GAP_MS
        if not again:
            self.begun = now
        again = again and self.passed > 0
        self.seen = now
        if again:
            return False
        if now - self.since >= FRESH_MS:
            return True
        if self.beside:
            with cython.nogil:
                give_way()
        return False

    @cython.ccall
    @cython.exceptval(check=False)
    def pass_by(self, timestamp: cython.longlong) -> cython.void:
        """A call of send() that found the claim; may give way.

        Args:
            timestamp: of its record, in ms.
        """
        if self.passed == 0:
            self.first = timestamp
        self.passed += 1
        if self.passed < MOST_CALLS and 0 <= timestamp - self.first < PATIENCE:
            return
        if self.beside and self.seen - self.begun < PATIENCE:
            return  # the thread that computes would take it; the sender gets it when this one waits for something
        # Until the sender has it whoever gets it gives way: others that wait for it may be quicker.
        self.passed = MOST_CALLS - STEP_CALLS
        self.first = timestamp
        if self.give_way_for(GIVE_WAY_NS, turn_of(self.lot)) and self.waiting:
            # A thread that computes takes it each time, or others were let on: who went on giving way would get nothing
            # done.
            self.passed = 1
            self.first = timestamp

    @cython.ccall
    @cython.exceptval(check=False)
    def give_way_for(self, nanoseconds: cython.long, seen: cython.int) -> cython.bint:
        """Lets the sender have the GIL; True if this thread's turn did not come for so long.

        Of several threads that gave way each turn of the sender lets one go on, the first of them.  All at once they
        would stand in the GIL's queue, ahead of the sender when it comes again, and hand the GIL round for little: two
        thirds of all switches of eight threads that send.

        Args:
            nanoseconds: less than a second.
            seen: the ``turn`` when the thread decided to give way; if it is another, the sender has come.
        """
        late: cython.bint = False
        with cython.nogil:
            if self.waiting:
                late = park(self.lot, seen, nanoseconds)
        return late
