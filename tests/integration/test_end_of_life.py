"""Whatever ends a producer, a process or a wait: what was accepted is delivered, or somebody is told of it.

Each program runs in a process of its own, so that interpreter exit, fork and Ctrl-C are the real ones.
"""

from __future__ import annotations

import copy
import itertools
import logging
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import forebay
from forebay import KafkaProducer
from forebay.errors import IllegalStateError, KafkaError, ProducerClosedError
from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S, by_partition, until
from tests.support.fixtures import TopicFactory
from tests.support.readback import read_all

COUNT = 1000
PRELUDE = """
import gc, os, signal, sys, threading, time
from forebay import KafkaProducer
from forebay.errors import *

bootstrap, topic = sys.argv[1:]
def make(**options):
    return KafkaProducer(bootstrap_servers=bootstrap, **options)
def values(count, mark=b""):
    return [mark + b"%d" % number for number in range(count)]
def network_threads():
    return [t for t in threading.enumerate() if t.name.startswith("kafka-producer-network-thread")]
def say(*words):
    print(*words, flush=True)
def until_told():
    say("ready")
    sys.stdin.readline()
"""


class Program:
    """A Python process that runs PRELUDE and ``text``; killed at the end of the block if it still runs."""

    def __init__(self, text: str, bootstrap_servers: str, topic: str) -> None:
        source = str(Path(forebay.__file__).parents[1])
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(text), bootstrap_servers, topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"},
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", (line, self.process.communicate(timeout=WAIT_S))

    def go(self) -> None:
        """Lets it on that waits in ``until_told``."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, status: int = 0, timeout_s: float = WAIT_S) -> tuple[str, str]:
        """What it wrote, once it has ended by itself with ``status``."""
        out, err = self.process.communicate(timeout=timeout_s)
        assert self.process.returncode == status, (out, err)
        return out, err


def run(text: str, broker: EmbeddedBroker, topic: str, status: int = 0) -> tuple[str, str]:
    with Program(text, broker.bootstrap_servers, topic) as program:
        return program.end(status)


def expected(count: int = COUNT, mark: bytes = b"") -> list[bytes]:
    return [mark + b"%d" % number for number in range(count)]


def stored(broker: EmbeddedBroker, topic: str) -> list[bytes]:
    return [record.value or b"" for record in read_all(broker.bootstrap_servers, topic)]


def all_in_order(broker: EmbeddedBroker, topic: str, count: int = COUNT) -> bool:
    """Each of 0 to ``count`` once, ascending in each partition."""
    lines = by_partition(read_all(broker.bootstrap_servers, topic)).values()
    numbers = [[int(value or b"-1") for value in line] for line in lines]
    assert sorted(itertools.chain(*numbers)) == list(range(count))
    return all(line == sorted(line) for line in numbers)


# -- what was accepted is delivered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("threading.Thread(target=lambda: time.sleep(0.2)).start()", 0),
        ("_ = sys.modules; keep = [producer]; keep.append(keep); del producer", 0),
    ],
    ids=["end", "sys.exit", "error", "another-thread-lives-on", "cycle"],
)
def test_interpreter_exit_without_close(
    embedded: EmbeddedBroker, topic: TopicFactory, ending: str, status: int
) -> None:
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=60_000, batch_size=1000)
    for value in values({COUNT}):
        producer.send(topic, value)
    {ending}
    """
    run(text, embedded, name, status)
    assert all_in_order(embedded, name)


def test_del(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The process goes on, and its end has no part in the delivery."""
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=60_000, batch_size=1000)
    for value in values({COUNT}):
        producer.send(topic, value)
    begun = time.monotonic()
    del producer
    say(time.monotonic() - begun)
    for thread in network_threads():
        thread.join(20)
    say(len(network_threads()))
    os._exit(0)
    """
    out, err = run(text, embedded, name)
    took, threads = out.split()
    assert float(took) < 0.5
    assert (threads, err) == ("0", "")
    assert all_in_order(embedded, name)


def test_a_dropped_cycle(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The garbage collector may end a producer on any thread, also the sender's own."""
    name = topic(embedded, 3)
    text = f"""
    class Service:
        def __init__(self):
            self.producer = make(linger_ms=60_000, batch_size=1000)
        def told(self, metadata, error):
            gc.collect()
    service = Service()
    for value in values({COUNT}):
        service.producer.send(topic, value, on_delivery=service.told)
    del service
    gc.collect()
    deadline = time.monotonic() + 20
    while network_threads() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    say(len(network_threads()))
    os._exit(0)
    """
    # The callbacks of what is on its way hold the service: it is dropped once batches are full and acknowledged,
    # so linger has to let the last ones go.
    out, err = run(text.replace("60_000", "50"), embedded, name)
    assert (out.strip(), err) == ("0", "")
    assert all_in_order(embedded, name)


@pytest.mark.parametrize("ending", ["pass", "raise ValueError('of the block')"], ids=["end", "error"])
def test_with(embedded: EmbeddedBroker, topic: TopicFactory, ending: str) -> None:
    name = topic(embedded, 3)
    text = f"""
    try:
        with make(linger_ms=60_000, batch_size=1000) as producer:
            for value in values({COUNT}):
                producer.send(topic, value)
            {ending}
    except ValueError as error:
        say(error)
    say(len(network_threads()))
    os._exit(0)
    """
    out, err = run(text, embedded, name)
    assert (out, err) == ("0\n" if ending == "pass" else "of the block\n0\n", "")
    assert all_in_order(embedded, name)


def test_many_producers_at_exit(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    text = """
    producers = [make(linger_ms=60_000) for _ in range(10)]
    for number, value in enumerate(values(1000)):
        producers[number % 10].send(topic, value)
    del producers[:5]
    """
    run(text, embedded, name)
    assert sorted(map(int, stored(embedded, name))) == list(range(COUNT))


# -- what cannot be delivered is counted ----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "del producer"], ids=["exit", "del"])
def test_exit_when_the_broker_has_gone(embedded: EmbeddedBroker, topic: TopicFactory, ending: str) -> None:
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=0, delivery_timeout_ms=2000, request_timeout_ms=1000)
    producer.send(topic, b"first").result(20)
    until_told()
    for number, value in enumerate(values(37)):
        producer.send(topic, value, partition=number % 3)
    {ending}
    """
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        begun = time.monotonic()
        program.go()
        _, err = program.end()
        took = time.monotonic() - begun
    assert 1.5 < took < 5
    assert "The producer ended with 37 record(s) not acknowledged" in err
    assert "Expiring" in err and "refused" in err


def test_exit_when_there_never_was_a_broker() -> None:
    """Nothing was accepted, so nothing is waited for."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        text = """
        producer = make(max_block_ms=300)
        error = producer.send(topic, b"v").exception(0)
        say(type(error).__name__, error.phase if hasattr(error, "phase") else error.context["phase"])
        """
        begun = time.monotonic()
        with Program(text, f"127.0.0.1:{taken.getsockname()[1]}", "t") as program:
            out, err = program.end()
    assert out.strip() == "TimeoutError waiting for metadata"
    assert time.monotonic() - begun < 10
    assert "not acknowledged" not in err


def test_ctrl_c_at_exit(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Who does not want to wait for the last records is told how many there were."""
    name = topic(embedded)
    text = """
    import atexit
    atexit.register(until_told)
    producer = make(linger_ms=0)
    producer.send(topic, b"first").result(20)
    until_told()
    for value in values(23):
        producer.send(topic, value)
    """
    # The handler of the program was registered later than the package's, so it runs before it.
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        program.go()
        program.until_ready()
        program.go()
        time.sleep(0.5)
        begun = time.monotonic()
        program.interrupt()
        _, err = program.end()
    assert time.monotonic() - begun < 8
    assert "23 record(s) not acknowledged" in err


def test_close_with_a_time_limit(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    producer = KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 0})
    producer.send(name, b"first").result(WAIT_S)
    embedded.node_down()
    futures = [producer.send(name, value) for value in expected(12)]
    begun = time.monotonic()
    with pytest.raises(forebay.errors.TimeoutError, match=r"12 record\(s\) were not acknowledged within 0.3 s"):
        producer.close(0.3)
    assert time.monotonic() - begun < 3
    errors = [future.exception(0) for future in futures]
    assert {str(error) for error in errors} == {"Producer is closed forcefully."}


# -- fork -----------------------------------------------------------------------------------------------------

FORKED = """
def refusals(producer, future):
    '''What each method says in the child, and how long they all take.'''
    begun = time.monotonic()
    for call in (
        lambda: producer.send(topic, b"child"),
        lambda: producer.send_nowait(topic, b"child"),
        lambda: producer.flush(),
        lambda: producer.partitions_for(topic),
        lambda: producer.metrics(),
        lambda: producer.__enter__(),
        lambda: future.result(),
        lambda: future.exception(10),
    ):
        try:
            call()
        except ForkedProducerError as error:
            if "parent process" in str(error):
                continue
        return "not refused"
    producer.close()
    if "a copy in a forked child" not in repr(producer):
        return repr(producer)
    del producer
    gc.collect()
    return "refused" if time.monotonic() - begun < 1 else "late"

def wait_for(child, limit=10):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"
"""


def test_fork(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The child is told at once; the parent, whose threads go on sending meanwhile, does not notice."""
    name = topic(embedded, 3)
    text = """
    producer = make(linger_ms=5, batch_size=500)
    ended = threading.Event()
    sent = [[], [], []]
    def work(number):
        while not ended.is_set():
            future = producer.send(topic, b"%d:%d" % (number, len(sent[number])), partition=number)
            sent[number].append(future)
            if len(sent[number]) % 50 == 0:
                time.sleep(0.002)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    outcomes = set()
    for _ in range(30):
        while not sent[0]:
            time.sleep(0.01)
        future = producer.send(topic, b"2:extra", partition=2)
        child = os.fork()
        if child == 0:
            said = "nothing"
            try:
                said = "refused" if future.done() else refusals(producer, future)
            finally:
                os._exit(0 if said == "refused" else 1)
        outcomes.add(wait_for(child))
    ended.set()
    for thread in threads:
        thread.join()
    producer.close()
    failed = sum(future.exception(0) is not None for line in sent for future in line)
    say(outcomes, failed, sum(map(len, sent)))
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    outcomes, failed, count = re.fullmatch(r"\{(.*)\} (\d+) (\d+)\n", out).groups()  # type: ignore[union-attr]
    assert (outcomes, failed) == ("0", "0"), err
    found = [value for value in stored(embedded, name) if value != b"2:extra"]
    assert len(found) == len(set(found)) == int(count)


def test_a_forked_child_that_exits_as_usual(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Its exit runs the handlers that it inherited, and harms neither itself nor the parent's records."""
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=200)
    futures = [producer.send(topic, value) for value in values({COUNT})]
    child = os.fork()
    if child == 0:
        say("child", refusals(producer, futures[0]))
        sys.exit(0)
    say(wait_for(child), sum(future.exception(20) is not None for future in futures))
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    assert (out, err) == ("child refused\n0 0\n", "")
    assert all_in_order(embedded, name)


def test_a_producer_made_in_a_forked_child(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    text = f"""
    first = make()
    first.send(topic, b"0").result(20)
    child = os.fork()
    if child == 0:
        own = make(linger_ms=60_000)
        for value in values({COUNT})[1:500]:
            own.send(topic, value)
        sys.exit(0)
    say(wait_for(child))
    for value in values({COUNT})[500:]:
        first.send(topic, value)
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    assert (out, err) == ("0\n", "")
    assert sorted(map(int, stored(embedded, name))) == list(range(COUNT))


POOL = """
import multiprocessing
own = None
inherited = make(linger_ms=60_000)
def task(number):
    global own
    try:
        inherited.send(topic, b"never")
        return "not refused"
    except ForkedProducerError:
        pass
    if own is None:
        own = make(linger_ms=60_000)
    own.send(topic, b"%d" % number)
    return "sent"
"""


@pytest.mark.parametrize("tasks_per_child", [None, 100], ids=["one-life", "recycled"])
def test_a_prefork_pool(embedded: EmbeddedBroker, topic: TopicFactory, tasks_per_child: int | None) -> None:
    """As Celery does it: workers are forked, each makes its producer with the first task, nobody closes one."""
    name = topic(embedded, 3)
    text = f"""
    inherited.send(topic, b"0")
    context = multiprocessing.get_context("fork")
    pool = context.Pool(3, maxtasksperchild={tasks_per_child})
    say(sorted(set(pool.map(task, range(1, {COUNT}), chunksize=1))))
    pool.close()
    pool.join()
    """
    out, err = run(POOL + textwrap.dedent(text), embedded, name)
    assert (out, err) == ("['sent']\n", "")
    assert sorted(map(int, stored(embedded, name))) == list(range(COUNT))


# -- Ctrl-C ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wait",
    [
        "future.result()",
        "future.result(20)",
        "future.exception()",
        "producer.flush()",
        "producer.flush(20)",
        "producer.close()",
        "producer.close(20)",
        "producer.__exit__(None, None, None)",
        "producer.partitions_for('another')",
        "producer.send('another', b'v')",
        "[producer.send(topic, b'x' * 900) for _ in range(100)]",
    ],
)
@pytest.mark.parametrize("ending", ["", "producer.close()"], ids=["exit", "close"])
def test_ctrl_c_gets_through(embedded: EmbeddedBroker, topic: TopicFactory, wait: str, ending: str) -> None:
    """At once, and nothing is lost by it: what was accepted before is delivered in the end."""
    name = topic(embedded)
    text = f"""
    producer = make(linger_ms=0, buffer_memory=20_000, batch_size=1000, enable_idempotence=False)
    producer.send(topic, b"first").result(20)
    until_told()
    future = producer.send(topic, b"second")
    try:
        say("ready")
        {wait}
        say("nothing came")
    except KeyboardInterrupt:
        say("interrupted", producer._parts.accumulator.pool.queued())
    {ending}
    """
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        program.go()
        program.until_ready()
        time.sleep(0.3)
        begun = time.monotonic()
        program.interrupt()
        assert program.process.stdout is not None
        said = program.process.stdout.readline()
        took = time.monotonic() - begun
        time.sleep(0.2)
        embedded.node_up()
        program.end()
    assert said == "interrupted 0\n"
    assert took < 1
    assert stored(embedded, name)[:2] == [b"first", b"second"]


# -- callbacks ------------------------------------------------------------------------------------------------


@pytest.fixture
def producer(embedded: EmbeddedBroker) -> Iterator[KafkaProducer]:
    with KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 0}) as ours:
        yield ours


def heard(call: Callable[[], Any]) -> tuple[Callable[[Any, Any], None], list[Any]]:
    """A callback that makes ``call``, and what came of it."""
    outcomes: list[Any] = []

    def told(metadata: Any, error: Any) -> None:
        try:
            outcomes.append(call())
        except Exception as caught:  # noqa: BLE001 -- that is what is asked about
            outcomes.append(caught)

    return told, outcomes


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_callback_that_raises(
    producer: KafkaProducer,
    embedded: EmbeddedBroker,
    topic: TopicFactory,
    caplog: pytest.LogCaptureFixture,
    kind: type[BaseException],
) -> None:
    name = topic(embedded)

    def told(metadata: Any, error: Any) -> None:
        raise kind("of the callback")

    with caplog.at_level(logging.ERROR, "forebay.callbacks"):
        futures = [producer.send(name, value, on_delivery=told) for value in expected(100)]
        producer.flush(WAIT_S)
    assert [future.result(0).offset for future in futures] == list(range(100))
    assert f"A delivery callback for {name}-0 raised {kind.__name__}('of the callback')" in caplog.text
    assert producer.send(name, b"after").result(WAIT_S).offset == 100


def test_a_callback_that_sends(producer: KafkaProducer, embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    done = threading.Event()
    chain: list[Any] = []

    def told(metadata: Any, error: Any) -> None:
        chain.append(error)
        if len(chain) == 50:
            done.set()
        else:
            producer.send(name, b"%d" % len(chain), on_delivery=told)

    producer.send(name, b"0", on_delivery=told)
    assert done.wait(WAIT_S)
    assert chain == [None] * 50
    assert stored(embedded, name) == expected(50)


def test_a_callback_that_fills_the_buffer(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The sender cannot wait for memory that it alone can free: an error in the future, and no deadlock."""
    name = topic(embedded)
    small = {"buffer.memory": 10_000, "batch.size": 1000, "linger.ms": 0}
    with KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, **small}) as ours:
        told, outcomes = heard(lambda: [ours.send(name, b"x" * 900) for _ in range(30)])
        ours.send(name, b"v", on_delivery=told).result(WAIT_S)
        (futures,) = outcomes
        errors = [future.exception(WAIT_S) for future in futures]
    kinds = {type(error).__name__ for error in errors}
    assert kinds == {"NoneType", "BufferExhaustedError"}
    assert len(stored(embedded, name)) == 1 + errors.count(None)


def test_a_callback_that_flushes(producer: KafkaProducer, embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """O 2, KIP-1118: an error that says why, instead of a deadlock."""
    name = topic(embedded)
    told, outcomes = heard(lambda: producer.flush())
    producer.send(name, b"v", on_delivery=told).result(WAIT_S)
    assert [type(outcome) for outcome in outcomes] == [IllegalStateError]
    assert "wait for itself" in str(outcomes[0])


def test_a_callback_that_waits_for_another_record(
    producer: KafkaProducer, embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    """It can only time out, and does: the sender goes on after that."""
    name = topic(embedded)
    told, outcomes = heard(lambda: producer.send(name, b"other").exception(0.2))
    producer.send(name, b"v", on_delivery=told).result(WAIT_S)
    producer.flush(WAIT_S)
    assert [type(outcome).__name__ for outcome in outcomes] == ["TimeoutError"]
    assert stored(embedded, name) == [b"v", b"other"]


def test_a_callback_that_closes(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """It returns at once; what was accepted is delivered, and what the user gave is closed with a later close."""
    name = topic(embedded, 3)
    closed: list[str] = []

    class Watching:
        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            """Nothing to do."""

        def close(self) -> None:
            closed.append("interceptor")

    ours = KafkaProducer(
        {"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 60_000, "interceptor.classes": [Watching()]}
    )
    told, outcomes = heard(lambda: ours.close())
    futures = [ours.send(name, value, on_delivery=told if value == b"0" else None) for value in expected()]
    ours.flush(WAIT_S)
    until(lambda: outcomes, "the callback")
    with pytest.raises(ProducerClosedError):
        ours.send(name, b"late")
    ours.close(WAIT_S)
    assert outcomes == [None]
    assert [future.exception(0) for future in futures] == [None] * COUNT
    assert closed == ["interceptor"]
    assert all_in_order(embedded, name)


# -- close, and everybody else --------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_close_while_threads_send(embedded: EmbeddedBroker, topic: TopicFactory, codec: str) -> None:
    """Each send is refused, or its record is acknowledged; none is left without an outcome."""
    name = topic(embedded, 3)
    small = {"buffer.memory": 64_000, "batch.size": 1000, "linger.ms": 1, "compression.type": codec}
    ours = KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, **small})
    futures: list[list[Any]] = [[], [], [], []]
    refused: list[type[Exception]] = []

    def work(number: int) -> None:
        try:
            while True:
                value = b"%d:%d" % (number, len(futures[number]))
                futures[number].append(ours.send(name, value, key=b"%d" % number))
        except KafkaError as error:
            refused.append(type(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: all(len(line) > 500 for line in futures), "500 records of each thread")
    ours.close(WAIT_S)
    for thread in threads:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads)
    assert all(future.done() for line in futures for future in line)
    assert set(refused) == {ProducerClosedError} and len(refused) == 4
    accepted = [b"%d:%d" % (n, i) for n in range(4) for i, f in enumerate(futures[n]) if f.exception(0) is None]
    assert sorted(stored(embedded, name)) == sorted(accepted)
    assert ours._parts.accumulator.pool.available() == 64_000


def test_close_of_many_threads(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """H closeShouldBeIdempotent: also at the same time; each returns when everything has its outcome."""
    name = topic(embedded, 3)
    ours = KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 60_000})
    futures = [ours.send(name, value) for value in expected()]
    missing: list[int] = []

    def end() -> None:
        ours.close(WAIT_S)
        missing.append(sum(not future.done() for future in futures))

    threads = [threading.Thread(target=end) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert missing == [0, 0, 0, 0]
    assert all_in_order(embedded, name)


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_no_copies(producer: KafkaProducer, embedded: EmbeddedBroker, topic: TopicFactory, copying: Any) -> None:
    with pytest.raises(TypeError, match="KafkaProducer cannot be pickled: .*pickle its config"):
        copying(producer)
    with pytest.raises(TypeError, match="RecordFuture cannot be pickled"):
        copying(producer.send(topic(embedded), b"v"))
    assert dict(pickle.loads(pickle.dumps(producer.config))) == dict(producer.config)
