"""Many producers in one process: CPU and memory to make one, connect it and deliver one record; then CPU while idle.

The producers are made one after the other, then each sends a record, against the sink: what a process with a producer
for each tenant or each table pays at its start.  One producer before them is not counted, for it pays what the process
needs once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import resident_mib, run_child, work_of_child

TOPIC = "many"
TIMEOUT_S = 60
Make = Callable[[], Any]
Deliver = Callable[[list[Any]], None]
"""Each producer sends a record; returns once all are acknowledged."""


def forebay(bootstrap: str) -> tuple[Make, Deliver, Callable[[Any], None]]:
    from forebay import KafkaProducer

    def deliver(producers: list[Any]) -> None:
        futures = [producer.send(TOPIC, bytes(100)) for producer in producers]
        for future in futures:
            future.result(TIMEOUT_S)

    return lambda: KafkaProducer({"bootstrap.servers": bootstrap, "linger.ms": 0}), deliver, KafkaProducer.close


def confluent(bootstrap: str) -> tuple[Make, Deliver, Callable[[Any], None]]:
    from confluent_kafka import Producer

    config = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0}

    def deliver(producers: list[Any]) -> None:
        for producer in producers:
            producer.produce(TOPIC, bytes(100))
        for producer in producers:
            if producer.flush(TIMEOUT_S):
                raise RuntimeError("a record was not acknowledged")

    return lambda: Producer(config), deliver, lambda producer: producer.flush()


CLIENTS = {"forebay": forebay, "confluent-kafka": confluent}


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process."""
    make, deliver, close = CLIENTS[work["client"]](work["bootstrap"])
    number = work["producers"]
    first = make()
    deliver([first])
    memory, begun = resident_mib(os.getpid()), time.process_time()
    producers = [make() for _ in range(number)]
    made = time.process_time()
    deliver(producers)
    delivered, used = time.process_time(), resident_mib(os.getpid()) - memory
    time.sleep(work["idle_s"])
    idle = time.process_time() - delivered
    for producer in (first, *producers):
        close(producer)
    return {
        "cpu_ms": (delivered - begun) * 1e3 / number,
        "make_cpu_ms": (made - begun) * 1e3 / number,
        "kib": used * 1024 / number,
        "idle_us_per_s": idle * 1e6 / number / work["idle_s"],
    }


def measure(options: argparse.Namespace) -> Result:
    runs = []
    for number in range(options.rounds):
        for client in turned(list(CLIENTS), number):
            with AcknowledgingSink() as sink:
                work = {"client": client, "producers": options.producers, "idle_s": options.idle}
                found = run_child("bench.many", {**work, "bootstrap": sink.bootstrap_servers})
                arrived = sink.summary()["records"].get(TOPIC, 0)
            if arrived != options.producers + 1:
                raise RuntimeError(f"{client}: {arrived} of {options.producers + 1} records arrived")
            runs.append({"label": client, **found})
    return result_of("many", sorted(runs, key=lambda run: list(CLIENTS).index(run["label"])))


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"Each of {settings['producers']} producers of a process, median (lowest-highest) of {settings['rounds']}\n")
    print_figures(
        result,
        (
            Column("CPU ms to one delivered record", "cpu_ms"),
            Column("of it while they are made", "make_cpu_ms"),
            Column("KiB resident", "kib", ".0f"),
            Column("CPU µs a second, idle", "idle_us_per_s", ".0f"),
        ),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--producers", type=int, default=100, help="in one process (default: %(default)s)")
    parser.add_argument("--idle", type=float, default=2.0, help="seconds without work (default: %(default)s)")
    add_rounds(parser)


PART = Part("many", __doc__, add_arguments, measure, show)

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.many is run by `python -m bench many`")
    print(json.dumps(run_work(given)))
