"""``await future`` and ``await delivery``: what was sent, waited for by a coroutine on any event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from forebay._runtime.event_loop import LoopTicket
from forebay._runtime.threads import run_apart


async def outcome_of_record(sent: Any, subscribe: Callable[[Any], bool], unsubscribe: Callable[[Any], None]) -> Any:
    """The result of a RecordFuture; a coroutine that is cancelled leaves the record alone.

    Args:
        subscribe: takes a ticket; True if the outcome is there.
        unsubscribe: forgets a ticket.
    """
    if not sent.done():
        ticket = LoopTicket(asyncio.get_running_loop())
        if not subscribe(ticket):
            try:
                await ticket.wait(None)
            finally:
                unsubscribe(ticket)
    return sent.result(0)


async def outcome_of_rows(delivery: Any) -> Any:
    """The result of a BatchDelivery; as above."""
    if not delivery.done():
        ticket = LoopTicket(asyncio.get_running_loop())
        delivery.add_done_callback(lambda _done: ticket.wake())
        await ticket.wait(None)
    return delivery.result()


def concurrent_future(sent: Any) -> Future[Any]:
    """A ``concurrent.futures.Future`` with the outcome of a RecordFuture or a BatchDelivery.

    It cannot be cancelled.  Its callbacks run on the sender's thread, or on one of their own if another thread holds
    the future's lock just then.
    """
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def settle(done: Any) -> None:
        error = done.exception(0)
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result(0))

    def settle_or_have_settled(done: Any) -> None:
        # A signal handler may have interrupted ``future.result()`` in the main thread, which holds the lock, and wait
        # for the sender's thread.
        if not future._condition.acquire(blocking=False):
            run_apart(settle, done)
            return
        try:
            settle(done)
        finally:
            future._condition.release()

    sent.add_done_callback(settle_or_have_settled)
    return future
