"""``forebay broker``: the embedded broker in the foreground, for development without a Kafka.

:func:`run` prints one line with the address once clients can connect, and ends on SIGINT or SIGTERM.  What the
broker is and is not: :mod:`forebay.testing.broker`.
"""

from __future__ import annotations

import contextlib
import platform
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from forebay._runtime.ticket import Latch
from forebay.errors import IllegalArgumentError
from forebay.model._wire import shown, topic_fault
from forebay.testing._forward import Forwarder
from forebay.testing.broker import EmbeddedBroker, EmbeddedBrokerError

LOCAL = "127.0.0.1"
HIGHEST_PORT = 65535
ALIVE_CHECK_MS = 500.0
#: Hosts that stand for several addresses; the first has to be there, the other one where this machine has IPv6.
SEVERAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "localhost": (LOCAL, "::1"),
        LOCAL: (LOCAL, "::1"),
        "::1": ("::1", LOCAL),
        "": ("0.0.0.0", "::"),
        "::": ("::", "0.0.0.0"),
    }
)
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})
ADVERTISED = re.compile(r"(?:\[(?P<six>[^\[\]\s]+)\]|(?P<host>[^\[\]:/\s]+))(?::(?P<port>[0-9]+))?")


class Advertised(NamedTuple):
    """What metadata says of the first node; port 0: the one on which it listens."""

    host: str
    port: int


def run(
    host: str = LOCAL,
    port: int = 0,
    *,
    advertise: str = "",
    nodes: int = 1,
    partitions: int = 4,
    topics: Sequence[str] = (),
    write: Callable[[str], object] = print,
) -> int:
    """Runs the broker until SIGINT or SIGTERM; returns the exit code.

    ``port`` 0 takes free ports, else node ``n`` listens on ``port + n - 1`` of ``host``.  A loopback address stands
    for both, 127.0.0.1 and ::1.  ``advertise`` is the ``host`` or ``host:port`` that clients are told for the first
    node, with ``port + n - 1`` for node ``n``.  ``topics`` are made at once, each ``name`` or ``name:partitions``,
    with ``partitions`` where it does not say.  Call it on the main thread: only there can signals be caught.

    Raises:
        EmbeddedBrokerError: a port is taken, confluent-kafka is missing, the broker died.
        IllegalArgumentError: a topic, number or address that makes no sense.
    """
    wanted = dict(_topic(text, partitions) for text in topics)
    shown = _advertised(advertise, host, nodes)
    if port + nodes - 1 > HIGHEST_PORT:
        raise IllegalArgumentError(f"port {port} is too high for {nodes} node(s): a port is 0 to {HIGHEST_PORT}")
    with EmbeddedBroker(nodes=nodes, partitions=partitions, topics=wanted) as broker, contextlib.ExitStack() as stack:
        address = ",".join(_forward(broker, node, host, port, shown, stack) for node in broker.nodes)
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
    if (fault := topic_fault(name)) is not None:
        raise IllegalArgumentError(f"topic '{shown(name)}' cannot be: {fault}")
    return name, int(count) if colon else partitions


def _advertised(text: str, host: str, nodes: int) -> Advertised:
    if not text:
        return Advertised(platform.node() if host in EVERYWHERE else host, 0)
    match = ADVERTISED.fullmatch(text)
    port = int(match["port"] or 0) if match is not None else 0
    if match is None or (match["port"] is not None and not 1 <= port <= HIGHEST_PORT - nodes + 1):
        raise IllegalArgumentError(
            f"advertise {text!r}: write HOST or HOST:PORT, with an IPv6 address in brackets: [::1]:9092"
        )
    return Advertised(match["six"] or match["host"], port)


def _forward(
    broker: EmbeddedBroker, node: int, host: str, port: int, shown: Advertised, stack: contextlib.ExitStack
) -> str:
    """Puts listeners of ours before a node, and has metadata show ``shown``."""
    wanted = port + node - 1 if port else 0
    try:
        forwarder = Forwarder(SEVERAL.get(host, (host,)), wanted, broker.address(node))
    except OSError as error:
        raise EmbeddedBrokerError(f"cannot listen on {host}:{wanted}: {error}; port 0 takes a free one") from error
    stack.callback(forwarder.close)
    told = shown.port + node - 1 if shown.port else forwarder.port
    broker.advertise(node, shown.host, told)
    return f"[{shown.host}]:{told}" if ":" in shown.host else f"{shown.host}:{told}"


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[Latch]:
    ended = Latch()  # not an Event: its lock is held by the thread that waits, which the handler interrupts
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
