"""What one ``send()`` costs its caller: ns a call, by what the call carries.

*idle*: one open batch takes all records and the network does nothing, so this is the way from the call to the
record in its batch.  *sending*: batches of 16 KiB to a sink in another process; the caller's own CPU time, batches
it closes and the sender it wakes included, and where the sender holds the GIL the waiting is not.  The loop around
the call is taken off.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of
from bench.sink import AcknowledgingSink

BATCH_FOR_IDLE = 24 << 20
# 10 minutes: no batch lingers that long here; the limits leave room for one batch as large as a run.
STILL = {
    "batch.size": BATCH_FOR_IDLE,
    "linger.ms": 600_000,
    "max.request.size": 2 * BATCH_FOR_IDLE,
    "delivery.timeout.ms": 700_000,
}
"""Options with which nothing is sent."""
Loop = Callable[[Any, int], object]


def _empty(producer: Any, records: int) -> None:
    call = id
    for _ in range(records):
        call(None)


def plain(producer: Any, records: int) -> None:
    send, value = producer.send, bytes(100)
    for _ in range(records):
        send("append", value)


def kept(producer: Any, records: int) -> list[Any]:
    send, value = producer.send, bytes(100)
    return [send("append", value) for _ in range(records)]


def with_callback(producer: Any, records: int) -> None:
    send, value = producer.send, bytes(100)

    def delivered(report: object) -> None:
        pass

    for _ in range(records):
        send("append", value, on_delivery=delivered)


def with_key(producer: Any, records: int) -> None:
    send, value, key = producer.send, bytes(100), b"key-of-12-by"
    for _ in range(records):
        send("append", value, key)


def with_headers(producer: Any, records: int) -> None:
    send, value, headers = producer.send, bytes(100), [("trace", b"0123456789abcdef"), ("kind", b"bench")]
    for _ in range(records):
        send("append", value, None, headers=headers)


LOOPS: dict[str, Loop] = {
    "plain": plain,
    "future kept": kept,
    "callback": with_callback,
    "12 B key": with_key,
    "2 headers": with_headers,
}


def idle(producer: Any, loop: Loop, records: int) -> float:
    """ns a call while nothing is sent; what was appended is sent afterwards."""
    begun = time.perf_counter_ns()
    kept_alive = loop(producer, records)
    spent = time.perf_counter_ns() - begun
    producer.flush()
    del kept_alive
    return spent / records


def sending(producer: Any, loop: Loop, records: int) -> float:
    """ns of the caller's CPU time a call."""
    begun = time.thread_time_ns()
    kept_alive = loop(producer, records)
    spent = time.thread_time_ns() - begun
    producer.flush()
    del kept_alive
    return spent / records


def measure_all(
    config: dict[str, Any], how: Callable[[Any, Loop, int], float], records: int, rounds: int
) -> dict[str, list[float]]:
    """Every loop, ``rounds`` times in turn, and the empty one taken off."""
    from forebay import KafkaProducer

    found: dict[str, list[float]] = {name: [] for name in LOOPS}
    with KafkaProducer(config) as producer:
        producer.partitions_for("append")
        for loop in LOOPS.values():
            how(producer, loop, records)
        for _ in range(rounds):
            begun = time.thread_time_ns()
            _empty(producer, records)
            off = (time.thread_time_ns() - begun) / records
            for name, loop in LOOPS.items():
                found[name].append(how(producer, loop, records) - off)
    return found


def measure(options: argparse.Namespace) -> Result:
    with AcknowledgingSink(1) as sink:
        config = {"bootstrap.servers": sink.bootstrap_servers, "buffer.memory": 256 << 20}
        quiet = measure_all({**config, **STILL}, idle, min(options.records, 100_000), options.rounds)
        busy = measure_all({**config, "linger.ms": 5}, sending, options.records, options.rounds)
    runs = [
        {"label": name, "idle_ns": still, "sending_cpu_ns": sent}
        for name in LOOPS
        for still, sent in zip(quiet[name], busy[name], strict=True)
    ]
    return result_of("append", runs)


def show(result: Result) -> None:
    rounds = result["settings"]["rounds"]
    print(f"ns a send() of 100 B, the loop taken off, median (lowest-highest) of {rounds}\n")
    columns = (Column("idle", "idle_ns", ".0f"), Column("sending, caller's CPU", "sending_cpu_ns", ".0f"))
    print_figures(result, columns, "call")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--records", type=int, default=200_000, help="a run (default: %(default)s; idle: at most 100000)"
    )
    add_rounds(parser)


PART = Part("append", __doc__, add_arguments, measure, show, quick=("--rounds", "3"))
