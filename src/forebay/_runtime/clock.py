"""The only place that reads the time.

``now`` is monotonic, in milliseconds.  It is a float, so that linger and timeouts keep their fractions.  ``wall`` is
the Unix time in whole milliseconds; only records get it.  The two have different starts, so code that compares one with
the other fails on its first run.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._runtime.clock_source import monotonic_ns, ticks, ticks_are_steady, wall_ns


@cython.cclass
class Clock:
    """A source of time, given to all that need it.  Compiled, so that its calls are C calls."""

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
    """``SystemClock.now`` for code without the GIL."""
    return monotonic_ns() / 1e6


@cython.final
@cython.cclass
class SystemClock(Clock):
    """The machine's clocks.

    Reading the system's clock is a large part of a ``send()``, and most records have the same millisecond as the record
    before.  So ``wall`` first asks the processor's counter whether the next millisecond can have begun.  A tick is at
    most a nanosecond, so a millisecond that is over is never returned.  A clock that is set is noticed within a
    millisecond.  Any thread; two threads at once may read the system's clock once more than needed.
    """

    def __init__(self) -> None:
        self.steady = ticks_are_steady()
        self.wall_ms = 0
        self.read_at = 0  # in ticks
        self.valid = 0  # for so many ticks after ``read_at`` the value holds

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
        # Unsigned: if the counter was set back (the machine slept, or was moved), the difference is large.
        if at - self.read_at < self.valid:
            return self.wall_ms
        nanoseconds: cython.longlong = wall_ns()
        self.valid = 0
        self.wall_ms = nanoseconds // 1_000_000
        self.read_at = at
        self.valid = 1_000_000 - nanoseconds % 1_000_000 if self.steady else 0
        return self.wall_ms
