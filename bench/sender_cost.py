"""What the sender's thread spends on a batch and on a request, in µs of its own CPU time, system calls included.

The thread's CPU clock is read from outside before and after a piece of work against a sink in another process; what
was sent in between is counted there.  *flat out* fills batches as fast as one thread can; the paced rows send one
request, wait for its answer, and send the next, so that nothing is shared between requests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.sink import AcknowledgingSink
from bench.support import Spread, machine, print_table, save

PARTITIONS = 6
RECORDS_A_BATCH = 148
"""100 B values that fill 16 KiB: the one after them does not fit, so a batch of them is closed by what follows."""
Work = Callable[[Any, int], None]


def flat_out(producer: Any, batches: int) -> None:
    send, value = producer.send, bytes(100)
    for _ in range(batches * RECORDS_A_BATCH):
        send("cost", value)
    producer.flush()


def one_batch(producer: Any, batches: int) -> None:
    fill_and_wait(producer, batches, 1)


def six_batches(producer: Any, batches: int) -> None:
    fill_and_wait(producer, batches // PARTITIONS, PARTITIONS)


def fill_and_wait(producer: Any, requests: int, partitions: int) -> None:
    """A request with a full batch for each of so many partitions, then its answer, then the next."""
    send, value = producer.send, bytes(100)
    lasts: list[Any] = []
    for _ in range(requests):
        # What does not fit any more closes a batch: the first record of each next one.
        for partition in range(partitions):
            send("cost", value, partition=partition)
        for last in lasts:
            last.result(10)
        lasts = []
        for partition in range(partitions):
            for _ in range(RECORDS_A_BATCH - 2):
                send("cost", value, partition=partition)
            lasts.append(send("cost", value, partition=partition))
    producer.flush()


def one_record(producer: Any, requests: int) -> None:
    send, value = producer.send, bytes(100)
    for _ in range(requests):
        send("cost", value).result(10)


class Case(NamedTuple):
    label: str
    work: Work
    linger_ms: float
    amount: int


CASES = (
    Case("16 KiB batches, flat out", flat_out, 5, 20_000),
    # No batch lingers that long here: full ones alone are sent.
    Case("one 16 KiB batch a request", one_batch, 1000, 1_500),
    Case("six 16 KiB batches a request", six_batches, 1000, 3_000),
    Case("one record a request", one_record, 0, 3_000),
)


class Cost(NamedTuple):
    """Of one run: µs of the thread's CPU time, and how much it sent."""

    batch_us: float
    request_us: float
    batches_a_request: float
    records_a_batch: float


def measure(case: Case, sink: AcknowledgingSink) -> Cost:
    """One run on a producer of its own, its connection made and warm before."""
    from forebay import KafkaProducer

    with KafkaProducer({"bootstrap.servers": sink.bootstrap_servers, "linger.ms": case.linger_ms}) as producer:
        case.work(producer, case.amount // 10)
        clock = sender_clock(producer)
        before, spent = sink.summary(), -time.clock_gettime_ns(clock)
        case.work(producer, case.amount)
        spent += time.clock_gettime_ns(clock)
        after = sink.summary()
    requests, batches = (after[name] - before[name] for name in ("requests", "batches"))
    records = after["records"]["cost"] - before["records"]["cost"]
    return Cost(spent / 1e3 / batches, spent / 1e3 / requests, batches / requests, records / batches)


def sender_clock(producer: Any) -> int:
    """The CPU clock of a producer's I/O thread.

    Raises:
        SystemExit: this platform has no such clocks (macOS).
    """
    if not hasattr(time, "pthread_getcpuclockid"):
        raise SystemExit("bench: this platform does not tell the CPU time of another thread")
    return time.pthread_getcpuclockid(producer._thread.ident)


def run(options: argparse.Namespace) -> int:
    about = machine()
    found: dict[str, list[Cost]] = {case.label: [] for case in CASES}
    with AcknowledgingSink(PARTITIONS) as sink:
        for _ in range(options.rounds):
            for case in CASES:
                found[case.label].append(measure(case, sink))
    print(f"The sender thread's CPU time over loopback, median (lowest-highest) of {options.rounds}\n")
    rows, values = [], {}
    for label, costs in found.items():
        spread = {name: Spread.of(getattr(cost, name) for cost in costs) for name in Cost._fields}
        values[label] = spread
        texts = (spread["batch_us"].text(".1f"), spread["request_us"].text(".1f"))
        counts = (f"{spread['batches_a_request'].median:.1f}", f"{spread['records_a_batch'].median:.0f}")
        rows.append((label, *texts, *counts))
    print_table(("work", "µs a batch", "µs a request", "batches/request", "records/batch"), rows)
    kept = save("sender", {"machine": about, "medians": values})
    print(f"\nwritten to {kept}")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench sender", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
