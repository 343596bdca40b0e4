"""Code between an outcome and a user's callback: the call, what it raises, and what a callback may do to its thread."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import cython
from cython.cimports.forebay._runtime.this_thread import mark_thread, thread_is_marked

logger = logging.getLogger("forebay.callbacks")

WAY_IN = tuple(
    f"forebay/{name}.py"
    for name in (
        "producer/_acknowledged",
        "_delivery/result",
        "_delivery/callbacks",
        "_delivery/callback_thread",
        "_delivery/future",
        "producer/_columns/batch_delivery",
        "compat/kafka/_future_callbacks",
        "compat/_librdkafka_messages",
    )
)
"""The code between a record's outcome and a user's callback."""

# How many lost calls could not be logged, and the first of them.  To count one takes no memory.
_unsaid = cython.declare(cython.longlong, 0)
_unsaid_partition = cython.declare(cython.int, 0)
_unsaid_offset = cython.declare(cython.longlong, 0)
_unsaid_topic = ""


def note_sender_thread() -> None:
    """To be called once by each sender's thread, on itself."""
    mark_thread()


@cython.ccall
@cython.exceptval(check=False)
def on_sender_thread() -> cython.bint:
    """Whether the current thread is a producer's sender, which must not wait for an outcome: it sets the outcomes."""
    return thread_is_marked()


def leave_forked_child(error: BaseException | None) -> None:
    """Ends a child that a callback forked on the sender's thread, once that callback is over.

    The child has no other thread and nothing to return to, because the sender's turn belongs to the parent.  It ends
    as a worker of multiprocessing does, with ``sys.exit``'s code if the callback called that.
    """
    if not on_sender_thread():
        return
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001 - the stream is closed or None, and the process ends anyway
            pass
    os._exit(code)


def report_safely(report: Callable[[BaseException, Any], object], raised: BaseException, result: Any) -> None:
    """Reports what a callback for a record of ``result`` raised; briefly if ``report`` fails.  Never raises."""
    try:
        report(raised, result)
    except BaseException:  # noqa: BLE001 - its repr may raise, and other records wait for their outcome
        report_briefly(raised, result)


def report_briefly(raised: BaseException, result: Any) -> None:
    """Logs the type of an exception whose own text may raise.  Never raises."""
    try:
        where, kind = f"{result.topic}-{result.partition}", type(raised).__name__
        logger.error("A delivery callback for %s raised %s", where, kind, exc_info=raised)
    except BaseException:  # noqa: BLE001 - a log filter of the user's raised, and no other way is left
        pass


def was_entered(raised: BaseException) -> bool:
    """Whether the callback itself raised ``raised``; False if there was no memory to call it.

    A callback that is no Python code and lacks memory counts as not called.
    """
    return not isinstance(raised, MemoryError) or is_raised_inside(raised)


def is_raised_inside(raised: BaseException) -> bool:
    """Whether it was raised in the callback or below, and not by the call of it; for one that is Python code."""
    where = raised.__traceback__
    if where is None:
        return False
    while where.tb_next is not None:
        where = where.tb_next
    return not where.tb_frame.f_code.co_filename.endswith(WAY_IN)


def hint_of(raised: BaseException) -> str:
    """What to change where a function of another shape was given as ``on_delivery``; else empty."""
    if not isinstance(raised, TypeError) or is_raised_inside(raised):
        return ""
    return ": on_delivery is called with one argument, a DeliveryReport, which has .metadata and .error"


def check_done_callback(function: object, argument: str) -> None:
    """Raises TypeError for what ``add_done_callback`` cannot call; ``argument`` is what it would be called with."""
    if not callable(function):
        raise TypeError(
            f"add_done_callback() takes a callable({argument}), got {type(function).__name__}: {function!r}"
        )


def call_done_callback(function: Callable[[Any], object], done: Any) -> bool:
    """Calls ``function(done)`` and logs what it raises.  False if there was no memory for the call."""
    lost = False
    try:
        function(done)
    except Exception as raised:
        # No return in here: compiled, it crashes where there was no memory for a traceback.
        lost = not was_entered(raised)
        if not lost:
            logger.exception("A done callback of %r raised", done)
    return not lost


@cython.ccall
@cython.exceptval(check=False)
def report_lost(
    topic: str, partition: cython.int, base_offset: cython.longlong, at: cython.longlong, count: cython.longlong
) -> cython.void:
    """Logs that the callbacks of ``count`` records in a row, from the batch's record ``at`` on, were not called.

    Never raises.  If there is no memory for the log line, a later call logs it, or the end of a sender's thread.
    """
    global _unsaid, _unsaid_topic, _unsaid_partition, _unsaid_offset
    try:
        report_unsaid()
        first: cython.longlong = base_offset + at
        where = f"offset {first}" if count == 1 else f"offsets {first} to {first + count - 1}"
        if base_offset < 0:
            where = f"record(s) {at} to {at + count - 1} of a batch without an offset"
        logger.error(
            "No memory to call the delivery callbacks of %d record(s) of %s-%d: %s", count, topic, partition, where
        )
    except BaseException:  # noqa: BLE001 - no memory for the line either, or a log filter of the user's raised
        if _unsaid == 0:
            _unsaid_topic, _unsaid_partition, _unsaid_offset = topic, partition, base_offset + at
        _unsaid += count


def report_unsaid() -> None:
    """Logs how many lost calls could not be logged at their time, and the first of them."""
    global _unsaid
    count: cython.longlong = _unsaid
    if count > 0:
        logger.error(
            "No memory to call the delivery callbacks of %d record(s), nor to say so at the time; the first was %s-%d, "
            "offset %d",
            count,
            _unsaid_topic,
            _unsaid_partition,
            _unsaid_offset,
        )
        _unsaid -= count
