"""Records per second of one producer as more threads send with it, to a sink that only acknowledges."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import cpu_seconds, run_child, work_of_child

THREADS = (1, 2, 4, 8)
CASES = [(count, callback) for callback in (False, True) for count in THREADS]
TOPIC = "threads"


def send_many(producer: Any, records: int, counted: list[int] | None, ready: threading.Barrier) -> None:
    """One thread's share; ``counted`` holds how many callbacks came, None where none are wanted."""
    send, value = producer.send, bytes(100)
    ready.wait()
    if counted is None:
        for _ in range(records):
            send(TOPIC, value)
        return

    def delivered(metadata: object, error: object) -> None:
        if error is None:
            counted[0] += 1

    # The callbacks run on the sender's thread alone, so one count for all threads needs no lock.
    for _ in range(records):
        send(TOPIC, value, on_delivery=delivered)


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process.

    Raises:
        RuntimeError: callbacks were asked for, and not every record's came.
    """
    from forebay import KafkaProducer

    each = work["records"] // work["threads"]
    counted = [0] if work["callback"] else None
    with KafkaProducer({"bootstrap.servers": work["bootstrap"], "linger.ms": 5}) as producer:
        producer.partitions_for(TOPIC)
        ready = threading.Barrier(work["threads"] + 1)
        threads = [
            threading.Thread(target=send_many, args=(producer, each, counted, ready)) for _ in range(work["threads"])
        ]
        for thread in threads:
            thread.start()
        before, begun = cpu_seconds(), time.perf_counter()
        ready.wait()
        for thread in threads:
            thread.join()
        producer.flush()
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    if counted is not None and counted[0] != each * work["threads"]:
        raise RuntimeError(f"{counted[0]} of {each * work['threads']} callbacks came")
    return {"records_per_s": each * work["threads"] / seconds, "cpu_s_per_million": cpu / each / work["threads"] * 1e6}


def label_of(threads: int, callback: bool) -> str:
    return f"{threads} thread{'s' * (threads > 1)}{', callback' if callback else ''}"


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    with AcknowledgingSink() as sink:
        for number in range(options.rounds):
            for threads, callback in turned(CASES, number):
                work = {"bootstrap": sink.bootstrap_servers, "threads": threads, "callback": callback}
                before = sink.summary()["records"].get(TOPIC, 0)
                found = run_child("bench.threads", {**work, "records": options.records})
                arrived = sink.summary()["records"][TOPIC] - before
                if arrived != options.records // threads * threads:
                    raise RuntimeError(f"{threads} threads: {arrived} of {options.records} records arrived")
                runs.append({"label": label_of(threads, callback), **found})
    order = [label_of(*case) for case in CASES]
    return result_of("threads", sorted(runs, key=lambda run: order.index(run["label"])))


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"One producer, median (lowest-highest) of {settings['rounds']} runs of {settings['records']:,} records\n")
    columns = (Column("1000 records/s", "records_per_s", ".0f", 1e-3), Column("CPU s/million", "cpu_s_per_million"))
    print_figures(result, columns, "threads")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=5_000_000, help="of all threads (default: %(default)s)")
    add_rounds(parser)


PART = Part("threads", __doc__, add_arguments, measure, show, quick=("--records", "1000000", "--rounds", "3"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.threads is run by `python -m bench threads`")
    print(json.dumps(run_work(given)))
