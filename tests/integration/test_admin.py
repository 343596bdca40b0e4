"""AdminClient on a real Kafka: transactions that another process left open, lists of them, topics, and reading back."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as Place

from forebay import AdminClient
from forebay._protocol.end_txn import decode_end_txn, encode_end_txn
from forebay._protocol.produce import PartitionRecords, encode_produce
from forebay._protocol.produce_response import decode_produce
from forebay._protocol.versions import ApiKey
from forebay._records.compression import CompressionType, compressor
from forebay._records.layout import BATCH_OVERHEAD
from forebay.admin import _transactions as transactions
from forebay.admin._session import Question
from forebay.errors import (
    IllegalArgumentError,
    InvalidPidMappingError,
    InvalidTopicError,
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from forebay.model import TransactionIdentity
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S, until, within, within_ms
from tests.support.records_builder import BatchHead, RecordsBuilder
from tools.kafka import RealKafka

VALUES = [b"%d" % number for number in range(5)]

# A producer of librdkafka, whose transactions have version 1 on any broker.
WORKER = """
import sys
from confluent_kafka import Producer
bootstrap, topic, name, timeout_ms = sys.argv[1:]
producer = Producer({
    "bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": int(timeout_ms),
    "log_level": 0,
})
producer.init_transactions(30)
producer.begin_transaction()
for number in range(5):
    producer.produce(topic, b"%d" % number)
assert producer.flush(30) == 0
print("written", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def admin(kafka: RealKafka) -> Iterator[AdminClient]:
    with AdminClient(
        bootstrap_servers=kafka.bootstrap_servers, max_block_ms=within_ms(20_000), retry_backoff_ms=10
    ) as found:
        yield found


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A transactional id of this test's own."""
    return f"{request.node.name}-{os.getpid()}"


def killed_worker(kafka: RealKafka, admin: AdminClient, topic: str, name: str, timeout_ms: int) -> TransactionIdentity:
    """A process that wrote five records in a transaction, flushed, and was killed."""
    command = [sys.executable, "-c", WORKER, kafka.bootstrap_servers, topic, name, str(timeout_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "written\n"
        os.kill(worker.pid, signal.SIGKILL)
    found = admin.describe_transaction(name)
    return TransactionIdentity(name, found.producer_id, found.producer_epoch, 1)


def modern_worker(kafka: RealKafka, admin: AdminClient, topic: str, name: str, timeout_ms: int) -> TransactionIdentity:
    """The same by a bare Produce v12, which adds the partition by itself (KIP-890)."""
    who = admin.init_producer_id(name, transaction_timeout_ms=timeout_ms)
    head = BatchHead(
        producer_id=who.producer_id, producer_epoch=who.producer_epoch, base_sequence=0, transactional=True
    )
    builder = RecordsBuilder(head, compressor(CompressionType.NONE, None))
    for number, value in enumerate(VALUES):
        builder.append(number, 1_700_000_000_000, None, value)
    batch = builder.build()
    entry = PartitionRecords(topic, 0, batch[:BATCH_OVERHEAD], [batch[BATCH_OVERHEAD:]], len(batch))
    question = Question(
        ApiKey.PRODUCE, lambda version: encode_produce(version, name, -1, 10_000, [entry]), decode_produce, (12, 12)
    )

    def attempt() -> Any:
        (answer,) = session.ask(session.any_node(deadline), question, deadline).partitions
        return answer.error_code

    with admin._call("produce", None) as (session, deadline):
        # While the coordinator is still at work on the last end, the broker refuses: CONCURRENT_TRANSACTIONS.
        until(lambda: session.retry(deadline, attempt) == 0, "records written")
    return who


Worker = Callable[[RealKafka, AdminClient, str, str, int], TransactionIdentity]


def end(admin: AdminClient, who: TransactionIdentity, commit: bool, version: int) -> None:
    """EndTxn in exactly this version, whatever suits the transaction."""
    question = Question(
        ApiKey.END_TXN,
        lambda used: encode_end_txn(used, who.transactional_id, who.producer_id, who.producer_epoch, commit),
        decode_end_txn,
        (version, version),
    )
    with admin._call("end", None) as (session, deadline):
        session.retry(deadline, lambda: transactions._at_coordinator(session, who.transactional_id, question, deadline))


def seen_by_others(kafka: RealKafka, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    """All that librdkafka's consumer sees up to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            # Where there is nothing to see, the broker would wait half a second for it.
            "fetch.wait.max.ms": 10,
        }
    )
    with contextlib.closing(consumer):
        # Else it finds out half a second after the assignment where the partition is.
        consumer.list_topics(topic, timeout=HANG_S)
        consumer.assign([Place(topic, 0, OFFSET_BEGINNING)])
        values: list[bytes | None] = []
        while (message := consumer.poll(HANG_S)) is not None:
            if message.error():
                return values
            values.append(message.value())
    raise AssertionError("no end of the partition")


def seen(admin: AdminClient, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    forwards = [record.value for record in admin.read_from(topic, isolation=isolation)]
    backwards = [record.value for record in admin.read_tail(topic, max_records=1000, isolation=isolation)]
    assert forwards == backwards
    return forwards


def state_settles(admin: AdminClient, name: str, state: str) -> None:
    until(lambda: admin.describe_transaction(name).state == state, f"{state} of {name}")


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("worker", [killed_worker, modern_worker])
def test_a_commit_of_what_another_process_wrote(
    kafka: RealKafka, admin: AdminClient, topic: TopicFactory, name: str, worker: Worker, version: int
) -> None:
    where = topic(kafka)
    who = worker(kafka, admin, where, name, 60_000)
    assert (seen(admin, where), seen(admin, where, "read_uncommitted")) == ([], VALUES)
    found = admin.describe_transaction(name)
    assert (found.state, found.producer_id, found.producer_epoch) == ("Ongoing", who.producer_id, who.producer_epoch)
    assert [str(place) for place in found.partitions] == [f"{where}-0"]
    end(admin, who, True, version)
    state_settles(admin, name, "CompleteCommit")
    after = admin.describe_transaction(name).producer_epoch
    assert after == who.producer_epoch + (version >= 5)
    assert seen(admin, where) == seen_by_others(kafka, where) == VALUES
    end(admin, who, True, version)
    with pytest.raises(InvalidTxnStateError):
        end(admin, who, False, version)
    assert seen(admin, where) == VALUES


@pytest.mark.parametrize("worker", [killed_worker, modern_worker])
def test_the_public_call_is_safe_to_repeat(
    kafka: RealKafka, admin: AdminClient, topic: TopicFactory, name: str, worker: Worker
) -> None:
    where = topic(kafka)
    who = worker(kafka, admin, where, name, 60_000)
    for _ in range(3):
        admin.end_transaction(who, commit=True)
    state_settles(admin, name, "CompleteCommit")
    assert seen(admin, where) == VALUES


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("worker", [killed_worker, modern_worker])
def test_a_newer_producer_fences_the_one_before(
    kafka: RealKafka, admin: AdminClient, topic: TopicFactory, name: str, worker: Worker, version: int
) -> None:
    where = topic(kafka)
    who = worker(kafka, admin, where, name, 60_000)
    newer = admin.init_producer_id(name)
    assert (newer.producer_id, newer.producer_epoch) == (who.producer_id, who.producer_epoch + 2)
    with pytest.raises(ProducerFencedError):
        end(admin, who, True, version)
    assert (seen(admin, where), seen_by_others(kafka, where)) == ([], [])


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("worker", [killed_worker, modern_worker])
def test_an_abort_and_what_comes_after_it(
    kafka: RealKafka, admin: AdminClient, topic: TopicFactory, name: str, worker: Worker, version: int
) -> None:
    where = topic(kafka)
    who = worker(kafka, admin, where, name, 60_000)
    end(admin, who, False, version)
    end(admin, who, False, version)
    with pytest.raises(InvalidTxnStateError):
        end(admin, who, True, version)
    state_settles(admin, name, "CompleteAbort")
    assert (seen(admin, where), seen_by_others(kafka, where)) == ([], [])


@pytest.mark.parametrize(("version", "error"), [(4, ProducerFencedError), (5, InvalidTxnStateError)])
@pytest.mark.parametrize("worker", [killed_worker, modern_worker])
def test_a_transaction_that_timed_out(
    kafka: RealKafka,
    admin: AdminClient,
    topic: TopicFactory,
    name: str,
    worker: Worker,
    version: int,
    error: type[KafkaError],
) -> None:
    where = topic(kafka)
    who = worker(kafka, admin, where, name, 1000)
    state_settles(admin, name, "CompleteAbort")
    with pytest.raises(error):
        end(admin, who, True, version)
    assert seen(admin, where) == []


@pytest.mark.parametrize("version", [1, 2])
def test_ends_for_nobody(admin: AdminClient, name: str, version: int) -> None:
    with pytest.raises(InvalidPidMappingError, match=re.escape(f"transactional_id={name}-unknown")):
        admin.end_transaction(TransactionIdentity(f"{name}-unknown", 1, 0, version), commit=True)
    who = admin.init_producer_id(name)
    with pytest.raises(InvalidPidMappingError):
        admin.end_transaction(who._replace(producer_id=who.producer_id + 1000), commit=True)


def test_identities(kafka: RealKafka, admin: AdminClient, name: str) -> None:
    assert admin.transaction_version() == 2
    first, second = admin.init_producer_id(name), admin.init_producer_id(name)
    assert first == TransactionIdentity(name, second.producer_id, second.producer_epoch - 1, 2)
    with pytest.raises(InvalidTxnTimeoutError):
        admin.init_producer_id(name, transaction_timeout_ms=2**31 - 1)


def test_lists_and_descriptions(kafka: RealKafka, admin: AdminClient, topic: TopicFactory, name: str) -> None:
    where = topic(kafka)
    ids = [f"{name}-{number}" for number in range(8)]
    for one in ids:
        admin.init_producer_id(one, transaction_timeout_ms=12_345)
    open_one = modern_worker(kafka, admin, where, f"{name}-open", 60_000)
    listed = admin.list_transactions(prefix=name)
    assert [one.transactional_id for one in listed] == [*ids, open_one.transactional_id]
    assert {one.state for one in listed[:-1]} == {"Empty"}
    (found,) = admin.list_transactions(states=["Ongoing"], prefix=name)
    assert (found.transactional_id, found.producer_id) == (open_one.transactional_id, open_one.producer_id)
    assert admin.list_transactions(producer_ids=[open_one.producer_id]) == [found]
    with pytest.raises(IllegalArgumentError, match="Unknown transaction states: Sleeping"):
        admin.list_transactions(states=["Sleeping"])
    described = admin.describe_transactions([*ids, "nobody's"])
    assert described.pop("nobody's") is None
    assert {one.timeout_ms for one in described.values() if one is not None} == {12_345}
    with pytest.raises(TransactionalIdNotFoundError, match="nobody's"):
        admin.describe_transaction("nobody's")
    admin.end_transaction(open_one, commit=False)


def test_topics(admin: AdminClient, name: str) -> None:
    name = name.replace("[", "-").replace("]", "-")
    assert admin.create_topic(name, configs={"cleanup.policy": "compact"}) is True
    assert admin.create_topic(name, partitions=3) is False
    assert admin.create_topic(f"{name}-gone") is True
    assert admin.delete_topic(f"{name}-gone") is True
    assert admin.delete_topic(f"{name}-gone") is False
    assert admin.read_tail(name) == []
    with pytest.raises(InvalidTopicError, match="topic=a b"):
        admin.create_topic("a b")
    with pytest.raises(KafkaError, match="only 1 broker") as caught:
        admin.create_topic(f"{name}-wide", replication_factor=5)
    assert caught.value.name == "INVALID_REPLICATION_FACTOR"


def test_a_topic_that_is_missing_is_not_made(kafka: RealKafka, admin: AdminClient, name: str) -> None:
    limit_s = within(0.5)
    for _ in range(2):
        with pytest.raises(KafkaTimeoutError, match=f"read_tail was not done within {limit_s:g} s") as caught:
            admin.read_tail(f"{name}-missing", timeout=limit_s)
        assert isinstance(caught.value.__cause__, UnknownTopicOrPartitionError)


def test_a_tail_of_aborted_and_open_transactions(
    kafka: RealKafka, admin: AdminClient, topic: TopicFactory, name: str
) -> None:
    where = topic(kafka)
    ours = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name, "log_level": 0})
    ours.init_transactions(HANG_S)
    for number in range(60):
        ours.begin_transaction()
        ours.produce(where, b"%d" % number, key=b"k", headers=[("h", b"%d" % number), ("none", None)])
        ours.flush(HANG_S)
        ours.commit_transaction(HANG_S) if number < 20 else ours.abort_transaction(HANG_S)
    expected = [b"%d" % number for number in range(20)]
    assert seen(admin, where) == seen_by_others(kafka, where) == expected
    (last,) = admin.read_tail(where)
    assert (last.key, last.value, last.headers) == (b"k", b"19", (("h", b"19"), ("none", None)))
    who = modern_worker(kafka, admin, where, f"{name}-open", 60_000)
    assert seen(admin, where) == seen_by_others(kafka, where) == expected
    assert len(seen(admin, where, "read_uncommitted")) == 65
    admin.end_transaction(who._replace(transaction_version=2), commit=True)
    state_settles(admin, who.transactional_id, "CompleteCommit")
    assert seen(admin, where) == [*expected, *VALUES]
    assert seen_by_others(kafka, where) == [*expected, *VALUES]


def test_coordinators_and_leaders_move_while_a_control_is_used(three_kafka: RealKafka, name: str) -> None:
    """Each id's coordinator and each partition's leader is asked, and looked up again when its broker is killed."""
    topic = f"{name}-topic"
    three_kafka.create_topic(topic, 3, replication=3)
    theirs = Producer({"bootstrap.servers": three_kafka.bootstrap_servers, "acks": "all"})
    for partition in range(3):
        theirs.produce(topic, b"%d" % partition, partition=partition)
    assert theirs.flush(HANG_S) == 0
    ids = [f"{name}-{number}" for number in range(30)]
    with AdminClient(bootstrap_servers=three_kafka.bootstrap_servers, max_block_ms=within_ms(60_000)) as admin:
        known = {one: admin.init_producer_id(one) for one in ids}
        described = admin.describe_transactions(ids)
        assert len({one.coordinator for one in described.values() if one is not None}) > 1
        assert [one.transactional_id for one in admin.list_transactions(prefix=name)] == sorted(ids)
        three_kafka.kill_node(1)
        for one in ids[::5]:
            again = admin.init_producer_id(one)
            assert (again.producer_id, again.producer_epoch > known[one].producer_epoch) == (
                known[one].producer_id,
                True,
            )
        moved = admin.describe_transactions(ids)
        assert all(one is not None and one.coordinator in (0, 2) for one in moved.values())
        assert [one.transactional_id for one in admin.list_transactions(prefix=name)] == sorted(ids)
        assert [admin.read_tail(topic, partition)[0].value for partition in range(3)] == [b"0", b"1", b"2"]
        three_kafka.start_node(1)
        three_kafka.wait_until_ready()
        assert [one.transactional_id for one in admin.list_transactions(prefix=name)] == sorted(ids)


def test_the_tail_of_a_compacted_topic(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(
        kafka,
        config={
            "cleanup.policy": "compact",
            "segment.bytes": "1048576",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
        },
    )
    theirs = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
    with AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        rounds = iter(range(1_000_000))

        def more() -> bool:
            for key in (b"a", b"b", b"b", b"b", b"b"):
                theirs.produce(name, b"%d" % next(rounds), key=key)
            theirs.flush(HANG_S)
            (last,) = admin.read_tail(name)
            return sum(1 for _ in admin.read_from(name)) < last.offset - 100

        def at_rest() -> bool:
            before = [record.offset for record in admin.read_from(name)]
            time.sleep(within(1))  # the cleaner looks ten times a second
            return before == [record.offset for record in admin.read_from(name)]

        until(more, "a log with gaps")
        until(at_rest, "a cleaner that has nothing left to do")
        expected = seen_by_others(kafka, name)
        assert seen(admin, name) == expected
        assert [record.value for record in admin.read_tail(name, max_records=7)] == expected[-7:]
