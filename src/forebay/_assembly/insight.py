"""What can be seen of a producer from outside: gauges, snapshots in the log, ``describe.socket``, and telemetry."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forebay._insight.telemetry.instance import InstanceId
from forebay._insight.telemetry.offer import TelemetryOffer
from forebay._runtime.log import RateLimitedLogger
from forebay._runtime.threads import BackgroundImport, after_import

if TYPE_CHECKING:
    from forebay._assembly.surroundings import Components, Surroundings
    from forebay._insight.server import DescriptionServer
    from forebay._insight.telemetry.reporter import TelemetryReporter
    from forebay._metrics.producer import ProducerMetrics
    from forebay._network.client import NetworkClient
    from forebay._sender.sender import Sender
    from forebay._transactions.session import TransactionCalls
    from forebay.config import ProducerConfig

logger = logging.getLogger("forebay.producer")

SNAPSHOT_INTERVAL_MS = 60_000.0
DESCRIBE_VARIABLE = "FOREBAY_DESCRIBE_SOCKET"
"""Read where ``describe.socket`` is not given, so that a program need not be changed to be looked into."""

TRACE_VARIABLE = "FOREBAY_TRACE"
"""A path, or ``path:seconds``: where a trace of each producer is recorded, without a change of the program."""


def show(parts: Components, prefix: str, *, traces: bool) -> None:
    """Connects a producer's parts to what shows them.

    Args:
        prefix: of the lines in the log.
        traces: whether the environment may ask for a trace of it.
    """
    _gauges(parts)
    parts.sender.outcomes.on_expiry = _snapshots(parts, prefix)
    if parts.shown is not None:
        from forebay._insight.reading import describe

        try:
            parts.shown.start(lambda: describe(parts).as_json())
        except RuntimeError as error:
            logger.warning("%sdescribe.socket: no thread can be started for it: %s", prefix, error)
    if traces:
        _trace(parts, prefix)


def _gauges(parts: Components) -> None:
    pool, client, clock = parts.accumulator.pool, parts.client, parts.clock
    read: dict[str, Callable[[], Any]] = {
        "requests-in-flight": client.in_flight_count,
        "metadata-age": lambda: (clock.now() - parts.metadata.last_success) / 1000,
        "connection-count": client.states.established_count,
        "waiting-threads": pool.queued,
        "buffer-total-bytes": lambda: pool.total,
        "buffer-available-bytes": pool.available,
    }
    for name, gauge in read.items():
        parts.metrics.gauge(name, gauge)


class _Snapshot:
    """The inside of a producer as text; looked at only for a line that is written."""

    def __init__(self, parts: Components) -> None:
        self._parts = parts

    def __str__(self) -> str:
        from forebay._insight.reading import describe
        from forebay._insight.text import as_text

        return as_text(describe(self._parts))


def _snapshots(parts: Components, prefix: str) -> Callable[[float], object]:
    """Logs the inside of the producer when records have expired, at most once a minute."""
    limited = RateLimitedLogger("forebay.describe", prefix=prefix, interval_ms=SNAPSHOT_INTERVAL_MS)
    waiting: list[float] = []  # the time of a line that is to be written; at most one, as more would be left out

    def write(missing: Exception | None) -> None:
        limited.warning("expired", waiting.pop(), "Records have expired. %s", missing or _Snapshot(parts))

    def expired(now: float) -> None:
        if not waiting:
            waiting.append(now)
            after_import(write, "forebay._insight.reading", "forebay._insight.text")

    return expired


def _trace(parts: Components, prefix: str) -> None:
    """Begins the trace that the environment asks for, if it does."""
    told = os.environ.get(TRACE_VARIABLE)
    if told:
        from forebay._insight.recorder import record_as_told

        record_as_told(parts, told, prefix)


def socket_of(
    config: ProducerConfig, client_id: str, prefix: str, keep: Callable[[Any], Any]
) -> DescriptionServer | None:
    """The socket of ``describe.socket``; None if none is asked for, or none can be had, which is logged.

    Args:
        keep: called with it as soon as it exists; closes it if the producer cannot be made.
    """
    folder = config["describe.socket"] or os.environ.get(DESCRIBE_VARIABLE)
    if not folder:
        return None
    from forebay._insight.server import DescriptionServer

    try:
        return keep(DescriptionServer(folder, client_id))  # type: ignore[no-any-return]
    except OSError as error:
        # Looking into a producer must not keep records from going.
        logger.warning("%sdescribe.socket: no socket can be made in %r: %s", prefix, folder, error)
        return None


def telemetry_of(
    config: ProducerConfig,
    around: Surroundings,
    prefix: str,
    *,
    sender: Sender,
    client: NetworkClient,
    metrics: ProducerMetrics,
    session: TransactionCalls | None,
) -> TelemetryOffer | None:
    """Client telemetry (``enable.metrics.push``); None if it is off."""
    if not config["enable.metrics.push"]:
        return None
    clock = around.clock
    started_ms = clock.wall()
    log = RateLimitedLogger("forebay.telemetry", prefix=prefix)

    def begin(instance: InstanceId) -> TelemetryReporter:
        from forebay._insight.telemetry.dialog import TelemetryDialog  # imported already (``offer.MODULES``)
        from forebay._insight.telemetry.reporter import Source, TelemetryReporter

        def labels() -> dict[str, str]:
            # The only one of KIP-714's labels that a producer has here: it may change (set_transactional_id).
            return {} if session is None else {"transactional_id": session.dialog.transactional_id}

        return TelemetryReporter(
            dialog=TelemetryDialog(around.random, clock.now()),
            client=client,
            source=Source(metrics.readings, labels, clock.wall, started_ms),
            request_timeout_ms=config["request.timeout.ms"],
            log=log,
            instance=instance,
            rare_import=BackgroundImport,
        )

    def use(reporter: TelemetryReporter) -> None:
        sender.telemetry = reporter
        client.wakeup()

    offer = TelemetryOffer(begin, use, after_import, prefix)
    client.versions.listener = offer.heard
    return offer
