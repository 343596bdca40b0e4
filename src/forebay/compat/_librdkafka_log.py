"""The option ``logger`` of confluent-kafka's Producer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

LOG = logging.getLogger("forebay")


class Forwarded:
    """Where one producer's lines of the log ``forebay`` go, too: to its user's logger, at once and without ``poll``.

    It lives as long as its producer, which alone holds it.
    """

    def __init__(self, to: Any, client_id: str) -> None:
        self.log: Callable[..., object] = to.log
        _FORWARDED[f"[Producer clientId={client_id}]"] = self
        if _HANDLER not in LOG.handlers:
            LOG.addHandler(_HANDLER)


class ForwardingHandler(logging.Handler):
    """One for all producers; any thread may log."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the handler's lock, which a signal handler that sends could need twice."""
        found = _FORWARDED.get(record.getMessage().partition("] ")[0] + "]")
        if found is not None:
            found.log(record.levelno, "%s", record.getMessage())
        return True


_FORWARDED: WeakValueDictionary[str, Forwarded] = WeakValueDictionary()
_HANDLER = ForwardingHandler()
