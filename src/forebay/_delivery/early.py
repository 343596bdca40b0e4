"""An outcome that is told before the callbacks run, because a callback holds the sender's thread."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._delivery.future import BatchResult
from cython.cimports.forebay._runtime.mutex import acquire, release

PENDING = cython.declare(cython.int, 0)
DONE = cython.declare(cython.int, 2)


@cython.ccall
def foretell(
    result: BatchResult,
    base_offset: cython.longlong,
    log_append_time: cython.longlong,
    error: Any,
    record_count: cython.int,
) -> cython.bint:
    """Lets those go who wait for a batch.  Any thread.

    An outcome that is set stays.  Where none is, this one is set, and ``BatchResult.settle`` keeps it and runs the
    callbacks.  The arguments are those of ``settle``.

    Returns:
        True if the records were acknowledged.
    """
    acquire(result.lock)
    try:
        if result.state == PENDING and result.parts is None:
            result.foretold = True
            result.base_offset = base_offset
            result.log_append_time = log_append_time
            result.error = error
            result.record_count = record_count
        if result.parts is None:
            result.state = DONE
    finally:
        release(result.lock)
    result.wake_waiters()
    return result.error is None
