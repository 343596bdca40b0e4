"""CompressionHelpers: threads that compress what callers of ``send_batch`` fill.

A caller fills a batch in a tenth of the time that compressing it takes.  So it hands full batches on while helpers are
free, and compresses some itself when they are not: nobody waits for anybody.  Helpers begin with the first such call
and end with the producer; a call that returns leaves them what waits, and the next one goes on filling.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

MOST = 4
"""Helpers of a producer; a thread that encodes feeds no more of them."""
AHEAD = 2
"""Units that may wait for each helper: it should never lack work, and memory should not lie about."""
UNIT = 512 * 1024
"""Raw bytes of batches that are compressed together: a millisecond of work for two hand-overs of the GIL."""


def processors_to_spare() -> int:
    """Helpers that a producer may have on this machine: the processors beside the caller's own."""
    # Those that this process may use, where the system tells.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST, allowed - 1)


class CompressionHelpers:
    """A producer's helpers; any thread.

    Args:
        close: compresses the full batches of some queues; must not raise.
        most: threads at most.
    """

    def __init__(self, close: Callable[[list[Any]], None], most: int) -> None:
        self._close = close
        self._lock = threading.Lock()  # guards the two, for who changes them
        self._most = most
        self._started = 0
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        # Every queue that was taken, for what Ctrl-C makes us lose.
        self._taken: set[Any] = set()
        # So many batches are a unit; a caller's guess by its latest, which the helpers read.
        self._together = 1

    def take(self, queue: Any, size: int) -> bool:
        """Whether a helper will compress the full batches of ``queue``; if not, the caller has to (``unit``).

        Args:
            size: raw bytes of one of them.
        """
        self._together = max(1, UNIT // max(size, 1))
        if self._waiting.qsize() >= AHEAD * self._together * self._started and not self._start():
            return False
        self._taken.add(queue)
        self._waiting.put(queue)
        return True

    def unit(self, queue: Any) -> list[Any]:
        """What one thread compresses together: ``queue`` and some that wait."""
        queues = [queue]
        try:
            # Not a call of get_nowait: Ctrl-C would come between that and the name, and lose the queue.
            for other in iter(self._waiting.get_nowait, None) if self._together > 1 else ():
                queues.append(other)
                if len(queues) >= self._together:
                    return queues
        except Empty:
            return queues
        except BaseException:
            # One may have left the line and not been begun.  A queue with nothing to compress costs a look.
            for lost in self._taken:
                self._waiting.put(lost)
            raise
        if self._together > 1:
            self._waiting.put(None)  # the end, which was meant for a helper
        return queues

    def _start(self) -> bool:
        with self._lock:
            if self._started >= self._most:
                return False
            # Counted first: Ctrl-C may come while we wait for it to run, and who is not counted never ends.
            self._started += 1
            try:
                threading.Thread(target=self._work, name="forebay-compression", daemon=True).start()
            except RuntimeError:
                self._started -= 1
                self._most = self._started  # no thread to be had: the interpreter ends, or a limit of the system's
                return False
        return True

    def end(self) -> None:
        """Lets the helpers go, once they have done what waits; nothing is taken any more."""
        with self._lock:
            begun, self._started, self._most = self._started, 0, 0
        for _ in range(begun):
            self._waiting.put(None)

    def _work(self) -> None:
        while (queue := self._waiting.get()) is not None:
            self._close(self.unit(queue))
