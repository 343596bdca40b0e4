"""send() up to the append: what it takes, what it refuses, how it waits for memory, where each error arrives."""

from __future__ import annotations

import enum
import threading
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from forebay import DeliveryReport
from forebay._delivery.future import RecordFuture
from forebay.errors import (
    BufferExhaustedError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    ProducerClosedError,
    RecordTooLargeError,
    SerializationError,
)
from forebay.model import ProducerRecord, RecordMetadata
from forebay.producer import KafkaProducer
from tests.fakes.broker import METADATA, PRODUCE
from tests.fakes.tickets import CountingTicket
from tests.fakes.waiting import Watching, meanwhile
from tests.fakes.world import HandDriven, Told, World
from tests.support.pace import HANG_S


def small(**config: Any) -> World:
    return World(batch_size=1000, buffer_memory=2000, **{"max_block_ms": 50, **config})


def test_memory_runs_out() -> None:
    """O9: the error arrives in the future after max.block.ms, with all the numbers; credit and line are as before."""
    world = small()
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    world.cluster.brokers[0].held.add(PRODUCE)
    error = meanwhile(world, lambda: world.send(bytes(900)), step=5).exception(0)
    assert isinstance(error, BufferExhaustedError) and isinstance(error, BufferError)
    assert "Failed to allocate memory within the configured max blocking time 50 ms." in str(error)
    for number in ("buffer.memory 2000", "available 0", "batch.size 1000"):
        assert number in str(error)
    assert world.pool.queued() == 0
    assert world.metric("buffer-exhausted-total") == 1
    assert world.metric("bufferpool-wait-time-ns-total") > 0


def test_one_budget_for_metadata_and_memory() -> None:
    """O9: max.block.ms is the limit of both waits together."""
    world = World(nodes=2, known=False, batch_size=1000, buffer_memory=1000, max_block_ms=200)
    world.cluster.create("other", 1, [1])
    world.learn("other")
    world.cluster.brokers[1].held.add(PRODUCE)
    world.producer.send("other", bytes(900))
    world.settle()
    for broker in world.cluster.brokers.values():
        broker.held.add(METADATA)
    begun = world.now

    def release() -> None:
        if METADATA in world.cluster.brokers[0].held and world.now - begun > 150:
            world.cluster.brokers[0].release()

    error = meanwhile(world, lambda: world.send(bytes(900)), step=2, each=release).exception(0)
    assert world.now - begun < 210
    assert isinstance(error, BufferExhaustedError)
    waited = error.context["waited_ms"]
    assert isinstance(waited, int) and waited <= 60


def test_a_callback_that_sends_has_the_waiters_served_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot wait until the waiters are woken; they are served at once, and what is left is for the callback."""
    world = World(topics={"test": 64}, batch_size=1000, buffer_memory=50_000)
    monkeypatch.setattr(HandDriven, "_on_sender_thread", lambda producer: True)
    ticket = CountingTicket()
    sent_again: list[BaseException | None] = []

    def again(report: DeliveryReport) -> None:
        if report.metadata.partition < 4:
            future = world.send(bytes(900), partition=63)
            sent_again.append(future.exception(0) if future.done() else None)

    world.cluster.brokers[0].held.add(PRODUCE)
    filled = 0
    while world.pool.available() > 1100:
        world.producer.send("test", bytes(900), partition=filled, on_delivery=again)
        filled += 1
    state = world.accumulator.topics["test"]
    status, _ = world.accumulator.appender.append_bytes(state, 62, bytes(900), now=world.now, ticket=ticket)
    assert status == 0 and filled > 30
    world.settle()
    world.cluster.brokers[0].release()
    world.turn()
    assert isinstance(sent_again[0], BufferExhaustedError) and sent_again[2:] == [None, None]
    assert ticket.woken == 1


def test_memory_that_comes_back_lets_the_waiter_on() -> None:
    world = small(max_block_ms=60_000)
    world.cluster.brokers[0].held.add(PRODUCE)
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    outcome: list[RecordFuture] = []
    thread = threading.Thread(target=lambda: outcome.append(world.send(bytes(900))))
    thread.start()
    while not world.pool.queued():
        world.turn()
        thread.join(0.001)
        assert thread.is_alive()
    world.cluster.brokers[0].release()
    while thread.is_alive():
        world.turn()
        thread.join(0.001)
    world.settle()
    assert outcome[0].result(0).offset == 1
    assert world.pool.available() == 2000


def test_nowait_never_waits_for_memory() -> None:
    """Nor says that it has waited."""
    world = small()
    for partition in (0, 1):
        world.producer.send_nowait("test", bytes(900), partition=partition)
    with pytest.raises(BufferError, match=r"No memory .*send_nowait\(\) does not wait.*waiting 0") as caught:
        world.producer.send_nowait("test", bytes(900), partition=0)
    assert "50 ms" not in str(caught.value)
    world.settle()
    assert world.producer.send_nowait("test", bytes(900), partition=0) is not None


def test_closed_while_waiting_for_memory() -> None:
    world = small(max_block_ms=60_000)
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    outcome: list[BaseException] = []

    def blocked() -> None:
        try:
            world.send(bytes(900))
        except KafkaError as error:
            outcome.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    while not world.pool.queued():
        thread.join(0.001)
    world.accumulator.close()
    thread.join(HANG_S)
    assert "Producer closed" in str(outcome[0])


def test_too_large_arrives_in_the_future() -> None:
    """H testInterceptorPartitionSetOnTooLargeRecord: and the interceptor is told the partition."""
    watching = Watching()
    world = World(topics={"test": 1}, interceptor_classes=[watching], max_request_size=1)
    told = Told()
    future = world.producer.send("test", b"value", key=b"key", on_delivery=told)
    error = future.exception(0)
    assert isinstance(error, RecordTooLargeError)
    assert error.message.startswith("The message is 90 bytes when serialized which is larger than 1,")
    ((metadata, heard),) = watching.acknowledged
    assert repr(heard) == repr(error) and (metadata.topic, metadata.partition) == ("test", 0)
    assert [error for _, error in told] == [heard]
    assert world.metric("record-error-total") == 1


def test_the_partition_that_was_chosen_is_in_the_error_s_metadata() -> None:
    watching = Watching()
    world = World(topics={"test": 8}, interceptor_classes=[watching], batch_size=200, buffer_memory=200)
    world.send(bytes(30), partition=0)
    with pytest.raises(BufferExhaustedError):
        world.producer.send_nowait("test", bytes(30), key=b"key")
    assert [metadata.partition for metadata, _ in watching.acknowledged] == [1]


def test_size_counts_keys_values_and_headers() -> None:
    world = World(max_request_size=200)
    assert not world.send(bytes(100), key=bytes(10)).done()
    for more in ({"value": bytes(120)}, {"key": bytes(120)}, {"headers": [("h" * 60, bytes(70))]}):
        assert isinstance(world.producer.send("test", partition=0, **more).exception(0), RecordTooLargeError)


@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_the_size_limit_is_the_same_for_a_batch_s_first_record_and_the_next(
    key: bytes | None, value: bytes | None
) -> None:
    for begun in (False, True):
        world = World(max_request_size=1000, linger_ms=1000)
        if begun:
            world.send(b"v")
        largest = 1000 - (61 + 21) - len(key or b"") - len(value or b"") - 4  # header: two sizes, a key of one
        sizes = range(largest - 3, largest + 3)
        fits = [not world.send(value, key=key, headers=[("h", bytes(size))]).done() for size in sizes]
        assert fits == [size <= largest for size in sizes]


def test_a_partitioner_s_mistakes_are_counted_whatever_the_record_carries() -> None:
    world = World(partitioner_class=lambda *_: -5)
    carried: list[dict[str, Any]] = [{}, {"key": b"k"}, {"headers": [("h", b"")]}, {"value": bytearray(b"v")}]
    for sent, more in enumerate(carried, 1):
        with pytest.raises(IllegalArgumentError, match="invalid partition number"):
            world.send(partition=None, **more)
        assert world.metric("record-error-total") == sent


def test_negative_partition() -> None:
    """H negativePartitionShouldThrow: raised, by an argument and by a partitioner of the user's."""
    world = World()
    with pytest.raises(IllegalArgumentError, match="Invalid partition: -1"):
        world.send(partition=-1)
    theirs = World(partitioner_class=lambda *_: -1)
    with pytest.raises(IllegalArgumentError, match="invalid partition number for topic test: -1"):
        theirs.send(partition=None)
    beyond = World(partitioner_class=lambda *_: 2)
    with pytest.raises(IllegalArgumentError, match="0 to 1 are allowed"):
        beyond.send(partition=None)


@pytest.mark.parametrize(
    ("arguments", "kind", "what"),
    [
        ({"topic": 5}, TypeError, "got int"),
        ({"topic": None}, TypeError, "got NoneType"),
        ({"partition": 1.0}, TypeError, "partition must be an int"),
        ({"partition": True}, TypeError, "partition must be an int"),
        ({"partition": 1 << 31}, IllegalArgumentError, "Invalid partition"),
        ({"timestamp": -1}, IllegalArgumentError, "Invalid timestamp: -1"),
        ({"timestamp": 1 << 63}, IllegalArgumentError, "Invalid timestamp"),
        ({"timestamp": 1.5}, TypeError, "timestamp must be an int"),
        ({"headers": [("a",)]}, TypeError, "header 0"),
        ({"headers": [("a", b""), (b"k", b"")]}, TypeError, "the key of header 1"),
        ({"headers": [("a", "text")]}, TypeError, "the value of header 'a'"),
        ({"headers": [("a\udfff", b"")]}, IllegalArgumentError, "the key of header 0"),
        ({"headers": 5}, TypeError, "headers must be"),
        ({"value": "text"}, SerializationError, "str"),
        ({"value": {"a": 1}}, TypeError, "dict"),
        ({"key": 5}, TypeError, "int"),
    ],
)
@pytest.mark.parametrize("method", ["send", "send_nowait"])
def test_what_the_caller_got_wrong_is_raised(
    method: str, arguments: dict[str, Any], kind: type[BaseException], what: str
) -> None:
    world = World()
    with pytest.raises(kind, match=what):
        getattr(world.producer, method)(**{"topic": "test", "value": b"v", **arguments})
    assert not world.accumulator.has_incomplete()


def test_closed() -> None:
    world = World()
    world.producer._set_state(1)
    for method in (world.producer.send, world.producer.send_nowait, world.producer.partitions_for):
        with pytest.raises(ProducerClosedError, match="after producer has been closed"):
            method("test")


def test_everything_arrives_as_given() -> None:
    """H testHeaders: headers in order, keys twice, null values."""
    world = World()
    headers = [("test", b"header2"), ("test", None), ("x", b"")]
    world.send(b"value", key=b"key", headers=headers, timestamp=123)
    world.send(None, key=None)
    world.send(b"", key=b"")
    world.settle()
    first, second, third = world.cluster.logs["test", 0].records
    assert (first.key, first.value, first.headers, first.timestamp) == (b"key", b"value", tuple(headers), 123)
    assert (second.key, second.value, second.timestamp) == (None, None, world.clock.wall())
    assert (third.key, third.value) == (b"", b"")


@pytest.mark.parametrize("size", [0, 10, 480, 505, 520, 5000])
def test_headers_long_and_short_with_a_key_and_without(size: int) -> None:
    world = World()
    headers = [("trace", b"t" * size), ("kind", None)]
    world.send(b"plain", headers=headers)
    world.send(b"keyed", key=b"k", headers=tuple(headers), partition=0)
    world.send(bytearray(b"serialized"), headers=dict(headers))  # type: ignore[arg-type]
    world.send(b"mapped", headers=MappingProxyType(dict(headers)))
    world.send(bytearray(b"mapped, serialized"), headers=MappingProxyType(dict(headers)))  # type: ignore[arg-type]
    world.settle()
    records = [record for log in world.cluster.logs.values() for record in log.records]
    values = sorted(record.value or b"" for record in records)
    assert values == [b"keyed", b"mapped", b"mapped, serialized", b"plain", b"serialized"]
    assert {record.headers for record in records} == {tuple(headers)}


def test_what_the_caller_changes_later_does_not_matter() -> None:
    world = World(value_serializer=lambda value: bytes(value))
    value, headers = bytearray(b"before"), [("h", b"1")]
    world.send(value, headers=headers)  # type: ignore[arg-type]
    value[:] = b"after!"
    headers.append(("late", b""))
    world.settle()
    (record,) = world.cluster.logs["test", 0].records
    assert (record.value, record.headers) == (b"before", (("h", b"1"),))


@pytest.mark.parametrize("value", [bytearray(b"xy"), memoryview(b"xy")])
def test_bytes_like_values(value: Any) -> None:
    world = World()
    world.send(value, headers={"h": bytearray(b"z")})
    world.settle()
    (record,) = world.cluster.logs["test", 0].records
    assert (record.value, record.headers) == (b"xy", (("h", b"z"),))


def test_a_whole_record() -> None:
    world = World()
    record = ProducerRecord("test", b"v", b"k", headers=[("h", b"1")], partition=1, timestamp=99)
    future = world.producer.send(record)
    world.settle()
    assert (future.result(0).partition, future.result(0).timestamp) == (1, 99)
    with pytest.raises(IllegalArgumentError, match="no further"):
        world.producer.send(record, b"other")


def test_a_topic_of_an_enumeration() -> None:
    class Topics(str, enum.Enum):  # noqa: UP042 - this is the older way, whose str() is not the value
        TEST = "test"

    world = World()
    future = world.producer.send(Topics.TEST, b"v", partition=0)
    world.settle()
    assert future.result(0).topic == "test"


def test_keys_choose_the_partition_as_java_does() -> None:
    """O6: murmur2 over all partitions, also one without a leader; an empty key is hashed, only null is sticky."""
    world = World(topics={"test": 7})
    futures = [world.producer.send("test", b"v", key=key) for key in (b"foobar", b"key", b"", b"abc")]
    assert [future._batch.partition for future in futures] == [0, 4, 2, 4]


def test_ignored_keys() -> None:
    world = World(topics={"test": 7}, partitioner_ignore_keys=True)
    partitions = {world.producer.send("test", b"v", key=b"%d" % number)._batch.partition for number in range(20)}
    assert len(partitions) == 1


def test_a_partitioner_of_the_user() -> None:
    seen: list[Any] = []

    def choose(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any) -> int:
        seen.append((topic, key, key_bytes, value, value_bytes, cluster.partition_count(topic)))
        return 1

    world = World(partitioner_class=choose, value_serializer=lambda value: value.encode())
    future = world.producer.send("test", "text", key=b"k")
    assert future._batch.partition == 1
    assert seen == [("test", b"k", b"k", "text", b"text", 2)]


def test_interceptors_may_change_the_record() -> None:
    def change(record: ProducerRecord) -> ProducerRecord:
        return ProducerRecord("test", b"changed", record.key, headers=record.headers, partition=1)

    watching = Watching(change)
    world = World(interceptor_classes=[watching])
    told = Told()
    future = world.send(b"v", on_delivery=told)
    world.settle()
    assert future.result(0).partition == 1
    assert world.values(partition=1) == [b"changed"]
    assert watching.acknowledged == told == [(future.result(0), None)]


def test_an_interceptor_sees_pairs_where_a_mapping_was_given() -> None:
    seen: list[Any] = []

    def add(record: ProducerRecord) -> ProducerRecord:
        seen.append(record.headers)
        return replace(record, headers=[*record.headers, ("by", b"us")])

    world = World(interceptor_classes=[Watching(add)])
    world.send(b"v", headers={"h": b"1"})
    world.send(b"v", headers=MappingProxyType({"h": None}))
    world.settle()
    assert seen == [(("h", b"1"),), (("h", None),)]
    assert [record.headers for record in world.cluster.logs["test", 0].records] == [
        (("h", b"1"), ("by", b"us")),
        (("h", None), ("by", b"us")),
    ]


@pytest.mark.parametrize("value", [b"v", bytearray(b"v")])
def test_what_cannot_be_headers_is_named_whatever_the_value(value: Any) -> None:
    for headers in (5, "text", b"bytes"):
        with pytest.raises(TypeError, match=f"headers must be .*, got {type(headers).__name__}"):
            World().send(value, headers=headers)


def test_interceptors_hear_of_what_send_raises() -> None:
    watching = Watching()
    world = World(interceptor_classes=[watching])
    with pytest.raises(TypeError):
        world.send("text")  # type: ignore[arg-type]
    ((metadata, error),) = watching.acknowledged
    assert metadata == RecordMetadata("test", 0, -1, -1, -1, -1) and isinstance(error, SerializationError)


def test_a_serializer_may_add_headers() -> None:
    """H testHeaders: both serializers get the record's headers, in a list of their own."""

    class Marking:
        def __init__(self, mark: bytes) -> None:
            self.mark = mark

        def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
            headers.append(("by", self.mark))
            return None if data is None else str(data).encode()

    world = World(key_serializer=Marking(b"key"), value_serializer=Marking(b"value"))
    given = [("own", b"1")]
    world.send(5, key="k", headers=given)  # type: ignore[arg-type]
    world.settle()
    (record,) = world.cluster.logs["test", 0].records
    assert record.headers == (("own", b"1"), ("by", b"key"), ("by", b"value"))
    assert (record.key, record.value, given) == (b"k", b"5", [("own", b"1")])


def test_many_threads_send() -> None:
    """B testStressfulSituation: with memory for 20 batches, so that they wait for it too."""
    world = World(topics={"test": 3}, batch_size=500, buffer_memory=10_000)
    futures: list[RecordFuture] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        mine = [world.send(b"%d-%d" % (number, index), partition=number % 3) for index in range(300)]
        with lock:
            futures.extend(mine)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        world.turn()
    world.until(lambda: all(future.done() for future in futures))
    for partition in range(3):
        values = world.values(partition=partition)
        assert len(values) == 600
        for number in (partition, partition + 3):
            assert [value for value in values if value and value.startswith(b"%d-" % number)] == [
                b"%d-%d" % (number, index) for index in range(300)
            ]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("method", ["send", "send_nowait"])
def test_what_cannot_be_called_is_no_callback(method: str, watched: bool) -> None:
    """Refused before the record is taken, with interceptors too; not found out when its batch is done."""
    world = World(interceptor_classes=[Watching()] if watched else [])
    send = getattr(world.producer, method)
    for given in (5, "told", [print]):
        with pytest.raises(TypeError, match=r"on_delivery must be a callable\(report\) or None, got (int|s|l)"):
            send("test", b"v", on_delivery=given)
    assert not world.accumulator.has_incomplete()
    future = send("test", b"v")
    for _ in range(2):
        with pytest.raises(TypeError, match=r"add_done_callback\(\) takes a callable\(future\), got int: 5"):
            future.add_done_callback(5)
        world.settle()
    assert future.result(0).offset == 0


def test_a_topic_is_known_by_the_string_of_its_latest_send() -> None:
    """The next send by the same object needs no look-up; another equal string goes to the same topic."""
    world = World(topics={"test": 1})
    for name in ("".join(["te", "st"]), "".join(["t", "est"])):
        world.producer.send(name, b"v")
        assert world.accumulator.topics["test"].name is name
        world.producer.send(name, b"v")
    world.settle()
    assert len(world.values("test")) == 4 and list(world.accumulator.topics) == ["test"]


def test_a_subclass_that_was_not_made_says_so() -> None:
    class Forgetful(KafkaProducer):
        def __init__(self) -> None:
            pass

    producer = Forgetful()
    for call in (
        lambda: producer.send("test", b"v"),
        lambda: producer.send_nowait("test", b"v"),
        lambda: producer.send(ProducerRecord("test", b"v")),
        lambda: producer.send_batch("test", [b"v"]),
    ):
        with pytest.raises(IllegalStateError, match=r"a subclass has to call super\(\).__init__\(\)"):
            call()
