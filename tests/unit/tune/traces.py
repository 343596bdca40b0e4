"""Traces for tests, made of batches."""

from __future__ import annotations

import io
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forebay._insight.trace_file import Noted, encoded, head_line, read_blocks
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


def noted(sent: Sent) -> Noted:
    count, closed = len(sent.records), sent.closed or sent.created + 10_000
    raw = sum(8 + value for _time, _key, value in sent.records)
    columns = []
    for at in range(3):
        column = array("i", (record[at] for record in sent.records))
        column.byteswap()
        columns.append(column.tobytes())
    numbers = [
        sent.partition, count, count, sent.created, closed, closed, closed + sent.answer_us, sent.node, 0, sent.outcome,
        raw, raw + 61,
    ]  # fmt: skip
    return Noted(sent.topic, numbers, *columns)


def file_of(path: Path, *batches: Sent, **more: Any) -> Path:
    count = sum(len(batch.records) for batch in batches)
    line = head_line(head(records=count, kept=count, batches=len(batches), **more))
    path.write_bytes(line + (encoded([noted(batch) for batch in batches]) if batches else b""))
    return path


def trace_of(*batches: Sent, **more: Any) -> Trace:
    (block,) = read_blocks(io.BytesIO(encoded([noted(batch) for batch in batches])), 1)
    return Trace.of(head(**more), (block,))


def steady(rate: int, *, seconds: int = 1, size: int = 100, key: int = -1, partition: int = 0) -> list[Sent]:
    """Batches of one record, evenly."""
    step = 1_000_000 // rate
    return [Sent(at * step, [(0, key, size)], partition=partition) for at in range(rate * seconds)]
