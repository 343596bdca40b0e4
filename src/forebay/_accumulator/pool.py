"""BufferPool: the bound on the memory of all batches, in bytes that are really held.

Memory is credit against ``buffer.memory``.  Chunks of ``batch.size`` that come back are kept for reuse, within
the credit that is left; other sizes are credit only.  Who finds too little leaves a ticket and waits in line.
The line is strictly first in, first out (the Java pool lets a newcomer take memory ahead of those who wait), so
what is let go gathers for the head of the line and a large request cannot starve; who lacks only his own share holds
up those who wait for the same share, and nobody else.  The front end waits on its ticket and calls again.  Only what
is there already (``charge``: compressed output, what a batch costs beside its records) may overdraw, and, by little,
what fills a batch that has its chunk.

Each buffer counts its holders: its batch, and every request whose bytes may still be written.  It goes back when
the last one lets go and never before (KAFKA-19012: memory was given back that a socket still read).
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.shares import Share, Shares
from cython.cimports.forebay._runtime.memory import free_memory, new_memory, show_memory, whole_view
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release
from cython.cimports.forebay._runtime.primitives import kept_bytes_pointer

from forebay.errors import IllegalArgumentError, ProducerClosedError

# A waiter's states; QUEUED is left once, under the pool's lock.
QUEUED = cython.declare(cython.int, 0)
GRANTED = cython.declare(cython.int, 1)
ENDED = cython.declare(cython.int, 2)

# An eighth of the total or of a share, and this much at most, may be overdrawn to fill batches.
MOST_OVERDRAFT = cython.declare(cython.longlong, 4 << 20)


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
        # Views of the memory hold this object, so nobody looks at it any more.  Memory of its own, and not a bytearray:
        # 64 bytes less for each batch, and none of it written before the records are.
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
        """One holder lets go; the last one gives the memory back and wakes whoever can go on."""
        pool: BufferPool = self.pool
        acquire(pool.lock)
        try:
            self.holds -= 1
            given_back: cython.bint = self.holds == 0
            if given_back:
                pool.take(self.owner, -self.size)
                if self.size == pool.poolable_size and not self.adopted and not pool.closed:
                    if (len(pool.free) + 1) * self.size <= pool.left:
                        pool.free.append(self)
        except MemoryError:
            pass  # of the list: the chunk goes to the system
        finally:
            release(pool.lock)
        if given_back:
            pool.settle()
        return 0

    def view(self, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> memoryview:
        """The bytes from ``start`` to ``stop``, not copied."""
        return self.data[start:stop]

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
class PoolWaiter:
    """A place in the line; its ticket's ``grant`` refers to it."""

    def __init__(self, size: cython.Py_ssize_t, owner: Any, ticket: Any, roaming: cython.bint) -> None:
        self.size = size
        self.owner = owner
        self.roaming = roaming
        self.ticket = ticket
        self.state = QUEUED
        self.buffer: Buffer | None = None


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
        self.waiters: list[Any] = []
        self.shares = Shares(owner_limit)
        self.looks = 0  # how often the line was looked through
        self.closed = False
        if not cython.compiled:
            self.lock = Mutex()

    @cython.ccall
    def allocate(self, size: cython.Py_ssize_t, owner: Any, ticket: Any, roaming: cython.bint = False) -> Buffer | None:
        """A buffer of ``size`` bytes, or None: then ``ticket`` (unless it is None) stands in line.

        After the ticket was woken the same call with the same ticket takes what was granted, or returns None if
        it was woken early.  A caller that gives up calls ``cancel``.  ``owner`` names whose share it counts
        against; with another owner than before a ticket keeps its place in the line.  ``roaming`` says that the
        caller could use the share of another owner: it is woken early, to look, whenever memory comes back that
        it may not have.

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
            return self.claim(ticket.grant, owner)
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
                self.waiters.append(waiter)
        finally:
            release(self.lock)
        if closed:
            raise ProducerClosedError("Producer closed while allocating memory")
        if granted and buffer is None:
            buffer = self.create(size, owner)
        return buffer

    @cython.ccall
    def try_chunk(self, owner: Any) -> Buffer | None:
        """A further chunk for an open batch, if one is free at once and nobody waits; else None."""
        if self.closed:
            return None
        return self.allocate(self.poolable_size, owner, None)

    @cython.ccall
    def cancel(self, ticket: Any) -> cython.void:
        """Leaves the line, or gives back a grant that nobody took (timeout, Ctrl-C, cancellation)."""
        waiter: PoolWaiter = ticket.grant
        if waiter is None:
            return
        acquire(self.lock)
        try:
            if waiter.state == QUEUED and waiter in self.waiters:
                self.waiters.remove(waiter)
            elif waiter.state == GRANTED:
                self.take(waiter.owner, -waiter.size)
            waiter.state = ENDED
            ticket.grant = None
        finally:
            release(self.lock)
        waiter.buffer = None
        self.settle()

    @cython.ccall
    def charge(self, owner: Any, size: cython.Py_ssize_t) -> cython.void:
        """Counts memory made elsewhere (compressed output); may overdraw, never waits."""
        acquire(self.lock)
        try:
            self.take(owner, size)
        finally:
            release(self.lock)

    @cython.ccall
    def credit(self, owner: Any, size: cython.Py_ssize_t) -> cython.void:
        """Takes back what ``charge`` counted."""
        acquire(self.lock)
        try:
            self.take(owner, -size)
        finally:
            release(self.lock)
        self.settle()

    @cython.ccall
    @cython.exceptval(-1)
    def exceeds_share(self, size: cython.Py_ssize_t, owner: Any) -> cython.bint:
        """Whether ``size`` bytes more are above what ``owner`` may hold, or somebody waits for just that.

        The answer may be old at once.
        """
        waiter: PoolWaiter
        acquire(self.lock)
        try:
            if self.shares.lacks(size, owner, 0):
                return True
            if self.owner_limit > 0:
                for waiter in self.waiters:
                    if waiter.owner == owner and self.shares.lacks(waiter.size, owner, 0):
                        return True
            return False
        finally:
            release(self.lock)

    def holders(self) -> list[tuple[Any, int]]:
        """Who holds how many bytes, the largest first; nobody who holds none."""
        return self.shares.held()

    @cython.ccall
    @cython.exceptval(-1)
    def starved(self) -> cython.bint:
        """Whether somebody stands in line for whom there is no memory, not only none of his node's share."""
        if len(self.waiters) == 0:
            return False
        acquire(self.lock)
        try:
            for waiter in self.waiters:
                if cython.cast(PoolWaiter, waiter).size > self.left:
                    return True
        finally:
            release(self.lock)
        return False

    @cython.ccall
    @cython.exceptval(check=False)
    def queued(self) -> cython.Py_ssize_t:
        """How many callers stand in line."""
        return len(self.waiters)

    @cython.ccall
    def available(self) -> cython.longlong:
        """Bytes not handed out, those kept for reuse included; negative while overdrawn."""
        return self.left

    @cython.ccall
    def unallocated(self) -> cython.longlong:
        """Bytes neither handed out nor kept for reuse."""
        acquire(self.lock)
        try:
            return self.left - cython.cast(cython.longlong, len(self.free)) * self.poolable_size
        finally:
            release(self.lock)

    @cython.ccall
    def close(self) -> cython.void:
        """Wakes everybody in line, to be told that the producer is closed; buffers still come back, to be let go."""
        none: list[Any] = []
        acquire(self.lock)
        try:
            self.closed = True
            self.free.clear()
            waiting: list[Any] = self.waiters
            self.waiters = none
            for waiter in waiting:
                cython.cast(PoolWaiter, waiter).state = ENDED
        finally:
            release(self.lock)
        for waiter in waiting:
            waiter.ticket.wake()

    @cython.ccall
    def wake_waiters(self) -> cython.void:
        """Wakes everybody in line to look around; their places stay theirs."""
        acquire(self.lock)
        try:
            # Only to come before or after whoever is joining; a list must not be made under the lock.
            pass
        finally:
            release(self.lock)
        waiting: list[Any] = list(self.waiters)
        for waiter in waiting:
            waiter.ticket.wake()

    @cython.cfunc
    def claim(self, waiter: PoolWaiter, owner: Any) -> Buffer | None:
        acquire(self.lock)
        try:
            state: cython.int = waiter.state
            if state == GRANTED:
                waiter.state = ENDED
                waiter.ticket.grant = None
            elif state == QUEUED:
                waiter.owner = owner
        finally:
            release(self.lock)
        if state == QUEUED:
            return self.claim_now(waiter)
        if state == ENDED:
            waiter.ticket.grant = None
            raise ProducerClosedError("Producer closed while allocating memory")
        buffer: Buffer | None = waiter.buffer
        waiter.buffer = None
        return self.create(waiter.size, waiter.owner) if buffer is None else buffer

    @cython.cfunc
    def claim_now(self, waiter: PoolWaiter) -> Buffer | None:
        # Of another owner there may be room at once, and nothing else might come back to say so.
        if self.owner_limit == 0:
            return None
        self.grant_all()
        return self.claim(waiter, waiter.owner) if waiter.state != QUEUED else None

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
        # A newcomer may pass those in line who wait for the share of somebody else, and nobody else.
        if self.left < size or self.shares.lacks(size, owner, 0):
            return False
        self.looks += 1
        waiter: PoolWaiter
        for waiter in self.waiters:
            if waiter.owner == owner or not self.stays_behind(waiter):
                return False
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def may_fill(self, size: cython.Py_ssize_t, owner: Any) -> cython.bint:
        # For a batch that has its chunk, whoever waits: were the line asked, then with a line that never ends, which
        # is what a busy producer has, every batch would go out with the one record that it was made for.
        return size <= self.left + self.overdraft and not self.shares.lacks(size, owner, self.share_overdraft)

    @cython.cfunc
    @cython.exceptval(-1)
    def stays_behind(self, waiter: PoolWaiter) -> cython.bint:
        # Whether it, or one ahead of it in this look, lacks its owner's share.
        if self.owner_limit == 0:
            return False
        share: Share = self.shares.of(waiter.owner)
        if share.stopped_at != self.looks and share.used + waiter.size <= self.owner_limit:
            return False
        share.stopped_at = self.looks
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def take(self, owner: Any, size: cython.longlong) -> cython.int:
        # Kept buffers beyond the credit left are dropped, which only frees plain memory: nothing of the user's can
        # run here.  The share, for which memory may lack, first: nothing is taken then.
        self.shares.count(owner, size)
        self.left -= size
        while len(self.free) > 0 and cython.cast(cython.longlong, len(self.free)) * self.poolable_size > self.left:
            self.free.pop()
        return 0

    @cython.cfunc
    def take_free(self, size: cython.Py_ssize_t, owner: Any) -> Buffer | None:
        # A kept buffer if one fits; taken out before the credit, which may drop those that are left.
        buffer: Buffer | None = None
        if size == self.poolable_size and len(self.free) > 0:
            kept: Buffer = self.free.pop()
            kept.owner = owner
            kept.holds = 1
            buffer = kept
        self.take(owner, size)
        return buffer

    @cython.cfunc
    def grant_next(self) -> PoolWaiter | None:
        self.looks += 1
        waiter: PoolWaiter
        for waiter in self.waiters:
            # One who lacks his owner's share holds up those behind him who want of it too, or small ones would go on
            # taking what gathers for a large one; the others he does not.
            if self.stays_behind(waiter):
                continue
            if self.left < waiter.size:
                return None
            self.waiters.remove(waiter)
            waiter.buffer = self.take_free(waiter.size, waiter.owner)
            waiter.state = GRANTED
            return waiter
        return None

    @cython.cfunc
    @cython.exceptval(-1)
    def grant_all(self) -> cython.int:
        # Grants what the line can have, and wakes outside the lock.
        waiter: PoolWaiter | None
        while len(self.waiters) > 0:
            acquire(self.lock)
            try:
                waiter = self.grant_next()
            finally:
                release(self.lock)
            if waiter is None:
                break
            waiter.ticket.wake()
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def settle(self) -> cython.int:
        # Memory came back, or moved from one owner to another.
        self.grant_all()
        waiter: PoolWaiter
        if self.owner_limit > 0 and len(self.waiters) > 0:
            for waiter in list(self.waiters):
                if waiter.roaming:
                    waiter.ticket.wake()
        return 0
