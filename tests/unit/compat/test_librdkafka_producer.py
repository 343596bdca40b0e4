"""confluent-kafka's Producer on a producer in memory: events, limits, ends, and what is raised."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from forebay.compat.confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    consistent,
    fnv1a,
    murmur2,
)
from forebay.errors import KafkaTimeoutError, PurgedError
from tests.fakes.broker import PRODUCE
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.world import PumpedThread, World

Event = tuple[Any, Message]


class Events(list[Event]):
    """A callback that keeps what it is called with."""

    def __call__(self, error: Any, message: Message) -> None:
        self.append((error, message))


def ours(world: World, **options: Any) -> Producer:
    return Producer._around(world.producer, **{name.replace("__", "."): value for name, value in options.items()})


def test_the_callback_is_called_by_poll_on_this_thread() -> None:
    world, events = World(), Events()
    producer = ours(world)
    producer.produce("test", "v", "k", 1, events, timestamp=1234, headers={"h": "x"})
    assert len(producer) == 1 and bool(producer)
    world.settle()
    assert not events and len(producer) == 1
    assert producer.poll(0) == 1 and len(producer) == 0
    ((error, message),) = events
    assert error is None and message.error() is None
    assert (message.topic(), message.partition(), message.offset()) == ("test", 1, 0)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", [("h", b"x")])
    assert message.timestamp() == (TIMESTAMP_CREATE_TIME, 1234) and len(message) == 1 and message.latency() == 0
    assert world.values("test", 1) == [b"v"] and producer.poll(0) == 0


def test_messages_without_a_callback_have_no_event() -> None:
    world = World()
    producer = ours(world)
    producer.produce("test", b"v", partition=0)
    assert len(producer) == 1
    world.settle()
    assert len(producer) == 0 and producer.poll(0) == 0


def test_a_key_goes_where_librdkafka_puts_it() -> None:
    world = World(topics={"test": 8})
    for name, chosen in {"consistent_random": consistent, "murmur2_random": murmur2, "fnv1a": fnv1a}.items():
        events = Events()
        producer = ours(world, partitioner=name)
        for number in range(20):
            producer.produce("test", b"v", f"key-{number}", on_delivery=events)
        world.settle()
        producer.poll(0)
        assert [message.partition() for _, message in events] == [
            chosen(message.key() or b"", 8) for _, message in events
        ]
        assert len(events) == 20


def test_random_partitions_use_all_of_them() -> None:
    world, events = World(topics={"test": 4}), Events()
    producer = ours(world, partitioner="random", on_delivery=events)
    for _ in range(100):
        producer.produce("test", b"v", b"key")
    world.settle(20)
    producer.poll(0)
    assert {message.partition() for _, message in events} == {0, 1, 2, 3}
    producer = ours(world, on_delivery=events, sticky__partitioning__linger__ms=0)
    del events[:]
    for _ in range(100):
        producer.produce("test", b"v")
    world.settle(20)
    producer.poll(0)
    assert {message.partition() for _, message in events} == {0, 1, 2, 3}


def test_an_empty_key_goes_where_a_message_without_one_goes() -> None:
    """For the partitioner ``consistent_random``, also with a timestamp and headers of the caller's."""
    world, events = World(topics={"test": 8}), Events()
    producer = ours(world, on_delivery=events)
    producer.produce("test", b"v")
    producer.produce("test", b"v", b"")
    producer.produce("test", b"v", "", timestamp=1234, headers=[("a", None)])
    world.settle()
    producer.poll(0)
    assert len({message.partition() for _, message in events}) == 1 and len(events) == 3
    assert events[2][1].timestamp() == (TIMESTAMP_CREATE_TIME, 1234) and events[2][1].headers() == [("a", None)]


def test_a_failed_message() -> None:
    world, events = World(delivery_timeout_ms=6000), Events()
    told: list[Any] = []
    producer = ours(world, error_cb=told.append, delivery__report__only__error=True)
    producer.produce("test", b"good", partition=0, callback=events)
    world.settle()
    assert producer.poll(0) == 0 and not events
    world.cluster.brokers[0].held.add(PRODUCE)
    producer.produce("test", b"bad", partition=0, callback=events)
    world.run(6100)
    assert producer.poll(0) == 1
    ((error, message),) = events
    assert error.name() == "_MSG_TIMED_OUT" and message.error() == error and message.value() == b"bad"
    assert message.offset() is None and message.timestamp() == (TIMESTAMP_NOT_AVAILABLE, -1)
    assert message.latency() is not None and [error.name() for error in told] == ["_TIMED_OUT"]


def test_error_cb_is_told_of_a_fatal_error_once() -> None:
    world, events, told = World(topics={"test": 2}, linger_ms=30), Events(), list[Any]()
    producer = ours(world, error_cb=told.append)
    for partition in (0, 1):
        world.cluster.fail("test", partition, 31)  # CLUSTER_AUTHORIZATION_FAILED
        for _ in range(2):
            producer.produce("test", b"v", partition=partition, callback=events)
    world.run(100)
    producer.poll(0)
    assert len(events) == 4 and all(error.fatal() for error, _ in events)
    assert [error.fatal() for error in told] == [True]


def test_error_cb_is_told_of_lost_connections_without_a_message() -> None:
    told: list[Any] = []
    world = World(nodes=2)
    producer = ours(world, error_cb=told.append)
    world.cluster.down(0)
    world.cluster.brokers[0].drop()
    world.settle()
    assert not told and len(producer) == 1
    assert producer.poll(0) == 0 and [error.name() for error in told] == ["_TRANSPORT"]
    world.cluster.down(1)
    world.cluster.brokers[1].drop()
    world.run(5000)
    assert producer.poll(0) == 0
    names = [error.name() for error in told[1:]]
    assert names.count("_ALL_BROKERS_DOWN") == 1 and set(names) == {"_TRANSPORT", "_ALL_BROKERS_DOWN"}
    # Of the attempts that failed in the same way meanwhile one is told.
    assert len({str(error) for error in told[1:]}) == len(names)
    told.clear()
    world.run(5000)
    producer.poll(0)
    assert {error.name() for error in told} == {"_TRANSPORT"}
    for node in range(2):
        world.cluster.up(node)
    producer.produce("test", b"v")
    world.run(5000)
    told.clear()
    producer.poll(0)
    for node in range(2):
        world.cluster.down(node)
        world.cluster.brokers[node].drop()
    world.run(3000)
    producer.poll(0)
    assert [error.name() for error in told].count("_ALL_BROKERS_DOWN") == 1


def test_what_error_cb_raises_goes_to_the_caller() -> None:
    def fails(error: Any) -> None:
        raise ValueError("mine")

    world = World()
    producer = ours(world, error_cb=fails)
    world.cluster.down(0)
    world.cluster.brokers[0].drop()
    world.settle()
    with pytest.raises(ValueError, match="mine"):
        producer.poll(0)


def test_what_a_callback_raises_goes_to_the_caller_of_poll() -> None:
    world, events = World(), Events()
    producer = ours(world)

    def fails(error: Any, message: Message) -> None:
        raise ValueError("mine")

    producer.produce("test", b"a", partition=0, callback=fails)
    producer.produce("test", b"b", partition=0, callback=events)
    world.settle()
    with pytest.raises(ValueError, match="mine"):
        producer.poll(0)
    assert producer.poll(0) == 1 and len(events) == 1


def test_the_limit_of_messages() -> None:
    world = World()
    world.cluster.brokers[0].held.add(PRODUCE)
    producer = ours(world, queue__buffering__max__messages=3)
    for _ in range(3):
        producer.produce("test", b"v", partition=0)
    with pytest.raises(BufferError, match=r"queue\.buffering\.max\.messages is reached"):
        producer.produce("test", b"v", partition=0)
    world.cluster.brokers[0].held.discard(PRODUCE)
    world.cluster.brokers[0].release()
    world.settle()
    producer.produce("test", b"v", partition=0)
    assert len(producer) == 1


def test_the_limit_of_bytes() -> None:
    world = World(batch_size=1000, buffer_memory=2000)
    world.cluster.brokers[0].held.add(PRODUCE)
    producer = ours(world)
    for _ in range(2):
        producer.produce("test", bytes(900), partition=0)
    with pytest.raises(BufferError, match=r"queue\.buffering\.max\.kbytes is reached"):
        producer.produce("test", bytes(900), partition=0)
    assert len(producer) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"value": 1}, TypeError, "value must be bytes, str or None, got int"),
        ({"key": 1.5}, TypeError, "key must be"),
        ({"partition": "0"}, TypeError, "partition must be an int, got str"),
        ({"callback": 1}, TypeError, "callback must be callable"),
        ({"headers": ("a", "b")}, TypeError, "headers must be a list of pairs or a dict"),
        ({"partition": 2}, KafkaException, "topic test has 2 partitions, not 2"),
        ({"partition": -2}, KafkaException, "_UNKNOWN_PARTITION"),
        ({"value": bytes(1_000_001)}, KafkaException, "MSG_SIZE_TOO_LARGE"),
        ({"topic": 1}, TypeError, "topic must be a str, got int"),
    ],
)
def test_what_cannot_be_is_raised_at_once(arguments: Any, error: type[Exception], said: str) -> None:
    producer = ours(World(max_request_size=1_000_000))
    with pytest.raises(error, match=said):
        producer.produce(**{"topic": "test", "value": b"v", **arguments})
    assert len(producer) == 0


def test_a_topic_that_is_not_known_yet_does_not_hold_produce_up() -> None:
    world, events = World(known=False), Events()
    producer = ours(world)
    started: list[Any] = []
    producer._held._start = lambda run, name: started.append(run)
    for value in "abc":
        producer.produce("test", value, partition=0, callback=events)
    assert len(producer) == 3 and len(started) == 1
    producer._held.turn()
    world.settle(12)
    producer._held.turn()
    producer.produce("test", "d", partition=0, callback=events)
    world.settle()
    assert producer.poll(0) == 4 and world.values() == [b"a", b"b", b"c", b"d"]


def test_a_held_message_for_a_partition_that_does_not_exist_fails_alone() -> None:
    world, events = World(known=False), Events()
    producer = ours(world)
    producer._held._start = lambda run, name: None
    producer.produce("test", "a", partition=2, callback=events)
    producer.produce("test", "b", partition=0, callback=events)
    producer._held.turn()
    world.settle(12)
    producer._held.turn()
    world.settle()
    assert producer.poll(0) == 2 and world.values() == [b"b"]
    assert [error and error.name() for error, _ in events] == ["_UNKNOWN_PARTITION", None]


def test_purge_drops_what_waits_for_its_topic() -> None:
    world, events = World(), Events()
    producer = ours(world)
    producer._held._start = lambda run, name: None
    producer.produce("absent", b"v", callback=events)
    assert len(producer) == 1
    producer._held.drop(PurgedError("purged"))
    assert producer.poll(0) == 1 and events[0][0].name() == "_PURGE_QUEUE"


def test_a_closed_producer_says_so() -> None:
    class Unmade(Producer):
        def __init__(self) -> None:
            pass

    producer = Unmade()
    for call in (
        lambda: producer.produce("test"),
        producer.poll,
        producer.flush,
        producer.purge,
        producer.begin_transaction,
        producer.init_transactions,
        producer.commit_transaction,
        producer.abort_transaction,
        lambda: producer.send_offsets_to_transaction([], "g"),
        lambda: producer.produce_batch("test", []),
        lambda: producer.native,
    ):
        with pytest.raises(RuntimeError, match="Producer has been closed"):
            call()
    assert len(producer) == 0 and producer.close()


@pytest.mark.parametrize("kind", [KafkaTimeoutError, PurgedError, StopIteration])
def test_what_a_callback_raises_leaves_flush_as_it_is(kind: type[Exception]) -> None:
    world = World()
    producer = ours(world)

    def told(error: Any, message: Message) -> None:
        raise kind(message.value())

    producer.produce("test", b"there", partition=0, callback=told)
    world.settle()
    producer.produce("test", b"on its way", partition=0)
    with pytest.raises(kind, match="there"):
        producer.flush(0)
    assert producer.flush(0) == 1


def test_close_calls_the_callbacks_behind_one_that_raises() -> None:
    world, events = World(), Events()
    producer = ours(world)
    producer._held._start = lambda run, name: None

    def told(error: Any, message: Message) -> None:
        events(error, message)
        raise KafkaException(error, message.value())

    for value in (b"a", b"b", b"c"):
        producer.produce("absent", value, callback=told)
    with pytest.raises(KafkaException) as caught:
        producer.close(0)
    assert caught.value.args[1] == b"a" and producer.close()
    assert [(error.name(), message.value()) for error, message in events] == [
        ("_PURGE_QUEUE", b"a"), ("_PURGE_QUEUE", b"b"), ("_PURGE_QUEUE", b"c"),
    ]  # fmt: skip


def test_the_copy_in_a_forked_child_takes_nothing() -> None:
    world, known = World(), World(known=False)
    for each in (world, known):
        producer = ours(each)
        each.producer._after_fork_in_child()
        for call in (lambda: producer.produce("test", b"v"), producer.flush, producer.purge):  # noqa: B023
            with pytest.raises(KafkaException, match="belongs to the parent process"):
                call()
        assert producer.poll(0) == 0 and producer.close() and len(producer) == 0


def test_errors_of_transactional_calls_are_kafka_exceptions() -> None:
    producer = ours(World())
    with pytest.raises(KafkaException) as caught:
        producer.begin_transaction()
    assert caught.value.args[0].name() == "_STATE" and isinstance(caught.value.__cause__, Exception)


def test_batches_of_messages() -> None:
    world, common, own = World(max_request_size=1_000_000), Events(), Events()
    producer = ours(world)
    messages: list[dict[str, Any]] = [
        {"value": "a", "partition": 0, "headers": {"h": "1"}, "timestamp": 5},
        {"value": b"b", "key": "k", "partition": 0, "callback": own},
        {"value": bytes(1_000_001)},
    ]
    assert producer.produce_batch("test", messages, on_delivery=common) == 2
    assert messages[2]["_error"].name() == "MSG_SIZE_TOO_LARGE" and "_error" not in messages[0]
    world.settle()
    producer.poll(0)
    assert [message.headers() for _, message in common] == [[("h", b"1")]] and len(own) == 1
    for wrong, said in (("x", "must be a list"), ([1], "index 0 must be a dict"), ([{"key": 1}], "key at index 0")):
        with pytest.raises(TypeError, match=said):
            producer.produce_batch("test", wrong)  # type: ignore[arg-type]


def test_what_is_made_without_a_configuration() -> None:
    with pytest.raises(TypeError, match="expected configuration dict"):
        Producer()
    with pytest.raises(TypeError, match="expected configuration dict, got str"):
        Producer("localhost")  # type: ignore[arg-type]


CALLS: dict[str, Callable[[Producer], object]] = {
    "poll": lambda producer: producer.poll(0),
    "flush": lambda producer: producer.flush(0),
    "purge": lambda producer: producer.purge(blocking=False),
    "close": lambda producer: producer.close(0),
    "with": lambda producer: producer.__exit__(None, None, None),
    "init_transactions": lambda producer: producer.init_transactions(0),
    "begin_transaction": lambda producer: producer.begin_transaction(),
    "send_offsets_to_transaction": lambda producer: producer.send_offsets_to_transaction([], "g", 0),
    "commit_transaction": lambda producer: producer.commit_transaction(0),
    "abort_transaction": lambda producer: producer.abort_transaction(0),
}
"""Every call that serves callbacks."""


@pytest.mark.parametrize(
    "kind", [ValueError, KafkaTimeoutError, StopIteration, GeneratorExit, KeyboardInterrupt, SystemExit]
)
@pytest.mark.parametrize("raising", ["own", "default", "error_cb", "all"])
@pytest.mark.parametrize("call", CALLS)
def test_what_user_code_raises_costs_no_other_message_its_report(
    call: str, raising: str, kind: type[BaseException]
) -> None:
    world, reports = World(), list[Any]()

    def report(error: Any, message: Message) -> None:
        reports.append(message.value())
        if raising in ("own", "default", "all"):
            raise kind(message.value())

    def told(error: Any) -> None:
        if raising in ("error_cb", "all"):
            raise kind("error_cb")

    producer = ours(world, error_cb=told, on_delivery=report)
    for number in range(6):
        own = report if raising == "own" else None
        producer.produce("test", b"%d" % number, partition=0, on_delivery=own)
    world.settle()
    producer._events.put_error(KafkaError(KafkaError._TRANSPORT))
    world.producer._thread = PumpedThread(world)  # type: ignore[assignment]
    heard = 0
    try:
        CALLS[call](producer)
    except (kind, KafkaException):
        heard += 1
    if call in ("flush", "close", "with"):
        assert len(reports) == 6  # all at once
    while len(producer):
        try:
            producer.poll(0)
        except kind:
            heard += 1
    assert reports == [b"%d" % number for number in range(6)] and heard > 0


def test_what_callbacks_raise_does_not_hide_that_a_call_failed() -> None:
    def fails(error: Any, message: Message) -> None:
        raise ValueError("mine")

    world = World()
    producer = ours(world, on_delivery=fails)
    producer.produce("test", b"v", partition=0)
    world.settle()
    with pytest.raises(KafkaException, match="_STATE") as caught:
        producer.begin_transaction()
    assert caught.value.__notes__ == ["A callback raised ValueError('mine')"]


def test_the_clusters_id() -> None:
    assert ours(World()).cluster_id() == "dummy"


@pytest.mark.parametrize("given", [(1, "p"), ("u", None)])
def test_credentials(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    producer = ours(World())
    with pytest.raises(TypeError, match="must be a str, got"):
        producer.set_sasl_credentials(*given)
    with caplog.at_level(logging.INFO, "forebay.compat"):
        producer.set_sasl_credentials("u", "p")
    assert "set_sasl_credentials has no effect" in caplog.text


def test_after_a_failed_init_transactions_each_call_is_in_conflict_with_it() -> None:
    world = TransactionalWorld(ready=False)
    producer = ours(world)
    with pytest.raises(KafkaException) as first:
        producer.init_transactions(0)
    assert first.value.args[0].code() == KafkaError._TIMED_OUT
    for call in (
        producer.begin_transaction,
        lambda: producer.send_offsets_to_transaction([], None),
        producer.commit_transaction,
        producer.abort_transaction,
    ):
        with pytest.raises(KafkaException, match="init_transactions has not succeeded") as caught:
            call()
        error = caught.value.args[0]
        assert error.code() == KafkaError._CONFLICT and error.retriable() and not error.fatal()
