"""What was read back against what Spark computed, row by row, by code that shares nothing with the producer.

Each row (partition, timestamp, key, headers, value) becomes a 16-byte digest; the two multisets of digests must be
equal.  The partition expected is computed here from the key's bytes, by a murmur2 of its own.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Headers = Sequence[tuple[str, bytes | None]]


@lru_cache(maxsize=100_000)
def partition_of(key: bytes, partitions: int) -> int:
    """Where Kafka's default partitioner puts a key: murmur2 of its bytes, sign bit off, modulo."""
    word = 0xFFFFFFFF
    seed, multiplier = 0x9747B28C, 0x5BD1E995
    value = (seed ^ len(key)) & word
    whole = len(key) // 4 * 4
    for (part,) in struct.iter_unpack("<I", key[:whole]):
        part = (part * multiplier) & word
        part ^= part >> 24
        value = ((value * multiplier) & word) ^ ((part * multiplier) & word)
    rest = key[whole:]
    if rest:
        value = ((value ^ int.from_bytes(rest, "little")) * multiplier) & word
    value = ((value ^ (value >> 13)) * multiplier) & word
    value ^= value >> 15
    return (value & 0x7FFFFFFF) % partitions


def digest(partition: int, timestamp_ms: int, key: bytes | None, headers: Headers, value: bytes | None) -> bytes:
    """16 bytes that stand for the whole row; null and empty differ."""
    parts = [struct.pack(">iqi", partition, timestamp_ms, len(headers)), _sized(key), _sized(value)]
    for name, content in headers:
        parts += (_sized(name.encode()), _sized(content))
    return blake2b(b"".join(parts), digest_size=16).digest()


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def expected_rows(folder: Path, partitions: int) -> Counter[bytes]:
    """Digests of the mapped rows that Spark wrote to Parquet by itself.  Each processor reads some of the files."""
    files = sorted(folder.glob("*.parquet"))
    rows: Counter[bytes] = Counter()
    # Forked processes would share the threads' locks of this one.
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for digests in pool.map(expected_rows_of, files, repeat(partitions)):
            rows.update(digests)
    return rows


def expected_rows_of(file: Path, partitions: int) -> list[bytes]:
    """The digests of one file's rows, by columns: a dictionary for each row would take most of the time."""
    digests = []
    for batch in pq.ParquetFile(file).iter_batches(columns=["key", "value", "headers", "timestamp"]):
        keys, values, headers = (batch.column(name).to_pylist() for name in ("key", "value", "headers"))
        millis = batch.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).to_pylist()
        for key, value, entries, timestamp in zip(keys, values, headers, millis, strict=True):
            pairs = [(entry["key"], entry["value"]) for entry in entries]
            data = key.encode()
            digests.append(digest(partition_of(data, partitions), timestamp, data, pairs, value.encode()))
    return digests


@dataclass
class Verdict:
    """The comparison's outcome; all zero is what must be."""

    missing: int = 0
    doubled: int = 0
    unknown: int = 0
    """Rows that were read and that Spark never computed: a row that differs counts here and under missing."""
    examples: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.missing or self.doubled or self.unknown)

    def __str__(self) -> str:
        if self.ok:
            return "every row is there once, unchanged"
        return f"{self.missing} missing, {self.doubled} doubled, {self.unknown} unknown or changed"


def compare(expected: Counter[bytes], read: Counter[bytes], where: dict[bytes, tuple[int, int]]) -> Verdict:
    """Compares the two multisets; ``where`` has a (partition, offset) for digests that were read."""
    verdict = Verdict()
    for row, count in expected.items():
        verdict.missing += max(0, count - read[row])
    for row, count in read.items():
        surplus = count - expected[row]
        if surplus <= 0:
            continue
        if row in expected:
            verdict.doubled += surplus
        else:
            verdict.unknown += surplus
        if len(verdict.examples) < 5 and row in where:
            kind = "doubled" if row in expected else "unknown"
            verdict.examples.append(f"{kind}: partition {where[row][0]}, offset {where[row][1]}")
    return verdict
