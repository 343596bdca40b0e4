"""CompressionHelpers: threads that compress what callers of ``send_batch`` fill.

To compress a batch takes much longer than to fill it.  So a caller gives full batches to helpers while they are free,
and compresses some itself when they are not.  No thread waits for another.  Helpers start with the first such call and
end with the producer.  A call may return while helpers still compress its batches.
"""

from __future__ import annotations

import logging
import os
from _queue import Empty, SimpleQueue
from collections.abc import Callable
from typing import Any

from forebay._runtime.threads import start_thread

logger = logging.getLogger("forebay.sender")

MOST = 4
"""Helpers of a producer; one thread that encodes cannot keep more of them busy."""
AHEAD = 2
"""Units that may wait for each helper: enough that it never lacks work, and no more memory than that."""


def processors_to_spare() -> int:
    """How many helpers a producer may have on this machine: one for each processor but the caller's own."""
    # The processors that this process may use, where the system tells.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST, allowed - 1)


class CompressionHelpers:
    """A producer's helpers; any thread.

    There is no lock, because a signal handler that sends or closes may come at any point.  Steps on lists are atomic.
    At worst a batch stays with no thread to compress it, and the sender takes it back after a second.

    Args:
        close: compresses the full batches of some queues.
        most: most threads.
        unit: raw bytes of batches that are compressed together.
    """

    def __init__(self, close: Callable[[list[Any]], None], most: int, unit: int) -> None:
        self._close = close
        self._most = most
        self._size = unit
        # One for each thread that may yet be started.  A start that fails is not tried again.
        self._slots: list[None] = [None] * most
        # One for each thread that runs, which adds and removes it.
        self._running: list[None] = []
        self._ended = False
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        # Every queue that was accepted, to find one again that Ctrl-C made a thread lose.
        self._taken: set[Any] = set()
        # How many batches are a unit: a caller's guess from its latest batch, which the helpers read.
        self._together = 1

    def accept(self, queue: Any, size: int) -> bool:
        """Whether a helper will compress the full batches of ``queue``; if not, the caller has to (``unit``).

        Args:
            size: raw bytes of one of them.
        """
        together = self._together = max(1, self._size // max(size, 1))
        full = self._waiting.qsize() >= AHEAD * together * len(self._running)
        if (full and not self._start()) or self._ended:
            return False
        self._taken.add(queue)
        self._waiting.put(queue)
        return True

    def unit(self, queue: Any) -> list[Any]:
        """The queues that one thread compresses together: ``queue`` and some that wait."""
        together = self._together
        queues = [queue]
        if together < 2:
            return queues
        try:
            # Not a call of get_nowait: Ctrl-C could come between it and the assignment, and the queue would be lost.
            for other in iter(self._waiting.get_nowait, None):
                queues.append(other)
                if len(queues) >= together:
                    return queues
        except Empty:
            return queues
        except BaseException:
            # A queue may have been taken out and not been begun.  One with nothing to compress does no harm.
            for lost in list(self._taken):
                self._waiting.put(lost)
            raise
        self._waiting.put(None)  # it told a helper to end
        return queues

    def _start(self) -> bool:
        try:
            self._slots.pop()
        except IndexError:
            return False
        try:
            start_thread(self._work, "forebay-compression")
        except (RuntimeError, MemoryError):
            return False  # no thread can be started: the interpreter ends, or the system has a limit
        return True

    def end(self) -> None:
        """Ends the helpers, once they have done what waits; nothing is accepted any more."""
        self._ended = True
        self._slots.clear()
        # Also for a thread that is just starting; what is left over does no harm.
        for _ in range(self._most):
            self._waiting.put(None)

    def _work(self) -> None:
        self._running.append(None)
        try:
            while (queue := self._waiting.get()) is not None:
                self._try(queue)
        finally:
            self._running.pop()

    def _try(self, queue: Any) -> None:
        try:
            self._close(self.unit(queue))
        except BaseException:  # noqa: BLE001 - from a codec or a log filter; what waits must still be done
            try:
                logger.exception("A thread that compresses met an error; the sender compresses what it left")
            except BaseException:  # noqa: BLE001 - there is no way left to report it
                pass
