"""DeliveryCallbacks: the ``on_delivery`` callbacks of a batch's records, until the batch has its outcome.

Many records wait, so this is small: two numbers a record in plain arrays, and the function only where it differs from
the record's before.  That is 16 bytes, where a future would be 64.  The garbage collector does not know these arrays.
It would walk them again and again, and might run a finaliser under the lock for appends.  A callback may refer to its
future, which refers to the batch.  That cycle ends with the batch's outcome.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import cython
from cython.cimports.forebay._runtime.memory import (
    drop_numbers,
    drop_object,
    drop_objects,
    is_object_at,
    more_numbers,
    more_objects,
    no_numbers,
    no_objects,
    object_at,
    put_object,
)

from forebay.errors._base import own_copy
from forebay.model._metadata import DeliveryReport, RecordMetadata

# A record's second number holds both sizes plus one, in 32 bits each.  The highest bit of the lower half is free.
ANOTHER_FUNCTION = cython.declare(cython.longlong, 1 << 31)
SIZE = cython.declare(cython.longlong, (1 << 31) - 1)

LEAST = cython.declare(cython.Py_ssize_t, 16)
"""The number of records that the first arrays have room for."""


# Not tracked, as what it is kept in.
@cython.no_gc
@cython.cclass
class CompiledCallback:
    """A callback of this package's own: called in C, where a call by Python would cost more than what it does."""

    @cython.cfunc
    def deliver(self, metadata: RecordMetadata, error: Any) -> object:
        """The outcome, with the error if there is one; by the sender's thread."""
        raise NotImplementedError

    @cython.cfunc
    @cython.exceptval(check=False)
    def tells_owner(self) -> cython.bint:
        """Whether the owner of a record that failed hears of it by this."""
        return True


@cython.no_gc
@cython.cclass
class AddedCallback(CompiledCallback):
    """What is called for a record and was added after its ``send``.

    ``before`` is what the record had until then, called first.  ``function``, ``kind`` and ``number`` say all that
    there is to a call of it, so records for which they are alike share one.
    """

    if not cython.compiled:
        before: AddedCallback | None
        function: Any
        number: int
        kind: int


@cython.final
@cython.no_gc
@cython.cclass
class DeliveryCallbacks:
    """The callbacks of records 0, 1, 2 ... of one batch; None for a record without one.

    Appends need the lock of the batch's queue.  Once the batch is closed, the sender's thread owns it.
    """

    def __init__(self) -> None:
        self.functions = no_objects()
        self.function_count = 0
        self.function_room = 0
        self.numbers = no_numbers()
        self.count = 0
        self.room = 0
        self.timestamp = self.key_size = self.value_size = -1
        self.next_function = 0
        self.lost_at = self.lost = 0

    def __dealloc__(self) -> None:
        drop_objects(self.functions, self.function_count)
        drop_numbers(self.numbers)

    @cython.cfunc
    @cython.exceptval(check=False)
    def repeats(self, function: Any) -> cython.bint:
        """Whether the latest record's callback is this one."""
        return self.function_count > 0 and is_object_at(self.functions, self.function_count - 1, function)

    @cython.cfunc
    @cython.exceptval(-1)
    def reserve(self, index: cython.Py_ssize_t, expected: cython.Py_ssize_t) -> cython.int:
        """Makes room for the callback of record ``index``, so that ``add`` cannot fail.

        Args:
            expected: an estimate of the batch's records.  Room is made for that many, but at most for twice as many as
                there are.
        """
        if index >= self.room:
            room: cython.Py_ssize_t = max(index + 1, LEAST, min(expected, 2 * (index + 1)))
            self.numbers = more_numbers(self.numbers, 2 * self.count, 2 * room)
            self.room = room
        # One for the record, and one for None if records without a callback came before it.
        if self.function_count + 2 > self.function_room:
            room = max(2, self.function_count + min(self.function_count, LEAST) + 2)
            self.functions = more_objects(self.functions, self.function_count, room)
            self.function_room = room
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def add(
        self,
        index: cython.Py_ssize_t,
        function: Any,
        timestamp: cython.longlong,
        key_size: cython.longlong,
        value_size: cython.longlong,
    ) -> cython.void:
        """Adds the callback of record ``index``; ``reserve`` has made room for it."""
        while self.count < index:
            self.put(None, -1, -1, -1)
        self.put(function, timestamp, key_size, value_size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def put(
        self, function: Any, timestamp: cython.longlong, key_size: cython.longlong, value_size: cython.longlong
    ) -> cython.void:
        sizes: cython.longlong = ((key_size + 1) << 32) | (value_size + 1)
        if not self.repeats(function):
            put_object(self.functions, self.function_count, function)
            self.function_count += 1
            sizes |= ANOTHER_FUNCTION
        self.numbers[2 * self.count] = timestamp
        self.numbers[2 * self.count + 1] = sizes
        self.count += 1

    @cython.cfunc
    def last(self) -> Any:
        """The latest record's callback, None if there is none."""
        return None if self.function_count == 0 else object_at(self.functions, self.function_count - 1)

    @cython.cfunc
    def before_last(self) -> Any:
        """The callback of the record before the latest; the same as ``last`` where they have the same one."""
        if self.count == 0 or not self.numbers[2 * self.count - 1] & ANOTHER_FUNCTION:
            return self.last()
        return None if self.function_count < 2 else object_at(self.functions, self.function_count - 2)

    @cython.cfunc
    @cython.exceptval(check=False)
    def repeat(
        self,
        index: cython.Py_ssize_t,
        kind: cython.int,
        function: Any,
        number: cython.Py_ssize_t,
        timestamp: cython.longlong,
        key_size: cython.longlong,
        value_size: cython.longlong,
    ) -> cython.bint:
        """Adds to record ``index`` what the record before it has in the same place, if that is alike.

        False where it is not, or where there is no room.  For AddedCallbacks alone.
        """
        if self.function_count == 0 or self.function_count == self.function_room or index >= self.room:
            return False
        before: AddedCallback | None = None
        found: AddedCallback | None = cython.cast(AddedCallback, object_at(self.functions, self.function_count - 1))
        if self.count == index + 1:
            before = found
            found = cython.cast(AddedCallback, self.before_last())
        elif self.count != index:
            return False
        found = alike(found, before, kind, function, number)
        if found is None:
            return False
        if before is None:
            self.put(found, timestamp, key_size, value_size)
        else:
            self.replace_last(found)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def replace_last(self, function: Any) -> cython.void:
        """Gives the latest record another callback; ``reserve`` has made room, and the caller keeps the one it had."""
        at: cython.Py_ssize_t = 2 * self.count - 1
        if self.numbers[at] & ANOTHER_FUNCTION:
            self.function_count -= 1
            drop_object(self.functions, self.function_count)
            self.numbers[at] &= ~ANOTHER_FUNCTION
        if not self.repeats(function):
            put_object(self.functions, self.function_count, function)
            self.function_count += 1
            self.numbers[at] |= ANOTHER_FUNCTION

    @cython.cfunc
    def seek(self, index: cython.Py_ssize_t) -> Any:
        """The callback of record ``index``; sets ``timestamp``, ``key_size`` and ``value_size`` to the record's.

        To be called for each record once, in order.
        """
        sizes: cython.longlong = self.numbers[2 * index + 1]
        self.timestamp = self.numbers[2 * index]
        self.key_size = (sizes >> 32) - 1
        self.value_size = (sizes & SIZE) - 1
        if sizes & ANOTHER_FUNCTION:
            self.next_function += 1
        return object_at(self.functions, self.next_function - 1)

    @cython.cfunc
    def share(self, parts: list[Any], ends: list[Any]) -> cython.void:
        """Copies the callbacks of a split batch to ``parts``: records before ``ends[0]`` to the first, and so on.

        ``seek`` has not been called, or not since ``share`` ran out of memory.
        """
        self.next_function = 0
        at: cython.Py_ssize_t
        number: cython.Py_ssize_t
        begin: cython.Py_ssize_t = 0
        function: Any
        part: DeliveryCallbacks
        for number in range(len(parts)):
            part = parts[number]
            end: cython.Py_ssize_t = min(ends[number], self.count)
            for at in range(begin, end):
                function = self.seek(at)
                if function is not None:
                    part.reserve(at - begin, end - begin)
                    part.add(at - begin, function, self.timestamp, self.key_size, self.value_size)
            begin = ends[number]
        self.next_function = 0

    @cython.cfunc
    def mark_heard(self, heard: bytearray) -> cython.void:
        """Sets the byte of each record whose owner hears of a failure by its callback."""
        at: cython.Py_ssize_t
        number: cython.Py_ssize_t = -1
        is_heard: cython.bint = False
        for at in range(min(self.count, len(heard))):
            if self.numbers[2 * at + 1] & ANOTHER_FUNCTION:
                number += 1
                is_heard = hears(object_at(self.functions, number))
            if is_heard:
                heard[at] = 1

    def __reduce__(self) -> Any:
        raise TypeError("DeliveryCallbacks cannot be pickled: they belong to a batch of this process")


@cython.cfunc
def alike(
    known: AddedCallback | None,
    before: AddedCallback | None,
    kind: cython.int,
    function: Any,
    number: cython.Py_ssize_t,
) -> AddedCallback | None:
    """The part of ``known``, another record's, that is what is asked for; None if there is none."""
    found: AddedCallback | None = known
    while found is not None and found.before is not before:
        found = found.before
    if found is None or found.kind != kind or found.number != number:
        return None
    if found.function is function:
        return found
    # Each look at a method makes an object.
    if type(function) is MethodType and type(found.function) is MethodType:
        if function.__self__ is found.function.__self__ and function.__func__ is found.function.__func__:
            return found
    return None


@cython.cfunc
@cython.exceptval(check=False)
def hears(function: Any) -> cython.bint:
    """Whether a record's owner hears of its failure by this callback, None for none."""
    if isinstance(function, CompiledCallback):
        return cython.cast(CompiledCallback, function).tells_owner()
    return function is not None


@cython.cfunc
def deliver_to(function: Any, report: DeliveryReport) -> object:
    if isinstance(function, CompiledCallback):
        return cython.cast(CompiledCallback, function).deliver(report._metadata, report._error)
    function(report)
    return None


@cython.cfunc
def copy_or_itself(error: Any) -> Any:
    """A copy for one callback, or the error itself if there is no memory for a copy."""
    copy: Any = error
    try:
        copy = own_copy(error)
    except MemoryError:
        pass
    return copy
