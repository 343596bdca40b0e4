"""The interpreted twin of ``clock_source.pxd``: the clocks, for ``forebay._runtime.clock`` alone."""

from time import monotonic_ns
from time import perf_counter_ns as ticks
from time import time_ns as wall_ns

__all__ = ["monotonic_ns", "ticks", "ticks_are_steady", "wall_ns"]


def ticks_are_steady() -> bool:
    """Whether ``ticks`` counts at one rate at all times; each tick is a nanosecond or less."""
    return True
