"""The pool's credit, its waiters, and the counts on its buffers."""

from __future__ import annotations

import pickle
import threading

import pytest

from forebay._accumulator.pool import Buffer, BufferPool, adopt
from forebay._runtime.ticket import ThreadTicket
from forebay.errors import IllegalArgumentError, KafkaError
from tests.fakes.tickets import CountingTicket
from tests.support.pace import HANG_MS, HANG_S


def taken(pool: BufferPool, size: int, owner: object = 0) -> Buffer:
    buffer = pool.allocate(size, owner, None)
    assert buffer is not None
    return buffer


def waiting(pool: BufferPool, size: int, owner: object = 0) -> CountingTicket:
    ticket = CountingTicket()
    assert pool.allocate(size, owner, ticket) is None
    return ticket


def unallocated(pool: BufferPool) -> int:
    """Bytes neither handed out nor kept for reuse."""
    return pool.available() - len(pool.free) * pool.poolable_size


def test_credit_and_reuse() -> None:
    """C testSimple: numbers after allocate and release of a poolable and of another size."""
    pool = BufferPool(65536, 1024)
    buffer = taken(pool, 1024)
    assert (buffer.size, len(buffer.data)) == (1024, 1024)
    assert (pool.available(), unallocated(pool)) == (64512, 64512)
    buffer.release()
    assert (pool.available(), unallocated(pool)) == (65536, 64512)
    again = taken(pool, 1024)
    assert again is buffer
    assert (pool.available(), unallocated(pool)) == (64512, 64512)
    again.release()
    other = taken(pool, 2048)
    assert (pool.available(), unallocated(pool)) == (63488, 62464)
    other.release()
    assert (pool.available(), unallocated(pool)) == (65536, 64512)
    assert pool.queued() == 0


def test_more_than_the_whole_pool() -> None:
    """C testCantAllocateMoreMemoryThanWeHave: refused at once, and says both numbers."""
    pool = BufferPool(1024, 512)
    taken(pool, 1024).release()
    with pytest.raises(IllegalArgumentError, match=r"1025 bytes.*hard limit of 1024") as caught:
        pool.allocate(1025, 0, CountingTicket())
    assert isinstance(caught.value, ValueError)
    assert (pool.available(), pool.queued()) == (1024, 0)


def test_a_large_request_waits_for_all_it_needs() -> None:
    """C testDelayedAllocation: granted when what it waits for comes back."""
    pool = BufferPool(5120, 1024)
    held = taken(pool, 1024)
    ticket = waiting(pool, 5120)
    assert (ticket.woken, pool.queued()) == (0, 1)
    held.release()
    assert (ticket.woken, pool.queued()) == (1, 0)
    granted = pool.allocate(5120, 0, ticket)
    assert granted is not None and granted.size == 5120
    assert (pool.available(), ticket.grant) == (0, None)


def test_nothing_at_once_without_a_ticket() -> None:
    """C testBufferExhaustedExceptionIsThrown: no room and no ticket is None; the front end makes the error of it."""
    pool = BufferPool(2, 1)
    taken(pool, 1)
    assert pool.allocate(2, 0, None) is None
    assert (pool.queued(), pool.available()) == (0, 1)


def test_giving_up_leaves_the_line() -> None:
    """C testBlockTimeout, testCleanupMemoryAvailabilityWaiterOnBlockTimeout: nothing queued, all credit there."""
    pool = BufferPool(2, 1)
    taken(pool, 1)
    ticket = waiting(pool, 2)
    pool.cancel(ticket)
    assert (pool.queued(), pool.available(), ticket.grant) == (0, 1, None)
    pool.cancel(ticket)  # a second time changes nothing
    assert (pool.queued(), pool.available()) == (0, 1)


def test_a_grant_that_nobody_takes_goes_back_and_on() -> None:
    pool = BufferPool(10, 10)
    held = taken(pool, 10)
    first, second = waiting(pool, 10), waiting(pool, 4)
    held.release()
    assert (first.woken, second.woken, pool.available()) == (1, 0, 0)
    pool.cancel(first)
    assert (second.woken, pool.available(), pool.queued()) == (1, 6, 0)


def test_numbers_beyond_32_bits() -> None:
    """C testLargeAvailableMemory: 64-bit arithmetic."""
    pool = BufferPool(20_000_000_000, 2_000_000_000)
    pool.charge(0, 2_000_000_000)
    assert pool.available() == 18_000_000_000
    pool.charge(0, 2_000_000_000)
    assert pool.available() == 16_000_000_000
    pool.credit(0, 2_000_000_000)
    pool.credit(0, 2_000_000_000)
    assert (pool.available(), unallocated(pool)) == (20_000_000_000, 20_000_000_000)


def test_no_memory_on_the_machine() -> None:
    """C outOfMemoryOnAllocation, testCleanupMemoryAvailabilityOnMetricsException: the credit is back."""
    pool = BufferPool(1 << 62, 1024)
    with pytest.raises(MemoryError):
        pool.allocate(1 << 61, 0, None)
    assert (pool.available(), pool.queued()) == (1 << 62, 0)
    assert taken(pool, 1024).size == 1024


def test_no_memory_on_the_machine_for_a_grant() -> None:
    pool = BufferPool(1 << 62, 1024)
    pool.charge("other", 1 << 62)
    ticket = waiting(pool, 1 << 61)
    pool.credit("other", 1 << 62)
    assert ticket.woken == 1
    with pytest.raises(MemoryError):
        pool.allocate(1 << 61, 0, ticket)
    assert pool.available() == 1 << 62


def test_closed() -> None:
    """C testCloseAllocations: allocate raises, buffers still come back."""
    pool = BufferPool(10, 1)
    held = taken(pool, 1)
    pool.close()
    with pytest.raises(KafkaError, match="Producer closed while allocating memory"):
        pool.allocate(1, 0, None)
    assert pool.try_chunk(0) is None
    held.release()
    assert pool.available() == 10


def test_close_tells_all_in_line() -> None:
    """C testCloseNotifyWaiters: both are woken and told."""
    pool = BufferPool(1, 1)
    held = taken(pool, 1)
    tickets = [waiting(pool, 1), waiting(pool, 1)]
    pool.close()
    assert ([ticket.woken for ticket in tickets], pool.queued()) == ([1, 1], 0)
    for ticket in tickets:
        with pytest.raises(KafkaError, match="Producer closed"):
            pool.allocate(1, 0, ticket)
        assert ticket.grant is None
    held.release()
    assert pool.available() == 1


def test_a_grant_before_the_close_can_still_be_taken() -> None:
    pool = BufferPool(1, 1)
    held = taken(pool, 1)
    ticket = waiting(pool, 1)
    held.release()
    pool.close()
    granted = pool.allocate(1, 0, ticket)
    assert granted is not None
    granted.release()
    assert pool.available() == 1


def test_first_come_first_served() -> None:
    """O4: a newcomer takes nothing ahead of waiters, however little it wants."""
    pool = BufferPool(10, 1)
    held = taken(pool, 8)
    large = waiting(pool, 5)
    small = waiting(pool, 1)
    assert pool.allocate(1, 0, None) is None
    assert pool.try_chunk(0) is None
    held.release()
    assert (large.woken, small.woken, pool.available()) == (1, 1, 4)


def test_what_comes_back_gathers_for_the_head() -> None:
    pool = BufferPool(10, 1)
    held = [taken(pool, 5), taken(pool, 5)]
    large, small = waiting(pool, 10), waiting(pool, 1)
    held[0].release()
    assert (large.woken, small.woken, pool.available()) == (0, 0, 5)
    held[1].release()
    assert (large.woken, small.woken, pool.available()) == (1, 0, 0)


def test_who_has_used_his_share_does_not_hold_up_the_others() -> None:
    pool = BufferPool(10, 1, 4)
    mine = taken(pool, 4, "slow")
    slow = waiting(pool, 1, "slow")
    taken(pool, 1, "quick")  # at once: nothing else might ever come back to wake it
    assert slow.woken == 0
    mine.release()
    assert slow.woken == 1


def test_who_lacks_a_share_and_memory_does_not_hold_up_the_others_either() -> None:
    pool = BufferPool(10, 1, 6)
    taken(pool, 6, "slow")
    quick = taken(pool, 3, "quick")
    slow, behind = waiting(pool, 5, "slow"), waiting(pool, 2, "quick")
    quick.release()
    assert (slow.woken, behind.woken, pool.available()) == (0, 1, 2)


def test_small_requests_do_not_take_the_share_that_gathers_for_a_large_one() -> None:
    """Neither newcomers nor waiters behind it; a request for another share passes them all."""
    pool = BufferPool(100, 1, 10)
    held = [taken(pool, 1, "slow") for _ in range(9)]
    large = waiting(pool, 8, "slow")
    small = waiting(pool, 1, "slow")
    assert pool.allocate(1, "slow", None) is None
    assert pool.exceeds_share(1, "slow") and not pool.exceeds_share(1, "quick")
    taken(pool, 10, "quick")
    for buffer in held[:6]:
        buffer.release()
        assert (large.woken, small.woken) == (0, 0)
    held[6].release()
    assert (large.woken, small.woken, pool.holders()[:1]) == (1, 0, [("slow", 10)])
    held[7].release()
    assert small.woken == 1


def test_who_only_lacks_his_share_is_not_starved() -> None:
    """The sender sends small batches early for waiters that lack memory, and for no others."""
    pool = BufferPool(10, 1, 4)
    taken(pool, 4, "slow")
    assert not pool.starved()
    waiting(pool, 1, "slow")
    assert pool.queued() == 1 and not pool.starved()
    for owner in "ab":
        taken(pool, 3, owner)
    waiting(pool, 1, "c")
    assert pool.starved()


def test_a_newcomer_does_not_pass_one_who_only_lacks_memory() -> None:
    pool = BufferPool(10, 1, 8)
    taken(pool, 8, "slow")
    slow, first = waiting(pool, 1, "slow"), waiting(pool, 3, "quick")
    assert pool.allocate(1, "other", None) is None
    assert (slow.woken, first.woken, pool.queued()) == (0, 0, 2)


def test_a_ticket_may_go_on_for_another_owner() -> None:
    """The partition's leader changed while its sender stood in line."""
    pool = BufferPool(10, 1, 4)
    taken(pool, 4, "slow")
    ticket = waiting(pool, 2, "slow")
    pool.wake_waiters()
    assert ticket.woken == 1
    granted = pool.allocate(2, "quick", ticket)
    assert granted is not None and granted.owner == "quick"
    assert (pool.queued(), ticket.grant) == (0, None)
    assert pool.holders() == [("slow", 4), ("quick", 2)]


def test_who_could_use_another_share_is_told_when_memory_comes_back() -> None:
    pool = BufferPool(10, 1, 5)
    taken(pool, 5, "slow")
    other = taken(pool, 5, "quick")
    roaming = CountingTicket()
    assert pool.allocate(1, "slow", roaming, True) is None
    staying = waiting(pool, 1, "slow")
    other.release()
    assert (roaming.woken, staying.woken, pool.queued()) == (1, 0, 2)
    assert pool.allocate(1, "slow", roaming, True) is None  # a look does not wake itself again
    assert roaming.woken == 1
    assert pool.allocate(1, "quick", roaming, True) is not None


def test_who_holds_what() -> None:
    pool = BufferPool(100, 10, 40)
    taken(pool, 10, 1).release()
    taken(pool, 30, 2)
    pool.charge(3, 35)
    assert pool.holders() == [(3, 35), (2, 30)]
    assert (pool.exceeds_share(5, 3), pool.exceeds_share(6, 3), pool.exceeds_share(40, 1)) == (False, True, False)
    assert not BufferPool(10, 1).exceeds_share(1000, 1)  # without a limit there is no share


def test_woken_early_is_not_served() -> None:
    pool = BufferPool(1, 1)
    held = taken(pool, 1)
    ticket = waiting(pool, 1)
    assert pool.allocate(1, 0, ticket) is None
    assert pool.queued() == 1
    held.release()
    assert pool.allocate(1, 0, ticket) is not None


def test_the_last_holder_gives_back() -> None:
    """O1: a buffer goes back when its last holder lets go, and not before (KAFKA-19012)."""
    pool = BufferPool(8, 8)
    buffer = taken(pool, 8)
    buffer.retain()
    buffer.release()
    assert (pool.available(), buffer.holds) == (0, 1)
    assert pool.allocate(8, 0, None) is None
    buffer.release()
    assert pool.available() == 8


def test_compressed_output_may_overdraw_and_is_counted() -> None:
    pool = BufferPool(10, 10)
    raw = taken(pool, 10)
    output = adopt(pool, b"x" * 25, 0)
    assert (pool.available(), output.size, output.adopted) == (-25, 25, True)
    ticket = waiting(pool, 1)
    raw.release()
    assert (pool.available(), ticket.woken) == (-15, 0)
    output.release()
    assert (pool.available(), ticket.woken) == (9, 1)
    assert unallocated(pool) == 9  # the raw chunk could not be kept while overdrawn, the output never is


def test_kept_buffers_are_given_up_for_other_sizes() -> None:
    pool = BufferPool(4, 1)
    for buffer in [taken(pool, 1) for _ in range(4)]:
        buffer.release()
    assert (pool.available(), unallocated(pool)) == (4, 0)
    taken(pool, 3)
    assert (pool.available(), unallocated(pool)) == (1, 0)


def test_a_wake_may_use_the_pool() -> None:
    pool = BufferPool(2, 1)
    held = taken(pool, 2)
    seen: list[int] = []
    ticket = CountingTicket(lambda: seen.append(pool.available()))
    assert pool.allocate(1, 0, ticket) is None
    held.release()
    assert seen == [1]


def test_a_view_is_no_copy() -> None:
    buffer = taken(BufferPool(8, 8), 8)
    view = buffer.data[2:4]
    buffer.data[2:4] = b"ab"
    assert bytes(view) == b"ab"


def test_buffers_and_pools_are_not_pickled() -> None:
    pool = BufferPool(8, 8)
    for thing in (pool, taken(pool, 8)):
        with pytest.raises(TypeError):
            pickle.dumps(thing)


def test_many_threads_share_it_and_all_comes_back() -> None:
    """C testStressfulSituation: ten threads, sizes from 1 to half the pool; at the end everything is back."""
    pool = BufferPool(4096, 64)
    failures: list[BaseException] = []
    rounds = 200

    def work(seed: int) -> None:
        try:
            for number in range(rounds):
                size = 64 if number % 2 else 1 + (seed * 7919 + number * 104729) % 2048
                ticket = ThreadTicket()
                buffer = pool.allocate(size, seed, ticket)
                while buffer is None:
                    assert ticket.wait(HANG_MS), "it was not woken"
                    buffer = pool.allocate(size, seed, ticket)
                assert buffer.size == size
                buffer.release()
        except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert not failures
    assert (pool.available(), pool.queued()) == (4096, 0)


def test_a_closed_pool_keeps_nothing_for_reuse() -> None:
    """A kept buffer refers to its pool, and the garbage collector does not see it: they would keep each other."""
    pool = BufferPool(64, 16)
    one, other = pool.allocate(16, 0, None), pool.allocate(16, 0, None)
    assert one is not None and other is not None
    one.release()
    assert (pool.available(), unallocated(pool)) == (48, 32)
    pool.close()
    other.release()
    assert pool.available() == unallocated(pool) == 64
