"""Where messages without a key go, by partitioner, and how callbacks are served; the rest is tried through Producer."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from forebay.compat import confluent_kafka
from forebay.compat.confluent_kafka import KafkaException
from forebay.errors import ApiError, KafkaTimeoutError, ProducerFencedError
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.world import World
from tests.unit.compat.test_librdkafka_producer import Events, ours


@pytest.mark.parametrize(
    ("partitioner", "kind"),
    [
        ("random", "sticky"),
        ("consistent", "consistent"),
        ("consistent_random", "sticky"),
        ("murmur2", "murmur2"),
        ("murmur2_random", "sticky"),
        ("fnv1a", "fnv1a"),
        ("fnv1a_random", "sticky"),
    ],
)
def test_messages_without_a_key(partitioner: str, kind: str) -> None:
    world, events = World(topics={"test": 8}), Events()
    producer = ours(world, partitioner=partitioner, on_delivery=events)
    for _ in range(60):
        producer.produce("test", b"v")
    world.settle(20)
    producer.poll(0)
    used: set[Any] = {message.partition() for _, message in events}
    assert len(events) == 60 and len(used) == 1
    if kind != "sticky":
        assert used == {getattr(confluent_kafka, kind)(b"", 8)}


def test_a_callback_is_called_where_error_cb_raises() -> None:
    world, events = World(), Events()

    def told(error: Any) -> None:
        raise KafkaException(error)

    producer = ours(world, error_cb=told)
    producer.produce("test", b"a", partition=0, callback=events)
    producer.produce("test", b"b", partition=0, callback=events)
    for batch in world.accumulator.incomplete():
        batch.fail(ProducerFencedError("another one is there"), None, lambda error, result: None)
    with pytest.raises(KafkaException):
        producer.poll(0)
    assert producer.poll(0) == 1  # a fatal error is told once
    assert [(error.name(), message.value()) for error, message in events] == [("_FENCED", b"a"), ("_FENCED", b"b")]
    assert len(producer) == 0


def test_in_a_forked_child_no_callback_is_called() -> None:
    world, events = World(), Events()
    producer = ours(world)
    producer._held._start = lambda run, name: None
    producer.produce("test", b"served", partition=0, callback=events)
    world.settle()
    producer.produce("absent", b"held", callback=events)
    world.producer._after_fork_in_child()
    assert producer.poll(0) == 0
    for call in (producer.purge, producer.abort_transaction):
        with pytest.raises(KafkaException, match="belongs to the parent process"):
            call()
    assert producer.close() and events == []


def test_in_a_forked_child_poll_does_not_wait() -> None:
    world = World()
    producer = ours(world)
    world.producer._after_fork_in_child()
    assert producer.poll(-1) == 0


def test_a_callback_that_forks_has_none_behind_it_called_in_the_child() -> None:
    world, told = World(), []
    producer = ours(world)

    def forked(error: Any, message: Any) -> None:
        told.append(message.value())
        world.producer._after_fork_in_child()

    for value in (b"a", b"b"):
        producer.produce("test", value, partition=0, callback=forked)
    world.settle()
    assert producer.poll(0) == 1 and told == [b"a"]


class Name(enum.StrEnum):
    """Text that is no plain str."""

    MEMBER = "member"


class Number(int):
    """A number that is no plain int."""


class Index:
    """As an integer of NumPy."""

    def __index__(self) -> int:
        return 1


GOOD: dict[str, list[Any]] = {
    "value": ["x", "ä", b"", None, Name.MEMBER],
    "key": ["x", b"", None, Name.MEMBER],
    "partition": [-1, 1, True, Number(1), Index()],
    "timestamp": [0, 5, -1, -5, True, Number(5), Index(), 2**63 - 1, -(2**63)],
    "headers": [None, [], {}, {"a": None}, [("ä", "ä")], [(1, b"x")], {b"a": ""}, [("a", b""), ("a", b"2")]],
    "callback": [None, print],
    "on_delivery": [None, print],
}
BAD: dict[str, list[Any]] = {
    "topic": [None, 1, b"t", "a\0b", "\ud800", "x" * 513],
    "value": [1, 1.5, True, [], {}, bytearray(b"x"), memoryview(b"x"), "\ud800", bytes(999_990), bytes(2_000_000)],
    "key": [1, bytearray(b"x"), "\ud800", bytes(999_990)],
    "partition": [None, "0", 1.0, 2**31, -(2**31) - 1, 2**64],
    "timestamp": [None, "now", 1.5, 2**63, -(2**63) - 1],
    "headers": [
        "ab", 5, (("a", "b"),), [5], [("a",)], [("a", "b", "c")], [["a", "b"]], {"a": 1}, [("a", [b"b"])],
        [("a", bytearray(b"x"))], [("\ud800", b"x")], {"a": "\ud800"}, [("a", bytes(999_990))], iter([("a", b"b")]),
    ],
    "callback": [1, "x"],
    "on_delivery": [1, "x"],
}  # fmt: skip


def outcome_of(topic: str, name: str, value: Any) -> Any:
    producer = ours(World(max_request_size=1_000_000))
    producer._held._start = lambda run, name: None
    arguments = {"topic": topic, "value": b"v", name: value}
    try:
        producer.produce(**arguments)
    except (KafkaException, OverflowError, TypeError, ValueError) as error:
        assert len(producer) == 0
        return type(error), str(error).replace(topic, "TOPIC")
    assert len(producer) == 1
    return None


@pytest.mark.parametrize(
    ("name", "value", "is_good"),
    [(name, value, table is GOOD) for table in (GOOD, BAD) for name, values in table.items() for value in values],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_not_known_of_a_topic_changes_no_verdict(name: str, value: Any, is_good: bool) -> None:
    """Each argument is judged in ``produce``: the same error, in the same words, whether the message is held or not."""
    found = outcome_of("test", name, value)
    if name == "topic":  # a name alone is not known
        assert found is not None and found[0] in (TypeError, ValueError, UnicodeEncodeError, KafkaException)
        return
    assert found == outcome_of("elsewhere", name, value)
    assert (found is None) is is_good


@pytest.mark.parametrize("timestamp", [-1, -5, -(2**63), 2**63 - 1])
def test_any_timestamp_is_written(timestamp: int) -> None:
    world, events = World(linger_ms=5), Events()
    producer = ours(world, on_delivery=events)
    for each in (timestamp, 0, 7, timestamp):
        producer.produce("test", b"v", partition=0, timestamp=each)
    world.run(100)
    producer.poll(0)
    now = int(world.clock.wall())
    written = [record.timestamp for record in world.cluster.logs["test", 0].records]
    assert len(events) == 4 and written == [timestamp, written[1], 7, timestamp] and written[1] <= now


STATES: dict[str, Any] = {
    "before init_transactions": lambda world, producer: None,
    "before begin_transaction": lambda world, producer: initialized(world),
    "in a transaction": lambda world, producer: (initialized(world), producer.begin_transaction()),
    "after an abort": lambda world, producer: (initialized(world), producer.begin_transaction(), world.abort()),
    "after a commit": lambda world, producer: (initialized(world), producer.begin_transaction(), world.commit()),
    "while it commits": lambda world, producer: (
        initialized(world), producer.begin_transaction(), world.session.commit()
    ),
    "after a failed record": lambda world, producer: (
        initialized(world), producer.begin_transaction(), world.session.note_failed_send(KafkaTimeoutError("late"))
    ),
    "after a fatal error": lambda world, producer: (
        initialized(world), world.session.dialog.fatal(ProducerFencedError("another"))
    ),
    "after close": lambda world, producer: world.producer._set_state(1),
    "in a forked child": lambda world, producer: world.producer._after_fork_in_child(),
}  # fmt: skip
"""What brings a producer into each state in which ``produce`` may be called."""


def initialized(world: TransactionalWorld) -> Any:
    world.finish(world.session.initialize())
    return world


@pytest.mark.parametrize("state", STATES)
def test_the_state_is_judged_in_produce(state: str) -> None:
    world = TransactionalWorld(ready=False)
    producer = ours(world)
    producer._held._start = lambda run, name: None
    STATES[state](world, producer)
    found: list[Any] = []
    for topic in ("test", "elsewhere"):
        try:
            producer.produce(topic, b"v", partition=0)
            found.append(None)
        except KafkaException as error:
            found.append(str(error))
    assert found[0] == found[1] and (found[0] is None) is (state == "in a transaction")
    assert producer._held.count() == (found[0] is None)


def held_in(world: TransactionalWorld, events: Events) -> confluent_kafka.Producer:
    """A producer in a transaction, with a message for a topic that is not known; its thread is the test's."""
    producer = ours(world, on_delivery=events)
    producer._held._start = lambda run, name: None
    producer.begin_transaction()
    producer.produce("elsewhere", b"early", partition=0)
    assert producer._held.count() == 1
    return producer


def test_a_held_message_never_joins_a_later_transaction() -> None:
    """As if another thread had held it after the commit had looked for such."""
    world, events = TransactionalWorld(), Events()
    producer = held_in(world, events)
    world.commit()
    producer.begin_transaction()
    assert producer._held.count() == 0
    producer.produce("test", b"late", partition=0)
    world.cluster.create("elsewhere", 1, range(1))
    while producer._held.turn() is not None:
        world.settle()
    world.commit()
    producer.poll(0)
    assert [(error and error.name(), message.value()) for error, message in events] == [
        ("_PURGE_QUEUE", b"early"), (None, b"late"),
    ]  # fmt: skip
    assert world.committed() == [b"late"] and not world.coordinator.committed["elsewhere", 0]


def test_a_second_begin_leaves_held_messages_alone() -> None:
    world, events = TransactionalWorld(), Events()
    producer = held_in(world, events)
    with pytest.raises(KafkaException):
        producer.begin_transaction()
    assert producer._held.count() == 1
    world.cluster.create("elsewhere", 1, range(1))
    while producer._held.turn() is not None:
        world.settle(12)
    world.commit()
    assert world.coordinator.committed["elsewhere", 0] == [b"early"]


@pytest.mark.parametrize("why", ["no such topic", "no such partition", "purged"])
def test_a_transaction_is_not_committed_without_a_held_message(why: str) -> None:
    world, events = TransactionalWorld(max_block_ms=1000), Events()
    producer = held_in(world, events)
    if why == "no such partition":
        producer.produce("elsewhere", b"v", partition=7)
        world.cluster.create("elsewhere", 1, range(1))
    if why == "purged":
        producer.purge(blocking=False)
    while producer._held.turn() is not None:
        world.run(600)
    with pytest.raises(ApiError):
        world.commit()
    world.abort()
    producer.poll(0)
    name = {"no such topic": "_UNKNOWN_TOPIC", "no such partition": "_UNKNOWN_PARTITION", "purged": "_PURGE_QUEUE"}[why]
    assert name in [error.name() for error, _ in events] and not world.coordinator.committed["elsewhere", 0]


def test_what_is_held_ends_with_an_abort() -> None:
    world, events = TransactionalWorld(), Events()
    producer = held_in(world, events)
    world.session.abort()  # what the call below repeats, but for its wait
    world.run(100)
    producer.abort_transaction()
    assert [(error.name(), message.value()) for error, message in events] == [("_PURGE_QUEUE", b"early")]
