"""Our batches of every format and codec, put before a real broker as they are, and judged by it.

A bare socket sends them: nothing of the producer is in the way.  The broker checks and (legacy formats)
converts; Kafka's log dumper and librdkafka's consumer say what they see.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

import pytest

from forebay._records.batch_legacy import convert_v2
from forebay._records.codec_packages import Chunk
from forebay._records.compression import LEVELS, CompressionType, Compressor, compressor
from forebay._records.decoded import Record
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S
from tests.support.readback import ReadRecord, read_all
from tests.support.records_builder import BatchHead, RecordsBuilder
from tools.kafka import RealKafka, dump_log

BASE = 1_700_000_000_000
RECORDS = [
    Record(0, BASE, b"key", b"value " * 10),
    Record(1, BASE - 5000, None, b"earlier"),
    Record(2, BASE + 70_000, b"", b""),
    Record(3, BASE, b"gone", None),
    *(Record(4 + index, BASE + index, b"k%d" % index, b"value number %d" % index * 40) for index in range(300)),
]
HEADERS = (("first", b"1"), ("null", None), ("empty", b""))
LEGACY_CODECS = [kind for kind in CompressionType if kind != CompressionType.ZSTD]


class InATurn(Compressor):
    """Compresses as the sender does, two batches in one call."""

    def __init__(self, inner: Compressor) -> None:
        super().__init__(inner.level)
        self.type = inner.type
        self._inner = inner

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        first, second = self._inner.compress_many([chunks, [b"another"]])
        assert first != second
        return first

    def bound(self, size: int, chunks: int = 1) -> int:
        return self._inner.bound(size, chunks)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def produce(bootstrap_servers: str, topic: str, records: bytes, *, version: int) -> tuple[int, int]:
    """Sends one Produce request with ``records`` for partition 0, acks=all; returns error code and base offset."""
    body = struct.pack(">h", -1) if version >= 3 else b""
    body += struct.pack(">hii", -1, 10_000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(records)) + records
    request = struct.pack(">hhi", 0, version, 99) + text("judged") + body
    host, port = bootstrap_servers.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=HANG_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        answer = stream.read(size)
    correlation, topics, name_size = struct.unpack_from(">iih", answer)
    assert (correlation, topics) == (99, 1)
    partitions, partition, error, offset = struct.unpack_from(">iihq", answer, 10 + name_size)
    assert (partitions, partition) == (1, 0)
    return error, offset


def expected(magic: int) -> list[ReadRecord]:
    headers = HEADERS if magic == 2 else ()
    return [
        ReadRecord(0, each.offset, each.key, each.value, headers, -1 if magic == 0 else each.timestamp)
        for each in RECORDS
    ]


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (kind, level)
        for kind in CompressionType
        for level in ({LEVELS[kind].minimum, LEVELS[kind].default, LEVELS[kind].maximum} if kind in LEVELS else {None})
    ],
)
@pytest.mark.parametrize("turn", [False, True], ids=["one", "turn"])
def test_format_v2(kafka: RealKafka, topic: TopicFactory, kind: CompressionType, level: int | None, turn: bool) -> None:
    name = topic(kafka)
    packer = compressor(kind, level)
    if turn:
        packer = InATurn(packer)
    builder = RecordsBuilder(BatchHead(), packer)
    for each in RECORDS:
        builder.append(each.offset, each.timestamp, each.key, each.value, HEADERS)
    batch = builder.build()
    assert produce(kafka.bootstrap_servers, name, batch, version=7) == (0, 0)  # the first with zstd

    (dumped,) = dump_log(kafka, name, 0)
    assert dumped.valid and dumped.size == len(batch)
    assert (dumped.magic, dumped.codec, dumped.record_count) == (2, kind.label, len(RECORDS))
    assert (dumped.base_offset, dumped.last_offset, dumped.timestamp) == (0, len(RECORDS) - 1, BASE + 70_000)
    assert [(each.offset, each.timestamp) for each in dumped.records] == [each[:2] for each in RECORDS]
    assert {each.header_keys for each in dumped.records} == {("first", "null", "empty")}
    assert read_all(kafka.bootstrap_servers, name) == expected(2)


@pytest.mark.parametrize("kind", LEGACY_CODECS)
@pytest.mark.parametrize(("magic", "version"), [(0, 0), (0, 1), (1, 2)])
def test_legacy_formats(
    legacy_kafka: RealKafka, topic: TopicFactory, kind: CompressionType, magic: int, version: int
) -> None:
    name = topic(legacy_kafka)
    data = convert_v2(RECORDS, magic=magic, compressor=compressor(kind))
    assert produce(legacy_kafka.bootstrap_servers, name, data, version=version) == (0, 0)
    assert read_all(legacy_kafka.bootstrap_servers, name) == expected(magic)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_second_legacy_set_follows_the_first(legacy_kafka: RealKafka, topic: TopicFactory, magic: int) -> None:
    name = topic(legacy_kafka)
    data = convert_v2(RECORDS, magic=magic, compressor=compressor(CompressionType.GZIP))
    answers = [produce(legacy_kafka.bootstrap_servers, name, data, version=magic + 1) for _ in range(2)]
    assert answers == [(0, 0), (0, len(RECORDS))]
    assert [each.offset for each in read_all(legacy_kafka.bootstrap_servers, name)] == list(range(2 * len(RECORDS)))
