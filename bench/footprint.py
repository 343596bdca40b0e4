"""What a queued record costs: resident bytes for each 100 B record that waits for an acknowledgement.

The sink is frozen, so that nothing leaves; resident memory is read before and after so many records.  A few records
that were acknowledged before warm the client up, so that what it needs once is not counted.  Without a callback the
future is dropped at once; with one, all records share it.  aiokafka is not here: its ``send`` waits where a
partition's one batch is full, so it queues nothing.  ``python -m bench memory`` asks whether the limit is the truth.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import resident_mib, run_child, work_of_child

VALUE_SIZE = 100
WARM_UP = 2_000
BUFFER = 512 << 20
"""Enough for all records; no send waits for memory here."""
TOPIC = "footprint"

Send = Callable[[], object]
CASES = [(client, callback) for client in ("forebay", "confluent-kafka", "kafka-python") for callback in (False, True)]


def delivered(*_: object) -> None:
    """The one callback of all records."""


def open_forebay(work: dict[str, Any]) -> tuple[Send, Callable[[], object]]:
    from forebay import KafkaProducer

    producer = KafkaProducer({"bootstrap.servers": work["bootstrap"], "buffer.memory": BUFFER, "linger.ms": 5})
    send, value = producer.send, bytes(VALUE_SIZE)
    if work["callback"]:
        return lambda: send(TOPIC, value, on_delivery=delivered), producer.flush
    return lambda: send(TOPIC, value), producer.flush


def open_confluent(work: dict[str, Any]) -> tuple[Send, Callable[[], object]]:
    from confluent_kafka import Producer

    config = {"bootstrap.servers": work["bootstrap"], "acks": "all", "enable.idempotence": True, "linger.ms": 5}
    # Its limits are lifted; the memory is what is measured.
    limits = {"queue.buffering.max.messages": 10_000_000, "queue.buffering.max.kbytes": BUFFER >> 10}
    producer = Producer({**config, **limits})
    produce, value = producer.produce, bytes(VALUE_SIZE)
    if work["callback"]:
        return lambda: produce(TOPIC, value, on_delivery=delivered), producer.flush
    return lambda: produce(TOPIC, value), producer.flush


def open_kafka_python(work: dict[str, Any]) -> tuple[Send, Callable[[], object]]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=work["bootstrap"], acks="all", linger_ms=5)
    send, value = producer.send, bytes(VALUE_SIZE)
    if work["callback"]:
        return lambda: send(TOPIC, value).add_both(delivered), producer.flush
    return lambda: send(TOPIC, value), producer.flush


CLIENTS = {"forebay": open_forebay, "confluent-kafka": open_confluent, "kafka-python": open_kafka_python}


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process, which it leaves without waiting for what is queued."""
    send, flush = CLIENTS[work["client"]](work)
    for _ in range(WARM_UP):
        send()
    flush()
    os.kill(work["sink_pid"], signal.SIGSTOP)
    try:
        time.sleep(0.1)
        gc.collect()
        before = resident_mib(os.getpid())
        for _ in range(work["records"]):
            send()
        # What the sender does with what it has got is done by then.
        time.sleep(0.3)
        after = resident_mib(os.getpid())
    finally:
        os.kill(work["sink_pid"], signal.SIGCONT)
    flush()
    return {"bytes_a_record": (after - before) * (1 << 20) / work["records"]}


def measure(options: argparse.Namespace) -> Result:
    runs = []
    for number in range(options.rounds):
        for client, callback in turned(CASES, number):
            label = f"{client}{', callback' if callback else ''}"
            records = options.records if client != "kafka-python" else options.records // 10
            with AcknowledgingSink() as sink:
                work = {"client": client, "callback": callback, "records": records, "bootstrap": sink.bootstrap_servers}
                found = run_child("bench.footprint", {**work, "sink_pid": sink.pid})
                arrived = sink.summary()["records"].get(TOPIC, 0)
            if arrived != records + WARM_UP:
                raise RuntimeError(f"{label}: {arrived} of {records + WARM_UP} records arrived")
            runs.append({"label": label, "records": records, **found})
    order = [f"{client}{', callback' if callback else ''}" for client, callback in CASES]
    return result_of("footprint", sorted(runs, key=lambda run: order.index(run["label"])))


def show(result: Result) -> None:
    rounds = result["settings"]["rounds"]
    print(f"Resident bytes for each queued record of {VALUE_SIZE} B, median (lowest-highest) of {rounds}\n")
    print_figures(result, (Column("bytes a record", "bytes_a_record", ".1f"), Column("records", "records", ",.0f")))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--records", type=int, default=500_000, help="queued; kafka-python a tenth (default: %(default)s)"
    )
    add_rounds(parser)


PART = Part("footprint", __doc__, add_arguments, measure, show, quick=("--rounds", "3"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.footprint is run by `python -m bench footprint`")
    print(json.dumps(run_work(given)))
