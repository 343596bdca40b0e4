"""Rows per second of Arrow columns into a sink that only acknowledges, beside a bare loopback send of as many bytes.

Record batches of 100,000 rows, without and with a 12 B key, in batches of 16 KiB and of 1 MiB; each run is a process
of its own.  The bare send is a loop of ``sendall`` with 1 MiB pieces to a process that only receives, with the sink's
buffer: what the machine can carry at most.  The sink's own share of a processor is in the table, because a sink that
is busy all the time would be what is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from typing import Any

from bench.loopback import Receiver, send_bytes
from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import cpu_seconds, run_child, work_of_child

ROWS = 100_000
PARTITIONS = 6
CASES = [(size, keyed) for size in (16_384, 1 << 20) for keyed in (False, True)]
BARE = "sendall of the same bytes"


def hand_over(producer: Any, topic: str, batch: Any) -> Any:
    """One record batch, whose columns are called as the parts of a record; the call that this bench is about.

    Returns:
        What knows how many rows were ``acknowledged`` after a flush.
    """
    return producer.send_batch(topic, batch)


def check(results: Iterable[Any], rows: int) -> None:
    """Every row was acknowledged.

    Raises:
        RuntimeError: not all were.
    """
    acknowledged = 0
    for one in results:
        acknowledged += one.acknowledged
    if acknowledged != rows:
        raise RuntimeError(f"{acknowledged} of {rows} rows were acknowledged")


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process."""
    if work["bare"]:
        seconds, cpu = send_bytes(work["bootstrap"], work["bytes"])
        return {"seconds": seconds, "cpu_s": cpu}
    import pyarrow as pa

    from forebay import KafkaProducer

    columns = {"value": pa.array([bytes(100)] * ROWS, pa.binary())}
    if work["keyed"]:
        columns["key"] = pa.array([b"key-%08d" % number for number in range(ROWS)], pa.binary())
    batch = pa.record_batch(columns)
    config = {"bootstrap.servers": work["bootstrap"], "linger.ms": 5, "batch.size": work["batch_size"]}
    # The socket's buffer by the kernel, as the bare send has it; Java's 128 KiB are for slower networks.
    config |= {"buffer.memory": 64 << 20, "max.request.size": 8 << 20, "send.buffer.bytes": -1}
    with KafkaProducer(config) as producer:
        producer.partitions_for("columns")
        hand_over(producer, "columns", batch)
        producer.flush()
        before, begun = cpu_seconds(), time.perf_counter()
        results = [hand_over(producer, "columns", batch) for _ in range(work["tables"])]
        producer.flush()
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    check(results, work["tables"] * ROWS)
    return {"seconds": seconds, "cpu_s": cpu}


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    tables = max(1, options.records // ROWS)
    with AcknowledgingSink(PARTITIONS) as sink, Receiver() as receiver:
        for number in range(options.rounds):
            for size, keyed in turned(CASES, number):
                work = {"bootstrap": sink.bootstrap_servers, "batch_size": size, "keyed": keyed, "bare": False}
                before = sink.summary()
                found = run_child("bench.columns", {**work, "tables": tables})
                after = sink.summary()
                sent = (after["bytes"] - before["bytes"]) * tables // (tables + 1)
                label = f"{size >> 10} KiB{', keyed' if keyed else ''}"
                runs.append({**figures(label, tables * ROWS, sent, found), "memory": found["memory"]})
                runs[-1]["sink_busy_percent"] = 100 * (after["cpu_s"] - before["cpu_s"]) / found["seconds"]
                if size == 1 << 20 and not keyed:
                    work = {"bare": True, "bytes": sent, "bootstrap": receiver.address}
                    runs.append(figures(BARE, tables * ROWS, sent, run_child("bench.columns", work)))
    order = [f"{size >> 10} KiB{', keyed' if keyed else ''}" for size, keyed in CASES] + [BARE]
    return result_of("columns", sorted(runs, key=lambda run: order.index(run["label"])))


def figures(label: str, rows: int, sent: int, found: dict[str, Any]) -> dict[str, Any]:
    """A run's figures by its seconds, CPU and bytes."""
    return {
        "label": label,
        "records": rows,
        "records_per_s": rows / found["seconds"],
        "bytes_per_s": sent / found["seconds"],
        "cpu_s_per_million": found["cpu_s"] / rows * 1e6,
    }


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"Columns of 100 B, median (lowest-highest) of {settings['rounds']} runs of {settings['records']:,} rows\n")
    columns = (
        Column("million rows/s", "records_per_s", ".2f", 1e-6),
        Column("GB/s on the wire", "bytes_per_s", ".2f", 1e-9),
        Column("CPU s/million", "cpu_s_per_million", ".3f"),
        Column("sink busy %", "sink_busy_percent", ".0f"),
    )
    print_figures(result, columns, "batch.size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=10_000_000, help="rows a run (default: %(default)s)")
    add_rounds(parser)


PART = Part("columns", __doc__, add_arguments, measure, show, quick=("--records", "5000000", "--rounds", "3"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.columns is run by `python -m bench columns`")
    print(json.dumps(run_work(given)))
