"""What a batch costs as partitions grow: CPU of the whole client against a sink with 6, 1,000 and 10,000 of them.

This is no picture of what users get, which is ``partitions``: the buffer is large and the linger long, so memory never
runs out and batches are full.  Without keys: seconds per million records, with the sticky partition of every client's
default.  With keys: µs per batch, in batches that hold the same everywhere (2 KiB, 17 records of 100 B, sent when they
are full), because with a short linger and many partitions most batches would have one record, and a cheap batch would
be an empty one.  With one record for each partition and a flush, again and again, the price of a batch shows alone.
The topic's metadata and the first record of each partition come before the clock.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import cpu_seconds, run_child, work_of_child

PARTITIONS = (6, 1_000, 10_000)
TOPIC = "partitions"
BATCH = 2_048
KEYS = 200_000
NO_KEY, KEYED_LOAD, LONE = "no key", "keyed", "one record a batch"
KEYED = {"batch.size": BATCH, "linger.ms": 60_000, "buffer.memory": 128 << 20, "delivery.timeout.ms": 120_000}


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process: CPU seconds from the second time every partition is met on."""
    from forebay import KafkaProducer

    load, partitions = work["load"], range(work["partitions"])
    config = {"bootstrap.servers": work["bootstrap"], "linger.ms": 5, **(KEYED if load != NO_KEY else {})}
    value, rng = bytes(100), random.Random(5)
    with KafkaProducer(config) as producer:
        producer.partitions_for(TOPIC)
        send = producer.send
        for partition in partitions:
            send(TOPIC, value, partition=partition)
        producer.flush()
        keys = [b"key-%08d" % rng.randrange(10**8) for _ in range(KEYS)] if load == KEYED_LOAD else []
        # What this bench keeps is no garbage, and the collector's looking at it is not the client's cost.
        gc.collect()
        gc.freeze()
        before = cpu_seconds()
        if load == KEYED_LOAD:
            for _ in range(work["records"] // KEYS):
                for key in keys:
                    send(TOPIC, value, key)
        elif load == LONE:
            for _ in range(work["records"] // len(partitions)):
                for partition in partitions:
                    send(TOPIC, value, partition=partition)
                producer.flush()
        else:
            for _ in range(work["records"]):
                send(TOPIC, value)
        producer.flush()
        return {"cpu_s": cpu_seconds() - before}


def measure(options: argparse.Namespace) -> Result:
    cases = [(load, partitions) for load in (NO_KEY, KEYED_LOAD) for partitions in PARTITIONS]
    cases += [(LONE, partitions) for partitions in PARTITIONS[1:]]
    records = max(1, options.records // KEYS) * KEYS
    runs: list[dict[str, Any]] = []
    for number in range(options.rounds):
        for load, partitions in turned(cases, number):
            with AcknowledgingSink(partitions) as sink:
                work = {"bootstrap": sink.bootstrap_servers, "load": load, "partitions": partitions}
                found = run_child("bench.batch_cost", {**work, "records": records})
                seen = sink.summary()
            if seen["records"].get(TOPIC, 0) != records + partitions:
                raise RuntimeError(f"{partitions} partitions: {seen['records']} of {records + partitions} records")
            runs.append({"label": label_of(load, partitions), **figures(found, seen, records, partitions)})
    order = [label_of(*case) for case in cases]
    return result_of("batch-cost", sorted(runs, key=lambda run: order.index(run["label"])))


def figures(found: dict[str, Any], seen: dict[str, Any], records: int, partitions: int) -> dict[str, Any]:
    """Of one run; the batches of the warm-up, one a partition, taken off."""
    batches = seen["batches"] - partitions
    return {
        "cpu_s_per_million": found["cpu_s"] / records * 1e6,
        "batch_us": found["cpu_s"] / batches * 1e6,
        "records_a_batch": records / batches,
    }


def label_of(load: str, partitions: int) -> str:
    return f"{load}, {partitions:,} partitions"


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"Client CPU, median (lowest-highest) of {settings['rounds']} runs of {settings['records']:,} records\n")
    columns = (
        Column("CPU s/million", "cpu_s_per_million", ".3f"),
        Column("µs a batch", "batch_us", ".2f"),
        Column("records/batch", "records_a_batch", ".1f"),
    )
    print_figures(result, columns, "load")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=2_000_000, help="a run (default: %(default)s)")
    add_rounds(parser)


PART = Part("batch-cost", __doc__, add_arguments, measure, show, quick=("--records", "1000000", "--rounds", "3"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.batch_cost is run by `python -m bench batch-cost`")
    print(json.dumps(run_work(given)))
