"""The callbacks of kafka-python's futures, as a record's batch keeps them until its outcome.

Most programs give each record the same functions.  So records that stand behind each other share one ``Call``, which
the batch keeps once for all of them, and the future that it was added to need not live.
"""

from __future__ import annotations

import sys
from typing import Any

import cython
from cython.cimports.forebay.model._metadata import RecordMetadata as NativeMetadata
from cython.cimports.forebay.producer._frontend import (
    AddedCallback,
    RecordFuture,
    is_unshared,
    process_number,
    put_item,
)

from forebay.compat.kafka._own_structs import TopicPartition
from forebay.compat.kafka.errors import translated
from forebay.compat.kafka.structs import RecordMetadata
from forebay.errors._base import own_copy
from forebay.producer._frontend import leave_forked_child, report_briefly

MODULES = cython.declare(dict, sys.modules)

if not cython.compiled:
    ALWAYS, ON_SUCCESS, ON_FAILURE = range(3)
    DEEPEST = 16

new_tuple: Any = tuple.__new__


# Not tracked, as the native future's callbacks are not: the batch drops it with its outcome.
@cython.final
@cython.no_gc
@cython.cclass
class Call(AddedCallback):
    """One function, behind those that the record has already (``before``).  The sender's thread calls it.

    ``kind`` says for which outcome, and ``number`` is the size of the record's headers.
    """

    if not cython.compiled:
        made: Any
        timestamp: int
        key_size: int
        value_size: int
        depth: int

    @cython.cfunc
    def deliver(self, metadata: NativeMetadata, error: Any) -> object:
        wants: cython.bint = self.kind != (ON_FAILURE if error is None else ON_SUCCESS)
        if self.before is None or not wants:
            if wants:
                self.call(metadata, error)
            elif self.before is not None:
                self.before.deliver(metadata, error)
            return None
        earlier: Any = cython.cast(Call, self.before).raised_by(metadata, error)
        try:
            if earlier is None:
                self.call(metadata, error)
            else:
                self.call_after(earlier, metadata, error)
                raise earlier
        finally:
            earlier = None  # interpreted, its traceback has this frame
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def tells_owner(self) -> cython.bint:
        return self.kind != ON_SUCCESS or (self.before is not None and self.before.tells_owner())

    @cython.cfunc
    def call(self, metadata: NativeMetadata, error: Any) -> object:
        self.function(self.located(metadata) if error is None else translated(error))
        return None

    @cython.cfunc
    def raised_by(self, metadata: NativeMetadata, error: Any) -> Any:
        # What deliver raises, for the caller to log, because there are functions behind it that must be called first.
        process: cython.int = process_number()
        found: Any = None
        try:
            self.deliver(metadata, error)
        except BaseException as raised:  # noqa: BLE001 - SystemExit too: a callback never stops the sender
            found = raised
        if process != process_number():
            leave_forked_child(found)
        return found

    @cython.cfunc
    def call_after(self, earlier: Any, metadata: NativeMetadata, error: Any) -> object:
        try:
            self.call(metadata, error)
        except BaseException:
            report_briefly(earlier, metadata)  # the caller logs one
            raise
        return None

    def __call__(self, native: RecordFuture) -> None:
        """For a future that keeps it itself."""
        error = native._batch.error_of(native._index)  # _error would count as asking
        self.deliver(native.metadata(), None if error is None else own_copy(error))

    @cython.cfunc
    def located(self, found: NativeMetadata) -> Any:
        # A tuple that no function kept is used for the next record, as zip() does.  All have one partition.
        made: Any = self.made
        self.made = None
        if made is None or not is_unshared(made):
            made = record_metadata(found, self.number)
        else:
            put_item(made, 3, found._offset)
            if self.timestamp != found._timestamp:
                put_item(made, 4, found._timestamp)
            if self.key_size != found._key_size:
                put_item(made, 6, found._key_size)
            if self.value_size != found._value_size:
                put_item(made, 7, found._value_size)
        self.timestamp = found._timestamp
        self.key_size = cython.cast(cython.int, found._key_size)
        self.value_size = cython.cast(cython.int, found._value_size)
        self.made = made
        return made

    def __reduce__(self) -> Any:
        raise TypeError("a Call cannot be pickled: it belongs to a record of this process")


@cython.cfunc
def record_metadata(found: NativeMetadata, header_size: cython.Py_ssize_t) -> Any:
    # Past the Python code of a named tuple's class, which takes longer than the rest of a callback.
    # The class of kafka-python's consumers, once a program has imported them: they take no other.
    theirs: Any = MODULES.get("kafka.structs")
    kind: Any = TopicPartition if theirs is None else getattr(theirs, "TopicPartition", TopicPartition)
    where = new_tuple(kind, (found._topic, found._partition))
    fields: tuple[Any, ...] = (
        found._topic,
        found._partition,
        where,
        found._offset,
        found._timestamp,
        None,
        found._key_size,
        found._value_size,
        header_size,
    )
    return new_tuple(RecordMetadata, fields)


@cython.cfunc
def new_call(before: Any, kind: cython.int, function: Any, header_size: cython.Py_ssize_t) -> Call:
    call: Call = Call.__new__(Call)
    call.before = before
    call.function = function
    call.kind = kind
    call.number = header_size
    call.made = None
    call.timestamp = call.key_size = call.value_size = -1
    call.depth = 0 if before is None else cython.cast(Call, before).depth + 1
    return call
