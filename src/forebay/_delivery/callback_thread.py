"""What a delivery callback may do to its thread: wait on it, fork on it, raise what cannot be described."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import cython
from cython.cimports.forebay._runtime.this_thread import mark_thread, thread_is_marked

logger = logging.getLogger("forebay.callbacks")


def note_sender_thread() -> None:
    """To be called once by each sender thread, on itself."""
    mark_thread()


@cython.ccall
@cython.exceptval(check=False)
def on_sender_thread() -> cython.bint:
    """Whether the current thread is a producer's sender: what it waits for, nobody would bring about."""
    return thread_is_marked()


def leave_forked_child(error: BaseException | None) -> None:
    """Ends a child that a callback forked on the sender's thread, once that callback is over.

    The child has no other thread and nothing to go back to: the sender's turn is the parent's.  It ends as a worker of
    multiprocessing does, with ``sys.exit``'s code if the callback called that.
    """
    if not on_sender_thread():
        return
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001 - closed, or None: the end counts for more
            pass
    os._exit(code)


def report_safely(report: Callable[[BaseException, Any], object], raised: BaseException, result: Any) -> None:
    """Tells what a callback for a record of ``result`` raised; briefly if that cannot be described.  Never raises."""
    try:
        report(raised, result)
    except BaseException:  # noqa: BLE001 - its repr may raise; the other records' outcomes count for more
        report_briefly(raised, result)


def report_briefly(raised: BaseException, result: Any) -> None:
    """For an exception that cannot be described, of a callback for a record of ``result``; never raises."""
    try:
        where, kind = f"{result.topic}-{result.partition}", type(raised).__name__
        logger.error("A delivery callback for %s raised %s", where, kind, exc_info=raised)
    except BaseException:  # noqa: BLE001 - a log filter of the user's: there is nobody left to tell
        pass
