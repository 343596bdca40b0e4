"""Who hears that a record failed: noted in the mark of its result (``unheard``), by whoever asks or has a callback."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._delivery.callbacks import hears
from cython.cimports.forebay._delivery.result import PENDING
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._delivery.result import BatchResult


@cython.ccall
@cython.exceptval(-1)
def put_mark(result: BatchResult, mark: Any) -> cython.bint:
    """Has the ``heard`` of a Mark follow who hears of the result's failure.  False if there is an outcome.

    To be called before the outcome is set, so that nobody asks earlier.
    """
    at: cython.Py_ssize_t
    acquire(result.lock)
    try:
        if result.state != PENDING or result.parts is not None or result.mark is not None:
            return False
        result.mark = mark
    finally:
        release(result.lock)
    if result.deliveries is not None:
        result.deliveries.mark_heard(mark.heard)
    if result.added is not None:
        result.added.mark_heard(mark.heard)
    # One that is added from here on marks its record itself.
    for at in range(0, len(result.callbacks), 2):
        if hears(result.callbacks[at + 1]):
            hear(result, result.callbacks[at]._index)
    return True


@cython.ccall
@cython.exceptval(check=False)
def hear(result: BatchResult, index: cython.int) -> cython.void:
    """Somebody hears of the outcome of record ``index``; nothing to do if it did not fail."""
    part: BatchResult = result.leaf(index)
    if part.mark is not None:
        heard: bytearray = part.mark.heard
        at: cython.Py_ssize_t = 0 if part.is_whole else index - part.first
        if 0 <= at < len(heard):
            heard[at] = 1
