"""What a producer gets from outside its configuration, and what it is made of."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay._network.resolver import Resolver
from forebay._network.selector import SocketSelector
from forebay._records.compression import compressor
from forebay._runtime.clock import Clock, SystemClock
from forebay._runtime.threads import refusal
from forebay.errors import IllegalStateError

if TYPE_CHECKING:
    from forebay._accumulator.accumulator import RecordAccumulator
    from forebay._assembly.user_parts import UserParts
    from forebay._insight.server import DescriptionServer
    from forebay._insight.telemetry.offer import TelemetryOffer
    from forebay._metrics.producer import ProducerMetrics
    from forebay._network.client import NetworkClient
    from forebay._network.metadata import Metadata
    from forebay._network.sasl.login import Login
    from forebay._sender.sender import Sender
    from forebay._sender.thread import SenderThread
    from forebay._transactions.manager import TransactionManager
    from forebay._transactions.session import TransactionCalls
    from forebay.config import ProducerConfig


class Surroundings(NamedTuple):
    """What a producer gets from outside its configuration.

    ``random`` is in [0, 1).  ``selector``, ``resolver`` and ``compressor`` are constructors: the parts are made only
    once the configuration is known to be good.  ``shows`` is False for a producer that nobody may look into.
    """

    clock: Clock
    random: Callable[[], float]
    selector: Callable[[], Any] = SocketSelector
    resolver: Callable[[], Any] = Resolver
    compressor: Callable[..., Any] = compressor
    shows: bool = True


def system_surroundings() -> Surroundings:
    """The machine's clocks, sockets and names.

    Raises:
        IllegalStateError: nothing can run here: eventlet has replaced the threads of this process.
    """
    reason = refusal()
    if reason is not None:
        raise IllegalStateError(reason)
    return Surroundings(clock=SystemClock(), random=random.Random().random)


class Components(NamedTuple):
    """A producer taken apart; made by ``assemble``, put together by KafkaProducer."""

    config: ProducerConfig
    client_id: str
    clock: Clock
    metrics: ProducerMetrics
    metadata: Metadata
    accumulator: RecordAccumulator
    client: NetworkClient
    sender: Sender
    thread: SenderThread
    users: UserParts
    report: Callable[[BaseException, Any], None]
    transactions: TransactionManager | None
    session: TransactionCalls | None
    login: Login | None
    """Username and password, where the producer logs in with them."""
    shown: DescriptionServer | None
    """``describe.socket``."""
    telemetry: TelemetryOffer | None
    """``enable.metrics.push``."""
