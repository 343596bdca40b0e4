"""Callbacks that a class of this package adds to a record after its ``send``, kept as small as those that came with it.

They are in ``BatchResult.added``, in the order of the records.  If a callback is refused here, use
``RecordFuture.add_done_callback``, which keeps the future alive until the outcome.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._delivery.result import PENDING
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._delivery.callbacks import AddedCallback, DeliveryCallbacks
from forebay._delivery.future import RecordFuture
from forebay._delivery.result import BatchResult


@cython.cfunc
@cython.exceptval(check=False)
def repeat_added(future: RecordFuture, kind: cython.int, function: Any, number: cython.Py_ssize_t) -> cython.bint:
    """``put_added`` of what the record before has too (``DeliveryCallbacks.repeat``); False if it is not put."""
    part: BatchResult = future._batch if future._batch.parts is None else future._batch.leaf(future._index)
    is_put: cython.bint = False
    acquire(part.lock)
    try:
        if part.added is not None and may_take(part):
            is_put = part.added.repeat(
                future._index - part.first,
                kind,
                function,
                number,
                future._timestamp,
                future._key_size,
                future._value_size,
            )
    finally:
        release(part.lock)
    return is_put


@cython.cfunc
@cython.exceptval(check=False)
def may_take(part: BatchResult) -> cython.bint:
    # Callbacks held by futures run after these.  So once a future holds one, later callbacks must go there too.
    return part.state == PENDING and part.parts is None and len(part.callbacks) == 0 and not part.is_foreign()


@cython.cfunc
def added_callback(future: RecordFuture, of_earlier: cython.bint) -> Any:
    """The record's own callback or None; with ``of_earlier``, that of the latest record before it."""
    part: BatchResult = future._batch.leaf(future._index)
    acquire(part.lock)
    try:
        calls: DeliveryCallbacks | None = part.added
        if calls is None or part.state != PENDING:
            return None
        has_own: cython.bint = calls.count > future._index - part.first
        if of_earlier:
            return calls.before_last() if has_own else calls.last()
        return calls.last() if has_own else None
    finally:
        release(part.lock)


@cython.cfunc
@cython.exceptval(-1)
def put_added(future: RecordFuture, before: Any, callback: AddedCallback, function: Any) -> cython.bint:
    """Has ``callback.deliver`` called with the record's outcome.

    Args:
        before: what the record has already, in place of which it is put; None for nothing.
        function: what the callback keeps, if no other record has the same one; else None.

    Returns:
        False if it is not put: there is an outcome, the record has something else by now, a later record has a
        callback, a future keeps one, or the record belongs to another process.
    """
    part: BatchResult = future._batch.leaf(future._index)
    account: Any = part.account
    places: cython.Py_ssize_t = put_locked(part, future, before, callback)
    if account is not None:
        if places >= 0 and function is not None:
            account.charge_callback(function)
        if places > 0:
            account.charge_numbers(places)
    return places >= 0


@cython.cfunc
@cython.exceptval(-2)
def put_locked(part: BatchResult, future: RecordFuture, before: Any, callback: AddedCallback) -> cython.Py_ssize_t:
    # For how many further records memory was taken; -1 if it is not put.
    had: Any = None  # dropped behind the lock
    acquire(part.lock)
    try:
        if not may_take(part):
            return -1
        if part.added is None:
            part.added = DeliveryCallbacks()
        calls: DeliveryCallbacks = part.added
        at: cython.Py_ssize_t = future._index - part.first
        had = calls.last() if calls.count == at + 1 else None
        if calls.count > at + 1 or had is not before:
            return -1
        room: cython.Py_ssize_t = calls.room
        calls.reserve(at, 2 * at + 2)
        if before is None:
            calls.add(at, callback, future._timestamp, future._key_size, future._value_size)
        else:
            calls.replace_last(callback)
        return calls.room - room
    finally:
        release(part.lock)
