"""``forebay broker``: the embedded broker in the foreground, for development without a Kafka.

:func:`run` prints one line with the address once clients can connect, and ends on SIGINT or SIGTERM.  What the
broker is and is not: :mod:`forebay.testing.broker`.
"""

from __future__ import annotations

import contextlib
import platform
import signal
from collections.abc import Callable, Iterator, Sequence

from forebay._ticket import Latch
from forebay.errors import IllegalArgumentError
from forebay.testing._forward import Forwarder
from forebay.testing.broker import EmbeddedBroker, EmbeddedBrokerError

LOCAL = "127.0.0.1"
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})
ALIVE_CHECK_MS = 500.0


def run(
    host: str = LOCAL,
    port: int = 0,
    *,
    nodes: int = 1,
    partitions: int = 4,
    topics: Sequence[str] = (),
    write: Callable[[str], object] = print,
) -> int:
    """Runs the broker until SIGINT or SIGTERM; returns the exit code.

    ``port`` 0 takes free ports, else node ``n`` listens on ``port + n - 1`` of ``host``.  ``topics`` are made at
    once, each ``name`` or ``name:partitions``, with ``partitions`` where it does not say.  Call it on the main
    thread: only there can signals be caught.

    Raises:
        EmbeddedBrokerError: a port is taken, confluent-kafka is missing, the broker died.
        IllegalArgumentError: a topic or number that makes no sense.
    """
    wanted = dict(_topic(text, partitions) for text in topics)
    with EmbeddedBroker(nodes=nodes, partitions=partitions, topics=wanted) as broker, contextlib.ExitStack() as stack:
        address = broker.bootstrap_servers
        if port or host != LOCAL:
            address = ",".join(_forward(broker, node, host, port, stack) for node in broker.nodes)
        with _ended_by_signal() as ended:
            write(address)
            while not ended.wait(ALIVE_CHECK_MS):
                if not broker.alive:
                    raise EmbeddedBrokerError(f"the embedded broker on {address} ended by itself")
    return 0


def _topic(text: str, partitions: int) -> tuple[str, int]:
    name, colon, count = text.partition(":")
    if not name or (colon and not count.isdecimal()):
        raise IllegalArgumentError(f"topic {text!r}: write a name, or a name and its partitions as in orders:6")
    return name, int(count) if colon else partitions


def _forward(broker: EmbeddedBroker, node: int, host: str, port: int, stack: contextlib.ExitStack) -> str:
    """Puts a listener of ours before a node and makes it the one that metadata shows."""
    forwarder = Forwarder(host, port + node - 1 if port else 0, broker.address(node))
    stack.callback(forwarder.close)
    shown = platform.node() if host in EVERYWHERE else host
    listening = forwarder.address[1]
    broker.advertise(node, shown, listening)
    return f"[{shown}]:{listening}" if ":" in shown else f"{shown}:{listening}"


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[Latch]:
    ended = Latch()  # no Event: its lock is taken by who waits, whom the handler interrupts
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
