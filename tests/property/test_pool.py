"""BufferPool under random use: never more than the total, first come first served, everything back at the end."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from forebay._accumulator.account import BatchAccount
from forebay._accumulator.chunks import grow
from forebay._accumulator.pool import Buffer, BufferPool, adopt
from forebay.errors import KafkaError
from tests.fakes.tickets import CountingTicket
from tests.support.examples import examples

TOTAL, POOLABLE, SHARE = 1000, 100, 700
SIZES = st.one_of(st.just(POOLABLE), st.integers(1, TOTAL // 2))
OWNERS = st.integers(0, 2)


class Waiter:
    def __init__(self, size: int, owner: int) -> None:
        self.size = size
        self.owner = owner
        self.ticket = CountingTicket()


class PoolMachine(RuleBasedStateMachine):
    """O4: the model is a list of who waits, and a sum of what is held."""

    limit = 0

    def __init__(self) -> None:
        super().__init__()
        self.pool = BufferPool(TOTAL, POOLABLE, self.limit)
        self.held: dict[int, Buffer] = {}
        self.line: list[Waiter] = []
        self.granted: list[Waiter] = []
        self.charged = dict.fromkeys(range(3), 0)
        self.accounts: list[BatchAccount] = []
        self.closed = False
        self.number = 0

    buffers = Bundle("buffers")
    waiters = Bundle("waiters")

    def keep(self, buffer: Buffer) -> int:
        self.number += 1
        self.held[self.number] = buffer
        return self.number

    def notice_grants(self) -> None:
        """Whoever was woken has left the line; nobody passed the head unless the head only lacks its share."""
        woken = [waiter for waiter in self.line if waiter.ticket.woken]
        for waiter in woken:
            ahead = self.line[: self.line.index(waiter)]
            assert all(other.ticket.woken or (self.limit and other.owner != waiter.owner) for other in ahead), (
                "served out of turn"
            )
            self.granted.append(waiter)
        self.line = [waiter for waiter in self.line if waiter not in woken]

    def of_owner(self, owner: int) -> int:
        """Bytes that count against the owner's share."""
        held = sum(buffer.size for buffer in self.held.values() if buffer.owner == owner)
        granted = sum(waiter.size for waiter in self.granted if waiter.owner == owner)
        accounts = sum(account.charged for account in self.accounts if account.owner == owner)
        return held + granted + accounts + self.charged[owner]

    def lacks_share(self, size: int, owner: int) -> bool:
        return self.limit > 0 and self.of_owner(owner) + size > self.limit

    def has_room(self, size: int, owner: int) -> bool:
        """Whether a newcomer should be served at once: everybody in line waits for the share of another owner."""
        if self.first_eligible() is not None or any(waiter.owner == owner for waiter in self.line):
            return False
        return size <= self.pool.available() and not self.lacks_share(size, owner)

    def first_eligible(self) -> Waiter | None:
        """The first in line who lacks memory alone: no share, nor has anybody of the same owner ahead who does."""
        lacking: set[int] = set()
        for waiter in self.line:
            if waiter.owner not in lacking and not self.lacks_share(waiter.size, waiter.owner):
                return waiter
            lacking.add(waiter.owner)
        return None

    @precondition(lambda self: not self.closed)
    @rule(target=buffers, size=SIZES, owner=OWNERS)
    def allocate_or_wait(self, size: int, owner: int) -> int:
        if self.limit and size > self.limit:
            size = self.limit
        waiter = Waiter(size, owner)
        expected = self.has_room(size, owner)
        buffer = self.pool.allocate(size, owner, waiter.ticket)
        assert (buffer is not None) == expected, "a newcomer waits where there is room, or is served ahead of the line"
        if buffer is None:
            self.line.append(waiter)
            return -1
        assert all(buffer is not other for other in self.held.values())
        assert buffer.size == size == len(buffer.data)
        return self.keep(buffer)

    @precondition(lambda self: not self.closed)
    @rule(target=buffers, owner=OWNERS)
    def try_chunk(self, owner: int) -> int:
        expected = self.has_room(POOLABLE, owner)
        buffer = self.pool.try_chunk(owner)
        assert (buffer is not None) == expected
        return -1 if buffer is None else self.keep(buffer)

    @rule(number=buffers, least=st.integers(1, POOLABLE))
    def grow(self, number: int, least: int) -> None:
        """The chunk of an open batch: ahead of all that wait, within the overdraft, and exactly as it is counted."""
        buffer = self.held.get(number)
        if buffer is None or buffer.adopted or buffer.size >= POOLABLE:
            return
        before, size, free = bytes(buffer.data), buffer.size, self.pool.available()
        larger = max(2 * size, least)
        larger = POOLABLE if larger > POOLABLE // 2 else larger
        share = self.limit + self.limit // 8
        most = free + TOTAL // 8 if not self.limit else min(free + TOTAL // 8, share - self.of_owner(buffer.owner))
        grown = grow(buffer, least, POOLABLE)
        assert grown == (larger - size <= most)
        assert buffer.size == len(buffer.data) == (larger if grown else size) and bytes(buffer.data[:size]) == before

    @rule(target=buffers, owner=OWNERS, size=st.integers(1, TOTAL))
    def adopt(self, owner: int, size: int) -> int:
        """Compressed output: never refused, not even by an overdrawn or a closed pool."""
        return self.keep(adopt(self.pool, bytes(size), owner))

    @rule(number=consumes(buffers))
    def release(self, number: int) -> None:
        buffer = self.held.pop(number, None)
        if buffer is not None:
            buffer.release()
            self.notice_grants()

    @rule(number=buffers)
    def another_holder_lets_go_first(self, number: int) -> None:
        buffer = self.held.get(number)
        if buffer is not None:
            before = self.pool.available()
            buffer.retain()
            buffer.release()
            assert self.pool.available() == before

    @rule(target=buffers, at=st.integers(0, 5))
    def take_grant(self, at: int) -> int:
        if not self.granted:
            return -1
        waiter = self.granted.pop(at % len(self.granted))
        try:
            buffer = self.pool.allocate(waiter.size, waiter.owner, waiter.ticket)
        except KafkaError:
            assert self.closed
            return -1
        assert buffer is not None and buffer.size == waiter.size
        return self.keep(buffer)

    @rule(at=st.integers(0, 5), granted=st.booleans())
    def give_up(self, at: int, granted: bool) -> None:
        among = self.granted if granted else self.line
        if among:
            waiter = among.pop(at % len(among))
            self.pool.cancel(waiter.ticket)
            self.notice_grants()

    @rule(owner=OWNERS, size=st.integers(1, TOTAL))
    def charge(self, owner: int, size: int) -> None:
        self.pool.charge(owner, size)
        self.charged[owner] += size

    @rule(owner=OWNERS)
    def credit(self, owner: int) -> None:
        size, self.charged[owner] = self.charged[owner], 0
        self.pool.credit(owner, size)
        self.notice_grants()

    @rule(owner=OWNERS, callback=st.sampled_from([None, len, [].append]))
    def open_account(self, owner: int, callback: object) -> None:
        """A batch's first record: never refused."""
        account = BatchAccount(self.pool, owner)
        account.open(callback)
        self.accounts.append(account)

    @rule(
        at=st.integers(0, 5),
        callback=st.sampled_from([len, [].append]),
        records=st.integers(1, 40),
        again=st.booleans(),
        skipped=st.integers(0, 5),
    )
    def afford(self, at: int, callback: object, records: int, again: bool, skipped: int) -> None:
        """A further record's callback overdraws by an eighth at most."""
        if not self.accounts:
            return
        account = self.accounts[at % len(self.accounts)]
        before, held = self.pool.available(), account.charged
        fits = account.afford(callback, again, skipped, records)
        taken = account.charged - held
        assert taken == before - self.pool.available() and (fits or taken == 0)
        most = self.limit + self.limit // 8
        assert taken == 0 or (taken <= before + TOTAL // 8 and (not self.limit or self.of_owner(account.owner) <= most))

    @rule(at=st.integers(0, 5))
    def late_callback(self, at: int) -> None:
        if self.accounts:
            account = self.accounts[at % len(self.accounts)]
            account.charge_callback(len)
            assert account.stopped or self.pool.available() >= -(TOTAL // 8)

    @rule(at=st.integers(0, 5), owner=OWNERS)
    def move_account(self, at: int, owner: int) -> None:
        """With a buffer of the same batch, if there is one."""
        if self.accounts:
            account = self.accounts[at % len(self.accounts)]
            buffers = [buffer for buffer in self.held.values() if buffer.owner == account.owner]
            account.move(owner, buffers[0] if buffers else None, buffers[1:2])
            self.pool.serve_waiters()
            self.notice_grants()

    @rule(at=st.integers(0, 5))
    def close_account(self, at: int) -> None:
        if self.accounts:
            account = self.accounts.pop(at % len(self.accounts))
            account.close()
            account.close()
            assert account.charged == 0
            self.notice_grants()

    @precondition(lambda self: not self.closed and self.number > 5)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.pool.close()
        assert all(waiter.ticket.woken for waiter in self.line)
        self.line.clear()

    @invariant()
    def counts_are_true(self) -> None:
        held = sum(buffer.size for buffer in self.held.values())
        granted = sum(waiter.size for waiter in self.granted)
        if not self.closed:
            accounts = sum(account.charged for account in self.accounts)
            assert self.pool.available() == TOTAL - held - granted - sum(self.charged.values()) - accounts
            shares = {owner: self.of_owner(owner) for owner in range(3)}
            assert dict(self.pool.holders()) == {owner: size for owner, size in shares.items() if size > 0}
            made_here = sum(buffer.size for buffer in self.held.values() if not buffer.adopted)
            assert made_here + granted <= TOTAL + TOTAL // 8, "more than the total only by what open batches grew"
            assert self.pool.queued() == len(self.line)
            kept = len(self.pool.free) * self.pool.poolable_size
            assert 0 <= kept <= max(self.pool.available(), 0), "more is kept for reuse than there is credit for"
        first = self.first_eligible()
        if first is not None:
            assert first.size > self.pool.available(), "the first who lacks no share could be served"

    def teardown(self) -> None:
        while self.line or self.granted:
            waiter = (self.line or self.granted).pop(0)
            self.pool.cancel(waiter.ticket)
            self.notice_grants()
        for buffer in self.held.values():
            buffer.release()
        for owner, size in self.charged.items():
            self.pool.credit(owner, size)
        for account in self.accounts:
            account.close()
        assert (self.pool.available(), self.pool.queued()) == (TOTAL, 0)


class SharedPoolMachine(PoolMachine):
    limit = SHARE


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
TestSharedPool = SharedPoolMachine.TestCase
TestSharedPool.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
