"""CompressionHelpers: threads that compress what callers of ``send_batch`` fill.

A caller fills a batch in a tenth of the time that compressing it takes.  So it hands full batches on while helpers are
free, and compresses some itself when they are not: nobody waits for anybody.  Helpers begin with the first such call
and end with the producer; a call that returns leaves them what waits, and the next one goes on filling.
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
"""Helpers of a producer; a thread that encodes feeds no more of them."""
AHEAD = 2
"""Units that may wait for each helper: it should never lack work, and memory should not lie about."""


def processors_to_spare() -> int:
    """Helpers that a producer may have on this machine: the processors beside the caller's own."""
    # Those that this process may use, where the system tells.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST, allowed - 1)


class CompressionHelpers:
    """A producer's helpers; any thread.

    There is no lock: a handler of signals that sends or closes may come at any point.  Steps on lists are atomic, and
    what goes wrong at worst is that a batch is left in the line: the sender takes it back after a while.

    Args:
        close: compresses the full batches of some queues.
        most: threads at most.
        unit: raw bytes of batches that are compressed together.
    """

    def __init__(self, close: Callable[[list[Any]], None], most: int, unit: int) -> None:
        self._close = close
        self._most = most
        self._size = unit
        # One for each thread that may yet be started.  Where none can be, it is not tried again.
        self._slots: list[None] = [None] * most
        # One for each that runs, by itself.
        self._running: list[None] = []
        self._ended = False
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        # Every queue that was taken, for what Ctrl-C makes us lose.
        self._taken: set[Any] = set()
        # So many batches are a unit; a caller's guess by its latest, which the helpers read.
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
        """What one thread compresses together: ``queue`` and some that wait."""
        together = self._together
        queues = [queue]
        if together < 2:
            return queues
        try:
            # Not a call of get_nowait: Ctrl-C would come between that and the name, and lose the queue.
            for other in iter(self._waiting.get_nowait, None):
                queues.append(other)
                if len(queues) >= together:
                    return queues
        except Empty:
            return queues
        except BaseException:
            # One may have left the line and not been begun.  A queue with nothing to compress costs a look.
            for lost in list(self._taken):
                self._waiting.put(lost)
            raise
        self._waiting.put(None)  # the end, which was meant for a helper
        return queues

    def _start(self) -> bool:
        try:
            self._slots.pop()
        except IndexError:
            return False
        try:
            start_thread(self._work, "forebay-compression")
        except (RuntimeError, MemoryError):
            return False  # no thread to be had: the interpreter ends, or a limit of the system's
        return True

    def end(self) -> None:
        """Lets the helpers go, once they have done what waits; nothing is taken any more."""
        self._ended = True
        self._slots.clear()
        # Also for one that is on its way; what is left over is nobody's.
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
        except BaseException:  # noqa: BLE001 - a codec's, a log filter's: what waits in the line counts for more
            try:
                logger.exception("A thread that compresses met an error; the sender compresses what it left")
            except BaseException:  # noqa: BLE001 - there is nobody left to tell
                pass
