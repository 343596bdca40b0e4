"""The exactly-once protocol against a real Kafka, without Spark: a crash before each step, and what is readable then.

``tests/property/test_exactly_once_model.py`` does the same, and pairs of crashes, with a Kafka in memory; this holds
that Kafka to the real one.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from forebay.admin import AdminClient
from forebay.errors import ConfigError
from forebay.model import TransactionIdentity
from forebay.spark import producers
from forebay.spark.exactly_once import driver, protocol
from forebay.spark.exactly_once.control_topic import KafkaControlTopic, open_topic
from forebay.spark.exactly_once.protocol import (
    Claim,
    NonDeterministicReplayError,
    State,
    TakenOverError,
    TaskOutcome,
    UnknownOutcomeError,
    Write,
)
from forebay.spark.exactly_once.task import TaskTransaction
from forebay.spark.options import SinkOptions, parse
from forebay.spark.writer import TaskId, write
from tests.spark.committed import assert_exactly, digest
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.pace import within, within_ms
from tests.support.rewrite import without_features
from tools.kafka import RealKafka

TASKS = 3
WRITE = Write("query", 7)
EXPECTED = Counter((b"k%d" % row, digest(b"v%d" % row)) for row in range(TASKS * 2))
TIMEOUT_MS = within_ms(6_000)


class Crash(BaseException):
    """The driver's process is gone."""


class CrashingTopic:
    """A control topic in Kafka that crashes before a step; its producer is left as it is.

    Args:
        faults: what happens before a step, by its number.
    """

    def __init__(
        self, topic: KafkaControlTopic, crash_at: int | None, faults: Mapping[int, Callable[[], None]] | None = None
    ) -> None:
        self._topic = topic
        self._crash_at = crash_at
        self._faults = dict(faults or {})
        self._seen = itertools.count()
        self.steps: list[str] = []

    def step(self, name: str) -> None:
        number = next(self._seen)
        if number == self._crash_at:
            raise Crash(name)
        self._faults.get(number, lambda: None)()
        self.steps.append(name)

    def claim(self) -> TransactionIdentity:
        self.step("claim")
        return self._topic.claim()

    def read(self) -> State:
        self.step("read")
        return self._topic.read()

    def write(self, identity: TransactionIdentity, state: State) -> TransactionIdentity:
        self.step("write")
        return self._topic.write(identity, state)

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        self.step("end")
        return self._topic.end(identity, commit)

    def describe(self, ids: Any, *, settled: bool = False) -> Mapping[str, Any]:
        self.step("describe")
        return self._topic.describe(ids, settled=settled)

    def ongoing(self, prefix: str) -> list[str]:
        self.step("list")
        return self._topic.ongoing(prefix)

    def fence(self, transactional_id: str) -> None:
        self.step("fence")
        self._topic.fence(transactional_id)


class Sink:
    """One topic, one prefix; each run is a driver with connections of its own."""

    def __init__(self, servers: str, topic: str, timeout_ms: int, **more: str) -> None:
        self.topic = topic
        self.copies = False
        """Whether each task has another attempt that is not chosen."""
        self.faults: dict[int, Callable[[], None]] = {}
        """What happens before a step, by its number."""
        self._given = {
            "kafka.bootstrap.servers": servers,
            "kafka.transaction.timeout.ms": str(timeout_ms),
            "topic": topic,
            "deliveryGuarantee": "exactly-once",
            "transactionalIdPrefix": topic,
            **more,
        }
        self.options: SinkOptions = parse(self._given)

    def answer(self, option: str, value: str) -> None:
        """Sets one more option."""
        self.options = parse({**self._given, option: value})

    def run(self, crash_at: int | None = None, *, shift: int = 0, abort: bool = False) -> list[str]:
        """One life of the driver, with its tasks; the steps that it made."""
        settings = self.options.exactly_once
        assert settings is not None
        kafka = open_topic(dict(self.options.producer), settings)
        topic = CrashingTopic(kafka, crash_at, self.faults)
        outcomes: list[TaskOutcome] = []
        try:
            claim = driver.begin(topic, settings.prefix, abandon=settings.abandon, rewrite=settings.rewrite)
            for partition in range(TASKS):
                topic.step(f"task {partition}")
                if self.copies:
                    self._task(claim, partition, shift)
                outcomes.append(self._task(claim, partition, shift))
            driver.commit(topic, settings.prefix, outcomes, time.time() * 1000)
        except Crash:
            if abort and len(outcomes) == TASKS:
                driver.abort(kafka, settings.prefix, outcomes, outcomes[0].claim)
        finally:
            kafka.close()
        return topic.steps

    def _task(self, claim: Claim, partition: int, shift: int) -> TaskOutcome:
        rows = [row for row in range(TASKS * 2) if (row + shift) % TASKS == partition]
        batch = pa.RecordBatch.from_pydict({"key": [f"k{row}" for row in rows], "value": [f"v{row}" for row in rows]})
        transaction = TaskTransaction(claim, WRITE, self.topic, partition)
        report = write([batch], self.options, task=TaskId(partition, 0), transaction=transaction)
        assert report.outcome is not None
        return report.outcome

    def close(self) -> None:
        producers.discard(self.options)


@pytest.fixture
def sink(kafka: RealKafka, topic: TopicFactory) -> Iterator[Sink]:
    made = Sink(kafka.bootstrap_servers, topic(kafka, 3), TIMEOUT_MS)
    yield made
    made.close()


def crash_and_go_on(servers: str, sink: Sink, crash_at: int, *, abort: bool = False) -> None:
    """A crash before that step, a run that ends, and one more as after a crash before Spark noted it."""
    assert len(sink.run(crash_at, abort=abort)) == crash_at
    sink.run()
    sink.run()
    assert_exactly(servers, sink.topic, EXPECTED)


STEPS = 13
"""Of a write with three tasks: claim, read, list, the tasks, describe, the decision, three ends, done, list."""


@pytest.mark.parametrize("abort", [False, True], ids=["dies", "aborts"])
@pytest.mark.parametrize("crash_at", range(STEPS))
def test_a_crash_before_any_step_costs_no_row(kafka: RealKafka, sink: Sink, crash_at: int, abort: bool) -> None:
    crash_and_go_on(kafka.bootstrap_servers, sink, crash_at, abort=abort)


BEFORE_THE_SECOND_END = 3 + TASKS + 2 + 1
"""Behind claim, read and list, the tasks, describe and the decision, and one end."""


def wait_for_time_outs() -> None:
    time.sleep(TIMEOUT_MS / 1000 + within(2.5))


def test_what_timed_out_between_two_ends_is_written_again(kafka: RealKafka, sink: Sink) -> None:
    assert sink.run(BEFORE_THE_SECOND_END)[-2:] == ["write", "end"]
    wait_for_time_outs()
    sink.run()
    sink.run()
    assert_exactly(kafka.bootstrap_servers, sink.topic, EXPECTED)


def test_an_id_that_somebody_else_has_used_is_unknown_and_the_users_answer_goes_on(
    kafka: RealKafka, sink: Sink
) -> None:
    sink.run(BEFORE_THE_SECOND_END)
    with AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        state = protocol.decode(admin.read_tail(f"__{sink.topic}_spark_commits")[0].value)
        assert state.decision is not None
        admin.init_producer_id(state.decision.tasks[1].identity.transactional_id)
    with pytest.raises(
        UnknownOutcomeError, match=r"task 1, 2 rows in \S+ \d.* producer \d+, epoch \d+, of which Kafka"
    ):
        sink.run()
    sink.answer("rewriteUnfinished", "query/7")
    sink.run()
    assert_exactly(kafka.bootstrap_servers, sink.topic, EXPECTED)


def test_an_attempt_that_was_not_chosen_holds_no_reader_after_the_commit(kafka: RealKafka, sink: Sink) -> None:
    sink.copies = True
    sink.run()
    with AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert admin.list_transactions(states=["Ongoing"], prefix=f"{sink.topic}-") == []
    assert_exactly(kafka.bootstrap_servers, sink.topic, EXPECTED)


def test_the_loser_of_two_jobs_with_one_prefix_is_told_so(kafka: RealKafka, sink: Sink) -> None:
    other = Sink(kafka.bootstrap_servers, sink.topic, TIMEOUT_MS * 2)

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": ["of the loser"]})
        producers.acquire(sink.options).flush()
        other.run()
        yield pa.RecordBatch.from_pydict({"value": ["of the loser"]})

    settings = sink.options.exactly_once
    assert settings is not None
    mine = open_topic(dict(sink.options.producer), settings)
    try:
        claim = driver.begin(mine, settings.prefix)
        transaction = TaskTransaction(claim, WRITE, sink.topic, 0)
        with pytest.raises(TakenOverError, match=f"transactionalIdPrefix={sink.topic} has begun a write"):
            write(batches(), sink.options, task=TaskId(0, 0), transaction=transaction)
        with pytest.raises(TakenOverError, match="has begun a write"):
            driver.commit(mine, settings.prefix, [TaskOutcome(claim, WRITE, 0)], time.time() * 1000)
    finally:
        mine.close()
        other.close()
    assert_exactly(kafka.bootstrap_servers, sink.topic, EXPECTED)


def test_below_version_2_of_transactions_the_same_holds(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    """The proxy hides that the broker has the second version."""
    servers = proxied(kafka, hooks=[without_features]).bootstrap_servers
    sink = Sink(servers, topic(kafka, 3), TIMEOUT_MS)
    try:
        sink.copies = True
        sink.run(BEFORE_THE_SECOND_END)
        with AdminClient(bootstrap_servers=servers) as admin:
            assert admin.transaction_version() == 0
            assert len(admin.list_transactions(states=["Ongoing"], prefix=f"{sink.topic}-")) == 2 * TASKS - 1
        wait_for_time_outs()
        sink.run()
        with AdminClient(bootstrap_servers=servers) as admin:
            assert admin.list_transactions(states=["Ongoing"], prefix=f"{sink.topic}-") == []
    finally:
        sink.close()
    assert_exactly(kafka.bootstrap_servers, sink.topic, EXPECTED)


def test_a_control_topic_that_deletes_is_refused(kafka: RealKafka, sink: Sink) -> None:
    with AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.create_topic(f"__{sink.topic}_spark_commits", configs={"cleanup.policy": "compact,delete"})
    with pytest.raises(ConfigError, match=r"compact,delete.*--add-config cleanup\.policy=compact"):
        sink.run()


def test_other_rows_in_the_place_of_lost_ones_are_an_error(kafka: RealKafka, sink: Sink) -> None:
    sink.run(BEFORE_THE_SECOND_END)
    wait_for_time_outs()
    with pytest.raises(NonDeterministicReplayError, match="are not those that the repetition has"):
        sink.run(shift=1)
