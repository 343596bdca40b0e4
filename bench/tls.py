"""TLS and logins: CPU beside the same work in plaintext and beside confluent-kafka, handshakes, reconnections, memory.

One real broker has a listener for each way.  "handshake" is the client's share of the CPU of a handshake in memory.
"reconnections" are connections that were idle for too long, so that each record needs a new one, with its login.
"10,000/s" is from ``send`` to the callback, on a connection that authenticates again every five seconds or never.
"three frozen brokers" is the peak over ``buffer.memory`` and over the idle producer.  A sink behind TLS is
in ``bench tls-sink``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.support import ChildFailed, cpu_seconds, peak_kib, percentile, run_child, say, work_of_child
from tools.certificates import identity
from tools.kafka import Listener, RealKafka

USER, PASSWORD = "bench", "bench-password"
SIZE, LINGER_MS = 100, 5
RATE = 10_000
AGAIN_MS = 5_000
HEAP_MB = 1024
IDLE_MS = 50
MIB = 1 << 20
BUFFER_MEMORY = 32 * MIB
WITHOUT = "no "
"""Of the label of a run that never authenticates again."""


class Way(NamedTuple):
    """A client, its listener and its options beside those."""

    label: str
    client: str
    listener: str
    config: dict[str, Any]


LARGE = {"batch.size": 128 << 10}
WAYS = (
    Way("forebay, plaintext, 16 KiB", "forebay", "PLAIN", {}),
    Way("forebay, TLS, 16 KiB", "forebay", "TLS", {}),
    Way("forebay, plaintext, 128 KiB", "forebay", "PLAIN", LARGE),
    Way("forebay, TLS, 128 KiB", "forebay", "TLS", LARGE),
    Way("confluent-kafka, plaintext", "confluent-kafka", "PLAIN", {}),
    Way("confluent-kafka, TLS", "confluent-kafka", "TLS", {}),
    Way("confluent-kafka, TLS, 16 KiB batches", "confluent-kafka", "TLS", {"batch.size": 16_384}),
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-512")


class Place(NamedTuple):
    """The running brokers, and the file of their authority."""

    kafka: RealKafka
    ca: Path

    def options(self, listener: str, client: str = "forebay") -> dict[str, Any]:
        """How a client connects to a listener, by its own names."""
        if listener == "PLAIN":
            return {"bootstrap.servers": self.kafka.bootstrap_servers}
        store = "ssl.truststore.location" if client == "forebay" else "ssl.ca.location"
        protocol = "SSL" if listener == "TLS" else "SASL_SSL"
        nodes = self.kafka.node_ids
        bootstrap = ",".join(self.kafka.address_of(listener, node) for node in nodes)
        options: dict[str, Any] = {"bootstrap.servers": bootstrap, "security.protocol": protocol, store: str(self.ca)}
        return options

    def login(self, listener: str, mechanism: str) -> dict[str, Any]:
        return {
            **self.options(listener),
            "sasl.mechanism": mechanism,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }


@contextlib.contextmanager
def place(nodes: int = 1) -> Iterator[Place]:
    """Starts the brokers.

    Raises:
        JarsUnavailable, KafkaFailed: there is no real Kafka to be had here.
    """
    import trustme

    with tempfile.TemporaryDirectory() as folder:
        authority = trustme.CA()
        ca = Path(folder) / "ca.crt"
        ca.write_bytes(authority.cert_pem.bytes())
        issued = authority.issue_cert("localhost", key_type=trustme.KeyType.RSA)
        tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity(Path(folder), "server", issued).both)}
        jaas = "org.apache.kafka.common.security"
        sasl = {
            **tls,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "plain.sasl.jaas.config": f'{jaas}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
            "scram-sha-512.sasl.jaas.config": f"{jaas}.scram.ScramLoginModule required;",
        }
        again = {**sasl, "scram-sha-512.connections.max.reauth.ms": str(AGAIN_MS)}
        listeners = [
            Listener("TLS", "SSL", tls, "localhost"),
            Listener("LOGIN", "SASL_SSL", sasl, "localhost"),
            Listener("AGAIN", "SASL_SSL", again, "localhost"),
        ]
        properties = {"log.segment.delete.delay.ms": "1000"}
        with RealKafka(heap_mb=HEAP_MB, nodes=nodes, listeners=listeners, properties=properties) as kafka:
            _add_user(kafka)
            yield Place(kafka, ca)


def _add_user(kafka: RealKafka) -> None:
    from confluent_kafka import admin as confluent

    names: Any = confluent  # they are exported, but not by __all__
    info = names.ScramCredentialInfo(names.ScramMechanism.SCRAM_SHA_512, 4096)
    change = names.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    admin = names.AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for done in admin.alter_user_scram_credentials([change]).values():
        done.result(30)


# -- in a process of its own --------------------------------------------------------------------------------------


def handshakes(work: dict[str, Any]) -> dict[str, Any]:
    """The client's CPU of a handshake with a certificate of a kind, and round trips until records may flow."""
    import trustme

    from forebay._network.tls import TlsFilter

    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(ours)
    authority.issue_cert("localhost", key_type=trustme.KeyType[work["key"]]).configure_cert(theirs)
    spent = 0.0
    for _ in range(work["count"]):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = theirs.wrap_bio(incoming, outgoing, server_side=True)
        begun = time.thread_time()
        client = TlsFilter(ours, "localhost", "the bench's store")
        client.start()
        request = client.outgoing()
        spent += time.thread_time() - begun
        incoming.write(request)
        with contextlib.suppress(ssl.SSLWantReadError):
            server.do_handshake()
        answer = outgoing.read()
        begun = time.thread_time()
        client.feed(memoryview(answer))
        if not client.shake_hands():
            raise RuntimeError("the handshake takes more than one round trip")
        client.outgoing()
        spent += time.thread_time() - begun
    return {"handshake_ms": 1000 * spent / work["count"]}


def reconnections(work: dict[str, Any]) -> dict[str, Any]:
    """CPU of the process for each connection with its login and one record."""
    from forebay import KafkaProducer

    with KafkaProducer({**work["config"], "connections.max.idle.ms": IDLE_MS, "linger.ms": 0}) as producer:
        producer.send(work["topic"], b"x").result(30)
        before, opened = cpu_seconds(), _opened(producer)
        for _ in range(work["count"]):
            time.sleep(3 * IDLE_MS / 1000)
            producer.send(work["topic"], b"x").result(30)
        spent, count = cpu_seconds() - before, _opened(producer) - opened
    if count < work["count"]:
        raise RuntimeError(f"{count} connections for {work['count']} records: they were not idle for long enough")
    return {"reconnection_ms": 1000 * spent / count}


def _opened(producer: Any) -> float:
    found = producer.metrics()
    return float(next(value for name, value in found.items() if "connection-creation-total" in str(name)))


def steady(work: dict[str, Any]) -> dict[str, Any]:
    """From ``send`` to the callback at a steady rate."""
    from forebay import KafkaProducer

    taken: list[float] = []
    errors: list[Any] = []
    count = int(work["seconds"] * RATE)
    with KafkaProducer({**work["config"], "linger.ms": 0}) as producer:
        producer.partitions_for(work["topic"])
        producer.send(work["topic"], b"first").result(30)
        start = time.perf_counter()
        for number in range(count):
            ahead = start + number / RATE - time.perf_counter()
            if ahead > 0:
                time.sleep(ahead)
            begun = time.perf_counter()

            def delivered(report: Any, begun: float = begun) -> None:
                taken.append(time.perf_counter() - begun)
                if report.error is not None:
                    errors.append(report.error)

            producer.send(work["topic"], bytes(SIZE), on_delivery=delivered)
        producer.flush()
    if errors or len(taken) != count:
        raise RuntimeError(f"{len(taken)} of {count} records, {len(errors)} errors: {errors[:1]}")
    taken.sort()
    return {"p50_ms": 1000 * percentile(taken, 0.5), "p99_ms": 1000 * percentile(taken, 0.99)}


def constructions(work: dict[str, Any]) -> dict[str, Any]:
    """The first and the second producer with the system's authorities."""
    from forebay import KafkaProducer

    config = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL"}
    found = []
    for _ in range(2):
        begun = time.perf_counter()
        producer = KafkaProducer(config)
        found.append(1000 * (time.perf_counter() - begun))
        producer.close(0)
    return {"first_ms": found[0], "second_ms": found[1]}


def frozen(work: dict[str, Any]) -> dict[str, Any]:
    """Peak memory over the idle producer, once its buffer is full; the brokers are stopped at the word of this."""
    from forebay import KafkaProducer

    config = {
        **work["config"],
        "buffer.memory": BUFFER_MEMORY,
        "max.block.ms": 1500,
        "partitioner.class": "round_robin",
    }
    producer = KafkaProducer(config)
    for _ in range(60):
        producer.send(work["topic"], bytes(SIZE)).result(30)
    idle = peak_kib()
    for pid in work["brokers"]:
        os.kill(pid, signal.SIGSTOP)
    try:
        # A record that finds no room fails at once, as in Java: its future has the error.
        while not producer.send(work["topic"], bytes(1000)).done():
            pass
        over = peak_kib() - idle
    finally:
        for pid in work["brokers"]:
            os.kill(pid, signal.SIGCONT)
    producer.close(120)
    return {"over_buffer_mib": over / 1024 - BUFFER_MEMORY / MIB}


KINDS = {
    "handshakes": handshakes,
    "reconnections": reconnections,
    "steady": steady,
    "constructions": constructions,
    "frozen": frozen,
}


# -- the bench ------------------------------------------------------------------------------------------------------


def throughput(way: Way, at: Place, records: int, topic: str) -> dict[str, Any]:
    """One run of a client of ``bench.clients``."""
    config = {**at.options(way.listener, way.client), **way.config}
    work = {"client": way.client, "topic": topic, "bootstrap": config.pop("bootstrap.servers"), "records": records}
    work |= {"callback": False, "config": config, "size": SIZE, "keyed": False, "linger_ms": LINGER_MS}
    found = run_child("bench.clients", work)
    return {
        "label": way.label,
        "records_per_s": records / found["seconds"],
        "cpu_s_per_million": found["cpu_s"] / records * 1e6,
    }


def child(kind: str, label: str, **work: Any) -> dict[str, Any]:
    """One run of a function of this module."""
    return {"label": label, **run_child("bench.tls", {"kind": kind, **work})}


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    failed: list[str] = []
    with place() as at:
        topic = "bench-tls"
        at.kafka.create_topic(topic, 6)
        jobs: list[Any] = [lambda way=way: throughput(way, at, options.records, topic) for way in WAYS]
        jobs += [
            lambda key=key: child("handshakes", f"handshake, {key}", key=key, count=options.handshakes)
            for key in ("RSA", "ECDSA")
        ]
        jobs += [
            lambda name=name: child(
                "reconnections",
                f"reconnections, {name}",
                config=at.login("LOGIN", name),
                topic=topic,
                count=options.reconnections,
            )
            for name in MECHANISMS
        ]
        jobs += [
            lambda listener=listener: child(
                "steady",
                f"10,000/s, {WITHOUT if listener == 'LOGIN' else ''}re-authentication",
                config=at.login(listener, "SCRAM-SHA-512"),
                topic=topic,
                seconds=options.seconds,
            )
            for listener in ("LOGIN", "AGAIN")
        ]
        jobs.append(lambda: child("constructions", "construction, the system's authorities"))
        run_all(jobs, options.rounds, runs, failed)
    with place(nodes=3) as three:
        three.kafka.create_topic("bench-frozen", 6)
        pids = [three.kafka.pid(node) for node in three.kafka.node_ids]
        config = three.options("TLS")
        job = lambda: child("frozen", "three frozen brokers", config=config, topic="bench-frozen", brokers=pids)  # noqa: E731
        run_all([job], 1, runs, failed)
    return result_of("tls", runs, failed=failed)


def run_all(jobs: list[Any], rounds: int, runs: list[dict[str, Any]], failed: list[str]) -> None:
    """Each job once a round; what failed is noted, and the others go on."""
    for number in range(rounds):
        for job in turned(jobs, number):
            try:
                found = job()
            except ChildFailed as error:
                failed.append(str(error))
                say(f"bench: {error}")
                continue
            figures = {name: value for name, value in found.items() if isinstance(value, float)}
            say(f"round {number + 1}  {found['label']:45} " + "  ".join(f"{k} {v:.3g}" for k, v in figures.items()))
            runs.append(found)


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"\nmedian (lowest-highest) of {settings['rounds']} runs; {settings['records']:,} records of {SIZE} B\n")
    columns = (
        Column("1000 records/s", "records_per_s", ".0f", 1e-3),
        Column("CPU s/million", "cpu_s_per_million"),
        Column("handshake ms", "handshake_ms"),
        Column("reconnection ms", "reconnection_ms"),
        Column("p50 ms", "p50_ms"),
        Column("p99 ms", "p99_ms"),
        Column("first ms", "first_ms", ".1f"),
        Column("second ms", "second_ms"),
        Column("MiB over buffer.memory", "over_buffer_mib", ".1f"),
    )
    print_figures(result, columns, "what")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=2_000_000, help="a run (default: %(default)s)")
    parser.add_argument("--handshakes", type=int, default=500, help="a run (default: %(default)s)")
    parser.add_argument("--reconnections", type=int, default=50, help="a run (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="at 10,000/s (default: %(default)s)")
    add_rounds(parser)


QUICK = ("--records", "300000", "--handshakes", "100", "--reconnections", "15", "--seconds", "8", "--rounds", "1")
PART = Part("tls", __doc__, add_arguments, measure, show, quick=QUICK)

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.tls is run by `python -m bench tls`")
    print(json.dumps(KINDS[given["kind"]](given)))
