"""Transactions at random: calls, faults, lost connections and time in any order never break what was promised."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from forebay.errors import KafkaError
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.coordinator import ADD_PARTITIONS, END_TXN, FIND_COORDINATOR, TransactionalWorld
from tests.support.examples import examples

PASSING = st.sampled_from([7, 14, 15, 16, 51])
REFUSED = st.sampled_from([29, 48, 87, 120])


class Transactions(RuleBasedStateMachine):
    """One producer; the coordinator's view of what is committed is compared with what its owner was told."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.open: list[tuple[bytes, Any]] = []
        self.committed: list[bytes | None] = []

    @initialize(version=st.sampled_from([1, 2]))
    def start(self, version: int) -> None:
        # Small batches, so that one grows with its records, fills, and is followed by the next.
        self.world = TransactionalWorld(version, batch_size=1000)

    @property
    def state(self) -> str:
        return self.world.state

    @precondition(lambda self: self.state == "READY")
    @rule()
    def begin(self) -> None:
        self.world.begin()
        self.open = []

    @precondition(lambda self: self.state == "IN_TRANSACTION")
    @rule(sizes=st.lists(st.sampled_from([0, 100, 300, 1200]), min_size=1, max_size=4), turns=st.integers(0, 6))
    def send(self, sizes: list[int], turns: int) -> None:
        for size in sizes:
            value = b"%d:" % self.number + bytes(size)
            self.number += 1
            self.open.append((value, self.world.send(value)))
        self.world.settle(turns)

    @rule(code=PASSING, api=st.sampled_from([FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN]))
    def passing_error(self, code: int, api: int) -> None:
        self.world.coordinator.fail(api, code)

    @rule(api=st.sampled_from([FIND_COORDINATOR, ADD_PARTITIONS, END_TXN]), processed=st.booleans())
    def lost_connection(self, api: int, processed: bool) -> None:
        self.world.coordinator.lose(api, processed=processed)

    @rule(code=st.sampled_from([6, 7, 19]))
    def produce_again(self, code: int) -> None:
        self.world.cluster.fail("test", 0, code)

    @rule(code=REFUSED)
    def produce_refused(self, code: int) -> None:
        self.world.cluster.fail("test", 0, code)

    @rule(ms=st.sampled_from([1, 20, 100]))
    def time_passes(self, ms: int) -> None:
        self.world.run(ms, 10)

    @precondition(lambda self: self.state == "IN_TRANSACTION")
    @rule()
    def commit(self) -> None:
        try:
            self.world.commit()
        except KafkaError:
            assert self.state == "ABORTABLE_ERROR"
            return
        assert all(future.exception(0) is None for _, future in self.open), "committed without a record"
        self.committed += [value for value, _ in self.open]

    @precondition(lambda self: self.state in ("IN_TRANSACTION", "ABORTABLE_ERROR"))
    @rule()
    def abort(self) -> None:
        self.world.abort()
        assert all(future.done() for _, future in self.open)

    @invariant()
    def only_what_was_committed_shows(self) -> None:
        if hasattr(self, "world"):
            assert self.world.committed() == self.committed
            assert self.state != "FATAL_ERROR"


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
