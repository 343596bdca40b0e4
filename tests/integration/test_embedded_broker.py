"""What the embedded broker does not do, or does otherwise than a real one: each row of the table in its docstring."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import forebay.testing.broker
from forebay import AdminClient, KafkaProducer
from forebay.errors import CorruptRecordError, KafkaTimeoutError, UnsupportedVersionError
from forebay.testing import EmbeddedBroker
from forebay.testing._forward import Forwarder
from tests.integration.workload import MOCK_APPEND_TIME, WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import within_ms
from tests.support.readback import read_all
from tests.unit.testing.test_broker import ask_api_versions

ROOT = Path(__file__).parents[2]
PRODUCE = 0
KEPT_BYTES = 5 << 20
LARGE_BYTES = 9_000_000
NOT_ANSWERED = {
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    29: "DescribeAcls",
    32: "DescribeConfigs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    48: "DescribeClientQuotas",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
}
#: Writes, reads by assignment and in a group whose offsets are kept, and commits a transaction.
KAFKA_PYTHON = """
import json, sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
config = json.loads(sys.argv[1])
if "api_version" in config:
    config["api_version"] = tuple(config["api_version"])
ours = KafkaProducer(**config)
config.pop("bootstrap_timeout_ms", None)
assert ours.send("t", b"v", partition=0).get(30).offset == 0
ours.close()
for group in (None, "g"):
    options = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    reader = KafkaConsumer(**options, **config)
    # It takes its partitions from what it knows, which may be of before the subscription, and waits for long then.
    while not reader.partitions_for_topic("t"):
        pass
    reader.subscribe(["t"])
    assert next(reader).value == b"v"
    if group is not None:
        reader.commit()
        assert reader.committed(TopicPartition("t", 0)) == 1
    reader.close()
ours = KafkaProducer(transactional_id="id", **config)
ours.init_transactions()
ours.begin_transaction()
ours.send("t", b"w", partition=0)
ours.commit_transaction()
ours.close()
print("all of it")
"""
ANSWERED = {0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch"}


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_the_page_and_the_docstring_say_the_same() -> None:
    documented = rows(forebay.testing.broker.__doc__ or "")
    page = (ROOT / "docs" / "testing.md").read_text()
    assert len(documented) > 8
    assert [row for row in documented if row not in rows(page)] == []


@contextlib.contextmanager
def consumer(broker: EmbeddedBroker, group: str = "g", **properties: Any) -> Iterator[Any]:
    made = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, **properties})
    try:
        yield made
    finally:
        made.close()


def first_and_end(broker: EmbeddedBroker, name: str) -> tuple[int, int]:
    with consumer(broker) as reader:
        found: tuple[int, int] = reader.get_watermark_offsets(TopicPartition(name, 0), timeout=WAIT_S)
        return found


def transactional(broker: EmbeddedBroker, transactional_id: str = "id") -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id})


# -- what is kept, and how it is written ----------------------------------------------------------------------


def test_the_newest_five_mib_of_a_partition_are_kept(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    with KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "batch.size": 1}) as ours:
        for _ in range(64):
            size = ours.send(name, b"x" * 100_000).result(WAIT_S).serialized_value_size
    first, end = first_and_end(embedded, name)
    assert end == 64
    assert KEPT_BYTES - 2 * size < (end - first) * size <= KEPT_BYTES


def test_a_batch_may_be_of_any_size(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    config = {"max.request.size": 2 * LARGE_BYTES, "buffer.memory": 64 << 20}
    with KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, **config}) as ours:
        assert ours.send(name, b"x" * LARGE_BYTES).result(WAIT_S).offset == 0


def test_it_ends_with_all_it_has(topic: TopicFactory) -> None:
    with EmbeddedBroker() as before:
        name = topic(before)
        with KafkaProducer(bootstrap_servers=before.bootstrap_servers) as ours:
            ours.send(name, b"v").result(WAIT_S)
    with EmbeddedBroker() as after, consumer(after) as reader:
        assert name not in reader.list_topics(timeout=WAIT_S).topics


def produce_by_hand(broker: EmbeddedBroker, name: str, batch: bytes, *, version: int = 7) -> int:
    """The error code that Produce is answered with for partition 0."""
    topic = name.encode()
    body = struct.pack(">hhihhhiih", PRODUCE, version, 1, -1, -1, -1, 1000, 1, len(topic)) + topic
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    with socket.create_connection(broker.address(), WAIT_S) as connection, connection.makefile("rb") as stream:
        connection.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", stream.read(4))
        answer = stream.read(size)
    (code,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
    return int(code)


def batch_by_hand(*, sequence: int = 0, producer_id: int = 7, checksum: int = 0) -> bytes:
    """One record of format v2, with the checksum that it is told."""
    record = bytes([14, 0, 0, 0, 1, 2]) + b"v" + bytes([0])  # sizes are zigzag numbers
    rest = struct.pack(">hiqqqhii", 0, 0, 1, 1, producer_id, 0, sequence, 1) + record
    return struct.pack(">qiibI", 0, 4 + 1 + 4 + len(rest), 0, 2, checksum) + rest


def test_no_checksum_is_looked_at(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    assert produce_by_hand(embedded, name, batch_by_hand(checksum=0xBAD)) == 0
    admin = AdminClient(bootstrap_servers=embedded.bootstrap_servers)
    with pytest.raises(CorruptRecordError, match="checksum 0x00000bad"):
        admin.read_tail(name)
    admin.close()


def test_a_repeated_batch_is_written_again(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """And one whose sequence number leaves a gap is written, too."""
    name = topic(embedded)
    for sequence in (0, 0, 77):
        assert produce_by_hand(embedded, name, batch_by_hand(sequence=sequence)) == 0
    assert first_and_end(embedded, name) == (0, 3)


def test_of_the_older_record_formats_only_what_is_not_compressed_is_taken(
    embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    name = topic(embedded)
    embedded.set_api_versions(PRODUCE, 0, 2)
    config = {"bootstrap.servers": embedded.bootstrap_servers, "enable.idempotence": False}
    with KafkaProducer(config) as ours:
        assert ours.send(name, b"v").result(WAIT_S).offset == 0
    with KafkaProducer({**config, "compression.type": "gzip"}) as ours, pytest.raises(UnsupportedVersionError):
        ours.send(name, b"v" * 1000).result(WAIT_S)


def test_topics_go_by_their_names(embedded: EmbeddedBroker) -> None:
    """Produce 13 names them by their ids."""
    assert ask_api_versions(embedded.address())[PRODUCE] == (0, 10)


# -- time -----------------------------------------------------------------------------------------------------


def test_an_acknowledgement_has_a_timestamp_of_its_own_and_no_offset_is_found_by_time(
    embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    name = topic(embedded)
    with KafkaProducer(bootstrap_servers=embedded.bootstrap_servers) as ours:
        assert ours.send(name, b"v", timestamp=1_700_000_000_000).result(WAIT_S).timestamp == MOCK_APPEND_TIME
    assert [record.timestamp for record in read_all(embedded.bootstrap_servers, name)] == [1_700_000_000_000]
    with consumer(embedded) as reader:
        (found,) = reader.offsets_for_times([TopicPartition(name, 0, 1_600_000_000_000)], timeout=WAIT_S)
    assert found.error is None and found.offset == -1  # the end, where a real broker says 0


# -- transactions and groups ----------------------------------------------------------------------------------


def test_transactions_are_of_the_first_generation(embedded: EmbeddedBroker) -> None:
    admin = AdminClient(bootstrap_servers=embedded.bootstrap_servers)
    assert admin.transaction_version() == 0
    admin.close()


def test_nobody_is_fenced(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    with transactional(embedded) as older, transactional(embedded) as newer:
        older.init_transactions()
        older.begin_transaction()
        newer.init_transactions()
        older.send(name, b"of the older one").result(WAIT_S)
        older.commit_transaction()
    with consumer(embedded) as reader:
        reader.assign([TopicPartition(name, 0, 0)])
        assert reader.poll(WAIT_S).value() == b"of the older one"


def test_what_was_aborted_is_read_by_all_and_a_marker_has_no_checksum(
    embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    name = topic(embedded)
    with transactional(embedded) as ours:
        ours.init_transactions()
        ours.begin_transaction()
        ours.send(name, b"aborted").result(WAIT_S)
        ours.abort_transaction()
    with consumer(embedded, **{"isolation.level": "read_committed"}) as reader:
        reader.assign([TopicPartition(name, 0, 0)])
        assert reader.poll(WAIT_S).value() == b"aborted"
    admin = AdminClient(bootstrap_servers=embedded.bootstrap_servers)
    with pytest.raises(CorruptRecordError, match="checksum 0x00000000"):
        list(admin.read_from(name))
    admin.close()
    checking: dict[str, Any] = {"check.crcs": True}
    with consumer(embedded, **checking) as reader:
        reader.assign([TopicPartition(name, 0, 1)])
        assert "CRC32C" in reader.poll(WAIT_S).error().str()


def test_a_group_s_offsets_are_kept_but_those_of_a_transaction_are_not(
    embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    name = topic(embedded)
    place = TopicPartition(name, 0)
    with consumer(embedded) as reader:
        reader.commit(offsets=[TopicPartition(name, 0, 5)], asynchronous=False)
    with consumer(embedded) as reader:
        assert reader.committed([place], timeout=WAIT_S)[0].offset == 5
        ours = Producer({"bootstrap.servers": embedded.bootstrap_servers, "transactional.id": "id"})
        ours.init_transactions(WAIT_S)
        ours.begin_transaction()
        ours.send_offsets_to_transaction([TopicPartition(name, 0, 9)], reader.consumer_group_metadata(), WAIT_S)
        ours.commit_transaction(WAIT_S)
        assert reader.committed([place], timeout=WAIT_S)[0].offset == 5


# -- administration -------------------------------------------------------------------------------------------


def test_what_administers_is_not_answered(embedded: EmbeddedBroker) -> None:
    answered = ask_api_versions(embedded.address())
    assert [name for api_key, name in ANSWERED.items() if api_key not in answered] == []
    assert [name for api_key, name in NOT_ANSWERED.items() if api_key in answered] == []
    admin = AdminClient(bootstrap_servers=embedded.bootstrap_servers)
    with pytest.raises(UnsupportedVersionError, match="does not support CreateTopics"):
        admin.create_topic("t")
    admin.close()


def test_topics_come_into_being_by_being_asked_for(embedded: EmbeddedBroker) -> None:
    with KafkaProducer(bootstrap_servers=embedded.bootstrap_servers) as ours:
        assert len(ours.partitions_for("asked-for")) == 4
    embedded.create_topic("made", 6)
    with consumer(embedded) as reader:
        assert len(reader.list_topics("made", timeout=WAIT_S).topics["made"].partitions) == 6


# -- clients --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def forebay_broker(*options: str) -> Iterator[str]:
    """The command's address."""
    # Of an option that comes twice the last one counts.
    command = [sys.executable, "-m", "forebay.cli", "broker", "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def kafka_python(servers: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs ``KAFKA_PYTHON`` in a process of its own: it leaves sockets unclosed when it cannot bootstrap."""
    command = [sys.executable, "-c", KAFKA_PYTHON, json.dumps({"bootstrap_servers": servers, **options})]
    return subprocess.run(command, capture_output=True, text=True, timeout=2 * WAIT_S, check=False)


def test_kafka_python_and_forebay_broker() -> None:
    """Which refuses ApiVersions 3 and 4 in its forwarder, in words that kafka-python can read."""
    with forebay_broker("--topics", "t:1") as address:
        done = kafka_python(address)
    assert done.stdout == "all of it\n", done.stderr


def test_kafka_python_and_the_embedded_broker(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("t", 1)
    assert "Unable to bootstrap" in kafka_python(embedded.bootstrap_servers, bootstrap_timeout_ms=500).stderr
    done = kafka_python(embedded.bootstrap_servers, api_version=(2, 3))
    assert done.stdout == "all of it\n", done.stderr


def test_aiokafka(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("t", 1)
    servers = embedded.bootstrap_servers

    async def use() -> None:
        ours = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id="id")
        async with ours, ours.transaction():
            assert (await ours.send_and_wait("t", b"v", partition=0)).offset == 0
        options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with aiokafka.AIOKafkaConsumer("t", bootstrap_servers=servers, **options) as reader:
            assert (await reader.getone()).value == b"v"
            await reader.commit()
            assert await reader.committed(aiokafka.TopicPartition("t", 0)) == 1

    asyncio.run(asyncio.wait_for(use(), WAIT_S))


def test_confluent_kafka_in_a_group(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("t", 1)
    delivered: list[Any] = []
    ours = Producer({"bootstrap.servers": embedded.bootstrap_servers})
    ours.produce("t", b"v", on_delivery=lambda error, message: delivered.append((error, message.offset())))
    ours.flush(WAIT_S)
    assert delivered == [(None, 0)]
    with consumer(embedded, **{"auto.offset.reset": "earliest"}) as reader:
        reader.subscribe(["t"])
        assert reader.poll(WAIT_S).value() == b"v"


def test_what_forebay_broker_advertises_is_where_clients_go() -> None:
    """A port that is forwarded from elsewhere: clients bootstrap anywhere, and then go by that port alone."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    elsewhere = Forwarder(["127.0.0.1", "::1"], 0, ("127.0.0.1", port))
    with forebay_broker("--port", str(port), "--advertise", f"localhost:{elsewhere.port}") as shown:
        assert shown == f"localhost:{elsewhere.port}"
        config = {"bootstrap.servers": f"127.0.0.1:{port}", "max.block.ms": within_ms(10_000)}
        with KafkaProducer(
            {**config, "delivery.timeout.ms": within_ms(2000), "request.timeout.ms": within_ms(1000)}
        ) as ours:
            assert ours.send("t", b"v").result(WAIT_S).topic == "t"
            elsewhere.close()
            with pytest.raises(KafkaTimeoutError, match="ECONNREFUSED|not ready"):
                ours.send("t", b"v").result(WAIT_S)
