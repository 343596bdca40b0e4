"""What the sender's thread spends on a batch and on a request, in µs of its own CPU time, system calls included.

The thread's CPU clock is read from outside before and after a piece of work against a sink in another process; what
was sent in between is counted there.  Beside it stands what the whole client used, the caller's thread too, from
``send`` until the acknowledgement was seen.  *flat out* fills batches as fast as one thread can; the paced rows send
one request, wait for its answer, and send the next, so that nothing is shared between requests.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.exchange import bare_exchange, python_exchange
from bench.part import Column, Part, Result, add_rounds, print_figures, result_of
from bench.sink import AcknowledgingSink

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

SYSTEM_ALONE = "the system's part of the last one alone"
PYTHON_ALONE = "the same by two Python threads, and nothing else"


def measure_one(case: Case, sink: AcknowledgingSink, scale: float) -> dict[str, Any]:
    """One run on a producer of its own, its connection made and warm before: µs, and how much went together."""
    from forebay import KafkaProducer

    amount = max(PARTITIONS, int(case.amount * scale))
    with KafkaProducer({"bootstrap.servers": sink.bootstrap_servers, "linger.ms": case.linger_ms}) as producer:
        case.work(producer, max(PARTITIONS, amount // 10))
        clock = sender_clock(producer)
        before, spent, client = sink.summary(), -time.clock_gettime_ns(clock), -time.process_time_ns()
        case.work(producer, amount)
        client += time.process_time_ns()
        spent += time.clock_gettime_ns(clock)
        after = sink.summary()
    requests, batches = (after[name] - before[name] for name in ("requests", "batches"))
    records = after["records"]["cost"] - before["records"]["cost"]
    return {
        "label": case.label,
        "batch_us": spent / 1e3 / batches,
        "request_us": spent / 1e3 / requests,
        "client_request_us": client / 1e3 / requests,
        "batches_a_request": batches / requests,
        "records_a_batch": records / batches,
    }


def sender_clock(producer: Any) -> int:
    """The CPU clock of a producer's I/O thread.

    Raises:
        SystemExit: this platform has no such clocks (macOS).
    """
    if not hasattr(time, "pthread_getcpuclockid"):
        raise SystemExit("bench: this platform does not tell the CPU time of another thread")
    return time.pthread_getcpuclockid(producer._thread.ident)


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    with AcknowledgingSink(PARTITIONS) as sink, bare_exchange() as exchange:
        for _ in range(options.rounds):
            runs += [measure_one(case, sink, options.scale) for case in CASES]
            count = int(CASES[-1].amount * options.scale)
            if exchange is not None:
                runs.append({"label": SYSTEM_ALONE, "client_request_us": exchange(count)})
            runs.append({"label": PYTHON_ALONE, "client_request_us": python_exchange(count)})
    order = [*(case.label for case in CASES), SYSTEM_ALONE, PYTHON_ALONE]
    return result_of("sender", sorted(runs, key=lambda run: order.index(run["label"])))


def show(result: Result) -> None:
    print(f"CPU time over loopback, median (lowest-highest) of {result['settings']['rounds']}\n")
    columns = (
        Column("sender's µs a batch", "batch_us", ".1f"),
        Column("sender's µs a request", "request_us", ".1f"),
        Column("client's µs a request", "client_request_us", ".1f"),
        Column("batches/request", "batches_a_request", ".1f"),
        Column("records/batch", "records_a_batch", ".0f"),
    )
    print_figures(result, columns, "work")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, default=1.0, help="factor on how much each run sends")
    add_rounds(parser)


PART = Part("sender", __doc__, add_arguments, measure, show, quick=("--rounds", "3", "--scale", "0.5"))
