"""Transactions on real brokers, of version 2 (Kafka 4) and of version 1 (Kafka 3.9); readers are not ours."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConsumerPosition

from forebay import AdminClient, KafkaProducer
from forebay.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortedError,
)
from forebay.model import TopicPartition
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S, within, within_ms
from tests.support.readback import read_all
from tools.kafka import RealKafka

_numbers = itertools.count()


@pytest.fixture(params=[2, 1], ids=["version-2", "version-1"])
def real(request: pytest.FixtureRequest) -> RealKafka:
    """A broker whose transactions have the version that the test's name ends in."""
    broker: RealKafka = request.getfixturevalue("kafka" if request.param == 2 else "legacy_kafka")
    return broker


@pytest.fixture
def new_id() -> str:
    """A transactional.id that nobody had before."""
    return f"id-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def ours(real: RealKafka, new_id: str) -> Iterator[KafkaProducer]:
    producer = started(real, new_id)
    yield producer
    producer.close(HANG_S)


def started(real: RealKafka, transactional_id: str, **options: Any) -> KafkaProducer:
    """A producer that is ready for its first transaction."""
    given: dict[str, Any] = {"bootstrap.servers": real.bootstrap_servers, "transactional.id": transactional_id}
    producer = KafkaProducer({**given, "max.block.ms": within_ms(30_000), "linger.ms": 0, **options})
    producer.init_transactions()
    return producer


def committed(real: RealKafka, topic: str) -> list[bytes | None]:
    """What a reader of committed records finds, in order of partition and offset."""
    return [record.value for record in sorted(read_all(real.bootstrap_servers, topic), key=lambda one: one[:2])]


def uncommitted(real: RealKafka, topic: str) -> int:
    """How many records there are, committed or not."""
    return len(read_all(real.bootstrap_servers, topic, properties={"isolation.level": "read_uncommitted"}))


def offset_of(real: RealKafka, group: str, topic: str) -> int:
    """A group's committed offset of partition 0, -1001 if it has none; asked until no transaction is in the way."""
    consumer = Consumer({"bootstrap.servers": real.bootstrap_servers, "group.id": group})
    try:
        (position,) = consumer.committed([ConsumerPosition(topic, 0)], timeout=HANG_S)
        return int(position.offset)
    finally:
        consumer.close()


def test_committed_records_show_and_aborted_ones_do_not(
    real: RealKafka, ours: KafkaProducer, topic: TopicFactory
) -> None:
    name = topic(real, 2)
    assert (ours.transaction_version == 2) == real.version.startswith("4")
    for number in range(6):
        ours.begin_transaction()
        futures = [ours.send(name, b"%d" % number, partition=partition) for partition in (0, 1)]
        ours.flush()
        assert all(future.done() for future in futures)
        ours.commit_transaction() if number % 2 == 0 else ours.abort_transaction()
    assert committed(real, name) == [b"0", b"2", b"4"] * 2
    assert uncommitted(real, name) == 12


def test_nothing_shows_before_the_commit(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    name = topic(real)
    ours.begin_transaction()
    ours.send(name, b"a").result(HANG_S)
    assert committed(real, name) == []
    ours.commit_transaction()
    assert committed(real, name) == [b"a"]


def test_two_transactions_over_ten_partitions(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    name = topic(real, 10)
    for number in range(2):
        with ours.transaction():
            for index in range(1000):
                ours.send(name, b"%d-%d" % (number, index), partition=index % 10)
    values = committed(real, name)
    assert len(values) == 2000 == len(set(values))
    by_partition = sorted(read_all(real.bootstrap_servers, name), key=lambda one: one[:2])
    for partition in range(10):
        of_it = [record.value for record in by_partition if record.partition == partition]
        assert of_it == [b"%d-%d" % (number, index) for number in range(2) for index in range(partition, 1000, 10)]


def test_offsets_are_committed_with_the_records(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    name, group = topic(real), f"group-{os.getpid()}-{next(_numbers)}"
    for offset, commit in ((5, False), (7, True), (9, False)):
        ours.begin_transaction()
        ours.send(name, b"%d" % offset)
        ours.send_offsets_to_transaction({TopicPartition(name, 0): offset}, group)
        ours.commit_transaction() if commit else ours.abort_transaction()
    assert offset_of(real, group, name) == 7
    assert committed(real, name) == [b"7"]


def test_the_second_producer_fences_the_first(
    real: RealKafka, ours: KafkaProducer, topic: TopicFactory, new_id: str
) -> None:
    name = topic(real)
    ours.begin_transaction()
    ours.send(name, b"first").result(HANG_S)
    with started(real, new_id) as second:
        with pytest.raises(ProducerFencedError, match="newer producer with the same transactional.id"):
            ours.commit_transaction()
        with pytest.raises(ProducerFencedError):
            ours.begin_transaction()
        with second.transaction():
            second.send(name, b"second")
    assert committed(real, name) == [b"second"]


def test_what_the_block_raises_aborts(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    name = topic(real)

    def interrupted() -> None:
        with ours.transaction():
            ours.send(name, b"bad").result(HANG_S)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with ours.transaction():
        ours.send(name, b"good")
    assert committed(real, name) == [b"good"]


def test_closing_aborts_at_once(real: RealKafka, topic: TopicFactory, new_id: str) -> None:
    """Not after transaction.timeout.ms: a reader is not held up."""
    name = topic(real)
    producer = started(real, new_id)
    producer.begin_transaction()
    producer.send(name, b"open").result(HANG_S)
    waiting = producer.send(name, b"not sent")
    producer.close(HANG_S)
    assert waiting.done()
    with started(real, new_id) as other, other.transaction():
        other.send(name, b"after")
    begun = time.monotonic()
    assert committed(real, name) == [b"after"]
    assert time.monotonic() - begun < within(10)


def test_records_that_were_not_sent_fail_by_the_abort(real: RealKafka, topic: TopicFactory, new_id: str) -> None:
    name = topic(real)
    with started(real, new_id, **{"linger.ms": 60_000, "delivery.timeout.ms": 120_000}) as producer:
        producer.partitions_for(name)
        producer.begin_transaction()
        future = producer.send(name, b"never")
        producer.abort_transaction()
        assert isinstance(future.exception(0), TransactionAbortedError)
    assert uncommitted(real, name) == 0


def test_a_timeout_is_repeated(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    name = topic(real)
    ours.begin_transaction()
    ours.send(name, b"a")
    with pytest.raises(KafkaTimeoutError, match="commit_transaction"):
        ours.commit_transaction(0)
    with pytest.raises(IllegalStateError, match="`commit_transaction` timed out and must be retried"):
        ours.abort_transaction()
    ours.commit_transaction()
    assert committed(real, name) == [b"a"]


def test_a_refused_record_is_never_committed(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    """A record that the broker finds too large, among others: commit raises, abort mends."""
    name = topic(real)
    ours.begin_transaction()
    ours.send(name, b"good")
    ours.send(name, b"x" * 1_100_000)
    with pytest.raises(KafkaError):
        ours.commit_transaction()
    ours.abort_transaction()
    with ours.transaction():
        ours.send(name, b"next")
    assert committed(real, name) == [b"next"]


def test_a_detached_transaction_is_ended_by_somebody_else(
    real: RealKafka, ours: KafkaProducer, topic: TopicFactory, new_id: str
) -> None:
    name = topic(real)
    with AdminClient(bootstrap_servers=real.bootstrap_servers) as admin:
        for value, commit in ((b"committed", True), (b"aborted", False)):
            ours.begin_transaction()
            ours.send(name, value)
            ours.flush()
            left = ours.detach_transaction()
            admin.end_transaction(left, commit=commit)
            ours.set_transactional_id(f"{new_id}-next")
            ours.init_transactions()
    assert committed(real, name) == [b"committed"]


def test_a_given_identity_is_adopted(real: RealKafka, topic: TopicFactory, new_id: str) -> None:
    name = topic(real)
    with AdminClient(bootstrap_servers=real.bootstrap_servers) as admin:
        identity = admin.init_producer_id(new_id)
    options = {"bootstrap.servers": real.bootstrap_servers, "transactional.id": new_id}
    with KafkaProducer(options) as producer:
        producer.init_transactions(identity=identity)
        assert (producer.producer_id, producer.producer_epoch) == identity[1:3]
        for value in (b"1", b"2"):
            with producer.transaction():
                producer.send(name, value)
    assert committed(real, name) == [b"1", b"2"]


def test_threads_that_send_while_transactions_end(real: RealKafka, ours: KafkaProducer, topic: TopicFactory) -> None:
    """What was accepted before a commit is in it, what was accepted before an abort is not, and nothing is doubled."""
    name, over = topic(real, 4), threading.Event()
    accepted: list[list[bytes]] = [[] for _ in range(3)]
    refused = [0, 0, 0]

    def send(mine: list[bytes], who: int) -> None:
        while not over.is_set():
            value = b"%d-%d" % (who, len(mine))
            try:
                ours.send(name, value, partition=len(mine) % 4)
                mine.append(value)
            except IllegalStateError:
                refused[who] += 1
                over.wait(0.001)

    def quiet() -> None:
        """Every thread has been refused by now, so what it had in hand before is noted."""
        before = list(refused)
        while any(now == then for now, then in zip(refused, before, strict=True)):
            time.sleep(0.001)

    threads = [threading.Thread(target=send, args=(mine, who)) for who, mine in enumerate(accepted)]
    for thread in threads:
        thread.start()
    wanted: set[bytes] = set()
    unwanted: set[bytes] = set()
    for number in range(12):
        quiet()
        begun = [len(mine) for mine in accepted]
        ours.begin_transaction()
        time.sleep(0.02)
        ended = [len(mine) for mine in accepted]
        ours.commit_transaction() if number % 3 else ours.abort_transaction()
        sure = {value for mine, low, high in zip(accepted, begun, ended, strict=True) for value in mine[low:high]}
        (wanted if number % 3 else unwanted).update(sure)
    over.set()
    for thread in threads:
        thread.join(HANG_S)
    seen = committed(real, name)
    assert len(seen) == len(set(seen))
    assert wanted <= set(seen), f"{len(wanted - set(seen))} committed records are missing"
    assert not unwanted & set(seen), "aborted records are visible"
    assert wanted and unwanted
