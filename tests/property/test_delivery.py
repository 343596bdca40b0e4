"""A whole producer over the in-memory network, under any sequence of sends and faults.

What is promised: every record has its outcome once; with idempotence each is in its log once and in the order of the
sends; without it, with one request in flight, in that order too; and all memory comes back.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from forebay._delivery.future import RecordFuture
from forebay.errors import BufferExhaustedError, KafkaError
from tests.fakes.broker import NAMES
from tests.fakes.world import World
from tests.property.profile import SeededMachine, test_case

NODES, PARTITIONS = 3, 3
NODE = st.integers(0, NODES - 1)
PARTITION = st.integers(0, PARTITIONS - 1)
# NOT_LEADER, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION,
# FENCED_LEADER_EPOCH: nothing was written, and another try may succeed.
RETRIABLE = st.sampled_from([6, 7, 19, 56, 3, 74])
FOREVER_MS = 3_600_000


@dataclass
class Sent:
    partition: int
    value: bytes
    future: RecordFuture


class DeliveryMachine(SeededMachine):
    """Sends and faults; the subclasses say what the producer is like and what must have come of it."""

    OPTIONS: ClassVar[dict[str, Any]] = {}
    IDEMPOTENT: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []
        self.heard: defaultdict[int, list[bytes]] = defaultdict(list)
        self.errors: list[KafkaError] = []
        self.open_flushes = 0

    @initialize(codec=st.sampled_from(["none", "none", "zstd"]), linger=st.sampled_from([0, 5, 1000]))
    def begin(self, codec: str, linger: int) -> None:
        self.world = World(
            nodes=NODES,
            topics={"test": PARTITIONS},
            idempotent=self.IDEMPOTENT,
            compression_type=codec,
            linger_ms=linger,
            batch_size=300,
            buffer_memory=6000,
            **{"delivery_timeout_ms": FOREVER_MS, "request_timeout_ms": 2000, **self.OPTIONS},
        )
        # A broker takes any sequence from a producer that it does not know; so it is made known before the faults.
        for partition in range(PARTITIONS):
            self.send(partition, 1)
        self.world.until(lambda: all(sent.future.done() for sent in self.sent))

    # -- what the application does --------------------------------------------------------------------------

    @rule(partition=PARTITION, size=st.sampled_from([1, 1, 100, 280, 1000]))
    def send(self, partition: int, size: int) -> None:
        value = b"%d " % len(self.sent) + bytes(size)

        def told(report: Any) -> None:
            self.heard[partition].append(value)
            if report.error is not None:
                self.errors.append(report.error)

        try:
            future = self.world.producer.send_nowait("test", value, partition=partition, on_delivery=told)
        except BufferExhaustedError:
            return
        self.sent.append(Sent(partition, value, future))

    @rule(partition=PARTITION, count=st.integers(2, 6), size=st.sampled_from([100, 280]))
    def send_some(self, partition: int, count: int, size: int) -> None:
        for _ in range(count):
            self.send(partition, size)

    @rule()
    def begin_flush(self) -> None:
        self.world.accumulator.begin_flush()
        self.open_flushes += 1

    @precondition(lambda self: self.open_flushes)
    @rule()
    def end_flush(self) -> None:
        self.world.accumulator.end_flush()
        self.open_flushes -= 1

    @rule(turns=st.integers(1, 4))
    def turn(self, turns: int) -> None:
        self.world.settle(turns)

    @rule(ms=st.sampled_from([1, 60, 500, 2500]))
    def pass_time(self, ms: int) -> None:
        self.world.run(ms, step=max(1, ms / 10))

    # -- what happens to it ---------------------------------------------------------------------------------

    @rule(partition=PARTITION, code=RETRIABLE, times=st.integers(1, 3))
    def fail(self, partition: int, code: int, times: int) -> None:
        self.world.cluster.fail("test", partition, *[code] * times)

    @rule(processed=st.booleans())
    def lose_an_answer(self, processed: bool) -> None:
        self.world.cluster.lose(processed=processed)

    @rule(node=NODE)
    def cut(self, node: int) -> None:
        self.world.cluster.brokers[node].drop()

    @rule(node=NODE)
    def take_down(self, node: int) -> None:
        # One at a time, or metadata could come from nowhere and all there is to see is waiting.
        for other in range(NODES):
            self.world.cluster.up(other)
        self.world.cluster.down(node)

    @rule(node=NODE)
    def bring_up(self, node: int) -> None:
        self.world.cluster.up(node)

    @rule(partition=PARTITION, node=NODE, known=st.booleans())
    def move_leader(self, partition: int, node: int, known: bool) -> None:
        """``known``: the client hears of it by itself, while requests to the old leader are on their way."""
        self.world.cluster.move("test", partition, node)
        if known:
            self.world.metadata.request_update(False)
            self.world.run(60)

    @rule(node=NODE, ms=st.sampled_from([0, 5, 700, 2500]))
    def slow_down(self, node: int, ms: int) -> None:
        """2500 ms is longer than the client waits for an answer."""
        self.world.cluster.brokers[node].delay_ms = ms

    @rule(node=NODE)
    def hold(self, node: int) -> None:
        """All of its answers: a broker answers in the order in which it was asked."""
        self.world.cluster.brokers[node].held.update(NAMES)

    @rule(node=NODE)
    def let_go(self, node: int) -> None:
        self.world.cluster.brokers[node].release()

    @rule(ms=st.sampled_from([50, 300]))
    def throttle(self, ms: int) -> None:
        self.world.cluster.throttles.append(ms)

    # -- what always holds ----------------------------------------------------------------------------------

    @invariant()
    def memory_is_bounded(self) -> None:
        if hasattr(self, "world"):
            assert self.world.pool.available() <= self.world.pool.total

    def end_faults(self) -> None:
        cluster = self.world.cluster
        cluster.faults.clear()
        cluster.lost.clear()
        cluster.throttles.clear()
        for number, broker in cluster.brokers.items():
            cluster.up(number)
            broker.delay_ms = 0
            broker.release()
        for _ in range(self.open_flushes):
            self.world.accumulator.end_flush()

    def teardown(self) -> None:
        """Once the faults are over, everything comes to its end."""
        if not hasattr(self, "world"):
            return
        world = self.world
        self.end_faults()
        world.until(lambda: all(sent.future.done() for sent in self.sent), limit_ms=120_000, step=20)
        world.until(lambda: not world.sender.has_work(), limit_ms=60_000, step=20)
        assert world.pool.available() == world.pool.total
        assert world.accumulator.incomplete() == []
        assert world.sender.in_flight == {}
        assert all(queue.in_flight == 0 for queue in world.accumulator.topics["test"].queues)
        for partition in range(PARTITIONS):
            self.judge(partition, [sent for sent in self.sent if sent.partition == partition])
        self.judge_metrics()

    def judge_metrics(self) -> None:
        assert self.world.metric("record-error-total") == len(self.errors)

    def judge(self, partition: int, sent: list[Sent]) -> None:
        """Compares what was sent to a partition with what it holds and with what was heard."""
        raise TypeError(f"{type(self).__name__} does not say how it is judged")

    def check_offsets(self, partition: int, sent: list[Sent]) -> None:
        """Every offset that was told is that of the record."""
        log = self.world.values("test", partition)
        for one in sent:
            if one.future.exception(0) is None and one.future.result(0).offset >= 0:
                assert log[one.future.result(0).offset] == one.value


class Idempotent(DeliveryMachine):
    """O 3, for what is retried: no loss, no double, order per partition."""

    def judge(self, partition: int, sent: list[Sent]) -> None:
        values = [one.value for one in sent]
        assert [one.future.exception(0) for one in sent] == [None] * len(sent)
        assert self.world.values("test", partition) == values
        # Callbacks come in the order of the outcomes, as in Java: a batch that was written, but whose answer got
        # lost, is heard of behind those that followed it.
        assert sorted(self.heard[partition]) == sorted(values)
        self.check_offsets(partition, sent)


class OneInFlight(DeliveryMachine):
    """Without idempotence what was lost on the way back is written again, but never out of order."""

    IDEMPOTENT = False
    OPTIONS: ClassVar[dict[str, Any]] = {"max_in_flight_requests_per_connection": 1}

    def judge(self, partition: int, sent: list[Sent]) -> None:
        values = [one.value for one in sent]
        assert [one.future.exception(0) for one in sent] == [None] * len(sent)
        assert list(dict.fromkeys(self.world.values("test", partition))) == values
        assert self.heard[partition] == values
        self.check_offsets(partition, sent)


class Unordered(DeliveryMachine):
    """Without idempotence and with five requests in flight: nothing is lost, and that is all."""

    IDEMPOTENT = False

    def judge(self, partition: int, sent: list[Sent]) -> None:
        values = [one.value for one in sent]
        assert [one.future.exception(0) for one in sent] == [None] * len(sent)
        assert set(self.world.values("test", partition)) == set(values)
        assert sorted(self.heard[partition]) == sorted(values)
        self.check_offsets(partition, sent)


class Impatient(DeliveryMachine):
    """A short delivery.timeout.ms and few retries: each outcome is told once, and an acknowledged record is there."""

    IDEMPOTENT = False
    OPTIONS: ClassVar[dict[str, Any]] = {"delivery_timeout_ms": 3000, "request_timeout_ms": 900, "retries": 2}

    def judge(self, partition: int, sent: list[Sent]) -> None:
        log = self.world.values("test", partition)
        acknowledged = [one.value for one in sent if one.future.exception(0) is None]
        assert set(acknowledged) <= set(log) <= {one.value for one in sent}
        assert sorted(self.heard[partition]) == sorted(one.value for one in sent)
        self.check_offsets(partition, sent)


TestIdempotent = test_case(Idempotent, runs=60, steps=30)
TestOneInFlight = test_case(OneInFlight, runs=40, steps=30)
TestUnordered = test_case(Unordered, runs=40, steps=30)
TestImpatient = test_case(Impatient, runs=40, steps=30)
