"""Records per second of one producer as more threads send with it, to a sink that only acknowledges.

Beside it the interpreter alone: as many threads that call a C function of about the same length and share nothing.
What they lose to one thread the GIL costs, whatever is called.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import cpu_seconds, run_child, work_of_child

THREADS = (1, 2, 4, 8)
PLAIN, CALLBACK, ALONE = "", "callback", "the interpreter alone"
KINDS = (PLAIN, CALLBACK, ALONE)
CASES = [(count, kind) for kind in KINDS for count in THREADS]
SUMMED = bytes(300)
"""Its checksum takes about as long as ``send``."""
TOPIC = "threads"


def send_many(producer: Any, records: int, counted: list[int] | None, ready: threading.Barrier) -> None:
    """One thread's share; ``counted`` holds how many callbacks came, None where none are wanted."""
    send, value = producer.send, bytes(100)
    ready.wait()
    if counted is None:
        for _ in range(records):
            send(TOPIC, value)
        return

    def delivered(report: Any) -> None:
        if report.error is None:
            counted[0] += 1

    # The callbacks run on the sender's thread alone, so one count for all threads needs no lock.
    for _ in range(records):
        send(TOPIC, value, on_delivery=delivered)


def sum_many(calls: int, ready: threading.Barrier) -> None:
    """One thread's share of what costs nothing but the interpreter."""
    function, value = zlib.adler32, SUMMED
    ready.wait()
    for _ in range(calls):
        function(value)


def timed(count: int, target: Callable[..., None], *given: Any, end: Callable[[], object] = int) -> tuple[float, float]:
    """Seconds and CPU seconds that ``count`` threads take for ``target(*given, barrier)``, and ``end`` after them."""
    ready = threading.Barrier(count + 1)
    running = [threading.Thread(target=target, args=(*given, ready)) for _ in range(count)]
    for thread in running:
        thread.start()
    before, begun = cpu_seconds(), time.perf_counter()
    ready.wait()
    for thread in running:
        thread.join()
    end()
    return time.perf_counter() - begun, cpu_seconds() - before


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process.

    Raises:
        RuntimeError: callbacks were asked for, and not every record's came.
    """
    from forebay import KafkaProducer

    each, threads = work["records"] // work["threads"], work["threads"]
    if work["kind"] == ALONE:
        seconds, cpu = timed(threads, sum_many, each)
    else:
        counted = [0] if work["kind"] == CALLBACK else None
        with KafkaProducer({"bootstrap.servers": work["bootstrap"], "linger.ms": 5}) as producer:
            producer.partitions_for(TOPIC)
            seconds, cpu = timed(threads, send_many, producer, each, counted, end=producer.flush)
        if counted is not None and counted[0] != each * threads:
            raise RuntimeError(f"{counted[0]} of {each * threads} callbacks came")
    return {"records_per_s": each * threads / seconds, "cpu_s_per_million": cpu / each / threads * 1e6}


def label_of(threads: int, kind: str) -> str:
    return f"{threads} thread{'s' * (threads > 1)}{', ' * bool(kind)}{kind}"


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    with AcknowledgingSink() as sink:
        for number in range(options.rounds):
            for threads, kind in turned(CASES, number):
                work = {"bootstrap": sink.bootstrap_servers, "threads": threads, "kind": kind}
                before = sink.summary()["records"].get(TOPIC, 0)
                found = run_child("bench.threads", {**work, "records": options.records})
                arrived = sink.summary()["records"].get(TOPIC, 0) - before
                if arrived != (0 if kind == ALONE else options.records // threads * threads):
                    raise RuntimeError(f"{threads} threads: {arrived} of {options.records} records arrived")
                runs.append({"label": label_of(threads, kind), **found})
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
