"""Exchange: a turn of the selector with the clock read around it, and the count of what went through.

Sockets and the system's clock are known by their types, so that a turn over them makes no Python call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._metrics.sensor import NodeSensors
from cython.cimports.forebay._network.selector import SocketSelector
from cython.cimports.forebay._runtime.clock import Clock

if TYPE_CHECKING:
    from forebay._metrics.producer import ProducerMetrics
    from forebay._network.selector import Selector


@cython.final
@cython.cclass
class Exchange:
    """Sender thread only.

    Args:
        selector: moves the bytes.
        clock: read after the selector's turn, because time passes in it, and at the end of the client's.
        metrics: the producer's sensors.
    """

    def __init__(self, selector: Selector, clock: Clock, metrics: ProducerMetrics) -> None:
        self.selector = selector
        self.sockets = selector if isinstance(selector, SocketSelector) else None
        self.clock = clock
        self.after = 0.0  # ms; when the selector's last turn ended
        self.requests = metrics.requests
        self.responses = metrics.responses
        self.bytes_out = metrics.bytes_out
        self.bytes_in = metrics.bytes_in
        self.io_wait_ns = metrics.io_wait_ns
        self.io_ns = metrics.io_ns

    @cython.ccall
    def turn(self, wait: cython.double, now: cython.double) -> list[Any]:
        """The selector's turn; the channels that it has news of."""
        changed: list[Any]
        if self.sockets is not None:
            changed = self.sockets.turn(wait, now)
        else:
            changed = self.selector.turn(wait, now)
        self.after = self.clock.now()
        self.io_wait_ns.record((self.after - now) * 1e6)
        return changed

    @cython.ccall
    @cython.exceptval(-1)
    def end(self) -> cython.double:
        """What the selector brought is dealt with; the time."""
        now: cython.double = self.clock.now()
        self.io_ns.record((now - self.after) * 1e6)
        return now

    @cython.ccall
    def sent(self, node: NodeSensors, size: cython.Py_ssize_t) -> cython.void:
        """A request of so many bytes is queued for a node."""
        self.requests.record(size)
        self.bytes_out.record(size)
        node.requests.record(size)
        node.bytes_out.record(size)

    @cython.ccall
    def received(self, node: NodeSensors, size: cython.Py_ssize_t, latency: cython.double) -> cython.void:
        """An answer of so many bytes, so many ms after its request."""
        self.responses.record(size)
        self.bytes_in.record(size)
        node.responses.record(size)
        node.bytes_in.record(size)
        node.latency.record(latency)
