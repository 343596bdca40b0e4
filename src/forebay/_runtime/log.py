"""Log lines that may repeat: the first at once, then at most one in each interval, with the number of those left out.

A broker that is down fails many connections a minute.  The first line says so.  The others would only hide other lines.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Hashable
from typing import NamedTuple

REPEAT_INTERVAL_MS = 30_000.0
MAX_KEYS = 1_000
OF_THREADS = tuple(
    f"forebay.{name}"
    for name in (
        *("callbacks", "compat", "describe", "interceptors", "network"),
        *("producer", "sender", "telemetry", "transactions"),
    )
)
"""Loggers that the threads of a producer write to."""


class LocklessLogger(logging.Logger):
    """A logger whose question for a level takes no lock.

    The first such question, and the first after any level has changed, takes the lock of ``logging``.  A signal handler
    may have interrupted ``getLogger`` in the main thread, which holds that lock, and wait for the sender's thread.  For
    the same reason that thread gets its loggers from outside.
    """

    def isEnabledFor(self, level: int) -> bool:
        return not self.disabled and self.manager.disable < level and level >= self.getEffectiveLevel()


for _name in OF_THREADS:
    _logger = logging.getLogger(_name)
    if type(_logger) is logging.Logger:  # a class of the user's stays
        _logger.__class__ = LocklessLogger


class _Line(NamedTuple):
    """When it was last written, and a counter of those that were held back since."""

    written: float
    held: itertools.count[int]


class RateLimitedLogger:
    """Limits repeated lines by a key that the caller chooses, such as the node and the kind of failure.

    Any thread may log.  There is no lock, because a signal handler that sends could need it twice.  Each step is
    atomic.  Two threads may write the same line at the same moment.

    Args:
        name: of the logger, below ``forebay``.
        prefix: before each line, such as ``[Producer clientId=a] ``.
        interval_ms: at most one line for each key in this time; 0 lets every line through.
    """

    def __init__(self, name: str, *, prefix: str = "", interval_ms: float = REPEAT_INTERVAL_MS) -> None:
        self._logger = logging.getLogger(name)
        self.prefix = prefix
        self._interval = interval_ms
        # Oldest line first.
        self._seen: dict[Hashable, _Line] = {}

    def log(
        self, level: int, key: Hashable, now: float, message: str, *args: object, raised: BaseException | None = None
    ) -> bool:
        """Writes the line or counts it; returns whether it was written.  ``now`` is in monotonic ms.

        Args:
            raised: its traceback stands below the line.
        """
        if not self._logger.isEnabledFor(level):
            return False
        held = self._admit(key, now)
        if held < 0:
            return False
        text = self.prefix + (message % args if args else message)
        self._logger.log(level, "%s", f"{text} ({held} more like this)" if held else text, exc_info=raised)
        return True

    def info(self, key: Hashable, now: float, message: str, *args: object) -> bool:
        return self.log(logging.INFO, key, now, message, *args)

    def warning(self, key: Hashable, now: float, message: str, *args: object) -> bool:
        return self.log(logging.WARNING, key, now, message, *args)

    def error(
        self, key: Hashable, now: float, message: str, *args: object, raised: BaseException | None = None
    ) -> bool:
        return self.log(logging.ERROR, key, now, message, *args, raised=raised)

    def exception(self, message: str, *args: object, error: BaseException) -> None:
        """Writes an error with its traceback; never limited."""
        self._logger.error("%s", self.prefix + (message % args if args else message), exc_info=error)

    def debug(self, message: str, *args: object) -> None:
        """Not limited: a user who asks for debug lines wants all of them."""
        if self._logger.isEnabledFor(logging.DEBUG):
            self._logger.debug("%s", self.prefix + (message % args if args else message))

    def forget(self, key: Hashable) -> None:
        """The trouble is over: the next line with this key is written at once."""
        self._seen.pop(key, None)

    def _admit(self, key: Hashable, now: float) -> int:
        """How many lines were held back before this one, or -1 if this one is held back too."""
        line = self._seen.get(key)
        if line is not None and now - line.written < self._interval:
            next(line.held)
            return -1
        self._seen.pop(key, None)
        if len(self._seen) >= MAX_KEYS:
            for oldest in list(self._seen)[:1]:  # copied in one step, as others add and remove meanwhile
                self._seen.pop(oldest, None)
        self._seen[key] = _Line(now, itertools.count())
        return 0 if line is None else next(line.held)
