"""A task's transaction: begun with its first row, left open after its last, aborted after a failure."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from forebay.errors import (
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from forebay.model import TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import Claim, LateTransactionError, TakenOverError, Write
from forebay.spark.exactly_once.settings import Settings
from forebay.spark.exactly_once.task import TaskTransaction, Worker, batch_write, stream_write, this_worker
from forebay.spark.writer import DeliveryError, TaskId, write
from tests.unit.spark.fakes import FakeProducer, options

CLAIM = Claim(TransactionIdentity("p-driver", 1, 11, 2), (("q", 4),))
TASK = TaskId(7, 2)


def rows(*values: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.string())})


def transaction(version: int = 5, claim: Claim = CLAIM) -> TaskTransaction:
    return TaskTransaction(claim, Write("q", version), "p", TASK.partition, Worker(lambda: 0.5))


def run(producer: FakeProducer, one: TaskTransaction, *batches: pa.RecordBatch) -> Any:
    return write(
        iter(batches), options(), task=TASK, transaction=one, opener=lambda _: producer, dropper=lambda _: None
    )


def test_it_is_left_open_and_the_report_says_how_to_end_it() -> None:
    producer = FakeProducer()
    outcome = run(producer, transaction(), rows(), rows("a", "b"), rows("c")).outcome
    assert producer.transactions == ["begin p-8000000080000000-0", "detach"]
    assert (outcome.claim, outcome.write, outcome.partition) == (CLAIM, Write("q", 5), 7)
    assert (outcome.task.partition, outcome.task.identity.transactional_id, outcome.task.rows) == (
        7,
        "p-8000000080000000-0",
        3,
    )
    assert not outcome.skipped


def test_the_fingerprint_is_of_the_rows_and_not_of_their_pieces() -> None:
    found = [
        run(FakeProducer(), transaction(), *batches).outcome.task.fingerprint
        for batches in ((rows("a", "b", "c"),), (rows("c", "a"), rows("b")), (rows("a", "b", "d"),))
    ]
    assert found[0] == found[1] != found[2]


def test_a_task_without_rows_has_no_transaction() -> None:
    producer = FakeProducer()
    outcome = run(producer, transaction(), rows()).outcome
    assert producer.transactions == [] and outcome.task is None and not outcome.skipped


def test_a_task_of_a_write_that_is_done_reads_its_rows_and_writes_none() -> None:
    producer, left = FakeProducer(), [rows("a"), rows("b")]
    read = iter(left)
    report = write(
        read, options(), task=TASK, transaction=transaction(4), opener=lambda _: producer, dropper=lambda _: None
    )
    assert next(read, None) is None
    assert producer.rows == [] and producer.transactions == []
    assert report.outcome is not None and report.outcome.skipped and report.rows == 0


def test_after_a_failure_it_is_aborted() -> None:
    producer = FakeProducer()
    producer.fail_batch(0, KafkaTimeoutError("gone"))
    with pytest.raises(DeliveryError):
        run(producer, transaction(), rows("a"))
    assert producer.transactions == ["begin p-8000000080000000-0", "abort"]


def test_a_failure_of_the_abort_does_not_hide_the_first_one() -> None:
    producer = FakeProducer()
    producer.fail_batch(0, KafkaTimeoutError("gone"))
    producer.abort_error = KafkaTimeoutError("no coordinator")
    with pytest.raises(DeliveryError, match="gone"):
        run(producer, transaction(), rows("a"))


def test_a_write_has_the_users_id_the_streams_or_none() -> None:
    assert batch_write(Settings("p", "c", "daily", 3), CLAIM) == Write("daily", 3)
    unnamed = batch_write(Settings("p", "c"), CLAIM)
    assert unnamed.version == protocol.NO_VERSION
    other = CLAIM._replace(driver=CLAIM.driver._replace(producer_epoch=12))
    assert unnamed != batch_write(Settings("p", "c"), other)
    assert stream_write("query", "12") == Write("query", 12)
    for query, batch in ((None, "1"), ("", "1"), ("query", None)):
        with pytest.raises(IllegalStateError, match="does not tell this task its query"):
            stream_write(query, batch)


def claimed(producer_id: int, epoch: int) -> Claim:
    return Claim(TransactionIdentity("p-driver", producer_id, epoch, 2))


def test_a_worker_counts_its_transactions_from_0_under_each_later_claim() -> None:
    draws = iter((0.0, 0.5, 0.25, 0.75))
    worker = Worker(lambda: next(draws))
    assert [worker.next_id("p", claimed(1, 4)) for _ in range(2)] == ["p-0000000080000000-0", "p-0000000080000000-1"]
    assert worker.next_id("p", claimed(1, 9)) == "p-0000000080000000-0"
    # Which of two producer ids is older nobody can tell.
    assert [worker.next_id("p", claimed(2, 0)) for _ in range(2)] == ["p-40000000c0000000-0", "p-40000000c0000000-1"]


def test_a_worker_refuses_a_claim_that_is_older_than_one_it_has_seen() -> None:
    worker = Worker(random.Random(1).random)
    worker.next_id("p", claimed(1, 4))
    with pytest.raises(TakenOverError, match="transactionalIdPrefix=p has begun a write"):
        worker.next_id("p", claimed(1, 3))
    assert worker.next_id("other", claimed(1, 3)).endswith("-0")
    assert worker.next_id("p", claimed(1, 4)).endswith("-1")


def test_a_process_is_one_worker() -> None:
    assert this_worker() is this_worker()
    names = {this_worker().next_id("p", CLAIM).split("-")[1], Worker(random.Random(2).random).next_id("p", CLAIM)[2:18]}
    assert len(names) == 2 and all(len(name) == 16 for name in names)


class Slow:
    """A clock that each look moves on."""

    def __init__(self, step_ms: float) -> None:
        self.time = 0.0
        self.step_ms = step_ms

    def now(self) -> float:
        self.time += self.step_ms
        return self.time

    def wall(self) -> int:
        return int(self.time)


def run_slowly(producer: FakeProducer, step_ms: float, *batches: pa.RecordBatch, timeout_ms: int = 100_000) -> Any:
    one = TaskTransaction(CLAIM, Write("q", 5), "p", 7, Worker(lambda: 0.5), timeout_ms=timeout_ms)
    clock: Any = Slow(step_ms)
    return write(
        iter(batches),
        options(),
        task=TASK,
        transaction=one,
        opener=lambda _: producer,
        dropper=lambda _: None,
        clock=clock,
    )


def test_a_task_stops_when_its_transaction_could_not_be_committed_in_time() -> None:
    producer = FakeProducer()
    assert run_slowly(producer, 35_000, *[rows("a")] * 3).rows == 3
    words = r"Task 7: .* begun 75\.0 s ago .*kafka\.transaction\.timeout\.ms is 100 s, of which the last 30 s"
    with pytest.raises(LateTransactionError, match=words):
        run_slowly(producer, 75_000, rows("a"), rows("b"))
    assert len(producer.rows) == 4 and producer.transactions[-1] == "abort"
    with pytest.raises(LateTransactionError, match=r"is 5 s, of which the last 2\.5 s are for the commit"):
        run_slowly(producer, 2_501, rows("a"), rows("b"), timeout_ms=5_000)


ENDED = [ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError, InvalidPidMappingError]


@pytest.mark.parametrize("error", ENDED)
def test_a_task_whose_transaction_was_ended_says_by_whom(error: type[KafkaError]) -> None:
    for step_ms, expected in ((1, TakenOverError), (75_000, LateTransactionError)):
        producer = FakeProducer()
        producer.fail_batch(0, error("gone"))
        with pytest.raises(expected, match="transactionalIdPrefix=p|transaction.timeout.ms") as caught:
            run_slowly(producer, step_ms, rows("a"))
        assert isinstance(caught.value.__cause__, DeliveryError)


def test_a_worker_that_has_seen_a_later_claim_says_so_as_it_is() -> None:
    worker = Worker(lambda: 0.5)
    worker.next_id("p", claimed(1, 12))
    one = TaskTransaction(CLAIM, Write("q", 5), "p", 7, worker)
    with pytest.raises(TakenOverError):
        run(FakeProducer(), one, rows("a"))
