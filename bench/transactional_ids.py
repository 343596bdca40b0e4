"""What one transactional.id costs the coordinator that keeps it: heap and log of a real broker.

A coordinator keeps an id for ``transactional.id.expiration.ms`` (a week) after its last use.  The exactly-once sink
uses few ids where workers are kept, and one for each task where they are not.  The heap is what lives after a
collection, by the JVM's own histogram.  The ids have had no transaction, which adds nothing that stays but lines of a
compacted log.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import time
from typing import Any

from bench.part import Column, Part, Result, print_figures, result_of
from bench.support import ChildFailed, say
from bench.target import HEAP_MB
from forebay import AdminClient
from tools.kafka import RealKafka

TOTAL = re.compile(r"^Total\s+\d+\s+(\d+)", re.MULTILINE)


def live_bytes(kafka: RealKafka) -> int:
    """The heap's live bytes; the JVM collects for it.

    Raises:
        ChildFailed: there is no ``jcmd`` here, or it failed.
    """
    tool = shutil.which("jcmd")
    if tool is None:
        raise ChildFailed("transactional-ids needs the JDK's jcmd")
    done = subprocess.run(
        [tool, str(kafka.pid()), "GC.class_histogram"], capture_output=True, text=True, timeout=120, check=False
    )
    found = TOTAL.search(done.stdout)
    if found is None:
        raise ChildFailed(f"jcmd: {(done.stderr or done.stdout)[-300:]}")
    return int(found[1])


def log_bytes(kafka: RealKafka) -> int:
    """What the coordinators have written down."""
    logs = kafka.data_folder().glob("__transaction_state-*/*.log")
    return sum(path.stat().st_size for path in logs)


def measure(options: argparse.Namespace) -> Result:
    runs: list[dict[str, Any]] = []
    with RealKafka(heap_mb=HEAP_MB) as kafka, AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.init_producer_id("first")  # the topic of transactions is made
        for number in range(options.rounds + 1):
            heap, log, begun = live_bytes(kafka), log_bytes(kafka), time.perf_counter()
            for each in range(options.ids):
                admin.init_producer_id(f"prefix-{number:016x}-{each}")
            seconds = time.perf_counter() - begun
            run = {
                "label": "one transactional.id",
                "heap_bytes": (live_bytes(kafka) - heap) / options.ids,
                "log_bytes": (log_bytes(kafka) - log) / options.ids,
                "init_ms": seconds / options.ids * 1000,
            }
            say("  ".join(f"{value:.1f}" if isinstance(value, float) else str(value) for value in run.values()))
            if number > 0:  # the first one loads classes
                runs.append(run)
    return result_of("transactional-ids", runs)


def show(result: Result) -> None:
    print(f"median (lowest-highest) of {result['settings']['rounds']} times {result['settings']['ids']:,} ids\n")
    columns = (
        Column("heap, bytes", "heap_bytes", ".0f"),
        Column("log, bytes", "log_bytes", ".0f"),
        Column("InitProducerId, ms", "init_ms"),
    )
    print_figures(result, columns, first="")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ids", type=int, default=10_000, help="a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")


PART = Part("transactional-ids", __doc__, add_arguments, measure, show, quick=("--ids", "2000"))
