"""BatchAccount: what a batch costs beside its records' bytes.  It counts against ``buffer.memory`` too.

A record with a callback keeps two numbers, and the function itself unless the previous record had the same one, until
its batch has an outcome.  For small records this is many times their own bytes.  So a batch asks the pool for that
memory, for several records at once.  A batch that has its chunk is filled before waiters get memory, and for this the
pool may be overdrawn by an eighth, and 4 MiB at most.  When that is used up, the batch takes no further record with a
callback.  The next such record waits for a batch of its own, which may overdraw by what one record needs.  So the
overdraft is bounded, and no record waits for memory that only its own batch can give back.

What a closure refers to, and futures that the caller keeps, are the caller's memory.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import cython
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._accumulator.pool import Buffer, BufferPool

# Bytes with CPython 3.11 on 64-bit Linux, too many rather than too few (bench/memory.py shows the sum).
BATCH_COST = 1536
"""A batch with its records and result, its place in every list on the way, and the holes it leaves."""
BATCH_COST_FREE = 8 << 20
"""This much of it is not counted: with few batches ``buffer.memory`` is for records alone, as in Java."""
CHUNK_COST = cython.declare(cython.Py_ssize_t, 208)
"""A further chunk's buffer, its place in the list and the head that the allocator puts before it."""
NUMBERS_COST = cython.declare(cython.Py_ssize_t, 24)
"""What a batch keeps of each record up to the last with a callback, and the reserve of the growing array."""
PLACE_COST = cython.declare(cython.Py_ssize_t, 64)
"""A further function in the array, or one that was added later in a list, with its future."""
METHOD_COST = cython.declare(cython.Py_ssize_t, 64)
FUNCTION_COST = cython.declare(cython.Py_ssize_t, 360)
"""A closure or a partial over one value."""
CALLBACKS_AT_ONCE = cython.declare(cython.int, 16)


@cython.exceptval(check=False)
@cython.cfunc
def callback_cost(callback: Any) -> cython.Py_ssize_t:
    """Bytes that a record's callback costs if the previous record has another one."""
    return NUMBERS_COST + PLACE_COST + (METHOD_COST if type(callback) is MethodType else FUNCTION_COST)


@cython.final
@cython.no_gc
@cython.cclass
class BatchAccount:
    """The account of one batch; closed with it.

    Args:
        pool: the pool that it is charged to.
        owner: the owner whose share it counts against, as the batch's buffers do.
    """

    def __init__(self, pool: BufferPool, owner: Any) -> None:
        self.set_up(pool, owner)

    @cython.cfunc
    @cython.exceptval(check=False)
    def set_up(self, pool: BufferPool, owner: Any) -> cython.void:
        self.pool = pool
        self.owner = owner
        self.charged = 0
        self.spared = False  # the cost of the batch itself is not counted
        self.room = 0
        self.closed = False
        self.stopped = False

    @cython.ccall
    @cython.exceptval(-1)
    def open(self, callback: Any) -> cython.int:
        """The batch gets its first record.  May overdraw the pool."""
        cost: cython.Py_ssize_t = 0 if callback is None else callback_cost(callback)
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            if pool.overhead <= pool.overhead_left:
                pool.overhead_left -= pool.overhead
                self.spared = True
            else:
                cost += pool.overhead
            if cost > 0:
                pool.count(self.owner, cost)
                self.charged += cost
        finally:
            release(pool.lock)
        return 0

    @cython.cfunc
    def add_chunk(self) -> cython.void:
        """The batch gets a further chunk.  May overdraw the pool."""
        self.charge(CHUNK_COST)

    @cython.cfunc
    @cython.exceptval(check=False)
    def afford_another(self) -> cython.bint:
        """As ``afford`` for a record with the previous one's callback, but False where that needs more memory."""
        if self.room < NUMBERS_COST:
            return False
        self.room -= NUMBERS_COST
        return True

    @cython.ccall
    @cython.exceptval(-1)
    def afford(
        self, callback: Any, repeated: cython.bint, skipped: cython.Py_ssize_t, records: cython.int
    ) -> cython.bint:
        """Whether the batch may take a further record with ``callback``.  Queue's lock held.

        Args:
            repeated: the previous record has the same callback, which costs less.
            skipped: how many records without a callback came before it.
            records: how many the batch has.  It asks for memory for as many again, so small batches hoard none.
        """
        cost: cython.Py_ssize_t = (NUMBERS_COST if repeated else callback_cost(callback)) + skipped * NUMBERS_COST
        if cost <= self.room:
            self.room -= cost
            return True
        more: cython.Py_ssize_t = cost * min(records, CALLBACKS_AT_ONCE)
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            granted: cython.bint = pool.may_fill(more, self.owner)
            if granted:
                pool.count(self.owner, more)
                self.charged += more
        finally:
            release(pool.lock)
        if granted:
            self.room += more - cost
        return granted

    @cython.ccall
    def charge(self, size: cython.Py_ssize_t) -> cython.void:
        """Counts memory that exists already; may overdraw.  Does nothing once the account is closed."""
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            if not self.closed:
                pool.count(self.owner, size)
                self.charged += size
        finally:
            release(pool.lock)

    @cython.ccall
    def of_records(self) -> cython.Py_ssize_t:
        """The part of the charge that moves with the records when a batch is split: all but the batch's own cost."""
        return self.charged - (0 if self.spared else self.pool.overhead)

    @cython.ccall
    def charge_callback(self, callback: Any) -> cython.void:
        """Counts a callback that comes after its record, or moves here with it.  Any thread.

        It cannot be refused.  So a batch that overdraws too much by it takes no further records.
        """
        self.charge(callback_cost(callback))
        if self.pool.left + self.pool.overdraft < 0:
            self.stopped = True

    @cython.ccall
    def charge_numbers(self, records: cython.Py_ssize_t) -> cython.void:
        """Counts what is kept of so many records beside their callbacks, as ``charge_callback`` does."""
        self.charge(records * NUMBERS_COST)
        if self.pool.left + self.pool.overdraft < 0:
            self.stopped = True

    @cython.ccall
    def credit_callback(self, callback: Any) -> cython.void:
        """Takes back what ``charge_callback`` counted, because the batch had its outcome meanwhile."""
        size: cython.Py_ssize_t = callback_cost(callback)
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            if not self.closed:
                pool.count(self.owner, -size)
                self.charged -= size
        finally:
            release(pool.lock)
        pool.serve_waiters()

    @cython.ccall
    def move(self, owner: Any, first: Buffer | None, further: list[Any] | None) -> cython.void:
        """Counts the account and the batch's buffers against another owner from now on.

        Afterwards, outside all locks, ``pool.serve_waiters`` is due.
        """
        pool: BufferPool = self.pool
        buffer: Buffer
        acquire(pool.lock)
        try:
            if not self.closed:
                pool.shares.move(self.owner, owner, self.charged)
                self.owner = owner
            if first is not None:
                pool.shares.move(first.owner, owner, first.size)
                first.owner = owner
            if further is not None:
                for buffer in further:
                    pool.shares.move(buffer.owner, owner, buffer.size)
                    buffer.owner = owner
        finally:
            release(pool.lock)

    @cython.ccall
    @cython.exceptval(-1)
    def close(self) -> cython.int:
        """Gives everything back; idempotent."""
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            if not self.closed:
                self.closed = True
                if self.spared:
                    pool.overhead_left += pool.overhead
                if self.charged != 0:
                    pool.count(self.owner, -self.charged)
                    self.charged = 0
        finally:
            release(pool.lock)
        pool.serve_waiters()
        return 0

    def __repr__(self) -> str:
        return f"<BatchAccount: {self.charged} bytes of owner {self.owner}{', closed' if self.closed else ''}>"


@cython.cfunc
def new_account(pool: BufferPool, owner: Any) -> BatchAccount:
    """Makes one without a constructor's call, which costs more than the account."""
    account: BatchAccount = BatchAccount.__new__(BatchAccount)
    account.set_up(pool, owner)
    return account
