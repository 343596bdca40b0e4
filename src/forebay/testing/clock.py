"""ManualClock under the name that tests import."""

from forebay._runtime.manual_clock import ManualClock

__all__ = ["ManualClock"]
