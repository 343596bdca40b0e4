"""Keyed records over many partitions, with default settings: what users get, beside confluent-kafka and Java.

Each case has a broker of its own.  The first run on it is told apart, because a broker that has just started is slow;
then the clients alternate.  The callers are faster than the broker, so buffers are full, and the size of batches is
what each client's rules make of that.  Making the client and the topics' metadata come before both clocks; the CPU is
that of the whole process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.part import Column, Part, Result, add_rounds, add_sink, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import CHILD_TIMEOUT_S, ChildFailed, cpu_seconds, run_child, say, work_of_child
from bench.target import HEAP_MB, KafkaTarget
from tools.kafka import RealKafka

KEYS = 200_000
PATIENCE = 10.0
"""Thousands of partitions take long to be made."""
JAVA_SOURCE = Path(__file__).with_name("KeyedSends.java")
CLIENTS = ("forebay", "confluent-kafka", "Java")
BROKER = {
    # Two files of an index for each partition, mapped into memory.
    "log.index.size.max.bytes": str(64 << 10),
    "log.segment.delete.delay.ms": "1000",
}


class Case(NamedTuple):
    """So many topics with so many partitions each."""

    name: str
    label: str
    topics: int
    partitions: int

    def names(self) -> list[str]:
        return [f"keyed-{number}" for number in range(self.topics)]


CASES = (
    *(Case(str(many), f"{many:,} partitions", 1, many) for many in (6, 100, 1_000, 4_000, 10_000)),
    Case("topics", "1,000 topics", 1_000, 1),
)
COLUMNS = (
    Column("1000 records/s", "records_per_s", ".0f", 1e-3),
    Column("CPU µs a record", "cpu_s_per_million"),
    Column("broker µs a record", "broker_us"),
    Column("records a request", "records_a_request", ".0f"),
    Column("records a batch", "records_a_batch", ".1f"),
)


# In the child


def send_by_forebay(work: dict[str, Any], keys: list[bytes]) -> dict[str, Any]:
    from forebay import KafkaProducer

    value, topics, records = bytes(work["size"]), work["topics"], work["records"]
    failed: list[BaseException] = []

    def delivered(report: Any) -> None:
        if report.error is not None:
            failed.append(report.error)

    with KafkaProducer({"bootstrap.servers": work["bootstrap"], **work["config"]}) as producer:
        for topic in topics:
            producer.partitions_for(topic)
        send, many, single = producer.send, len(topics), topics[0]
        before, begun = cpu_seconds(), time.perf_counter()
        for first in range(0, records, KEYS):
            if many == 1:
                for key in keys[: records - first]:
                    send(single, value, key, on_delivery=delivered)
            else:
                for at, key in enumerate(keys[: records - first], first):
                    send(topics[at % many], value, key, on_delivery=delivered)
        producer.flush()
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
        metrics = {name.name: metric for name, metric in producer.metrics().items() if name.group == "producer-metrics"}
    if failed:
        raise RuntimeError(f"{len(failed)} records failed: {failed[0]!r}")
    return {"seconds": seconds, "cpu_s": cpu, "records_a_request": metrics["records-per-request-avg"]}


def send_by_confluent(work: dict[str, Any], keys: list[bytes]) -> dict[str, Any]:
    from confluent_kafka import Producer

    value, topics, records = bytes(work["size"]), work["topics"], work["records"]
    failed: list[object] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(error)

    # Idempotent as the others are by default, and keys are placed as by Java.
    config = {"enable.idempotence": True, "partitioner": "murmur2_random", "on_delivery": delivered}
    producer = Producer({"bootstrap.servers": work["bootstrap"], **config})
    producer.list_topics(timeout=30)
    produce, poll, many = producer.produce, producer.poll, len(topics)
    before, begun = cpu_seconds(), time.perf_counter()
    for first in range(0, records, KEYS):
        for at, key in enumerate(keys[: records - first], first):
            while True:
                try:
                    produce(topics[at % many], value, key)
                    break
                except BufferError:
                    poll(0.005)
            if at % 1000 == 0:
                poll(0)
    producer.flush()
    seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    if failed:
        raise RuntimeError(f"{len(failed)} records failed: {failed[0]}")
    return {"seconds": seconds, "cpu_s": cpu}


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run of a Python client in this process."""
    modules = {"forebay": "forebay.producer", "confluent-kafka": "confluent_kafka"}
    importlib.import_module(modules[work["client"]])
    rng = random.Random(5)
    keys = [b"key-%08d" % rng.randrange(10**8) for _ in range(KEYS)]
    return (send_by_forebay if work["client"] == "forebay" else send_by_confluent)(work, keys)


# In the parent


def run_java(kafka: RealKafka, bootstrap: str, topics: list[str], options: argparse.Namespace) -> dict[str, Any]:
    command = kafka.tool_command(str(JAVA_SOURCE), bootstrap, str(options.records), str(options.size), *topics)
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_TIMEOUT_S, check=False)
    if done.returncode:
        raise ChildFailed(f"Java: {done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_client(
    client: str, kafka: RealKafka, bootstrap: str, case: Case, options: argparse.Namespace
) -> dict[str, Any]:
    if client == "Java":
        return run_java(kafka, bootstrap, case.names(), options)
    work = {"client": client, "bootstrap": bootstrap, "topics": case.names(), "config": config_of(options)}
    return run_child("bench.partitions", {**work, "records": options.records, "size": options.size})


def config_of(options: argparse.Namespace) -> dict[str, str]:
    return dict(given.split("=", 1) for given in options.set)


def against_kafka(case: Case, clients: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs of one case on a broker that is started for it."""
    runs = []
    with RealKafka(heap_mb=HEAP_MB, properties=BROKER, patience=PATIENCE) as kafka:
        to = KafkaTarget(kafka)
        create_topics(kafka, case)
        order = [f"{clients[0]}, {case.label}, cold broker"]
        plan = [(clients[0], order[0])]
        for number in range(options.rounds):
            plan += [(client, f"{client}, {case.label}") for client in turned(clients, number)]
        for client, label in plan:
            before = to.cpu_seconds()
            found = run_client(client, kafka, kafka.bootstrap_servers, case, options)
            runs.append(figures(label, found, options.records, to.cpu_seconds() - before))
    return runs


def create_topics(kafka: RealKafka, case: Case) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    if case.topics == 1:
        kafka.create_topic(case.names()[0], case.partitions)
        return
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    made = admin.create_topics(
        [NewTopic(name, num_partitions=case.partitions, replication_factor=1) for name in case.names()]
    )
    for future in made.values():
        future.result(60)


def against_sink(case: Case, clients: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs of one case, each on a sink of its own that counts requests and batches."""
    runs = []
    jars = RealKafka() if "Java" in clients else None
    for number in range(options.rounds):
        for client in turned(clients, number):
            with AcknowledgingSink(case.partitions) as sink:
                found = run_client(client, jars, sink.bootstrap_servers, case, options)  # type: ignore[arg-type]
                seen = sink.summary()
            if sum(seen["records"].values()) != options.records:
                raise ChildFailed(f"{client}: not all of {options.records} records arrived")
            found["records_a_request"] = options.records / seen["requests"]
            found["records_a_batch"] = options.records / seen["batches"]
            runs.append(figures(f"{client}, {case.label}", found, options.records, seen["cpu_s"]))
    return runs


def figures(label: str, found: dict[str, Any], records: int, broker_cpu_s: float) -> dict[str, Any]:
    run = {
        "label": label,
        "records_per_s": records / found["seconds"],
        "cpu_s_per_million": found["cpu_s"] / records * 1e6,
        "broker_us": broker_cpu_s / records * 1e6,
    }
    run |= {name: found[name] for name in ("records_a_request", "records_a_batch") if name in found}
    say("  ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in run.values()))
    return run


def measure(options: argparse.Namespace) -> Result:
    names = [name.strip() for name in options.cases.split(",")]
    clients = [client for client in CLIENTS if client.lower() in options.clients.lower()]
    runs: list[dict[str, Any]] = []
    for case in CASES:
        if case.name in names:
            runs += (against_sink if options.sink else against_kafka)(case, clients, options)
    order = list(dict.fromkeys(run["label"] for run in runs))
    clean = sorted(runs, key=lambda run: order.index(run["label"]))
    return result_of("partitions-sink" if options.sink else "partitions", clean)


def show(result: Result) -> None:
    settings = result["settings"]
    work = f"{settings['records']:,} records of {settings['size']} B"
    print(f"Median (lowest-highest) of {settings['rounds']} runs of {work}\n")
    print_figures(result, COLUMNS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=2_000_000, help="a run (default: %(default)s)")
    parser.add_argument("--size", type=int, default=100, help="bytes a value (default: %(default)s)")
    parser.add_argument("--cases", default=",".join(case.name for case in CASES), help="of %(default)s")
    parser.add_argument(
        "--clients", default=",".join(CLIENTS), help="of %(default)s; the first one meets the cold broker"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="an option of forebay's producer"
    )
    add_rounds(parser, 3)
    add_sink(parser)


PART = Part("partitions", __doc__, add_arguments, measure, show, quick=("--records", "500000", "--rounds", "1"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.partitions is run by `python -m bench partitions`")
    print(json.dumps(run_work(given)))
