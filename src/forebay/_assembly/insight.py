"""What can be seen of a producer from outside: gauges, snapshots in the log, and the socket of ``describe.socket``."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forebay._runtime.log import RateLimitedLogger

if TYPE_CHECKING:
    from forebay._assembly.parts import Parts
    from forebay._description.server import DescriptionServer
    from forebay.config import ProducerConfig

logger = logging.getLogger("forebay.producer")

SNAPSHOT_INTERVAL_MS = 60_000.0
DESCRIBE_VARIABLE = "FOREBAY_DESCRIBE_SOCKET"
"""Read where ``describe.socket`` is not given, so that a program need not be changed to be looked into."""


def show(parts: Parts, prefix: str) -> None:
    """Connects a producer's parts to what shows them.

    Args:
        prefix: of the lines in the log.
    """
    _gauges(parts)
    parts.sender.outcomes.on_expiry = _snapshots(parts, prefix)
    if parts.shown is not None:
        from forebay._description.reading import describe

        try:
            parts.shown.start(lambda: describe(parts).as_json())
        except RuntimeError as error:
            logger.warning("%sdescribe.socket: no thread can be started for it: %s", prefix, error)


def _gauges(parts: Parts) -> None:
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


def _snapshots(parts: Parts, prefix: str) -> Callable[[float], object]:
    """Logs the inside of the producer when records have expired, at most once a minute."""
    limited = RateLimitedLogger("forebay.describe", prefix=prefix, interval_ms=SNAPSHOT_INTERVAL_MS)

    class Snapshot:
        def __str__(self) -> str:  # only of a line that is written
            from forebay._description.reading import describe
            from forebay._description.text import as_text

            return as_text(describe(parts))

    return lambda now: limited.warning("expired", now, "Records have expired. %s", Snapshot())


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
    from forebay._description.server import DescriptionServer

    try:
        return keep(DescriptionServer(folder, client_id))  # type: ignore[no-any-return]
    except OSError as error:
        # Looking into a producer must not keep records from going.
        logger.warning("%sdescribe.socket: no socket can be made in %r: %s", prefix, folder, error)
        return None
