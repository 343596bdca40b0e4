"""TLS against a sink, beside the same in plaintext: records/s, columns, one record a request, a computing thread.

The sink is Python, too, so its own share of a processor is in the table: where it is busy most of the time, the row
shows the sink.  "columns" are ``send_batch`` in batches of 1 MiB; GB/s there are bytes of requests by the CPU time
of the sender's thread alone, which encrypts and writes.  "one record a request" waits for each acknowledgement before
the next ``send``.  "10,000/s" is from ``send`` to the callback with ``linger.ms=0``, as in ``bench latency``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.latency import SWITCH_MS
from bench.part import Column, Part, Result, add_rounds, print_figures, result_of
from bench.sender_cost import sender_clock
from bench.sink import AcknowledgingSink
from bench.support import cpu_seconds, percentile, run_child, work_of_child
from bench.tls import run_all
from tools.certificates import identity

TOPIC = "tls-sink"
SIZE, LINGER_MS = 100, 5
ROWS = 100_000
MIB = 1 << 20
RATE, WARM_UP_S = 10_000, 1


class Side(NamedTuple):
    """A sink, and how clients connect to it."""

    name: str
    sink: AcknowledgingSink
    ca: Path | None

    def options(self, client: str = "forebay") -> dict[str, Any]:
        """By the client's own names."""
        if self.ca is None:
            return {"bootstrap.servers": self.sink.bootstrap_servers}
        store = "ssl.truststore.location" if client == "forebay" else "ssl.ca.location"
        # The certificate is of "localhost", and the sink's metadata name an address.
        check = {"ssl.endpoint.identification.algorithm": "" if client == "forebay" else "none"}
        bootstrap = {"bootstrap.servers": self.sink.bootstrap_servers}
        return {**bootstrap, "security.protocol": "SSL", store: str(self.ca), **check}


@contextlib.contextmanager
def both_sides() -> Iterator[tuple[Side, Side]]:
    """A sink in plaintext and one behind TLS."""
    import trustme

    with tempfile.TemporaryDirectory() as folder:
        authority = trustme.CA()
        ca = Path(folder) / "ca.crt"
        ca.write_bytes(authority.cert_pem.bytes())
        both = identity(Path(folder), "sink", authority.issue_cert("localhost")).both
        with AcknowledgingSink() as plain, AcknowledgingSink(certificate=both) as secret:
            yield Side("plaintext", plain, None), Side("TLS", secret, ca)


# -- in a process of its own --------------------------------------------------------------------------------------


def columns(work: dict[str, Any]) -> dict[str, Any]:
    """``send_batch`` in batches of 1 MiB; CPU of the sender's thread alone."""
    import pyarrow as pa

    from forebay import KafkaProducer

    batch = pa.record_batch({"value": pa.array([bytes(SIZE)] * ROWS, pa.binary())})
    config = {**work["config"], "linger.ms": LINGER_MS, "batch.size": MIB, "max.request.size": 8 * MIB}
    with KafkaProducer({**config, "buffer.memory": 64 * MIB}) as producer:
        producer.partitions_for(TOPIC)
        results = [producer.send_batch(TOPIC, batch)]
        producer.flush()
        clock = sender_clock(producer)
        begun, spent, client = time.perf_counter(), -time.clock_gettime_ns(clock), -cpu_seconds()
        results += [producer.send_batch(TOPIC, batch) for _ in range(work["batches"])]
        producer.flush()
        seconds, client = time.perf_counter() - begun, client + cpu_seconds()
        spent += time.clock_gettime_ns(clock)
    acknowledged = sum(one.acknowledged for one in results)
    if acknowledged != ROWS * len(results):
        raise RuntimeError(f"{acknowledged} of {ROWS * len(results)} rows were acknowledged")
    rows = ROWS * work["batches"]
    return {"records_per_s": rows / seconds, "cpu_s_per_million": client / rows * 1e6, "sender_ns": float(spent)}


def one_record(work: dict[str, Any]) -> dict[str, Any]:
    """Each record is waited for: milliseconds, and µs of the client's CPU."""
    from forebay import KafkaProducer

    taken: list[float] = []
    with KafkaProducer({**work["config"], "linger.ms": 0}) as producer:
        for _ in range(work["count"] // 10):
            producer.send(TOPIC, bytes(SIZE)).result(10)
        before = cpu_seconds()
        for _ in range(work["count"]):
            begun = time.perf_counter()
            producer.send(TOPIC, bytes(SIZE)).result(10)
            taken.append(1000 * (time.perf_counter() - begun))
        spent = cpu_seconds() - before
    taken.sort()
    shares = {"p50_ms": percentile(taken, 0.5), "p99_ms": percentile(taken, 0.99)}
    return {**shares, "request_us": spent / work["count"] * 1e6}


KINDS = {"columns": columns, "one_record": one_record}


# -- the bench ------------------------------------------------------------------------------------------------------


def with_share_of_sink(side: Side, label: str, module: str, work: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """A child's figures with the sink's CPU a second of theirs, and the bytes of produce requests."""
    before, begun = side.sink.summary(), time.perf_counter()
    found = run_child(module, work)
    seconds, after = time.perf_counter() - begun, side.sink.summary()
    busy = 100 * (after["cpu_s"] - before["cpu_s"]) / found.get("seconds", seconds)
    return {"label": f"{label}, {side.name}", "sink_busy_percent": busy, **found}, after["bytes"] - before["bytes"]


def throughput(side: Side, client: str, records: int) -> dict[str, Any]:
    """One run of a client of ``bench.clients``."""
    config = side.options(client)
    work: dict[str, Any] = {"client": client, "topic": TOPIC, "records": records}
    work["bootstrap"] = config.pop("bootstrap.servers")
    work |= {"callback": False, "config": config, "size": SIZE, "keyed": False, "linger_ms": LINGER_MS}
    found, _ = with_share_of_sink(side, client, "bench.clients", work)
    figures = {name: found[name] for name in ("label", "sink_busy_percent")}
    rate, cpu = records / found["seconds"], found["cpu_s"] / records * 1e6
    return {**figures, "records_per_s": rate, "cpu_s_per_million": cpu}


def of_columns(side: Side, batches: int) -> dict[str, Any]:
    work = {"kind": "columns", "config": side.options(), "batches": batches}
    found, size = with_share_of_sink(side, "columns, 1 MiB", "bench.tls_sink", work)
    # One more was sent before the clock.
    return {**found, "sender_gb_s": size * batches / (batches + 1) / found.pop("sender_ns")}


def of_one_record(side: Side, count: int) -> dict[str, Any]:
    work = {"kind": "one_record", "config": side.options(), "count": count}
    return {"label": f"one record a request, {side.name}", **run_child("bench.tls_sink", work)}


def steady(side: Side, computing: bool, switch_ms: float, seconds: float) -> dict[str, Any]:
    """One run of ``bench.latency``'s child."""
    work: dict[str, Any] = {"client": "forebay", "topic": TOPIC, "config": side.options()}
    work["bootstrap"] = side.sink.bootstrap_servers
    work |= {"linger_ms": 0, "computing": computing, "rate": RATE, "switch_ms": switch_ms}
    found = run_child("bench.latency", {**work, "records": int(RATE * seconds), "warm_up": RATE * WARM_UP_S})
    beside = " beside a computing thread" if computing else ""
    beside += "" if switch_ms == SWITCH_MS else f", switch interval {switch_ms:g} ms"
    return {"label": f"10,000/s{beside}, {side.name}", "p50_ms": found["p50"], "p99_ms": found["p99"]}


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    failed: list[str] = []
    with both_sides() as sides:
        jobs: list[Any] = []
        for client in ("forebay", "confluent-kafka"):
            jobs += [lambda side=side, client=client: throughput(side, client, options.records) for side in sides]
        jobs += [lambda side=side: of_columns(side, options.batches) for side in sides]
        jobs += [lambda side=side: of_one_record(side, options.requests) for side in sides]
        for case in ((False, SWITCH_MS), (True, SWITCH_MS), (True, 0.5)):
            jobs += [lambda side=side, case=case: steady(side, case[0], case[1], options.seconds) for side in sides]
        run_all(jobs, options.rounds, runs, failed)
    order = list(dict.fromkeys(run["label"] for run in runs))
    return result_of("tls-sink", sorted(runs, key=lambda run: order.index(run["label"])), failed=failed)


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"\nmedian (lowest-highest) of {settings['rounds']} runs; {settings['records']:,} records of {SIZE} B\n")
    figures = (
        Column("1000 records/s", "records_per_s", ".0f", 1e-3),
        Column("CPU s/million", "cpu_s_per_million"),
        Column("sender GB/s of CPU", "sender_gb_s"),
        Column("p50 ms", "p50_ms"),
        Column("p99 ms", "p99_ms"),
        Column("client's µs a request", "request_us", ".0f"),
        Column("sink busy %", "sink_busy_percent", ".0f"),
    )
    print_figures(result, figures, "what")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=2_000_000, help="a run (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=60, help="of 100,000 rows, a run (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=5_000, help="of one record, a run (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="at 10,000/s (default: %(default)s)")
    add_rounds(parser)


QUICK = ("--records", "300000", "--batches", "10", "--requests", "1000", "--seconds", "3", "--rounds", "1")
PART = Part("tls-sink", __doc__, add_arguments, measure, show, quick=QUICK)

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.tls_sink is run by `python -m bench tls-sink`")
    print(json.dumps(KINDS[given["kind"]](given)))
