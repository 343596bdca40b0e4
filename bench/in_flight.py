"""Does a broker serve one request of a connection at a time?  Requests a second by how many are in flight.

Two real brokers and one partition with two replicas; ``acks=all`` with ``min.insync.replicas=2``, and a record in each
request.  A proxy holds back what one side sends.  ``service``: between the brokers, so that each answer waits for the
follower, and the time is part of the broker's work.  ``wire``: between the client and the broker, where more in flight
has to help whatever the broker does; without that row, a bench that cannot see any gain would look the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.support import run_child, say
from bench.target import HEAP_MB
from forebay import KafkaProducer
from tools.kafka import Listener, RealKafka

NODES = 2
INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"
HOSTS = {INSIDE: "127.0.0.2", OUTSIDE: "127.0.0.3"}
"""What the brokers say of each listener, and where the proxy listens; they themselves listen on 127.0.0.1."""
VALUE = bytes(100)
WARM_UP = 200
COMPILING = 5_000
PIECE = 1 << 16


class Way(NamedTuple):
    """One way of sending: where the delay is, and what the producer may have in flight."""

    place: str
    in_flight: int
    idempotent: bool = True

    @property
    def label(self) -> str:
        """As in the tables."""
        return f"{self.place}, {self.in_flight} in flight{'' if self.idempotent else ', not idempotent'}"


WAYS = tuple(
    Way(place, in_flight, in_flight <= 5) for place in ("service", "wire", "nowhere") for in_flight in (1, 2, 5, 10)
)


class Delay:
    """Listens at each (host, port) and passes bytes on to the same port of 127.0.0.1; what comes back is late.

    ``ms`` may change at any time.  What is under way stays in order, and does not hold up what follows.
    """

    def __init__(self, addresses: list[tuple[str, int]]) -> None:
        self.ms = 0.0
        self._addresses = addresses
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="delay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _listen(self) -> None:
        for host, port in self._addresses:
            await asyncio.start_server(self._serve, host, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        ways = [asyncio.ensure_future(self._pass(reader, forth)), asyncio.ensure_future(self._pass_late(back, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # at the end; the server's own callback would print it
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, forth):
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            writer.write(data)

    async def _pass_late(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        latest = 0.0
        while data := await reader.read(PIECE):
            latest = max(latest, self._loop.time() + self.ms / 1000)
            self._loop.call_at(latest, writer.write, data)


def child(work: Mapping[str, Any]) -> dict[str, Any]:
    """Keeps as many records under way as may be in flight, each of which is a batch and so a request."""
    producer = KafkaProducer(
        bootstrap_servers=work["bootstrap"],
        acks="all",
        linger_ms=0,
        batch_size=1,
        enable_idempotence=work["idempotent"],
        max_in_flight_requests_per_connection=work["in_flight"],
        max_sparse_batches_in_flight=0,
    )
    under_way: deque[tuple[float, Any]] = deque()
    latencies: list[float] = []
    with producer:
        begun = 0.0
        for number in range(WARM_UP + work["records"] + work["in_flight"]):
            if len(under_way) == work["in_flight"]:
                sent, future = under_way.popleft()
                future.result(60)
                latencies.append(time.perf_counter() - sent)
            if number == WARM_UP:
                begun, requests = time.perf_counter(), _requests(producer)
                latencies.clear()
            under_way.append((time.perf_counter(), producer.send(work["topic"], VALUE)))
        seconds = time.perf_counter() - begun
        latencies.sort()
        return {
            "requests_s": (_requests(producer) - requests) / seconds,
            "records_s": work["records"] / seconds,
            "p50_ms": 1000 * latencies[len(latencies) // 2],
            "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
        }


def _requests(producer: KafkaProducer) -> float:
    found = producer.metrics()
    return sum(float(value) for key, value in found.items() if key.name == "request-total" and "node" not in key.group)


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    listeners = [Listener(name, "PLAINTEXT", {}, host) for name, host in HOSTS.items()]
    properties = {"inter.broker.listener.name": INSIDE, "min.insync.replicas": "2"}
    with RealKafka(nodes=NODES, heap_mb=HEAP_MB, listeners=listeners, properties=properties) as kafka:
        ports = {name: [int(kafka.address_of(name, node).split(":")[1]) for node in kafka.node_ids] for name in HOSTS}
        inside, outside = (Delay([(HOSTS[name], port) for port in ports[name]]) for name in HOSTS)
        with inside, outside:
            kafka.create_topic("in-flight", replication=NODES)
            work = {"bootstrap": f"{HOSTS[OUTSIDE]}:{ports[OUTSIDE][0]}", "topic": "in-flight"}
            # Not measured: until the brokers' code is compiled, each run is faster than the one before.
            run_child("bench.in_flight", {**work, **Way("nowhere", 5)._asdict(), "records": COMPILING})
            for number in range(options.rounds):
                for way in turned(WAYS, number):
                    inside.ms = options.delay_ms if way.place == "service" else 0.0
                    outside.ms = options.delay_ms if way.place == "wire" else 0.0
                    found = run_child("bench.in_flight", {**work, **way._asdict(), "records": options.records})
                    say(f"{way.label}: {found['requests_s']:,.0f} requests/s, p50 {found['p50_ms']:.2f} ms")
                    runs.append({"label": way.label, **found})
    return result_of("in-flight", runs)


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"median (lowest-highest) of {settings['rounds']} runs of {settings['records']:,} requests of one record")
    print(f"delay: {settings['delay_ms']:g} ms\n")
    columns = (
        Column("requests/s", "requests_s", ".0f"),
        Column("records/s", "records_s", ".0f"),
        Column("p50, ms", "p50_ms"),
        Column("p99, ms", "p99_ms"),
    )
    print_figures(result, columns, first="delay")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delay-ms", type=float, default=5.0, help="(default: %(default)s)")
    parser.add_argument("--records", type=int, default=1000, help="of a run (default: %(default)s)")
    add_rounds(parser, 3)


PART = Part("in-flight", __doc__, add_arguments, measure, show, quick=("--records", "300", "--rounds", "1"))

if __name__ == "__main__":
    print(json.dumps(child(json.loads(sys.argv[2]))))
