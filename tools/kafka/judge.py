"""Kafka's own view of what was written to it: the log dumper's answer as values, and the Java perf test.

The dumper prints keys and values as text: they are exact for printable UTF-8 on one line, which is what tests
of the byte layout write.  Everything else about a batch is exact.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from tools.kafka.cluster import KafkaFailed, RealKafka

BATCH = re.compile(
    r"baseOffset: (?P<base_offset>-?\d+) lastOffset: (?P<last_offset>-?\d+) count: (?P<record_count>\d+) "
    r"baseSequence: (?P<base_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    r"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) "
    r"partitionLeaderEpoch: (?P<leader_epoch>-?\d+) isTransactional: (?P<transactional>true|false) "
    r"isControl: (?P<control>true|false) .*?"
    r"(?P<timestamp_type>\w+Time): (?P<timestamp>-?\d+) size: (?P<size>\d+) magic: (?P<magic>\d+) "
    r"compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>true|false)"
)
RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) \w+Time: (?P<timestamp>-?\d+) keySize: (?P<key_size>-?\d+) "
    r"valueSize: (?P<value_size>-?\d+)(?: sequence: (?P<sequence>-?\d+))?(?: headerKeys: \[(?P<headers>.*?)\])?"
    r"(?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?$"
)
PERFORMANCE = re.compile(
    r"(?P<records>\d+) records sent, (?P<rate>[\d.]+) records/sec \((?P<megabytes>[\d.]+) MB/sec\), "
    r"(?P<average>[\d.]+) ms avg latency, (?P<highest>[\d.]+) ms max latency, "
    r"(?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99.9th"
)


class DumpedRecord(NamedTuple):
    """A record as the dumper prints it; sizes are -1 for null, timestamps in ms."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    sequence: int
    header_keys: tuple[str, ...]
    key: str | None
    value: str | None


class DumpedBatch(NamedTuple):
    """A record batch as the dumper prints it; ``timestamp`` is the batch's largest, ``size`` in bytes."""

    base_offset: int
    last_offset: int
    record_count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    leader_epoch: int
    transactional: bool
    control: bool
    timestamp_type: str
    timestamp: int
    size: int
    magic: int
    codec: str
    crc: int
    valid: bool
    records: tuple[DumpedRecord, ...]


class Performance(NamedTuple):
    """What the Java perf test printed in its last line, and what its process cost (JVM start included)."""

    records: int
    records_per_s: float
    megabytes_per_s: float
    average_ms: float
    highest_ms: float
    p50_ms: int
    p95_ms: int
    p99_ms: int
    p999_ms: int
    cpu_s: float
    peak_kib: int


def dump_log(kafka: RealKafka, topic: str, partition: int, *, node: int = 0) -> list[DumpedBatch]:
    """All batches of a partition on one node's disk, records decompressed."""
    folder = kafka.data_folder(node) / f"{topic}-{partition}"
    segments = sorted(str(path) for path in folder.glob("*.log"))
    if not segments:
        raise KafkaFailed(f"node {node} keeps no log of {topic}-{partition}")
    # The tool moved out of the core when it was rewritten in Java.
    package = "kafka.tools" if kafka.version.startswith(("2.", "3.")) else "org.apache.kafka.tools"
    options = ("--deep-iteration", "--print-data-log", "--files", ",".join(segments))
    return parse_dump(kafka.run_tool(f"{package}.DumpLogSegments", *options))


def parse_dump(text: str) -> list[DumpedBatch]:
    """The batches in what the dumper printed; KafkaFailed names a line it does not know."""
    batches: list[DumpedBatch] = []
    for line in text.splitlines():
        if line.startswith("baseOffset:"):
            batches.append(_batch(line))
        elif line.startswith("| offset:"):
            last = batches[-1]
            batches[-1] = last._replace(records=(*last.records, _record(line)))
    return batches


def _batch(line: str) -> DumpedBatch:
    found = BATCH.match(line)
    if found is None:
        raise KafkaFailed(f"not a line of the log dumper as known here: {line!r}")
    texts = ("timestamp_type", "codec")
    flags = ("transactional", "control", "valid")
    values: dict[str, object] = {}
    for name, value in found.groupdict().items():
        values[name] = value if name in texts else value == "true" if name in flags else int(value)
    return DumpedBatch(**values, records=())  # type: ignore[arg-type]


def _record(line: str) -> DumpedRecord:
    found = RECORD.match(line)
    if found is None:
        raise KafkaFailed(f"not a line of the log dumper as known here: {line!r}")
    return DumpedRecord(
        offset=int(found["offset"]),
        timestamp=int(found["timestamp"]),
        key_size=int(found["key_size"]),
        value_size=int(found["value_size"]),
        sequence=int(found["sequence"] or -1),
        header_keys=tuple(found["headers"].split(",")) if found["headers"] else (),
        key=found["key"],
        value=found["value"],
    )


def producer_performance(
    kafka: RealKafka,
    topic: str,
    *,
    records: int,
    record_size: int,
    throughput: int = -1,
    properties: Mapping[str, str] | None = None,
    bootstrap_servers: str | None = None,
) -> Performance:
    """Runs the Java client's own perf test; ``throughput`` in records/s, -1 for as fast as it can.

    ``bootstrap_servers`` names another cluster than ``kafka``, whose jars are used.
    """
    settings = [f"{name}={value}" for name, value in (properties or {}).items()]
    command = kafka.tool_command(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(record_size)),
        *("--throughput", str(throughput), "--bootstrap-server", bootstrap_servers or kafka.bootstrap_servers),
        *(("--command-property", *settings) if settings else ()),
    )
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        # Not Popen.wait: only wait4 tells what this one process used.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    found = list(PERFORMANCE.finditer(text))
    if process.returncode or not found:
        raise KafkaFailed(f"the Java perf test ended with status {process.returncode}: {text[-2000:]}")
    last = found[-1].groupdict()
    return Performance(
        records=int(last["records"]),
        records_per_s=float(last["rate"]),
        megabytes_per_s=float(last["megabytes"]),
        average_ms=float(last["average"]),
        highest_ms=float(last["highest"]),
        p50_ms=int(last["p50"]),
        p95_ms=int(last["p95"]),
        p99_ms=int(last["p99"]),
        p999_ms=int(last["p999"]),
        cpu_s=usage.ru_utime + usage.ru_stime,
        # Linux counts in KiB, macOS in bytes.
        peak_kib=usage.ru_maxrss if os.uname().sysname == "Linux" else usage.ru_maxrss // 1024,
    )
