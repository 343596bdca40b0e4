"""The I/O thread: calls ``run_once`` until it is asked to end, sends what is left, and reports what it could not send.

It holds no reference to the producer, so that a forgotten producer can be collected.  The finaliser only calls
``request_close``; then this thread sends what is left and ends by itself.
"""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING, Any

from forebay._delivery.callback_thread import note_sender_thread, report_unsaid
from forebay._runtime.clock import Clock
from forebay._runtime.threads import Lock, get_ident, start_thread
from forebay._runtime.ticket import Latch, Ticket
from forebay._sender.sender import FORCED, Sender
from forebay.errors import KafkaError

if TYPE_CHECKING:
    from forebay._sender.warming import WarmUp
    from forebay._transactions.result import TransactionalResult

logger = logging.getLogger("forebay.sender")

FAILED_TURN_PAUSE_MS = 50.0
"""How long the thread pauses after a turn that raised."""


class SenderThread:
    """Runs one Sender on a daemon thread of its own.

    Args:
        name: of the thread.
        sender: only that thread runs it.
        clock: gives each turn its time.
        patience_ms: the time in which all its records have an outcome.
        resources: closed in order when the thread ends, before ``finished`` is set.
    """

    def __init__(
        self, *, name: str, sender: Sender, clock: Clock, patience_ms: float, resources: tuple[Any, ...] = ()
    ) -> None:
        self.sender = sender
        self.patience_ms = patience_ms
        self.finished = False
        self.lost = 0
        """Records that had no acknowledgement when the thread ended; written by it, read after ``join``."""
        self._clock = clock
        self._resources = resources
        self._pause = Latch()
        """Never set: only waited for."""
        self._ended = Latch()
        self._claim = Lock()
        """Taken once, by who makes the end: the thread as its first step, or a start that did not get so far."""
        self._started = False
        self._failed_before = 0
        """Records that had failed when the end began."""
        self.name = name
        self._thread: threading.Thread | None = None
        self.ident: int | None = None
        """The thread's identifier; set by itself, first of all."""

    def start(self) -> None:
        """Starts the thread; once, before interpreter exit begins.  It has ended if this raises."""
        try:
            self._thread = start_thread(self._run, self.name)
            self._started = True
        except BaseException:
            self._end_failed_start()
            raise

    def is_alive(self) -> bool:
        """True until it has ended."""
        return self._started and not self._ended.is_set()

    def join(self, timeout_ms: float) -> bool:
        """Waits for the end; False if ``timeout_ms`` passed first.  Signals get through."""
        # Not Thread.join: up to Python 3.12 a thread passes for dead once Ctrl-C has interrupted a join of it.
        if self._started and not self._ended.wait(timeout_ms):
            return False
        # Once: a signal handler that joins in the middle of Python's own join would wait for its lock for ever.
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        return True

    def subscribe(self, ticket: Ticket) -> bool:
        """True if it has ended or never began; else the ticket is woken at its end."""
        return not self._started or self._ended.subscribe(ticket)

    def unsubscribe(self, ticket: Ticket) -> None:
        """Forgets a ticket."""
        self._ended.unsubscribe(ticket)

    def leave(self) -> tuple[int, int]:
        """Gives up waiting for a thread that was told to end at once: a callback holds it.

        Each record gets its outcome now, and threads that wait for one go on.  Callbacks that have not run do so once
        the one that holds the thread returns; then the thread ends.

        Returns:
            How many records were acknowledged, and how many failed, of those whose callbacks have not all run.
        """
        settled = self.sender.settle_early()
        self._end_requests()
        return settled

    def purge(self, *, in_queue: bool, in_flight: bool) -> TransactionalResult:
        """Asks the thread to drop the records that were accepted so far.  Any thread.

        Returns:
            Settled when they have their outcome.
        """
        from forebay._sender.purging import Purge

        request = Purge.of(self.sender.accumulator.incomplete_batches, in_queue=in_queue, in_flight=in_flight)
        self._ask(self.sender.purges, request)
        return request.result

    def warm_up(self, request: WarmUp) -> None:
        """Asks the thread for what ``request`` names, until its result is there.  Any thread."""
        self._ask(self.sender.warm_ups, request)

    def end_warm_up(self, request: WarmUp) -> None:
        """Takes a request back; nobody waits for it any more.  Any thread."""
        self.sender.warm_ups.remove(request)

    def _ask(self, requests: list[Any], request: Any) -> None:
        requests.append(request)
        if self._ended.is_set():
            self._end_requests()  # it may have ended before it could see this one
        else:
            self.sender.wakeup()

    def _end_requests(self) -> None:
        # All records have their outcome, and nothing is connected.
        for request in [*self.sender.purges, *self.sender.warm_ups]:
            request.result.settle()

    def _end_failed_start(self) -> None:
        if self._claim.acquire(False):
            # No thread began, and one that still does returns at once; what it would have closed is closed here.
            self._end()
        else:
            # Ctrl-C came while Python waited for the thread, which runs.  The end is the thread's.
            self.sender.request_force_close()
            self._ended.wait(math.inf)

    def _run(self) -> None:
        if not self._claim.acquire(False):
            return
        self.ident = get_ident()
        note_sender_thread()
        try:
            while not self.sender.closing:
                self._turn()
            self._failed_before = self.sender.failed_records()
            # The producer's close() has done this, but not a dropped producer or the interpreter's exit.  From here on
            # no record may be accepted, because none would be sent.
            self.sender.accumulator.close()
            while not self.sender.forced and self.sender.has_work():
                self._turn()
        finally:
            self._end()

    def _turn(self) -> None:
        try:
            self.sender.run_once(self._clock.now())
        except Exception as error:  # one failed turn must not end the thread
            logger.exception("Uncaught error in the producer's I/O thread")
            self.sender.metadata.note_uncaught(error, self._clock.now())
            # The next turns may fail too, before they come to their own wait.
            self._pause.wait(FAILED_TURN_PAUSE_MS)

    def _end(self) -> None:
        try:
            self._give_up_and_close()
        finally:
            # In any case: close() waits for this without a limit.
            self.finished = True
            self._ended.set()
            self._end_requests()

    def _give_up_and_close(self) -> None:
        self.sender.accumulator.close()
        self.lost = self.sender.accumulator.unfinished_records()
        # With those that failed meanwhile: perhaps no caller waits for them, and the log leaves out repeated lines.
        unacknowledged = self.lost + self.sender.failed_records() - self._failed_before
        # Outcomes first: a log handler or filter may raise.
        for resource in (self._fail_all, lambda: self._report(unacknowledged), *self._resources):
            try:
                resource()
            except Exception:  # the others must be closed too
                logger.exception("Uncaught error while the producer's I/O thread ended")

    def _fail_all(self) -> None:
        self.sender.give_up(KafkaError(FORCED))

    def _report(self, unacknowledged: int) -> None:
        if unacknowledged:
            logger.error("The producer ended with %d record(s) not acknowledged", unacknowledged)
        report_unsaid()
