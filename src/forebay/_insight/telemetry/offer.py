"""Waits for a broker that takes metrics.  Every producer has this, so it imports and costs next to nothing.

A cluster without a receiver of telemetry does not list the two APIs, and then nothing is ever asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forebay._insight.telemetry.instance import InstanceId
from forebay._network.broker_versions import BrokerVersions
from forebay._protocol.versions import ApiKey
from forebay.errors import IllegalStateError, ProducerClosedError

if TYPE_CHECKING:
    from forebay._insight.telemetry.reporter import TelemetryReporter

logger = logging.getLogger("forebay.telemetry")

MODULES = (
    "importlib.util",
    "forebay._insight.telemetry.dialog",
    "forebay._insight.telemetry.reporter",
    "opentelemetry.proto.metrics",
)
"""What a beginning needs; imported only where a cluster takes metrics, and not by the sender's thread."""
MISSING = "the package opentelemetry-proto is not installed: pip install 'forebay[telemetry]'"


def is_installed() -> bool:
    """Whether what encodes metrics is there; does not import it."""
    from importlib.util import find_spec  # not wanted at each start

    try:
        return find_spec("opentelemetry.proto.metrics") is not None
    except ImportError:  # not even a package above it
        return False


class TelemetryOffer:
    """What stands between a producer and telemetry until a broker offers it.

    Args:
        begin: makes the reporter, on any thread.
        use: takes it, on any thread.
        after_import: as in ``_runtime.threads``: the sender's thread imports nothing.
        log_prefix: of lines in the log.
    """

    def __init__(
        self,
        begin: Callable[[InstanceId], TelemetryReporter],
        use: Callable[[Any], None],
        after_import: Callable[..., None],
        log_prefix: str,
    ) -> None:
        self._begin = begin
        self._use = use
        self._after_import = after_import
        self._prefix = log_prefix
        self._begun = False
        self.instance = InstanceId()

    def heard(self, versions: BrokerVersions) -> None:
        """A broker has said what it supports.  Sender's thread."""
        if self._begun or ApiKey.PUSH_TELEMETRY not in versions.ranges:
            return
        self._begun = True
        self._after_import(self._start, *MODULES)

    def _start(self, missing: Exception | None) -> None:
        try:
            if not is_installed():
                logger.info("%sThe cluster takes metrics, but %s", self._prefix, MISSING)
                return
            if missing is not None:
                raise missing
            self._use(self._begin(self.instance))
        except Exception as error:
            # Such as no memory for an import.  The connection that said so serves records all the same.
            logger.exception("%sNo metrics are sent to brokers any more: they cannot be made", self._prefix)
            self.instance.never(f"There is no client instance id: {error!r}")

    def check_installed(self) -> None:
        """Refuses a wait that cannot succeed.

        Raises:
            IllegalStateError: what encodes metrics is not installed.
        """
        if not is_installed():
            raise IllegalStateError(f"There is no client instance id, because {MISSING}")

    def obstacle(self) -> str:
        """Why there is no instance id yet, in words."""
        if self._begun:
            return "no broker has answered GetTelemetrySubscriptions yet"
        return "no connected broker takes client telemetry (KIP-714), which needs a plugin there"

    def close(self) -> None:
        """The producer has ended."""
        self.instance.result.settle(ProducerClosedError())
