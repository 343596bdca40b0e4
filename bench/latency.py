"""From ``send`` to the acknowledgement's callback, at a steady rate, with and without a computing thread beside.

Each client runs in a process of its own; records go out by the clock, one at a time, and each carries the moment
it was handed over in its callback.  The computing thread is plain Python that never waits: it keeps the GIL for
the interpreter's switch interval each time it gets it.  confluent-kafka's callbacks run on a thread that polls.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.support import ChildFailed, Spread, machine, percentile, print_table, run_child, save, say, work_of_child
from bench.target import target
from tools.kafka import JarsUnavailable, KafkaFailed

CLIENTS = ("forebay", "confluent-kafka")
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
WARM_UP = 300
POLL_S = 0.1

Send = Callable[[Callable[[Any, Any], None]], object]


class Samples:
    """Latencies in ns in the order of acknowledgement."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.failed: object = None

    def callback(self) -> Callable[[Any, Any], None]:
        """For one record, made as it is handed over; the client's own argument order is of no matter here."""
        begun = time.perf_counter_ns()

        def acknowledged(one: Any, other: Any) -> None:
            self.taken.append(time.perf_counter_ns() - begun)

        return acknowledged


def paced(records: int, rate: float) -> Iterator[None]:
    """One step each 1/rate s; a step that is late does not move the next ones."""
    begun = time.perf_counter()
    for number in range(records):
        ahead = begun + number / rate - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        yield


def compute(ended: threading.Event) -> None:
    """Keeps one thread busy with plain Python."""
    total = 0
    while not ended.is_set():
        for number in range(100_000):
            total += number * number


def with_forebay(work: dict[str, Any], drive: Callable[[Send], None]) -> None:
    from forebay import KafkaProducer

    config = {"bootstrap.servers": work["bootstrap"], "linger.ms": work["linger_ms"]}
    value, topic = bytes(100), work["topic"]
    with KafkaProducer(config) as producer:
        producer.partitions_for(topic)
        drive(lambda callback: producer.send(topic, value, on_delivery=callback))
        producer.flush()


def with_confluent(work: dict[str, Any], drive: Callable[[Send], None]) -> None:
    from confluent_kafka import Producer

    value, topic = bytes(100), work["topic"]
    producer = Producer({"bootstrap.servers": work["bootstrap"], "linger.ms": work["linger_ms"], "acks": "all"})
    producer.list_topics(topic, timeout=10)
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            producer.poll(POLL_S)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        drive(lambda callback: producer.produce(topic, value, on_delivery=callback))
        producer.flush()
    finally:
        ended.set()
        poller.join()


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One client's run in this process: percentiles in ms, and the rate that was reached."""
    samples, seconds, ended = Samples(), [0.0], threading.Event()
    records = WARM_UP + int(work["rate"] * work["seconds"])

    def drive(send: Send) -> None:
        begun = time.perf_counter()
        for _ in paced(records, work["rate"]):
            send(samples.callback())
        seconds[0] = time.perf_counter() - begun

    if work["computing"]:
        threading.Thread(target=compute, args=(ended,), daemon=True).start()
    try:
        (with_forebay if work["client"] == "forebay" else with_confluent)(work, drive)
    finally:
        ended.set()
    if len(samples.taken) != records:
        raise ChildFailed(f"{work['client']}: {len(samples.taken)} of {records} callbacks came")
    ordered = sorted(samples.taken[WARM_UP:])
    shares = {name: percentile(ordered, share) / 1e6 for name, share in SHARES.items()}
    return {**shares, "records_per_s": records / seconds[0], "distribution": distribution(ordered)}


def distribution(ordered: list[int]) -> list[tuple[float, float]]:
    """Pairs of percent and ms, closer together towards the end, where the interest is."""
    percents = [*range(0, 99, 3), *(99 + step / 10 for step in range(10)), 99.95, 99.99]
    return [(percent, percentile(ordered, percent / 100) / 1e6) for percent in percents]


def measure(options: argparse.Namespace) -> dict[tuple[str, float, bool], list[dict[str, Any]]]:
    """Every client in every setting, ``rounds`` times in turn."""
    settings = [(linger, computing) for linger in options.linger_ms for computing in (False, True)]
    found: dict[tuple[str, float, bool], list[dict[str, Any]]] = {}
    with target(options.sink) as to:
        say(f"against {to.name}")
        for linger, computing in settings * options.rounds:
            for client in CLIENTS:
                work = {"client": client, "bootstrap": to.bootstrap_servers, "topic": to.fresh_topic()}
                work |= {"linger_ms": linger, "computing": computing, "rate": options.rate, "seconds": options.seconds}
                once = run_child("bench.latency", work)
                found.setdefault((client, linger, computing), []).append(once)
                beside = "beside a computing thread" if computing else ""
                say(f"{client:16} linger {linger:g} {beside:26} p50 {once['p50']:.2f} ms, p99 {once['p99']:.2f} ms")
    return found


def report(found: dict[tuple[str, float, bool], list[dict[str, Any]]], options: argparse.Namespace) -> int:
    rows, values = [], []
    for (client, linger, computing), runs in sorted(found.items(), key=lambda item: (item[0][1:], item[0][0])):
        spread = {name: Spread.of(run[name] for run in runs) for name in (*SHARES, "records_per_s")}
        beside = ", computing thread" if computing else ""
        texts = [spread[name].text(".2f") for name in SHARES]
        rows.append((f"{client}, linger {linger:g}{beside}", *texts, f"{spread['records_per_s'].median:.0f}"))
        about = {"client": client, "linger_ms": linger, "computing": computing, "rate": options.rate}
        # The run in the middle stands for all: distributions have no median of their own.
        middle = sorted(runs, key=lambda run: run["p99"])[len(runs) // 2]
        values.append({**about, **spread, "distribution": middle["distribution"]})
    print(f"\nms from send to callback, {options.rate:g} records/s of 100 B, median (lowest-highest) of ", end="")
    print(f"{options.rounds} runs of {options.seconds:g} s\n")
    print_table(("client", *SHARES, "records/s"), rows)
    kept = save("latency-sink" if options.sink else "latency", {"machine": machine(), "rows": values})
    print(f"\nwritten to {kept}")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench latency", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000, help="records/s (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="a run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--linger-ms", type=float, nargs="+", default=[0, 5], help="(default: 0 5)")
    parser.add_argument("--sink", action="store_true", help="against a sink that only acknowledges")
    options = parser.parse_args(arguments)
    try:
        return report(measure(options), options)
    except (JarsUnavailable, KafkaFailed, ChildFailed) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit(main(sys.argv[1:]))
    print(json.dumps(run_work(given)))
