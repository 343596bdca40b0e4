"""The only place that reads the time.

``now`` is monotonic, in milliseconds (a float, so that linger and timeouts keep their fractions); ``wall`` is
the Unix time in whole milliseconds, which goes into records and nowhere else.  The two have different starts
on purpose: code that compares one with the other fails on its first run.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._runtime.clock_source import monotonic_ns, ticks, ticks_are_steady, wall_ns


@cython.cclass
class Clock:
    """A source of time, handed in wherever it is needed.  Compiled, so that a call of it is no Python call."""

    @cython.ccall
    @cython.exceptval(-1)
    def now(self) -> cython.double:
        """Monotonic time in milliseconds."""
        raise NotImplementedError

    @cython.ccall
    @cython.exceptval(-1)
    def wall(self) -> cython.longlong:
        """Unix time in milliseconds."""
        raise NotImplementedError


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def monotonic_ms() -> cython.double:
    """``SystemClock.now``, where there is no GIL to call it with."""
    return monotonic_ns() / 1e6


@cython.final
@cython.cclass
class SystemClock(Clock):
    """The machine's clocks.

    Reading the time is a tenth of a ``send()``, and the millisecond is mostly that of the record before.  So ``wall``
    asks the processor's counter whether the next one can have begun: a tick is a nanosecond at most, so it never tells
    one that is over (but for a clock that is set, which it notices within a millisecond).  Any thread; two at a time
    may read the clock once too often.
    """

    def __init__(self) -> None:
        self.steady = ticks_are_steady()
        self.wall_ms = 0
        self.read_at = 0  # in ticks
        self.valid = 0  # ticks from then on

    @cython.ccall
    @cython.exceptval(-1)
    def now(self) -> cython.double:
        """Monotonic time in milliseconds."""
        return monotonic_ms()

    @cython.ccall
    @cython.exceptval(-1)
    def wall(self) -> cython.longlong:
        """Unix time in milliseconds."""
        at: cython.ulonglong = ticks()
        # Unsigned: a counter that was set back (a machine that slept, or moved) is far ahead then.
        if at - self.read_at < self.valid:
            return self.wall_ms
        nanoseconds: cython.longlong = wall_ns()
        self.valid = 0
        self.wall_ms = nanoseconds // 1_000_000
        self.read_at = at
        self.valid = 1_000_000 - nanoseconds % 1_000_000 if self.steady else 0
        return self.wall_ms
