"""The only place that reads the time.

``now`` is monotonic, in milliseconds (a float, so that linger and timeouts keep their fractions); ``wall`` is
the Unix time in whole milliseconds, which goes into records and nowhere else.  The two have different starts
on purpose: code that compares one with the other fails on its first run.
"""

from __future__ import annotations

from typing import Protocol

import cython

if cython.compiled:
    from cython.cimports.forebay._codec._time import monotonic_ns, wall_ns
else:
    from forebay._codec._time import monotonic_ns, wall_ns


class Clock(Protocol):
    """A source of time, handed in wherever it is needed."""

    def now(self) -> float:
        """Monotonic time in milliseconds."""
        ...

    def wall(self) -> int:
        """Unix time in milliseconds."""
        ...


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def monotonic_ms() -> cython.double:
    """``SystemClock.now``, where there is no GIL to call it with."""
    return monotonic_ns() / 1e6


@cython.final
@cython.cclass
class SystemClock:
    """The machine's clocks."""

    @cython.ccall
    @cython.exceptval(check=False)
    def now(self) -> cython.double:
        """Monotonic time in milliseconds."""
        return monotonic_ms()

    @cython.ccall
    @cython.exceptval(check=False)
    def wall(self) -> cython.longlong:
        """Unix time in milliseconds."""
        return wall_ns() // 1_000_000
