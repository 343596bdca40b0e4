"""One run of one case: a producer in a process of its own sends the load for real.

The process is ``python -m tests.truth.run``, with its work as JSON on its standard input.  It prints a line when the
load is about to begin, and what was measured as the last one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace
from typing import Any

from bench.codecs import events
from forebay._runtime.clock import SystemClock
from forebay.config import ProducerConfig
from forebay.model import DeliveryReport
from forebay.producer import KafkaProducer
from forebay.tune import Brokers, Workload, checking
from forebay.tune.measures import POINTS
from forebay.tune.prediction import _outages
from tests.support.pace import PROGRAM_S
from tests.truth.cases import CASES, Case
from tests.truth.cluster import Cluster

EVENTS = 3_000
IN_A_VALUE = 3
"""Events of about 300 B that make a value of about 1 kB."""


class RunFailed(RuntimeError):
    """A run ended without figures."""


def values_of_events() -> list[bytes]:
    """JSON texts of about 1 kB, always the same."""
    found = events(EVENTS)
    return [b"[" + b",".join(found[at : at + IN_A_VALUE]) + b"]" for at in range(0, EVENTS, IN_A_VALUE)]


class Watched:
    """A producer whose records' latencies are also kept by the time when they were due.

    Args:
        values: that are sent in place of those that come, by their size; None: what comes.
    """

    def __init__(self, producer: KafkaProducer, begin: float, seconds: float, values: Mapping[int, bytes] | None):
        self._producer, self._begin, self._seconds, self._values = producer, begin, seconds, values
        self._clock = SystemClock()
        self.slowest: list[float] = [0.0] * POINTS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def send(self, topic: str, value: bytes, *, on_delivery: Callable[[DeliveryReport], object], **more: Any) -> None:
        """As KafkaProducer's."""
        if self._values is not None:
            value = self._values[len(value)]
        self._producer.send(topic, value, on_delivery=partial(self._settled, on_delivery), **more)

    def _settled(self, on_delivery: Any, report: DeliveryReport) -> None:
        on_delivery(report)
        (due,) = on_delivery.args
        if report.error is None:
            place = min(POINTS - 1, max(0, int((due - self._begin) * POINTS / (1000 * self._seconds))))
            self.slowest[place] = max(self.slowest[place], self._clock.now() - due)


def child(work: Mapping[str, Any]) -> dict[str, Any]:
    """Sends the load; the figures."""
    case = case_of(work["letter"])
    topic, seed = work["topic"], work["seed"]
    values = {len(value): value for value in values_of_events()} if case.events else None
    # Another name each time: what a broker remembers of a client's quota is its own.
    own = {"client.id": f"{topic}-{seed}", "enable.metrics.push": False, "bootstrap.servers": work["bootstrap"]}
    real = ProducerConfig({**work["settings"], **own})
    with KafkaProducer(real) as producer:
        checking.warm_up(producer, topic, case.partitions)
        watched = Watched(producer, SystemClock().now() + checking.SOON_MS, case.seconds, values)
        print("begins", flush=True)
        found = checking.measure(
            watched, load_of(case, topic), topic, seconds=case.seconds, seed=seed, batch_size=real["batch.size"],
            clock=SystemClock(),
        )  # fmt: skip
    return {**asdict(found), "recovery": recovery_of(case, watched.slowest)}


def recovery_of(case: Case, slowest: list[float]) -> float | None:
    """Seconds after the case's outage until the latency is as before, by the rule of a prediction."""
    if case.outage is None:
        return None
    run = SimpleNamespace(seconds=case.seconds, slowest=slowest, pool=[0] * POINTS)
    (told,) = _outages(run, Brokers.alike(case.outage.node, [case.outage]))  # type: ignore[arg-type]
    return told.recovery_s


def case_of(letter: str) -> Case:
    """By its letter."""
    return next(case for case in CASES if case.letter == letter)


def load_of(case: Case, topic: str) -> Workload:
    """The load of the case; that of events has their sizes."""
    table = {**case.load, "topics": {topic: case.partitions}}
    if case.events:
        table["sizes"] = [*dict.fromkeys(len(value) for value in values_of_events())]
    return checking.load_of(Workload.of(table), topic, case.partitions)


def measured(cluster: Cluster, case: Case, topic: str, seed: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one run.

    Args:
        settings: of the producer.

    Raises:
        RunFailed: the process ended without any.
    """
    work = {
        "letter": case.letter,
        "topic": topic,
        "seed": seed,
        "settings": dict(settings),
        "bootstrap": cluster.bootstrap,
    }
    begun = threading.Event()
    silence = cluster.silence(case, begun)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.truth.run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    with process:
        json.dump(work, process.stdin)
        process.stdin.close()
        last = ""
        for line in process.stdout:
            begun.set()
            last = line
        status = process.wait(PROGRAM_S)
    begun.set()
    if silence is not None:
        silence.join()
    if status or not last.startswith("{"):
        raise RunFailed(f"case {case.letter}: a run ended with status {status}")
    found: dict[str, Any] = json.loads(last)
    return found


if __name__ == "__main__":
    print(json.dumps(child(json.load(sys.stdin))))
