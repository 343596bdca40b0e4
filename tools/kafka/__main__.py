"""``python -m tools.kafka``: a real Kafka in the foreground until Ctrl-C; prints its address.

``python -m tools.kafka fetch`` only fetches the jars, of the versions that the tests use, and makes the archive of
classes with which their brokers start.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from tools.kafka.archive import ensure_archive
from tools.kafka.cluster import KafkaFailed, RealKafka
from tools.kafka.jars import KAFKA_VERSION, LEGACY_KAFKA_VERSION, OLDEST_KAFKA_VERSION, JarsUnavailable, ensure_jars


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.kafka", description="A real Apache Kafka on loopback.")
    parser.add_argument("command", nargs="?", choices=("run", "fetch"), default="run")
    parser.add_argument("--version", default=KAFKA_VERSION, help="Kafka's version (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=1, help="number of brokers (default: %(default)s)")
    parser.add_argument("--heap-mb", type=int, default=512, help="heap of each, MiB (default: %(default)s)")
    parser.add_argument("--topic", action="append", default=[], metavar="NAME:PARTITIONS", help="create this topic")
    options = parser.parse_args()
    try:
        if options.command == "fetch":
            print(ensure_jars(KAFKA_VERSION))
            # Before the others: tests that run meanwhile want it first.
            ensure_archive()
            for version in (LEGACY_KAFKA_VERSION, OLDEST_KAFKA_VERSION):
                print(ensure_jars(version))
            return 0
        return run(options)
    except (JarsUnavailable, KafkaFailed) as error:
        print(f"kafka: {error}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace) -> int:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with RealKafka(options.version, nodes=options.nodes, heap_mb=options.heap_mb) as kafka:
        for topic in options.topic:
            name, _, partitions = topic.partition(":")
            kafka.create_topic(name, int(partitions or 6))
        print(kafka.bootstrap_servers, flush=True)
        ended.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
