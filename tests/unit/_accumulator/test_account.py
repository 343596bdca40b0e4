"""What a batch is charged beside its records' bytes, and what happens where there is no memory for it."""

from __future__ import annotations

import functools
from typing import Any

from forebay._accumulator.account import BATCH_COST, BATCH_COST_FREE, BatchAccount
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.states import OPEN
from forebay.errors import KafkaError
from tests.fakes.tickets import CountingTicket
from tests.unit._accumulator.shelf import APPENDED, NEW, WAIT, Shelf, quiet

RECORD, PLACE, METHOD, FUNCTION = 24, 64, 64, 360
FUTURE = RECORD + PLACE


class Listener:
    def told(self, report: object) -> None:
        pass


def told(report: object) -> None:
    pass


def used(batch_account: BatchAccount, pool: BufferPool) -> int:
    assert pool.total - pool.available() == batch_account.charged
    return batch_account.charged


def test_by_the_kind_of_callback() -> None:
    kinds: list[tuple[Any, int]] = [
        (None, 0),
        (Listener().told, FUTURE + METHOD),
        (told, FUTURE + FUNCTION),
        (functools.partial(told, 1), FUTURE + FUNCTION),
    ]
    for callback, cost in kinds:
        pool = BufferPool(10_000, 100)
        opened = BatchAccount(pool, 1)
        opened.open(callback)
        assert used(opened, pool) == cost
        opened.close()
        assert pool.available() == 10_000


def test_the_same_callback_again_costs_no_second_function() -> None:
    pool = BufferPool(10_000, 100)
    shared = BatchAccount(pool, 1)
    shared.open(told)
    assert shared.afford(told, True, 0, 1)
    assert used(shared, pool) == FUTURE + FUNCTION + RECORD
    assert shared.afford(lambda *_: None, False, 0, 1)
    assert used(shared, pool) == 2 * (FUTURE + FUNCTION) + RECORD


def test_records_without_a_callback_before_it_have_their_numbers_too() -> None:
    pool = BufferPool(10_000, 100)
    late = BatchAccount(pool, 1)
    late.open(None)
    assert late.afford(told, False, 3, 1)
    assert used(late, pool) == FUTURE + FUNCTION + 3 * RECORD


def test_memory_is_asked_for_several_records_at_once() -> None:
    pool = BufferPool(100_000, 100)
    steps = BatchAccount(pool, 1)
    steps.open(told)
    seen = []
    for records in range(1, 41):
        assert steps.afford(told, True, 0, records)
        seen.append((used(steps, pool) - FUTURE - FUNCTION) // RECORD)
    assert seen[:4] == [1, 3, 3, 7]
    assert seen[-1] <= 40 + 16
    assert all(charged >= number for number, charged in enumerate(seen, 1))


def test_without_memory_it_is_refused_and_nothing_is_taken() -> None:
    pool = BufferPool(100, 100)
    poor = BatchAccount(pool, 1)
    poor.open(told)  # the first record of a batch is never refused
    before = pool.available()
    assert before < 0
    assert not poor.afford(told, True, 0, 1)
    assert pool.available() == before


def test_what_has_its_chunk_is_filled_before_the_line_is_served() -> None:
    """By an eighth of the total, however many wait."""
    pool = BufferPool(1000, 100)
    pool.charge(0, 900)
    waiting = CountingTicket()
    assert pool.allocate(400, 1, waiting) is None
    filled = BatchAccount(pool, 1)
    filled.open(None)
    taken = 0
    while filled.afford(told, True, 0, 1):
        taken += RECORD
    assert taken == 9 * RECORD and pool.available() == 100 - taken == -116
    pool.credit(0, 900)
    assert waiting.woken == 1


def test_what_may_be_overdrawn_is_bounded() -> None:
    assert BufferPool(1 << 20, 100).overdraft == 128 << 10
    assert BufferPool(1 << 40, 100).overdraft == 4 << 20
    assert BufferPool(1000, 100, 400).share_overdraft == 50
    assert BufferPool(1000, 100, 900).share_overdraft == 50  # half of what is left to the others
    assert BufferPool(1 << 40, 100, 1 << 30).share_overdraft == 4 << 20


def test_above_the_share_of_its_node_it_is_refused() -> None:
    pool = BufferPool(10_000, 100, FUTURE + FUNCTION)
    far = BatchAccount(pool, 1)
    far.open(told)
    assert not far.afford(told, False, 0, 1)
    near = BatchAccount(pool, 2)
    near.open(None)
    assert near.afford(told, False, 0, 1)


def test_many_batches_are_counted_above_what_is_free() -> None:
    pool = BufferPool(1 << 20, 100, 0, BATCH_COST, 3 * BATCH_COST)
    accounts = [BatchAccount(pool, 1) for _ in range(5)]
    for opened in accounts:
        opened.open(None)
    assert (1 << 20) - pool.available() == 2 * BATCH_COST
    accounts[0].close()
    again = BatchAccount(pool, 1)
    again.open(None)
    assert again.charged == 0
    for opened in (*accounts, again):
        opened.close()
        opened.close()
    assert pool.available() == 1 << 20
    assert BATCH_COST_FREE < 32 << 20


def test_a_late_callback_is_counted_and_stops_the_batch_where_it_overdraws() -> None:
    pool = BufferPool(600, 100)
    late = BatchAccount(pool, 1)
    late.open(None)
    late.charge_callback(told)
    assert (used(late, pool), late.stopped) == (FUTURE + FUNCTION, False)
    late.charge_callback(told)
    assert late.stopped and pool.available() < -pool.overdraft
    late.credit_callback(told)
    assert used(late, pool) == FUTURE + FUNCTION
    late.close()
    late.charge_callback(told)
    assert pool.available() == 600


def test_moving_to_another_owner() -> None:
    pool = BufferPool(10_000, 100, 1000)
    buffer = pool.allocate(100, 1, None)
    assert buffer is not None
    moving = BatchAccount(pool, 1)
    moving.open(told)
    ticket = CountingTicket()
    assert pool.allocate(900, 1, ticket) is None
    moving.move(2, buffer, None)
    pool.serve_waiters()
    assert ticket.woken == 1
    assert pool.holders() == [(1, 900), (2, 100 + FUTURE + FUNCTION)]
    assert (moving.owner, buffer.owner) == (2, 2)
    moving.close()
    buffer.release()
    assert pool.holders() == [(1, 900)]


def test_what_moves_with_the_records_of_a_split() -> None:
    for free in (0, 1000):
        opened = BatchAccount(BufferPool(10_000, 100, 0, 1000, free), 1)
        opened.open(told)
        assert opened.of_records() == FUTURE + FUNCTION


# In batches


def test_records_with_callbacks_fill_the_pool_and_it_all_comes_back() -> None:
    shelf = Shelf(batch_size=1024, pool=8192)
    ticket = CountingTicket()
    appended = 0
    while True:
        status, _ = shelf.accumulator.appender.append_bytes(
            shelf.topic, 0, b"v", now=shelf.now, callback=lambda *_: None, ticket=ticket
        )
        if status == WAIT:
            break
        appended += 1
    # By its bytes alone the pool would take more than 1000.
    assert 10 < appended < (8192 + shelf.pool.overdraft) // FUNCTION
    assert shelf.pool.available() > -(FUTURE + FUNCTION) - shelf.pool.overdraft
    shelf.pool.cancel(ticket)
    for batch in shelf.accumulator.incomplete():
        batch.fail(KafkaError("over"), None, quiet)
        shelf.accumulator.deallocate(batch)
    assert (shelf.pool.available(), shelf.pool.holders()) == (8192, [])


def test_a_line_that_never_ends_leaves_batches_their_size() -> None:
    """Else each would go out with the one record that it was made for."""
    counts = []
    for somebody_waits in (False, True):
        shelf = Shelf(batch_size=1024, pool=32 * 1024)
        shelf.append(0, 1, b"v" * 90, None, callback=told)
        if somebody_waits:
            assert shelf.pool.allocate(32 * 1024, 0, CountingTicket()) is None
        (batch,) = shelf.batches()
        while batch.life == OPEN:
            shelf.status(0, b"v" * 90, None, callback=told)
        counts.append(batch.record_count)
        assert shelf.pool.queued() == somebody_waits
    assert counts[0] == counts[1] > 5


def test_a_batch_without_memory_for_callbacks_still_takes_records_without() -> None:
    shelf = Shelf(batch_size=1024, pool=1024)
    append = functools.partial(shelf.accumulator.appender.append_bytes, shelf.topic, 0, now=shelf.now)
    assert append(bytes(600), callback=told)[0] & (APPENDED | NEW) == APPENDED | NEW  # all memory is in its chunk
    assert append(b"v")[0] & APPENDED
    assert append(b"v", callback=told)[0] == WAIT
    (batch,) = shelf.batches()
    assert batch.life != OPEN and batch.record_count == 2  # as if it were full, so that it goes out


def test_callbacks_added_to_futures_are_counted() -> None:
    shelf = Shelf(batch_size=1024, pool=8192)
    _, future = shelf.accumulator.appender.append_bytes(shelf.topic, 0, b"v", now=shelf.now)
    seen: list[object] = []
    future.add_done_callback(seen.append)
    (batch,) = shelf.batches()
    assert batch.account.charged == FUTURE + FUNCTION
    batch.fail(KafkaError("over"), None, quiet)
    assert seen == [future]
    shelf.accumulator.deallocate(batch)
    future.add_done_callback(seen.append)
    assert (len(seen), shelf.pool.available()) == (2, 8192)
