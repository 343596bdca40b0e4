"""Callbacks of kafka-python's futures: which are called, in which order, with what; those of split batches too."""

from __future__ import annotations

import logging
import os
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._delivery.callback_thread import note_sender_thread
from forebay.compat.kafka import errors
from forebay.compat.kafka._future_callbacks import Call
from forebay.compat.kafka.structs import RecordMetadata, TopicPartition
from tests.fakes.broker import PRODUCE
from tests.support.examples import examples
from tests.unit.compat.kafka.test_path import made, ours

KINDS = ("add_callback", "add_errback", "add_both")
# For each record the callbacks that it gets: which of three functions, and for which outcome.
ADDED = st.lists(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(KINDS)), max_size=4), min_size=1, max_size=25)


class Listeners:
    """Three functions that note who was called with what; ``method`` is another object at each look."""

    def __init__(self, keeps: bool = True) -> None:
        self.heard: list[Any] = []
        self.keeps = keeps
        self.functions: list[Callable[[Any], Any]] = [partial(self.note, number) for number in range(3)]

    def note(self, number: int, outcome: Any) -> None:
        self.heard.append((number, outcome if self.keeps else tuple(outcome)))

    def method(self, outcome: Any) -> None:
        self.heard.append(outcome)


def located(number: int, offset: int) -> RecordMetadata:
    """Of the record ``number``, which has so many bytes of value."""
    return RecordMetadata("test", 0, TopicPartition("test", 0), offset, 1000 - number, None, -1, number, -1)


@settings(deadline=None, max_examples=examples(60))
@given(added=ADDED, keeps=st.booleans(), splits=st.booleans())
def test_each_is_called_once_in_the_order_of_the_records(
    added: list[list[tuple[int, str]]], keeps: bool, splits: bool
) -> None:
    world = made(batch_size=4096, idempotent=True)
    world.cluster.max_batch_size = 150 if splits else 1 << 30
    listeners, producer = Listeners(keeps), ours(world)
    for number, calls in enumerate(added):
        future = producer.send("test", bytes(number), partition=0, timestamp_ms=1000 - number)
        for function, kind in calls:
            getattr(future, kind)(listeners.functions[function])
    world.settle(200)
    assert len(world.values("test", 0)) == len(added)
    assert listeners.heard == [
        (function, located(number, number))
        for number, calls in enumerate(added)
        for function, kind in calls
        if kind != "add_errback"
    ]


@settings(deadline=None, max_examples=examples(30))
@given(added=ADDED)
def test_those_of_failed_records(added: list[list[tuple[int, str]]]) -> None:
    world = made(batch_size=4096, delivery_timeout_ms=6000)
    world.cluster.brokers[0].held.add(PRODUCE)
    listeners, producer = Listeners(), ours(world)
    for calls in added:
        future = producer.send("test", b"v", partition=0)
        for function, kind in calls:
            getattr(future, kind)(listeners.functions[function])
    world.run(6100)
    expected = [function for calls in added for function, kind in calls if kind != "add_callback"]
    assert [function for function, _ in listeners.heard] == expected
    assert {type(error) for _, error in listeners.heard} <= {errors.KafkaTimeoutError}


def test_methods_and_bound_arguments() -> None:
    world = made()
    listeners, producer = Listeners(), ours(world)
    for number in range(3):
        future = producer.send("test", bytes(number), partition=0, timestamp_ms=1000 - number)
        future.add_callback(listeners.method).add_callback(listeners.note, number)
    world.settle()
    assert listeners.heard == [
        each for number in range(3) for each in (located(number, number), (number, located(number, number)))
    ]


def test_headers_of_different_sizes() -> None:
    world = made()
    seen: list[int] = []

    def note(found: RecordMetadata) -> None:
        seen.append(found.serialized_header_size)

    producer = ours(world)
    for headers in ([("a", b"b")], [("a", b"b")], None, [("a", b"bc")]):
        producer.send("test", b"v", headers=headers, partition=0).add_callback(note)
    world.settle()
    assert seen == [2, 2, -1, 3]


def test_many_of_one_record() -> None:
    world = made()
    seen: list[int] = []
    future = ours(world).send("test", b"v", partition=0)
    for number in range(100):
        future.add_callback(lambda found, number=number: seen.append(number))
    world.settle()
    assert seen == list(range(100))


def test_one_that_is_added_by_another() -> None:
    world = made()
    seen: list[Any] = []
    future = ours(world).send("test", b"v", partition=0)
    future.add_callback(lambda found: future.add_callback(seen.append).add_callback(seen.append))
    future.add_callback(lambda found: seen.append("last"))
    world.settle()
    assert seen == ["last", future.value, future.value]


def test_metadata_that_is_kept_does_not_change() -> None:
    world = made()
    kept: list[Any] = []
    hashes: list[int] = []

    def note(found: RecordMetadata) -> None:
        hashes.append(hash(found))
        if found.offset % 2:
            kept.append(found)

    producer = ours(world)
    for number in range(9):
        producer.send("test", bytes(300 + number), timestamp_ms=number, partition=0).add_callback(note)
    world.settle()
    where = TopicPartition("test", 0)
    expected = [RecordMetadata("test", 0, where, n, n, None, -1, 300 + n, -1) for n in range(9)]
    assert kept == expected[1::2] and hashes == [hash(each) for each in expected]


def test_each_exception_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = made()
    seen: list[Any] = []

    def fails(found: Any) -> None:
        raise ValueError(f"mine {found.offset}")

    def exits(found: Any) -> None:
        raise SystemExit(f"also {found.offset}")

    producer = ours(world)
    producer.send("test", b"v", partition=0).add_callback(fails).add_both(exits).add_callback(seen.append)
    producer.send("test", b"v", partition=0).add_callback(seen.append).add_callback(fails)
    world.settle()
    assert [found.offset for found in seen] == [0, 1]
    told = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert told == ["mine 0", "also 0", "mine 1"]
    assert {record.name for record in caplog.records if record.levelno >= logging.ERROR} == {"forebay.callbacks"}


def test_it_is_no_value() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Call())


def test_a_child_that_one_forks_ends_before_the_next() -> None:
    ends: list[int] = []
    parent = os.getpid()

    def forks(found: RecordMetadata) -> None:
        child = os.fork()
        if child:
            ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    def follows(found: RecordMetadata) -> None:
        if os.getpid() != parent:
            os._exit(99)
        ends.append(-1)

    def sender() -> None:
        world = made()
        ours(world).send("test", b"v", partition=0).add_callback(forks).add_callback(follows)
        note_sender_thread()
        world.settle()

    thread = threading.Thread(target=sender)
    thread.start()
    thread.join()
    assert ends == [0, -1]
