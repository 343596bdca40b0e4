"""CompressionHelpers: threads that compress what one caller fills, for as long as one call fills many batches.

A caller of ``send_batch`` fills a batch in a tenth of the time that compressing it takes.  So it hands full batches on
while helpers are free, and compresses one itself when they are not: nobody waits for anybody.  Helpers exist only while
such a call lasts; what they still do when it returns is like any batch that is being closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

MOST = 4
"""Helpers of one call; encoding feeds no more of them."""
AHEAD = 2
"""Batches that may wait for each helper: it should never lack work, and memory should not lie about."""


def processors_to_spare() -> int:
    """Helpers that a call may have on this machine: the processors beside the caller's own."""
    return min(MOST, (os.cpu_count() or 1) - 1)


class CompressionHelpers:
    """One call's helpers; ``take`` and ``end`` are for the calling thread.

    Args:
        close: compresses one queue's full batches; must not raise.
        most: threads at most.
    """

    def __init__(self, close: Callable[[Any], None], most: int) -> None:
        self._close = close
        self._most = most
        self._started = 0
        self._waiting: SimpleQueue[Any] = SimpleQueue()

    def take(self, queue: Any) -> bool:
        """Whether a helper will compress the full batches of ``queue``; if not, the caller has to."""
        if self._waiting.qsize() >= AHEAD * self._started and not self._start():
            return False
        self._waiting.put(queue)
        return True

    def _start(self) -> bool:
        if self._started >= self._most:
            return False
        self._started += 1  # first: Ctrl-C may come when the thread runs already, and it has to be let go all the same
        try:
            threading.Thread(target=self._work, name="forebay-compression", daemon=True).start()
        except RuntimeError:
            self._started -= 1
            self._most = self._started  # no thread to be had: the interpreter ends, or a limit of the system's
            return False
        return True

    def end(self) -> None:
        """Helps with what waits, and lets the helpers go; what Ctrl-C leaves undone here they do first."""
        try:
            # Not a call of get_nowait: Ctrl-C would come between that and the name, and lose the queue.
            for queue in iter(self._waiting.get_nowait, None):
                self._close(queue)
        except Empty:
            pass
        finally:
            for _ in range(self._started):
                self._waiting.put(None)

    def _work(self) -> None:
        while (queue := self._waiting.get()) is not None:
            self._close(queue)
