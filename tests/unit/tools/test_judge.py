"""The log dumper's lines as values."""

from __future__ import annotations

import pytest

from tools.kafka import KafkaFailed
from tools.kafka.judge import PERFORMANCE, parse_dump

BATCH = (
    "baseOffset: 3 lastOffset: 4 count: 2 baseSequence: 7 lastSequence: 8 producerId: 11 producerEpoch: 1 "
    "partitionLeaderEpoch: 5 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty "
    "position: 0 CreateTime: 1795291600093 size: 118 magic: 2 compresscodec: zstd crc: 42202919 isvalid: false"
)
RECORD = "| offset: 3 CreateTime: 1795291600093 keySize: 3 valueSize: 3 sequence: 7 headerKeys: [h,h2]"


def test_a_batch_and_its_records() -> None:
    text = "\n".join(["Dumping a.log", BATCH, f"{RECORD} key: k k payload: v 0", RECORD])
    (batch,) = parse_dump(text)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (3, 4, 2)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (11, 1, 7, 8)
    assert (batch.transactional, batch.control, batch.valid) == (True, False, False)
    assert (batch.timestamp_type, batch.timestamp, batch.codec, batch.size) == (
        "CreateTime",
        1795291600093,
        "zstd",
        118,
    )
    assert [(record.key, record.value) for record in batch.records] == [("k k", "v 0"), (None, None)]
    assert batch.records[0].header_keys == ("h", "h2")


def test_a_null_key_and_no_headers() -> None:
    line = "| offset: 0 CreateTime: -1 keySize: -1 valueSize: 1 sequence: -1 headerKeys: [] payload: v"
    record = parse_dump(f"{BATCH}\n{line}")[0].records[0]
    assert (record.key, record.key_size, record.timestamp, record.header_keys) == (None, -1, -1, ())
    assert record.sequence == -1


@pytest.mark.parametrize("text", ["baseOffset: what", f"{BATCH}\n| offset: what"])
def test_an_unknown_line_is_an_error(text: str) -> None:
    with pytest.raises(KafkaFailed, match="not a line of the log dumper"):
        parse_dump(text)


def test_the_perf_tests_last_line() -> None:
    found = PERFORMANCE.match(
        "100 records sent, 73.7 records/sec (7.02 MB/sec), 246.88 ms avg latency, 416.00 ms max latency, "
        "255 ms 50th, 398 ms 95th, 408 ms 99th, 416 ms 99.9th."
    )
    assert found is not None
    assert (found["records"], found["rate"], found["p999"]) == ("100", "73.7", "416")
