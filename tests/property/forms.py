"""Whole batches out of random and boundary rows, for a comparison of the compiled form with the interpreted one.

Run as a program it prints what this process's form makes of the seeds: ``python -m tests.property.forms 1 400``.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from forebay.errors import KafkaError
from tests.fakes.world import World

PARTITIONS = 3
LIMIT = 20_000
"""max.request.size."""
SIZES = (0, 1, 5, 30, 62, 63, 64, 127, 128, 300, 8191, 8192)
TIMES = (0, 1, 63, 64, 2**31, 2**45, 2**62, 2**63 - 1)
CODECS = ("none", "none", "gzip", "snappy", "lz4", "zstd")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = {"value": pa.binary(), "key": pa.binary(), "partition": pa.int64(), "timestamp": pa.int64(), "headers": HEADERS}
Row = dict[str, Any]


def cell(dice: random.Random) -> bytes | None:
    """Null, a boundary of the number before it, or something short."""
    if dice.random() < 0.1:
        return None
    size = dice.choice(SIZES[:9]) if dice.random() < 0.97 else dice.choice(SIZES)
    return dice.randbytes(min(size, 8)) * (size // 8 + 1) if size > 8 else dice.randbytes(size)


def rows_of(dice: random.Random) -> list[Row]:
    """Rows of one table; one in four has a row that cannot be taken."""
    base = dice.choice(TIMES[:6])
    rows: list[Row] = []
    for _ in range(dice.choice((1, 2, 20, 60, 120))):
        headers = [{"key": dice.choice(("", "h", "é" * 40)), "value": cell(dice)} for _ in range(dice.randrange(3))]
        rows.append(
            {
                "value": cell(dice),
                "key": cell(dice) if dice.random() < 0.7 else None,
                "partition": dice.randrange(PARTITIONS) if dice.random() < 0.5 else None,
                "timestamp": base + dice.randrange(200) if dice.random() < 0.9 else dice.choice(TIMES),
                "headers": headers if dice.random() < 0.3 else None,
            }
        )
    if dice.random() < 0.25:
        bad = {"partition": dice.choice((-1, PARTITIONS, 2**40)), "timestamp": -dice.choice((1, 2**63))}
        name = dice.choice(("partition", "timestamp", "value", "headers"))
        rows[dice.randrange(len(rows))][name] = {
            **bad,
            "value": bytes(LIMIT),
            "headers": [{"key": None, "value": b""}],
        }[name]
    return rows


def batches_of(world: World) -> Iterator[bytes]:
    """Every batch that waits, as it would be sent."""
    for queue in world.accumulator.topics["t"].queues:
        for batch in queue.batches:
            world.accumulator.closer.close_batch(batch)
            yield bytes(batch.header()) + b"".join(bytes(piece) for piece in batch.records.payload)


def columns_of(dice: random.Random, rows: list[Row]) -> pa.RecordBatch:
    """The rows as columns, some of which are left out, in layouts of their own."""
    names = ["value", *(name for name in KINDS if name != "value" and dice.random() < 0.8)]
    made = {name: pa.array([None, *(row[name] for row in rows)], KINDS[name])[1:] for name in names}
    layout = dice.choice((None, pa.large_binary(), pa.binary_view(), "dictionary"))
    for name in ("value", "key"):
        if name in made and layout is not None:
            made[name] = made[name].dictionary_encode() if layout == "dictionary" else made[name].cast(layout)
    return pa.RecordBatch.from_pydict(made)


def made_of(seed: int) -> tuple[list[bytes], str]:
    """The batches of one table, by columns or record by record, and the error that ended it."""
    dice = random.Random(seed)
    world = World(
        topics={"t": PARTITIONS},
        batch_size=dice.choice((1, 61, 200, 400, 1000)),
        compression_type=dice.choice(CODECS),
        max_request_size=LIMIT,
        buffer_memory=1 << 24,
        linger_ms=1000,
        max_block_ms=0,
    )
    rows = rows_of(dice)
    error = ""
    try:
        if seed % 2:
            world.producer.send_batch("t", columns_of(dice, rows))
        else:
            for row in rows:
                headers = [(one["key"], one["value"]) for one in row["headers"] or ()]
                future = world.producer.send(
                    "t",
                    row["value"],
                    row["key"],
                    headers=headers,
                    partition=row["partition"],
                    timestamp=row["timestamp"],
                )
                if future.done() and (failed := future.exception(0)) is not None:
                    raise failed
    except (KafkaError, TypeError) as refused:
        error = f"{type(refused).__name__}: {refused}"
    return list(batches_of(world)), error


def digests(first: int, count: int) -> Iterator[str]:
    """A line for each seed: how many batches, a digest of their bytes, and the error."""
    for seed in range(first, first + count):
        batches, error = made_of(seed)
        digest = hashlib.sha256(b"".join(batches)).hexdigest()[:24]
        yield f"{seed} {len(batches)} {digest} {error}"


if __name__ == "__main__":
    for line in digests(int(sys.argv[1]), int(sys.argv[2])):
        print(line)
