"""Traces for tests, made of batches."""

from __future__ import annotations

import io
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forebay._insight.trace_file import encoded, head_line, read_blocks, turned
from forebay.tune.trace import Trace


class Sent(NamedTuple):
    """A batch: records are (time after the one before in us, key size, value size)."""

    created: int
    records: Sequence[tuple[int, int, int]]
    topic: int = 0
    partition: int = 0
    closed: int = 0
    answer_us: int = 2000
    node: int = 1
    outcome: int = 1


def head(**more: Any) -> dict[str, Any]:
    return {
        "client_id": "me", "seconds": 1.0, "share": 1.0, "every": 1, "phase_us": 0, "settings": {"linger.ms": 5},
        "metrics": {"begin": {}, "end": {}}, "nodes": [1, 2], "topics": ["a", "b"],
        "leaders": {"a": [1, 2, 1], "b": [2]}, "holds": [], "left_out": {"batches": 0, "records": 0}, "failure": None,
        "blocks": 1, **more,
    }  # fmt: skip


def noted(sent: Sent) -> tuple[bytes, bytes, bytes, bytes]:
    count, closed = len(sent.records), sent.closed or sent.created + 10_000
    raw = sum(8 + value for _time, _key, value in sent.records)
    numbers = [
        sent.topic, sent.partition, count, count, sent.created, closed, closed, closed + sent.answer_us, sent.node, 0,
        sent.outcome, raw, raw + 61,
    ]  # fmt: skip
    times, keys, values = (big("i", [record[at] for record in sent.records]) for at in range(3))
    return big("q", numbers), times, keys, values


def big(kind: str, numbers: Sequence[int]) -> bytes:
    return turned(array(kind, numbers)).tobytes()


def block_of(batches: Sequence[Sent]) -> bytes:
    rows, times, keys, values = (b"".join(each) for each in zip(*map(noted, batches), strict=True))
    return encoded(rows, times, keys, values)


def file_of(path: Path, *batches: Sent, **more: Any) -> Path:
    count = sum(len(batch.records) for batch in batches)
    line = head_line(head(records=count, kept=count, batches=len(batches), **more))
    path.write_bytes(line + (block_of(batches) if batches else b""))
    return path


def trace_of(*batches: Sent, **more: Any) -> Trace:
    (block,) = read_blocks(io.BytesIO(block_of(batches)), 1)
    return Trace.of(head(**more), (block,))


def steady(rate: int, *, seconds: int = 1, size: int = 100, key: int = -1, partition: int = 0) -> list[Sent]:
    """Batches of one record, evenly."""
    step = 1_000_000 // rate
    return [Sent(at * step, [(0, key, size)], partition=partition) for at in range(rate * seconds)]
