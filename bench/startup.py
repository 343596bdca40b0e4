"""Import, construction and the first acknowledgement, in ms, each time in a fresh process; the start of Python apart.

The time of ``warm_up`` belongs to construction.  A process imports nothing before that the client could share;
the modules of the clients are in the file cache of the system and have their bytecode, because one run goes before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from bench.part import Column, Part, Result, add_rounds, add_sink, print_figures, result_of, turned
from bench.support import ROOT, ChildFailed, child_environment
from bench.target import target

LIMIT_S = 60
HEAD = """
import sys
from time import perf_counter
bootstrap, topic, begun = sys.argv[1], sys.argv[2], perf_counter()
"""
CLIENTS = {
    "forebay": """
from forebay import KafkaProducer
imported = perf_counter()
producer = KafkaProducer({"bootstrap.servers": bootstrap, "linger.ms": 0})
made = perf_counter()
producer.send(topic, bytes(100)).result(30)
""",
    "forebay, warm_up": """
from forebay import KafkaProducer
imported = perf_counter()
producer = KafkaProducer({"bootstrap.servers": bootstrap, "linger.ms": 0})
producer.warm_up([topic])
made = perf_counter()
producer.send(topic, bytes(100)).result(30)
""",
    "confluent-kafka": """
from confluent_kafka import Producer
imported = perf_counter()
producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0})
made = perf_counter()
got = []
producer.produce(topic, bytes(100), on_delivery=lambda error, message: got.append(error))
while not got:
    producer.poll(30)
assert got == [None], got
""",
    "aiokafka": """
import asyncio
from aiokafka import AIOKafkaProducer
imported = made = perf_counter()
async def main():
    global made
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=0)
    await producer.start()
    made = perf_counter()
    await producer.send_and_wait(topic, bytes(100))
    global acknowledged
    acknowledged = perf_counter()
    await producer.stop()
asyncio.run(main())
""",
    "kafka-python": """
from kafka import KafkaProducer
imported = perf_counter()
producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0)
made = perf_counter()
producer.send(topic, bytes(100)).get(30)
""",
}
TAIL = """
acknowledged = globals().get("acknowledged") or perf_counter()
import json
times = {"import_ms": imported - begun, "construct_ms": made - imported, "first_ms": acknowledged - made}
times["total_ms"] = acknowledged - begun
print(json.dumps({name: value * 1000 for name, value in times.items()}))
"""


def measure_one(client: str, bootstrap: str, topic: str) -> dict[str, Any]:
    """One process.

    Raises:
        ChildFailed: no acknowledgement came.
    """
    command = [sys.executable, "-c", HEAD + CLIENTS[client] + TAIL, bootstrap, topic]
    done = subprocess.run(
        command, env=child_environment(), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise ChildFailed(f"{client}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    clients = list(CLIENTS)
    with target(options.sink) as to:
        topic = to.fresh_topic()
        for client in clients:
            measure_one(client, to.bootstrap_servers, topic)
        for number in range(options.rounds):
            for client in turned(clients, number):
                runs.append({"label": client, **measure_one(client, to.bootstrap_servers, topic)})
        name = "startup-sink" if options.sink else "startup"
        return result_of(name, sorted(runs, key=lambda run: clients.index(run["label"])), to=to.name)


def show(result: Result) -> None:
    print(f"ms in a fresh process, {result['to']}, median (lowest-highest) of {result['settings']['rounds']}\n")
    names = ("import", "construct", "first", "total")
    print_figures(result, [Column(name, f"{name}_ms", ".0f") for name in names])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_rounds(parser, 9)
    add_sink(parser)


PART = Part("startup", __doc__, add_arguments, measure, show)
