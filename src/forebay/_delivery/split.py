"""Splitting a result: the parts of a split batch take over its callbacks and waiters."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._delivery.result import PENDING, part_with
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._delivery.callbacks import DeliveryCallbacks
from forebay._delivery.result import BatchResult

NO_END = cython.declare(cython.int, (1 << 31) - 1)


@cython.ccall
def split_result(whole: BatchResult, parts: list[Any]) -> cython.bint:
    """Moves callbacks and waiters to ``parts``; False, without effect, if there is an outcome.  Sender's thread.

    A waiter for one record moves to that record's part.  A waiter for all records stays, and is woken after the last
    part.

    Args:
        parts: BatchResults in the order of the records, each with its ``first``.
    """
    part: BatchResult
    shares: list[Any] = []
    for part in parts:
        part.callbacks = []
        part.waiters = []
        part.added = DeliveryCallbacks()
        shares.append(part.added)
        part.parent = whole
        part.forks = whole.forks
        part.is_whole = whole.is_whole
    ends: list[int] = ends_of(whole, parts)
    none: list[Any] = []
    waiting: list[Any] = []
    # The batch is closed, so no record with a callback can come now.
    share_deliveries(whole, parts)
    acquire(whole.lock)
    try:
        if (whole.state != PENDING and not whole.settled_early) or whole.parts is not None:
            return False
        if whole.settled_early:
            for part in parts:
                inherit(part, whole)
        # Their own locks are not needed: no other thread sees the parts before ``parts`` is set.
        if whole.added is not None:
            whole.added.share(shares, ends)
        move_callbacks(whole.callbacks, parts)
        move_waiters(whole.waiters, parts, waiting)
        # Kept until the lock is released, because no last reference may be dropped under it.
        old_callbacks: list[Any] = whole.callbacks
        old_waiters: list[Any] = whole.waiters
        old_deliveries: DeliveryCallbacks | None = whole.deliveries
        old_added: DeliveryCallbacks | None = whole.added
        whole.deliveries = whole.added = None
        whole.callbacks = none
        whole.waiters = waiting
        whole.open_parts = len(parts)
        whole.parts = parts
    finally:
        release(whole.lock)
    del old_callbacks, old_waiters, old_deliveries, old_added
    whole.account = None
    return True


def open_records(result: BatchResult, count: int) -> int:
    """How many of its ``count`` records have no outcome: of a batch that was split, those of parts that have none."""
    if result.done:
        return 0
    if result.parts is None:
        return count
    ends = [*(part.first - result.first for part in result.parts[1:]), count]
    return sum(
        open_records(part, end - part.first + result.first) for part, end in zip(result.parts, ends, strict=True)
    )


@cython.cfunc
@cython.exceptval(check=False)
def inherit(part: BatchResult, whole: BatchResult) -> cython.void:
    # A thread may have read the outcome of the whole, so its parts have the same.
    part.settled_early = True
    part.state = whole.state
    part.base_offset = part.log_append_time = -1
    part.error = whole.error


@cython.cfunc
def share_deliveries(whole: BatchResult, parts: list[Any]) -> cython.void:
    if whole.deliveries is None or (whole.state != PENDING and not whole.settled_early) or whole.parts is not None:
        return
    part: BatchResult
    shares: list[Any] = []
    for part in parts:
        part.deliveries = DeliveryCallbacks()
        shares.append(part.deliveries)
    whole.deliveries.share(shares, ends_of(whole, parts))


@cython.cfunc
def ends_of(whole: BatchResult, parts: list[Any]) -> list[int]:
    # As ``DeliveryCallbacks.share`` takes them; the last part has all that is left.
    number: cython.Py_ssize_t
    part: BatchResult
    ends: list[int] = []
    for number in range(1, len(parts)):
        part = parts[number]
        ends.append(part.first - whole.first)
    ends.append(NO_END)
    return ends


@cython.cfunc
def move_callbacks(callbacks: list[Any], parts: list[Any]) -> cython.void:
    at: cython.Py_ssize_t
    part: BatchResult
    for at in range(0, len(callbacks), 2):
        part = part_with(parts, callbacks[at]._index)
        part.callbacks.append(callbacks[at])
        part.callbacks.append(callbacks[at + 1])


@cython.cfunc
def move_waiters(waiters: list[Any], parts: list[Any], staying: list[Any]) -> cython.void:
    at: cython.Py_ssize_t
    part: BatchResult
    for at in range(0, len(waiters), 2):
        index: cython.int = waiters[at + 1]
        going: list[Any] = staying
        if index >= 0:
            part = part_with(parts, index)
            going = part.waiters
        going.append(waiters[at])
        going.append(waiters[at + 1])
