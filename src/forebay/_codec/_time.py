"""The interpreted twin of ``_time.pxd``: the clocks, for ``forebay._clock`` alone."""

from time import monotonic_ns
from time import time_ns as wall_ns

__all__ = ["monotonic_ns", "wall_ns"]
