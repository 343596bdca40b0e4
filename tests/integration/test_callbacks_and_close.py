"""What callbacks may do, and close in the middle of things."""

from __future__ import annotations

import copy
import logging
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import IllegalStateError, KafkaError, KafkaTimeoutError, ProducerClosedError
from forebay.testing import EmbeddedBroker
from tests.integration.programs import COUNT, all_in_order, expected, stored
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import until, within

# -- callbacks ------------------------------------------------------------------------------------------------


@pytest.fixture
def producer(embedded: EmbeddedBroker) -> Iterator[KafkaProducer]:
    with KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 0}) as ours:
        yield ours


def heard(call: Callable[[], Any]) -> tuple[Callable[[Any], None], list[Any]]:
    """A callback that makes ``call``, and what came of it."""
    outcomes: list[Any] = []

    def told(report: Any) -> None:
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

    def told(report: Any) -> None:
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

    def told(report: Any) -> None:
        chain.append(report.error)
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
    """It would wait for the thread it runs on: refused at once, whatever the timeout, and the sender goes on."""
    name = topic(embedded)
    told, outcomes = heard(lambda: producer.send(name, b"other").exception(None))
    producer.send(name, b"v", on_delivery=told).result(WAIT_S)
    producer.flush(WAIT_S)
    assert [type(outcome) for outcome in outcomes] == [IllegalStateError]
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


# -- a callback that does not come back -----------------------------------------------------------------------


def test_close_with_a_limit_beside_a_callback_that_does_not_return(
    embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    """It ends in time and tells the acknowledged records from those that failed; each future has its outcome."""
    name = topic(embedded, 2)
    held, go_on, told = threading.Event(), threading.Event(), []
    ours = KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 20})

    def hold(report: Any) -> None:
        held.set()
        go_on.wait(WAIT_S)

    def note(report: Any) -> None:
        told.append((report.metadata.offset, report.error and str(report.error)))

    try:
        acknowledged = [ours.send(name, b"a", partition=0, on_delivery=hold)]
        acknowledged += [ours.send(name, b"a", partition=0, on_delivery=note) for _ in range(4)]
        assert held.wait(WAIT_S)
        lost = [ours.send(name, b"b", partition=1, on_delivery=note) for _ in range(3)]
        begun = time.monotonic()
        with pytest.raises(KafkaTimeoutError) as caught:
            ours.close(0.3)
        assert time.monotonic() - begun < within(0.8)
        assert caught.value.message.startswith("close: 3 record(s) were not acknowledged within 0.3 s and failed; 5 ")
        assert [future.result(0).offset for future in acknowledged] == [0, 1, 2, 3, 4]
        assert {str(future.exception(0)) for future in lost} == {"Producer is closed forcefully."}
        assert told == []
    finally:
        go_on.set()
    ours.close(WAIT_S)
    assert told == [(at, None) for at in range(1, 5)] + [(-1, "Producer is closed forcefully.")] * 3
    assert [future.result(0).offset for future in acknowledged] == [0, 1, 2, 3, 4]


@pytest.fixture
def stuck(embedded: EmbeddedBroker, topic: TopicFactory) -> Iterator[tuple[KafkaProducer, str]]:
    """A producer whose thread a callback holds until the test is over, and its topic."""
    name = topic(embedded)
    held, go_on = threading.Event(), threading.Event()
    ours = KafkaProducer(
        {"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 0, "transactional.id": f"of-{name}"}
    )
    ours.init_transactions()
    ours.begin_transaction()

    def hold(report: Any) -> None:
        held.set()
        go_on.wait(WAIT_S)

    try:
        ours.send(name, b"v", on_delivery=hold)
        assert held.wait(WAIT_S)
        yield ours, name
    finally:
        go_on.set()
        ours.close()


def on_threads(*calls: Callable[[], Any]) -> list[tuple[BaseException | None, float]]:
    """What each call raises when all are made at once, and the seconds it took."""

    def run(call: Callable[[], Any]) -> tuple[BaseException | None, float]:
        begun = time.monotonic()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            return error, time.monotonic() - begun
        return None, time.monotonic() - begun

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_two_threads_close_beside_a_callback_that_does_not_return(stuck: tuple[KafkaProducer, str]) -> None:
    ours, _ = stuck
    outcomes = on_threads(lambda: ours.close(0.2), lambda: ours.close(0))
    assert [type(error) for error, _ in outcomes] == [KafkaTimeoutError] * 2
    assert all("close: 1 record(s) were acknowledged" in str(error) for error, _ in outcomes)
    assert outcomes[0][1] < within(0.7) and outcomes[1][1] < within(0.5)


def test_such_a_close_lets_those_go_who_wait_for_the_thread(stuck: tuple[KafkaProducer, str]) -> None:
    """A send that waits for metadata and a commit: max.block.ms is a minute."""
    ours, name = stuck
    ended: list[int] = []
    before: list[int] = []

    def close() -> None:
        time.sleep(within(0.5))  # until the others wait
        before.append(len(ended))
        ours.close(0.3)

    def waits(call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            try:
                call()
            finally:
                ended.append(1)

        return run

    send = waits(lambda: ours.send(f"{name}-unknown", b"v").result(0))
    closed, sent, committed = on_threads(close, send, waits(ours.commit_transaction))
    assert isinstance(closed[0], KafkaTimeoutError) and closed[1] < within(1.3)
    assert isinstance(sent[0], KafkaError) and isinstance(committed[0], KafkaError)
    assert before == [0] and sent[1] < within(5) and committed[1] < within(5)


def test_a_signal_s_handler_limits_a_close_under_way(stuck: tuple[KafkaProducer, str]) -> None:
    ours, _ = stuck
    before = signal.signal(signal.SIGALRM, lambda number, frame: ours.close(0.2))
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KafkaTimeoutError, match=r"close: 1 record\(s\) were acknowledged, but"):
            ours.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < within(0.8)
