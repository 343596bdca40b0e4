"""The helper thread of a producer: it does what may block during a login.

Fetching a token, many iterations of PBKDF2 or a step that asks a KDC would stop the sender's thread, and with it all
records.  An exchange yields such work as ``Blocking`` (``sasl/mechanism.py``), and the handshake goes on once it is
done.  The thread starts with the producer, because none can be started while the interpreter exits, and ends with it.
"""

from __future__ import annotations

import logging
from _queue import Empty, SimpleQueue
from collections.abc import Callable

from forebay._network.sasl.mechanism import Blocking
from forebay._runtime.threads import start_thread
from forebay._runtime.ticket import Latch
from forebay.errors import NetworkError

log = logging.getLogger("forebay.network")

_Task = tuple[Blocking, Callable[[], None]]

_running: set[Latch] = set()
"""For each helper thread of this process that has not ended, what tells its end."""


class Helper:
    """One thread that does one work after the other.

    Args:
        name: of the thread.

    Raises:
        RuntimeError: no thread can be started.
    """

    def __init__(self, name: str) -> None:
        # The thread refers to the queue and not to this object, so that it can be collected and end it.
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._closed = False
        self.wake: Callable[[], None] = lambda: None
        """Called on the helper thread after each work; set before the first one is begun."""
        ended = Latch()
        _running.add(ended)
        try:
            start_thread(_work, name, self._tasks, ended)
        except BaseException:
            _running.discard(ended)
            self._closed = True
            raise

    def begin(self, work: Blocking) -> None:
        """Has ``work`` done, then calls ``wake``; the sender's thread."""
        work.begun = True
        if self._closed:
            work.fail(_closed(work))
        else:
            self._tasks.put((work, self.wake))

    def close(self) -> None:
        """Ends the thread after the work that it is doing; does not wait for it.  Other work fails."""
        if self._closed:
            return
        self._closed = True
        try:
            while True:
                task = self._tasks.get_nowait()
                if task is not None:
                    task[0].fail(_closed(task[0]))
        except Empty:
            self._tasks.put(None)

    def __del__(self) -> None:
        # May run on any thread at any moment: it only tells the thread to end.
        if not getattr(self, "_closed", True):
            self._tasks.put(None)


def join_all(timeout_ms: float) -> bool:
    """Waits at exit for the threads whose producers have ended; whether all have ended in time."""
    for ended in list(_running):
        if not ended.wait(timeout_ms):
            # One wait for all of them, because each had this time.
            return all(other.is_set() for other in list(_running))
    return True


def forget_all() -> None:
    """In a forked child, which has none of the threads."""
    _running.clear()


def _closed(work: Blocking) -> NetworkError:
    return NetworkError(f"{work.what} is not needed any more: the producer is closed")


def _work(tasks: SimpleQueue[_Task | None], ended: Latch) -> None:
    try:
        while (task := tasks.get()) is not None:
            work, wake = task
            work.run()
            try:
                wake()
            except Exception:
                log.exception("The wake-up after a login's work failed")
            del task, work, wake  # an idle thread keeps no token alive
    finally:
        ended.set()
        _running.discard(ended)
