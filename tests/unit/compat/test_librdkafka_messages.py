"""Messages of ``produce`` from their outcome on: their callbacks, in what order, and what is let go."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import confluent_kafka
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.compat._librdkafka_errors import KafkaError
from forebay.compat._librdkafka_messages import Message
from forebay.errors import ApiError, KafkaTimeoutError
from tests.fakes.world import World
from tests.support.examples import examples
from tests.unit._delivery.test_result import needs_failing_allocations
from tests.unit.compat.test_librdkafka_producer import Events, ours

MADE: list[tuple[Any, ...]] = [
    (),
    ("t",),
    ("t", 1, 2, b"k", b"v", [("a", b"b")], None, (1, 5), 0.5),
    ("t", 0, 0, None, None, None, None, (2, -5)),
    ("t", 1, 2, "any", "value", [], None, (0, 0), 0.0),
]


@pytest.mark.parametrize("fields", MADE)
def test_a_message_of_ones_own_is_as_the_originals(fields: tuple[Any, ...]) -> None:
    ours = Message(*fields)
    theirs: Any = confluent_kafka.Message(*fields)
    names = ("topic", "partition", "offset", "key", "value", "headers", "error", "timestamp", "latency", "leader_epoch")
    for name in (*names, "delivery_count", "deserialized_key", "deserialized_value", "__len__"):
        assert getattr(ours, name)() == getattr(theirs, name)(), name
    assert bool(ours) is bool(theirs) and ours == pickle.loads(pickle.dumps(ours)) != Message("other")
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours)
    for message in (ours, theirs):
        message.set_topic("new")
        message.set_key(5)
        message.set_value("text")
        message.set_headers([("x", "y")])
        assert (message.topic(), message.key(), message.value(), message.headers(), len(message)) == (
            "new", 5, "text", [("x", "y")], 4,
        )  # fmt: skip
    ours.set_error(KafkaError(3))
    assert ours.error() == 3
    ours.set_error(None)
    assert ours.error() is None


def test_a_message_with_its_outcome_pickles() -> None:
    world, events = World(), Events()
    producer = ours(world, on_delivery=events)
    producer.produce("test", b"v", b"k", 0, headers={"a": b"b"}, timestamp=-5)
    producer.produce("test", b"v", partition=0, headers={})
    world.settle()
    producer.produce("test", b"failed", partition=0)
    for batch in world.accumulator.incomplete():
        batch.fail(KafkaTimeoutError("late"), None, lambda error, result: None)
    producer.poll(0)
    for _, message in events:
        again = pickle.loads(pickle.dumps(message))
        assert again == message and again.error() == message.error() and again.timestamp() == message.timestamp()
    assert [message.timestamp()[0] for _, message in events] == [1, 1, 0] and events[0][1].timestamp()[1] == -5
    assert [message.headers() for _, message in events] == [[("a", b"b")], None, None]


def test_the_first_outcome_of_a_message_stays() -> None:
    """A message that has one has let go of what another would be told to."""
    world, events = World(), Events()
    producer = ours(world, on_delivery=events)
    producer.produce("test", b"v", partition=0)
    world.settle()
    producer.poll(0)
    ((error, message),) = events
    message.fail(KafkaTimeoutError("late"))
    assert error is None and message.error() is None and producer.poll(0) == 0


@settings(deadline=None, max_examples=examples(60))
@given(steps=st.lists(st.one_of(st.sampled_from([None, 0, 1, 2]), st.just("error"), st.just("poll")), max_size=40))
def test_each_message_has_its_own_callback(steps: list[Any]) -> None:
    world = World()
    heard: list[Any] = []
    functions: list[Any] = [lambda error, message, at=at: heard.append((at, message.value())) for at in range(3)]
    producer = ours(world, error_cb=lambda error: heard.append(error.code()))
    expected: list[Any] = []
    waiting = 0
    for number, step in enumerate(steps):
        if step == "error":
            producer._events.put_error(KafkaError(KafkaError._TRANSPORT))
            expected.append(KafkaError._TRANSPORT)
            waiting += 1
        elif step == "poll":
            producer.poll(0)
            waiting = 0
            assert heard == expected
        else:
            callback = None if step is None else functions[step]
            producer.produce("test", b"%d" % number, partition=0, callback=callback)
            world.settle()
            expected += [] if step is None else [(step, b"%d" % number)]
            waiting += 1
        assert len(producer) == waiting
    producer.poll(0)
    assert heard == expected and len(producer) == 0


def test_many_threads_serve() -> None:
    world = World(batch_size=1 << 20, linger_ms=60_000, delivery_timeout_ms=100_000)
    producer = ours(world)
    heard: list[Any] = []
    wrong: list[Any] = []

    def callback(at: int) -> Any:
        def delivered(error: Any, message: Message) -> None:
            heard.append(message.value())
            if int(message.value() or b"") // 7 != at:
                wrong.append((at, message.value()))

        return delivered

    for number in range(2100):
        if number % 7 == 0:
            function = callback(number // 7)
        producer.produce("test", b"%d" % number, partition=0, callback=function)
    world.run(70_000)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=producer.poll, args=(0,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert sorted(heard) == sorted(b"%d" % number for number in range(2100)) and wrong == []


def heard_in(heard: list[Any], at: int) -> Callable[[Any, Message], None]:
    return lambda error, message: heard.append((at, int(message.value() or b"")))


def note_in(raised: list[Any]) -> Callable[[Any, Any], None]:
    return lambda error, result: raised.append(error)


def test_whatever_allocation_fails_no_message_gets_the_callback_of_another(caplog: pytest.LogCaptureFixture) -> None:
    testcapi = needs_failing_allocations()
    lost = 0
    for number in range(50):
        caplog.clear()
        world = World(batch_size=1 << 20, linger_ms=60_000, delivery_timeout_ms=100_000)
        producer = ours(world)
        heard: list[Any] = []
        for value in range(200):
            if value % 3 == 0:
                callback = heard_in(heard, value // 3)
            producer.produce("test", b"%d" % value, partition=0, callback=callback)
        (batch,) = world.accumulator.incomplete()
        complete, fail, mend = batch.complete, testcapi.set_nomemory, testcapi.remove_mem_hooks
        raised: list[Any] = []
        note = note_in(raised)
        fail(number, number + 1)
        complete(0, -1, note)
        mend()
        lost += 200 - producer._events.size()
        assert producer.poll(0) == 200 - caplog.text.count("of 1 record(s)") - len(raised)
        assert all(at == value // 3 for at, value in heard) and len(producer) == 0
    assert lost > 1


@pytest.mark.parametrize("options", [{}, {"error_cb": id}])
def test_a_producer_that_is_dropped_with_events_is_collected(options: Any) -> None:
    world = World()  # keeps the native producer, as the thread keeps its client
    kept: list[Any] = []

    def produced() -> Any:
        producer = ours(world, **options)
        producer.produce("test", b"v", partition=0, callback=lambda error, message: kept.append(producer))
        world.settle()
        assert len(producer) == 1
        return weakref.ref(producer)

    known = produced()
    gc.collect()
    assert known() is None and kept == []


def test_a_callback_is_let_go_once_nothing_waits() -> None:
    world = World()
    producer = ours(world)

    class Mine:
        def __call__(self, error: Any, message: Message) -> None:
            pass

    mine = Mine()
    known = weakref.ref(mine)
    producer.produce("test", b"v", partition=0, callback=mine)
    del mine
    world.settle()
    gc.collect()
    assert known() is not None and producer.poll(0) == 1
    gc.collect()
    assert known() is None


class Program:
    """It has a producer, and what its callback keeps."""

    def __init__(self, world: World, what: Callable[[Program, Any, Message], object]) -> None:
        self.kept: list[Any] = []
        self.what = what
        self.producer = ours(world, on_delivery=self.told)
        self.producer._held._start = lambda run, name: None

    def told(self, error: Any, message: Message) -> None:
        self.kept.append(message)
        self.what(self, error, message)


def keep(program: Program, error: Any, message: Message) -> None:
    assert error is not None and error == message.error()


def raise_native(program: Program, error: Any, message: Message) -> None:
    raise error.native


def raise_its_own(program: Program, error: Any, message: Message) -> None:
    found = message.error()
    assert found is not None and found.native is not None
    raise found.native


def note_at_error(program: Program, error: Any, message: Message) -> None:
    error.note = message.error().note = (message, program)  # type: ignore[union-attr]


def change_headers(program: Program, error: Any, message: Message) -> None:
    headers: list[Any] | None = message.headers()
    assert headers == [("name", b"of header")]
    headers.append(program)


def fail_sent(world: World, program: Program) -> None:
    for number in range(2):
        program.producer.produce("test", b"%d" % number, partition=0, headers=[("name", b"of header")])
    for batch in world.accumulator.incomplete():
        batch.fail(KafkaTimeoutError("late"), None, lambda error, result: None)


def fail_old(world: World, program: Program) -> None:
    program.producer.produce("absent", b"v", headers={"name": b"of header"})
    for _ in range(4):
        program.producer._held.turn()
        world.run(2000)


def fail_bad(world: World, program: Program) -> None:
    program.producer.produce("new", b"v", partition=9, headers={"name": b"of header"})
    world.cluster.create("new", 1, range(1))
    for _ in range(4):
        program.producer._held.turn()
        world.settle()


@pytest.mark.parametrize("what", [keep, raise_native, raise_its_own, note_at_error, change_headers])
@pytest.mark.parametrize("fail", [fail_sent, fail_old, fail_bad])
def test_what_a_callback_does_with_a_failed_message_keeps_no_program(what: Any, fail: Any) -> None:
    def run() -> Any:
        world = World()
        program = Program(world, what)
        fail(world, program)
        while len(program.producer):
            with suppress(ApiError):
                program.producer.poll(0)
        assert program.kept
        return weakref.ref(program)

    known = run()
    gc.collect()
    assert known() is None
