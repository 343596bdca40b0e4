"""BufferPool: the bound on the memory of all batches, in bytes that are really held.

Memory is credit against ``buffer.memory``.  Chunks of ``batch.size`` that come back are kept for reuse, within the
credit that is left; other sizes are credit only.  A caller that finds too little leaves a ticket, waits on it, and
calls again.  Waiters are served in order (``waiters``), so a large request cannot starve; the Java pool lets a newcomer
take memory ahead of waiters.  Only two things may overdraw: memory that exists already (``charge``: compressed output,
what a batch costs beside its records), and, by little, what fills a batch that has its chunk.

Each buffer counts its holders: its batch, and every request whose bytes may still be written.  It goes back when the
last one lets go and never before (KAFKA-19012: memory was given back that a socket still read).
"""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import ENDED, GRANTED, QUEUED
from cython.cimports.forebay._runtime.memory import free_memory, new_memory, show_memory, whole_view
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release
from cython.cimports.forebay._runtime.primitives import kept_bytes_pointer

from forebay._accumulator.waiters import BrokerQuotas, PoolWaiter, PoolWaiters
from forebay.errors import IllegalArgumentError, ProducerClosedError

INFINITY: cython.double = math.inf
MOST_OVERDRAFT = cython.declare(cython.longlong, 4 << 20)
"""Bytes.  To fill batches, an eighth of the total or of a share may be overdrawn, and this much at most."""
DEFER_MS = cython.declare(cython.double, 5.0)
"""How long waiters may be left asleep after memory came back for them, see ``BufferPool.defer``."""


# Not tracked by the garbage collector, which would walk all that waits again and again.  A closed pool keeps none for
# reuse, so the cycle through ``free`` does not last.
@cython.final
@cython.no_gc
@cython.cclass
class Buffer:
    """Counted memory; ``holds`` is guarded by the pool's lock."""

    def __init__(self, pool: BufferPool, size: cython.Py_ssize_t, owner: Any) -> None:
        self.base = new_memory(size)
        self.size = size
        self.used = 0
        self.adopted = False
        self.packed: bytes | None = None
        self.owner = owner
        self.holds = 1
        self.pool = pool

    def __dealloc__(self) -> None:
        # Views of the memory hold this object, so there are none any more.  The road not taken: a bytearray.  It costs
        # 64 bytes more for each batch, and it is written once before the records are.
        if not self.adopted:
            free_memory(self.base)

    def __getbuffer__(self, view: cython.pointer(Py_buffer), flags: cython.int):  # type: ignore # noqa: F821
        show_memory(view, self, self.base, self.size, flags)

    @cython.ccall
    @cython.exceptval(check=False)
    def retain(self) -> cython.void:
        """Adds a holder; the caller must be one already."""
        acquire(self.pool.lock)
        try:
            self.holds += 1
        finally:
            release(self.pool.lock)

    @cython.ccall
    @cython.exceptval(-1)
    def release(self) -> cython.int:
        """One holder lets go.  The last one gives the memory back, and waiters that can go on are woken."""
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            self.holds -= 1
            given_back: cython.bint = self.holds == 0
            if given_back:
                pool.count(self.owner, -self.size)
                if self.size == pool.poolable_size and not self.adopted and not pool.closed:
                    if (len(pool.free) + 1) * self.size <= pool.left:
                        pool.free.append(self)
        except MemoryError:
            pass  # the list could not grow: the chunk goes to the system
        finally:
            release(pool.lock)
        if given_back:
            pool.serve_waiters()
        return 0

    @property
    def data(self) -> memoryview:
        """All of it, not copied; of adopted bytes read-only."""
        if self.adopted:
            return memoryview(self.packed)  # type: ignore[arg-type]
        whole: memoryview = whole_view(self, self.base)
        return whole


@cython.ccall
def adopt(pool: BufferPool, data: bytes, owner: Any) -> Buffer:
    """Counts bytes that were made elsewhere (compressed output) until the last holder lets go."""
    buffer: Buffer = Buffer.__new__(Buffer)
    buffer.packed = data
    buffer.base = kept_bytes_pointer(data)
    buffer.adopted = True
    buffer.size = len(data)
    buffer.owner = owner
    buffer.holds = 1
    buffer.pool = pool
    pool.charge(owner, len(data))
    return buffer


@cython.final
@cython.cclass
class BufferPool:
    """``buffer.memory`` bytes for batches; any thread may call any method.

    Args:
        total: most bytes to hand out (``buffer.memory``).
        poolable_size: the size that is kept for reuse (``batch.size``).
        owner_limit: most bytes one owner (a broker) may hold; 0 for no limit.
        overhead: bytes that each batch costs beside its chunks.
        overhead_free: how many bytes of that are not counted; those above are.
    """

    def __init__(
        self,
        total: cython.longlong,
        poolable_size: cython.Py_ssize_t,
        owner_limit: cython.longlong = 0,
        overhead: cython.Py_ssize_t = 0,
        overhead_free: cython.longlong = 0,
    ) -> None:
        self.total = total
        self.poolable_size = poolable_size
        self.owner_limit = owner_limit
        self.overhead = overhead
        self.overhead_left = overhead_free
        self.left = total
        self.overdraft = min(total >> 3, MOST_OVERDRAFT)
        # Half of what a share leaves to the others stays theirs.
        self.share_overdraft = min(owner_limit >> 3, (total - owner_limit) >> 1, MOST_OVERDRAFT)
        self.free: list[Any] = []
        self.shares = BrokerQuotas(owner_limit)
        self.waiters = PoolWaiters(self.shares)
        self.deferring = False
        self.deferred_since = -1.0
        self.deferred_from = 0
        self.closed = False
        if not cython.compiled:
            self.lock = Mutex()

    @cython.ccall
    def allocate(self, size: cython.Py_ssize_t, owner: Any, ticket: Any, roaming: cython.bint = False) -> Buffer | None:
        """A buffer of ``size`` bytes, or None: then ``ticket`` waits, unless it is None.

        When the ticket was woken, the same call with the same ticket takes what was granted.  It returns None if the
        ticket was woken early.  A caller that gives up calls ``cancel``.

        Args:
            owner: the owner whose share the buffer counts against.  It may be another one in a later call with the same
                ticket, which keeps its place.
            roaming: the caller could use another owner's share.  It is woken early, to look, whenever memory comes back
                that it may not have.

        Raises:
            IllegalArgumentError: ``size`` is more than the whole pool.
            ProducerClosedError: the pool is closed.
            MemoryError: the machine has none left; the credit is back in the pool.
        """
        if size > self.total:
            raise IllegalArgumentError(
                f"Attempt to allocate {size} bytes, but there is a hard limit of {self.total} on memory allocations "
                "(buffer.memory)."
            )
        if ticket is not None and ticket.grant is not None:
            return self.granted_to(ticket.grant, owner)
        waiter: PoolWaiter | None = None if ticket is None else PoolWaiter(size, owner, ticket, roaming)
        granted: cython.bint = False
        buffer: Buffer | None = None
        acquire(self.lock)
        try:
            closed: cython.bint = self.closed
            if closed:
                pass
            elif self.may_have(size, owner):
                granted = True
                buffer = self.take_free(size, owner)
            elif waiter is not None:
                ticket.grant = waiter
                self.waiters.waiting.append(waiter)
        finally:
            release(self.lock)
        if closed:
            raise ProducerClosedError("Producer closed while allocating memory")
        if granted and buffer is None:
            buffer = self.create(size, owner)
        return buffer

    @cython.ccall
    def try_chunk(self, owner: Any) -> Buffer | None:
        """A further chunk for an open batch, if one is free at once and no other caller waits; else None."""
        if self.closed:
            return None
        return self.allocate(self.poolable_size, owner, None)

    @cython.ccall
    def cancel(self, ticket: Any) -> cython.void:
        """The ticket waits no longer; a grant that was not taken goes back (timeout, Ctrl-C, cancellation)."""
        waiter: PoolWaiter = ticket.grant
        if waiter is None:
            return
        acquire(self.lock)
        try:
            if waiter.state == QUEUED and waiter in self.waiters.waiting:
                self.waiters.waiting.remove(waiter)
            elif waiter.state == GRANTED:
                self.count(waiter.owner, -waiter.size)
            waiter.state = ENDED
            ticket.grant = None
        finally:
            release(self.lock)
        waiter.buffer = None
        self.serve_waiters()

    @cython.ccall
    def charge(self, owner: Any, size: cython.Py_ssize_t) -> cython.void:
        """Counts memory made elsewhere (compressed output); may overdraw, never waits."""
        acquire(self.lock)
        try:
            self.count(owner, size)
        finally:
            release(self.lock)

    @cython.ccall
    def credit(self, owner: Any, size: cython.Py_ssize_t) -> cython.void:
        """Takes back what ``charge`` counted."""
        acquire(self.lock)
        try:
            self.count(owner, -size)
        finally:
            release(self.lock)
        self.serve_waiters()

    @cython.ccall
    @cython.exceptval(-1)
    def exceeds_share(self, size: cython.Py_ssize_t, owner: Any) -> cython.bint:
        """Whether ``size`` more bytes are above ``owner``'s share, or a caller waits for that share.  Old at once."""
        acquire(self.lock)
        try:
            return self.shares.lacks(size, owner, 0) or self.waiters.wants_share(owner)
        finally:
            release(self.lock)

    def holders(self) -> list[tuple[Any, int]]:
        """The owners that hold anything, with their bytes, the largest first."""
        return self.shares.held()

    @cython.ccall
    @cython.exceptval(-1)
    def starved(self) -> cython.bint:
        """Whether a caller waits because there is no memory, not only none of its owner's share."""
        if len(self.waiters.waiting) == 0:
            return False
        acquire(self.lock)
        try:
            return self.waiters.lack_memory(self.left)
        finally:
            release(self.lock)

    @cython.ccall
    @cython.exceptval(check=False)
    def queued(self) -> cython.Py_ssize_t:
        """How many callers wait."""
        return len(self.waiters.waiting)

    @cython.ccall
    def available(self) -> cython.longlong:
        """Bytes not handed out, those kept for reuse included; negative while overdrawn."""
        return self.left

    @cython.ccall
    def close(self) -> cython.void:
        """Wakes all waiters, which are told that the producer is closed.  Buffers that come back are freed."""
        none: list[Any] = []
        acquire(self.lock)
        try:
            self.closed = True
            self.free.clear()
            waiting: list[Any] = self.waiters.waiting
            self.waiters.waiting = none
            for waiter in waiting:
                cython.cast(PoolWaiter, waiter).state = ENDED
        finally:
            release(self.lock)
        for waiter in waiting:
            waiter.ticket.wake()

    @cython.ccall
    def wake_waiters(self) -> cython.void:
        """Wakes all waiters to look around; they keep their places."""
        self.waiters.wake(False)

    # Waking in one go

    @cython.cfunc
    @cython.exceptval(-1)
    def defer(self) -> cython.bint:
        """Whether waiters are left asleep while memory comes back, until ``serve_deferred``.  Sender's thread only.

        A waiter that is woken for one batch fills it and waits again: a switch of threads for each request.  So where
        threads lack memory, it gathers first, for milliseconds.  They lose nothing: the buffer is full meanwhile.
        """
        if not self.deferring and self.starved():
            self.deferred_since = -1.0
            self.deferred_from = self.left
            self.deferring = True
        return self.deferring

    @cython.ccall
    @cython.exceptval(-1)
    def serve_deferred(self, now: cython.double, idle: cython.bint) -> cython.double:
        """Serves the waiters if it is time to; ms until it is, infinite if none is left asleep.  Sender's thread only.

        Args:
            idle: nothing is in flight that could give back more.
        """
        if not self.deferring:
            return INFINITY
        if self.deferred_since < 0:
            self.deferred_since = now
        wait: cython.double = self.deferred_since + DEFER_MS - now
        if wait > 0 and not idle and self.left - self.deferred_from < self.total >> 3:
            return wait
        self.serve_now()
        return INFINITY

    @cython.ccall
    @cython.exceptval(-1)
    def serve_now(self) -> cython.bint:
        """Ends what ``defer`` began, for a caller that cannot wait; whether it had begun.  Sender's thread only."""
        deferred: cython.bint = self.deferring
        self.deferring = False
        if deferred:
            self.serve_waiters()
        return deferred

    @cython.cfunc
    def granted_to(self, waiter: PoolWaiter, owner: Any) -> Buffer | None:
        acquire(self.lock)
        try:
            if waiter.state == QUEUED:
                waiter.owner = owner
        finally:
            release(self.lock)
        if self.owner_limit > 0:
            # Of another owner there may be room at once, and no other event may come to say so.
            self.grant_all()
        acquire(self.lock)
        try:
            state: cython.int = waiter.state
            if state == GRANTED:
                waiter.state = ENDED
        finally:
            release(self.lock)
        if state == QUEUED:
            return None
        waiter.ticket.grant = None
        if state == ENDED:
            raise ProducerClosedError("Producer closed while allocating memory")
        buffer: Buffer | None = waiter.buffer
        waiter.buffer = None
        return self.create(waiter.size, waiter.owner) if buffer is None else buffer

    @cython.cfunc
    def create(self, size: cython.Py_ssize_t, owner: Any) -> Buffer:
        # Outside the lock: a large buffer takes long to make, and may fail.
        try:
            return Buffer(self, size, owner)
        except BaseException:
            self.credit(owner, size)
            raise

    @cython.cfunc
    @cython.exceptval(-1)
    def may_have(self, size: cython.Py_ssize_t, owner: Any) -> cython.bint:
        # A newcomer may pass those that wait for other owners' shares, and no others.
        return self.left >= size and not self.shares.lacks(size, owner, 0) and self.waiters.lets_pass(owner)

    @cython.cfunc
    @cython.exceptval(-1)
    def may_fill(self, size: cython.Py_ssize_t, owner: Any) -> cython.bint:
        # For a batch that has its chunk, also ahead of waiters.  A busy producer always has waiters.  If they came
        # first, every batch would go out with the one record that it was made for.
        return size <= self.left + self.overdraft and not self.shares.lacks(size, owner, self.share_overdraft)

    @cython.cfunc
    @cython.exceptval(-1)
    def count(self, owner: Any, size: cython.longlong) -> cython.int:
        # The share first: counting it may raise MemoryError, and then nothing is taken.  Kept buffers beyond the credit
        # that is left are dropped; this frees plain memory and runs no code of the user.
        self.shares.count(owner, size)
        self.left -= size
        while len(self.free) > 0 and cython.cast(cython.longlong, len(self.free)) * self.poolable_size > self.left:
            self.free.pop()
        return 0

    @cython.cfunc
    def take_free(self, size: cython.Py_ssize_t, owner: Any) -> Buffer | None:
        # A kept buffer if one fits.  It is taken out before the credit, because ``take`` may drop kept buffers.
        buffer: Buffer | None = None
        if size == self.poolable_size and len(self.free) > 0:
            kept: Buffer = self.free.pop()
            kept.owner = owner
            kept.holds = 1
            buffer = kept
        self.count(owner, size)
        return buffer

    @cython.cfunc
    @cython.exceptval(-1)
    def grant_all(self) -> cython.int:
        # Grants what the waiters can have, in order, and wakes outside the lock.
        waiter: PoolWaiter | None
        while len(self.waiters.waiting) > 0 and not self.deferring:
            acquire(self.lock)
            try:
                waiter = self.waiters.next(self.left)
                if waiter is not None:
                    waiter.buffer = self.take_free(waiter.size, waiter.owner)
                    waiter.state = GRANTED
            finally:
                release(self.lock)
            if waiter is None:
                break
            waiter.ticket.wake()
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def serve_waiters(self) -> cython.int:
        """Memory came back, or moved from one owner to another: grants it to waiters.  Outside all locks."""
        self.grant_all()
        if self.owner_limit > 0 and len(self.waiters.waiting) > 0:
            self.waiters.wake(True)
        return 0
