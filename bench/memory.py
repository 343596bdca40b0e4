"""Whether ``buffer.memory`` is the truth: the peak of resident memory over the idle producer, by kind of record.

The limit is ``buffer.memory`` + 32 MiB + 2 KiB a partition.  Each case is a process of its own: it makes a producer
that knows no topic yet (the idle state, from which the peak is counted), freezes the brokers, sends until the buffer
has been full for a while, lets the brokers go on and sends as much again.  So the peak is that of a full buffer, not
of a fast broker.  Futures that the caller keeps are the caller's memory, and none are kept here; what a closure
refers to is the caller's too, the closure itself is not.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.part import Part, Result, result_of
from bench.sink import AcknowledgingSink
from bench.support import peak_kib, print_table, run_child, say, work_of_child

MIB = 1 << 20
SLACK = 32 * MIB
PER_PARTITION = 2048
FULL_AFTER = 40
"""So many refusals in a row, 5 ms apart, are a full buffer: what is being compressed meanwhile gives room again."""
MOST_SECONDS = 40


@dataclass(frozen=True)
class Case:
    """One kind of load; ``callback`` is none, shared or closure."""

    name: str
    size: int = 100
    callback: str = "none"
    keyed: bool = False
    headers: bool = False
    partitions: int = 6
    text: bool = False
    """Values that compress to about a third, else zeros (to almost nothing)."""
    config: dict[str, Any] = field(default_factory=dict)


def _codec(name: str, **more: Any) -> Case:
    return Case(f"1000 B, {name}", 1000, text=True, config={"compression.type": name}, **more)


CASES = (
    Case("100 B"),
    Case("100 B, one callback for all", callback="shared"),
    Case("100 B, a closure a record", callback="closure"),
    Case("10 B, one callback for all", 10, callback="shared"),
    Case("10 B, a closure a record", 10, callback="closure"),
    Case("100 B, keys, headers, callback", callback="shared", keyed=True, headers=True),
    Case("64 KiB", 64 << 10),
    Case("200 KiB, callback", 200 << 10, callback="shared"),
    Case("1 MiB", (1 << 20) - 200),
    _codec("zstd"),
    _codec("lz4"),
    _codec("gzip"),
    Case("100 B of zeros, zstd, callback", callback="shared", config={"compression.type": "zstd"}),
    Case("100 B, batch.size 1", config={"batch.size": 1}),
    Case("10 B, batch.size 100, closure", 10, callback="closure", config={"batch.size": 100}),
    Case("100 B, 10,000 partitions", keyed=True, partitions=10_000),
    Case("100 B, 10,000 partitions, closure", callback="closure", keyed=True, partitions=10_000),
    Case(
        "1000 B, 10,000 partitions, lz4", 1000, keyed=True, partitions=10_000, text=True,
        config={"compression.type": "lz4"},
    ),
)  # fmt: skip


def limit_of(buffer: int, partitions: int) -> int:
    """Bytes that the peak may be above the idle producer."""
    return buffer + SLACK + PER_PARTITION * partitions


# In the child


def resident_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def forget_peak() -> None:
    """The peak is counted from now on (Linux)."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
        control.write("5")


def values_of(case: Case) -> Iterator[bytes]:
    """Endless; a few hundred different values, so that making them costs nothing and they are no memory."""
    if not case.text:
        return itertools.repeat(bytes(case.size))
    rng = random.Random(5)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(400)]
    made = [b" ".join(rng.choices(words, k=case.size // 3))[: case.size] for _ in range(256)]
    return itertools.cycle(made)


class Load:
    """Sends the records of one case."""

    def __init__(self, producer: Any, case: Case) -> None:
        self.producer = producer
        self.values = values_of(case)
        self.case = case
        self.headers = [("trace", b"0123456789abcdef"), ("kind", b"bench")] if case.headers else None
        self.sent = 0
        self.called = 0
        self.failed = 0
        self.one_for_all = self.shared

    def shared(self, report: Any) -> None:
        self.called += 1
        self.failed += report.error is not None

    def callback(self) -> Callable[..., None] | None:
        kind = self.case.callback
        if kind == "none":
            return None
        if kind == "shared":
            return self.one_for_all
        number = self.sent

        def delivered(report: Any) -> None:
            assert number >= 0
            self.shared(report)

        return delivered

    def one(self, send: Callable[..., object]) -> None:
        case = self.case
        partition = self.sent % case.partitions if case.keyed and case.partitions > 100 else None
        key = b"key-%d" % self.sent if case.keyed else None
        send("memory", next(self.values), key, headers=self.headers, partition=partition, on_delivery=self.callback())
        self.sent += 1

    def until_full(self) -> None:
        from forebay.errors import BufferExhaustedError

        refused = 0
        end = time.monotonic() + MOST_SECONDS
        while refused < FULL_AFTER and time.monotonic() < end:
            try:
                self.one(self.producer.send_nowait)
                refused = 0
            except BufferExhaustedError:
                refused += 1
                time.sleep(0.005)

    def again(self, most_seconds: float) -> None:
        end = time.monotonic() + most_seconds
        for number in range(max(self.sent, 3 * self.case.partitions)):
            self.one(self.producer.send)
            if number % 1000 == 0 and time.monotonic() > end:
                return


def run(work: dict[str, Any]) -> dict[str, Any]:
    """One case in this process.

    Raises:
        RuntimeError: a record failed, or a callback did not come.
    """
    from forebay import KafkaProducer

    case = Case(**work["case"])
    config = {"bootstrap.servers": work["bootstrap"], "buffer.memory": work["buffer"], **case.config}
    producer = KafkaProducer(config)
    try:
        time.sleep(0.2)
        gc.collect()
        forget_peak()
        idle = resident_kib()
        producer.partitions_for("memory")
        known = peak_kib()
        load = Load(producer, case)
        os.kill(work["sink_pid"], signal.SIGSTOP)
        try:
            begun = time.monotonic()
            load.until_full()
            fill_s = time.monotonic() - begun
        finally:
            os.kill(work["sink_pid"], signal.SIGCONT)
        full, held = peak_kib(), load.sent
        load.again(work["seconds"])
        producer.flush()
        seconds = time.monotonic() - begun - fill_s
    finally:
        producer.close(20)
    if load.failed or (case.callback != "none" and load.called != load.sent):
        raise RuntimeError(f"{load.sent} records: {load.called} callbacks, {load.failed} failed")
    return {
        "idle_kib": idle,
        "known_kib": known - idle,
        "full_kib": full - idle,
        "peak_kib": peak_kib() - idle,
        "left_kib": resident_kib() - idle,
        "held": held,
        "sent": load.sent,
        "fill_s": fill_s,
        "seconds": seconds,
    }


# In the parent


def measure(case: Case, buffer: int, seconds: float) -> dict[str, Any]:
    """One case in a process of its own, against a sink of its own."""
    with AcknowledgingSink(case.partitions) as sink:
        work = {
            "case": asdict(case),
            "buffer": buffer,
            "bootstrap": sink.bootstrap_servers,
            "sink_pid": sink.pid,
            "seconds": seconds,
        }
        found = run_child("bench.memory", work)
        arrived = sink.summary()["records"].get("memory", 0)
    if arrived != found["sent"]:
        raise RuntimeError(f"{case.name}: {arrived} of {found['sent']} records arrived")
    limit = limit_of(buffer, case.partitions)
    return {"case": case.name, "buffer": buffer, "limit": limit, "within": found["peak_kib"] * 1024 <= limit, **found}


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    return (
        found["case"],
        f"{found['buffer'] / MIB:.0f}",
        f"{found['held']:,}",
        f"{found['known_kib'] / 1024:.1f}",
        f"{found['full_kib'] / 1024:.1f}",
        f"{found['peak_kib'] / 1024:.1f}",
        f"{found['limit'] / MIB:.1f}",
        f"{found['left_kib'] / 1024:.1f}",
        "within" if found["within"] else "ABOVE",
    )


HEADS = ("case", "buffer.memory", "records held", "topic known", "full", "peak", "limit", "left at the end", "verdict")


def measure_all(options: argparse.Namespace) -> Result:
    runs = []
    for buffer in (int(float(text) * MIB) for text in options.buffer.split(",")):
        for case in CASES:
            if options.only in case.name:
                say(f"{buffer // MIB} MiB: {case.name}")
                runs.append({"label": f"{case.name}, {buffer // MIB} MiB", **measure(case, buffer, options.seconds)})
    above = [f"{run['label']}: above the limit" for run in runs if not run["within"]]
    return result_of("memory", runs, failed=above)


def show(result: Result) -> None:
    print("MiB over the idle producer; limit: buffer.memory + 32 MiB + 2 KiB a partition\n")
    print_table(HEADS, [_row(found) for found in result["runs"]])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--buffer", default="32,256", help="MiB, by commas (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of sending after the fill (default: %(default)s)")
    parser.add_argument("--only", default="", help="cases whose name contains this")


PART = Part(
    "memory", __doc__, add_arguments, measure_all, show, quick=("--buffer", "32", "--seconds", "1", "--only", "100 B")
)

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.memory is run by `python -m bench memory`")
    print(json.dumps(run(given)))
