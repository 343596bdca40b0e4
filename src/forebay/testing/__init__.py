"""For tests of code that uses forebay: an embedded broker, and a clock that a test moves."""

from forebay.testing.broker import DISCONNECT, EmbeddedBroker, EmbeddedBrokerError, LoggedRequest
from forebay.testing.clock import ManualClock

__all__ = ["DISCONNECT", "EmbeddedBroker", "EmbeddedBrokerError", "LoggedRequest", "ManualClock"]


def __dir__() -> list[str]:
    return sorted(__all__)
