"""Rows per second of Arrow columns into a sink that only acknowledges: ``append_columns``, the way of the Spark sink.

Record batches of 100,000 rows, without and with a 12 B key, in batches of 16 KiB and of 1 MiB; each run is a process of
its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from bench.sink import AcknowledgingSink
from bench.support import ChildFailed, Spread, cpu_seconds, machine, print_table, run_child, save, work_of_child

ROWS = 100_000
PARTITIONS = 6
CASES = [(size, keyed) for size in (16_384, 1 << 20) for keyed in (False, True)]


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process.

    Raises:
        RuntimeError: not every row was acknowledged.
    """
    import pyarrow as pa

    from forebay import KafkaProducer
    from forebay._columnar import Columns, Deliveries, append_columns

    columns = {"value": pa.array([bytes(100)] * ROWS, pa.binary())}
    if work["keyed"]:
        columns["key"] = pa.array([b"key-%08d" % number for number in range(ROWS)], pa.binary())
    batch = pa.record_batch(columns)
    config = {"bootstrap.servers": work["bootstrap"], "linger.ms": 5, "batch.size": work["batch_size"]}
    config |= {"buffer.memory": 64 << 20, "max.request.size": 8 << 20}
    with KafkaProducer(config) as producer:
        producer.partitions_for("columns")
        append_columns(producer, Columns(batch, "columns"), Deliveries())
        producer.flush()
        deliveries, before, begun = Deliveries(), cpu_seconds(), time.perf_counter()
        for _ in range(work["tables"]):
            append_columns(producer, Columns(batch, "columns"), deliveries)
        producer.flush()
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    rows = work["tables"] * ROWS
    deliveries.collect()
    if deliveries.acknowledged != rows:
        raise RuntimeError(f"{deliveries.acknowledged} of {rows} rows were acknowledged: {deliveries.first_error}")
    return {"rows_per_s": rows / seconds, "cpu_s_per_million": cpu / rows * 1e6}


def run(options: argparse.Namespace) -> int:
    about, rows, values = machine(), [], []
    found: dict[tuple[int, bool], list[dict[str, Any]]] = {case: [] for case in CASES}
    with AcknowledgingSink(PARTITIONS) as sink:
        for _ in range(options.rounds):
            for size, keyed in CASES:
                work = {"bootstrap": sink.bootstrap_servers, "batch_size": size, "keyed": keyed}
                found[size, keyed].append(run_child("bench.columns", {**work, "tables": options.tables}))
    for (size, keyed), runs in found.items():
        rate = Spread.of(run["rows_per_s"] / 1e6 for run in runs)
        cpu = Spread.of(run["cpu_s_per_million"] for run in runs)
        rows.append((f"{size >> 10} KiB{', keyed' if keyed else ''}", rate.text(".2f"), cpu.text(".3f")))
        values.append({"batch_size": size, "keyed": keyed, "million_rows_per_s": rate, "cpu_s_per_million": cpu})
    print(
        f"100 B values from Arrow, median (lowest-highest) of {options.rounds} runs of {options.tables * ROWS:,} rows\n"
    )
    print_table(("batch.size", "million rows/s", "CPU s/million"), rows)
    print(f"\nwritten to {save('columns', {'machine': about, 'rows': values})}")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench columns", description=__doc__)
    parser.add_argument("--tables", type=int, default=100, help="of 100,000 rows a run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    try:
        return run(parser.parse_args(arguments))
    except ChildFailed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit(main(sys.argv[1:]))
    print(json.dumps(run_work(given)))
