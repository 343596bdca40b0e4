"""The interpreted twin of ``_time.pxd``: the clocks, for ``forebay._clock`` alone."""

import time
from time import monotonic_ns
from time import perf_counter_ns as ticks
from time import time_ns as wall_ns

from forebay._threads import original

__all__ = ["give_way", "monotonic_ns", "ticks", "ticks_are_steady", "wall_ns"]


sleep = original(time, "sleep")


def ticks_are_steady() -> bool:
    """Whether ``ticks`` counts at one rate at all times; each tick is a nanosecond or less."""
    return True


def give_way() -> None:
    """Lets the GIL go and takes it again before a thread that is woken by that can."""
    sleep(0)
