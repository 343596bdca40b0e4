"""``await future`` and ``await delivery``: what was sent, waited for by a coroutine on any event loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from forebay._runtime.event_loop import LoopTicket, running_loop
from forebay._runtime.threads import run_apart


async def outcome_of_record(sent: Any, subscribe: Callable[[Any], bool], unsubscribe: Callable[[Any], None]) -> Any:
    """The result of a RecordFuture; a coroutine that is cancelled leaves the record alone.

    Args:
        subscribe: takes a ticket; True if the outcome is there.
        unsubscribe: forgets a ticket.
    """
    if not sent.done():
        ticket = LoopTicket(running_loop())
        if not subscribe(ticket):
            try:
                await ticket.wait(None)
            finally:
                unsubscribe(ticket)
    return sent.result(0)


async def outcome_of_rows(delivery: Any) -> Any:
    """The result of a BatchDelivery; as above."""
    if not delivery.done():
        ticket = LoopTicket(running_loop())
        delivery.add_done_callback(lambda _done: ticket.wake())
        await ticket.wait(None)
    return delivery.result()


class AwaitedResult(Future[Any]):
    """A future whose callbacks run when ``run_callbacks`` is called, and not in ``set_result``."""

    def _invoke_callbacks(self) -> None:
        pass

    def run_callbacks(self) -> None:
        """To be called once the outcome is set and this thread does not hold the lock."""
        super()._invoke_callbacks()  # type: ignore[misc]  # it is in no stub


def concurrent_future(sent: Any) -> Future[Any]:
    """A ``concurrent.futures.Future`` with the outcome of a RecordFuture or a BatchDelivery.

    It cannot be cancelled.  Its callbacks run on the sender's thread, or on one of their own if another thread holds
    the future's lock just then.
    """
    future = AwaitedResult()
    future.set_running_or_notify_cancel()

    def settle(done: Any, blocking: bool = True) -> bool:
        if not future._condition.acquire(blocking):
            return False
        try:
            error = done.exception(0)
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result(0))
        finally:
            future._condition.release()
        future.run_callbacks()
        return True

    def settle_or_have_settled(done: Any) -> None:
        # A signal handler may have interrupted ``future.result()`` in the main thread, which holds the lock, and wait
        # for the sender's thread.
        if not settle(done, blocking=False):
            try:
                run_apart(settle, done)
            except RuntimeError:  # no thread can be started: the interpreter exits, or the system has a limit
                settle(done)

    sent.add_done_callback(settle_or_have_settled)
    return future
