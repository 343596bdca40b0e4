"""MockProducer takes what a KafkaProducer takes, and a test decides what becomes of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from forebay import DeliveryReport, KafkaProducer
from forebay.errors import (
    ConfigError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
    ProducerFencedError,
    PurgedError,
    RecordTooLargeError,
    SerializationError,
    UnknownTopicOrPartitionError,
)
from forebay.model import ProducerRecord, RecordMetadata, TopicPartition
from forebay.testing import ManualClock, MockProducer
from forebay.testing.mock_producer import FAILING
from tests.support.pace import HANG_S

TRANSACTIONAL: dict[str, Any] = {"transactional.id": "t"}


def ready(**options: Any) -> MockProducer:
    """A transactional one, in a transaction."""
    producer = MockProducer(TRANSACTIONAL, **options)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def test_records_are_kept_and_acknowledged() -> None:
    clock = ManualClock()
    producer = MockProducer(partitions=3, clock=clock)
    first = producer.send("t", b"1", b"key", headers={"h": b"x"})
    second = producer.send(ProducerRecord("t", b"2", partition=2, timestamp=7))
    assert first.done() and first.result(0).offset == 0 and first.result(0).serialized_key_size == 3
    assert (second.result(0).partition, second.result(0).timestamp) == (2, 7)
    assert [(one.value, one.key, one.headers) for one in producer.history()] == [
        (b"1", b"key", (("h", b"x"),)),
        (b"2", None, ()),
    ]
    kept = producer.records("t")
    assert [(one.value, one.headers) for one in kept] == [(b"1", (("h", b"x"),)), (b"2", ())]
    assert kept[0].timestamp == clock.wall() and producer.records("other") == []
    producer.clear()
    assert producer.history() == [] and producer.records() == []


def test_keys_choose_the_partition_as_the_producer_does() -> None:
    # Of Java: murmur2(b"abc") is 479470107.
    producer = MockProducer(partitions=1000)
    assert producer.send("t", b"", b"abc").result(0).partition == 479470107 % 1000
    assert producer.send("t", b"").result(0).partition == 0


def test_a_test_decides_the_outcomes() -> None:
    producer = MockProducer(auto_complete=False)
    told: list[tuple[int, KafkaError | None]] = []

    def note(report: DeliveryReport) -> None:
        told.append((report.metadata.offset, report.error))

    futures = [producer.send("t", b"%d" % number, on_delivery=note) for number in range(3)]
    assert not any(future.done() for future in futures) and told == []
    assert producer.complete_next() and producer.error_next(RecordTooLargeError("too large"))
    assert [future.done() for future in futures] == [True, True, False]
    with pytest.raises(RecordTooLargeError, match="too large"):
        futures[1].result(0)
    producer.flush()
    assert futures[2].result(0).offset == 2 and not producer.complete_next()
    assert [offset for offset, _ in told] == [0, -1, 2] and isinstance(told[1][1], RecordTooLargeError)


def test_what_was_cleared_is_not_completed_any_more() -> None:
    """As Java's: what comes next is the next to be completed."""
    producer = MockProducer(auto_complete=False)
    before = producer.send("t", b"1")
    producer.clear()
    after = producer.send("t", b"2")
    assert producer.complete_next() and after.done() and not before.done()
    assert not producer.complete_next() and [record.value for record in producer.history()] == [b"2"]


def test_a_record_fails_with_an_error_of_a_producer() -> None:
    producer = MockProducer(auto_complete=False)
    future = producer.send("t", b"1")
    for wrong in (RecordTooLargeError, ValueError("no"), None):
        with pytest.raises(TypeError, match="a record fails with a KafkaError, such as"):
            producer.error_next(wrong)  # type: ignore[arg-type]
    assert not future.done() and producer.error_next(RecordTooLargeError())


def test_purge_fails_what_is_open() -> None:
    producer = MockProducer(auto_complete=False)
    first = producer.send("t", b"1")
    producer.complete_next()
    others = [producer.send("t", value) for value in (b"2", b"3")]
    producer.purge(in_queue=False)
    assert not any(other.done() for other in others)
    producer.purge()
    assert first.exception(0) is None and not producer.complete_next()
    for other in others:
        error = other.exception(0)
        assert isinstance(error, PurgedError) and error.context["phase"] == "queued"


def test_a_record_that_is_too_large_fails_as_in_the_producer() -> None:
    producer = MockProducer(max_request_size=200)
    assert producer.send("t", bytes(100)).done()
    future = producer.send("t", bytes(200))
    assert isinstance(future.exception(0), RecordTooLargeError) and len(producer.history()) == 1
    with pytest.raises(RecordTooLargeError) as caught:
        producer.send_batch("t", [b"1", bytes(200), b"3"])
    assert caught.value.context["row"] == 1 and len(producer.history()) == 2
    delivery = caught.value.delivery
    assert (delivery.acknowledged, delivery.taken()) == (1, [range(1)])


def test_a_future_is_awaited_and_calls_back() -> None:
    producer = MockProducer(auto_complete=False)
    future = producer.send("t", b"x")
    called: list[Any] = []
    future.add_done_callback(called.append)

    async def main() -> int:
        waiting = asyncio.ensure_future(asyncio.wait_for(_outcome(future), HANG_S))
        await asyncio.sleep(0)
        producer.complete_next()
        return (await waiting).offset

    assert asyncio.run(main()) == 0 and called == [future]


async def _outcome(future: Any) -> RecordMetadata:
    found: RecordMetadata = await future
    return found


def test_a_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def bad(*_: object) -> None:
        raise ValueError("mine")

    with caplog.at_level(logging.ERROR, "forebay.callbacks"):
        assert MockProducer().send("t", b"x", on_delivery=bad).done()
    assert "t-0" in caplog.text and "mine" in caplog.text


def test_serializers_partitioners_and_interceptors_take_part() -> None:
    class Last:
        def partition(self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any) -> int:
            return int(cluster.partition_count(topic)) - 1

    class Marks:
        def __init__(self) -> None:
            self.ended: list[Any] = []

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return ProducerRecord(record.topic, {"seen": record.value})

        def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
            self.ended.append(error)

    marks = Marks()
    producer = MockProducer(
        value_serializer="json", partitioner_class=Last, interceptor_classes=[marks], partitions={"t": 5}
    )
    assert producer.send("t", 1).result(0).partition == 4
    assert producer.records()[0].value == b'{"seen":1}' and marks.ended == [None]
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send("u", 1)
    assert isinstance(marks.ended[1], UnknownTopicOrPartitionError)


def test_rows_of_a_table_pass_the_interceptors() -> None:
    class Shouts:
        ended = 0

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return ProducerRecord(record.topic, record.value.upper())

        def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
            self.ended += 1

    shouts = Shouts()
    producer = MockProducer(interceptor_classes=[shouts])
    producer.send_batch("t", [b"a", b"b"])
    assert [record.value for record in producer.records()] == [b"A", b"B"] and shouts.ended == 2


def test_what_cannot_be_is_refused() -> None:
    producer = MockProducer(partitions={"t": 2})
    with pytest.raises(SerializationError, match="without a serializer it must be bytes"):
        producer.send("t", "text")
    with pytest.raises(UnknownTopicOrPartitionError, match="has 2 partitions, none is 2"):
        producer.send("t", b"x", partition=2)
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'u'; there are t"):
        producer.partitions_for("u")
    with pytest.raises(TypeError, match="on_delivery must be a callable"):
        producer.send("t", b"x", on_delivery=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="headers=..., partition="):
        producer.send("t", b"x", b"k", [("h", b"1")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has no timestamp_ms: write timestamp="):
        producer.send("t", b"x", timestamp_ms=0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="linger"):
        MockProducer(linger_mss=5)  # type: ignore[call-arg]
    with pytest.raises(IllegalArgumentError, match="at least 1"):
        MockProducer(partitions=0)
    assert producer.history() == []


def test_methods_are_made_to_fail() -> None:
    producer = ready()
    calls: dict[str, Callable[[], object]] = {
        "send": lambda: producer.send("t", b"x"),
        "flush": producer.flush,
        "partitions_for": lambda: producer.partitions_for("t"),
        "commit_transaction": producer.commit_transaction,
        "abort_transaction": producer.abort_transaction,
        "send_offsets_to_transaction": lambda: producer.send_offsets_to_transaction({}, "g"),
        "close": producer.close,
    }
    for method, call in calls.items():
        producer.fail(method, KafkaTimeoutError(method))
        with pytest.raises(KafkaTimeoutError, match=method):
            call()
        producer.fail(method, None)
    assert producer.in_transaction and not producer.closed
    with pytest.raises(IllegalArgumentError, match="'sned' cannot be made to fail; send, flush"):
        producer.fail("sned", KafkaTimeoutError())


def fail_in_transaction(producer: MockProducer) -> None:
    with producer.transaction():
        producer.send("t", b"3")
        raise ZeroDivisionError


def test_transactions() -> None:
    producer = ready()
    producer.send("t", b"1")
    assert producer.history() == [] and [one.value for one in producer.uncommitted_history()] == [b"1"]
    producer.abort_transaction()
    with producer.transaction():
        producer.send("t", b"2")
        producer.send_offsets_to_transaction({TopicPartition("in", 0): 5}, "group")
    assert [one.value for one in producer.history()] == [b"2"]
    [committed] = producer.committed_offsets()
    assert committed["group"][TopicPartition("in", 0)].offset == 5
    with pytest.raises(ZeroDivisionError):
        fail_in_transaction(producer)
    assert (producer.commit_count, producer.abort_count) == (1, 2) and len(producer.history()) == 1


def test_transactions_out_of_order_are_refused() -> None:
    with pytest.raises(IllegalStateError, match=r"no transactional\.id"):
        MockProducer().init_transactions()
    producer = MockProducer(TRANSACTIONAL)
    with pytest.raises(IllegalStateError, match="was not called"):
        producer.begin_transaction()
    producer.init_transactions()
    with pytest.raises(IllegalStateError, match="was called before"):
        producer.init_transactions()
    with pytest.raises(IllegalStateError, match="there is no transaction"):
        producer.commit_transaction()
    with pytest.raises(IllegalStateError, match="sends in transactions alone"):
        producer.send("t", b"x")
    producer.begin_transaction()
    with pytest.raises(IllegalStateError, match="open already"):
        producer.begin_transaction()
    producer.fence()
    with pytest.raises(ProducerFencedError):
        producer.send("t", b"x")
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()


def test_the_end() -> None:
    with ready(auto_complete=False) as producer:
        future = producer.send("t", b"x")
    assert future.done() and producer.closed and producer.history() == [] and not producer.in_transaction
    producer.close()
    for call in (lambda: producer.send("t", b"x"), lambda: producer.partitions_for("t"), producer.flush):
        with pytest.raises(ProducerClosedError):
            call()


def test_tables() -> None:
    producer = MockProducer(partitions=2)
    table = pa.table(
        {
            "value": ["a", None],
            "key": [b"k", None],
            "headers": [[{"key": "h", "value": b"1"}], None],
            "partition": [1, 0],
            "to": ["u", None],
        }
    )
    delivery = producer.send_batch("t", table, topic_column="to", timestamp=9)
    assert delivery.acknowledged == 2 and delivery.result(0)[TopicPartition("u", 1)][0].records == 1
    assert [tuple(one) for one in producer.records()] == [
        ("u", 1, 0, 9, b"k", b"a", (("h", b"1"),)),
        ("t", 0, 0, 9, None, None, ()),
    ]
    assert producer.send_batch("t", [b"1", b"2"]).rows == 2
    with pytest.raises(IllegalArgumentError, match="its topic is null"):
        producer.send_batch(None, [b"1"])


METHODS = [*FAILING, "send_nowait", "send_batch"]


@pytest.mark.parametrize("method", METHODS)
def test_its_calls_are_those_of_the_producer(method: str) -> None:
    ours = inspect.signature(getattr(MockProducer, method)).parameters
    theirs = inspect.signature(getattr(KafkaProducer, method)).parameters
    assert list(ours) == list(theirs)
    assert [one.kind for one in ours.values()] == [one.kind for one in theirs.values()]
    assert [one.default for one in ours.values()] == [one.default for one in theirs.values()]
