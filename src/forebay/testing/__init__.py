"""For tests of code that uses forebay: an embedded broker with faults, a producer without one, and a clock to move.

Names are imported when they are first asked for: pytest imports the plugin in every run, also where no test uses it.
"""

from importlib import import_module as _import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forebay.testing.broker import DISCONNECT, EmbeddedBroker, EmbeddedBrokerError, LoggedRequest
    from forebay.testing.clock import ManualClock
    from forebay.testing.faults import Faults
    from forebay.testing.mock_producer import MockProducer
    from forebay.testing.records import ReadRecord

__all__ = [
    "DISCONNECT",
    "EmbeddedBroker",
    "EmbeddedBrokerError",
    "Faults",
    "LoggedRequest",
    "ManualClock",
    "MockProducer",
    "ReadRecord",
]

_HOMES = {
    "DISCONNECT": "broker",
    "EmbeddedBroker": "broker",
    "EmbeddedBrokerError": "broker",
    "Faults": "faults",
    "LoggedRequest": "broker",
    "ManualClock": "clock",
    "MockProducer": "mock_producer",
    "ReadRecord": "records",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
