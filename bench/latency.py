"""From ``send`` to the acknowledgement's callback, at a steady rate, with and without a computing thread beside.

Each client runs in a process of its own; records go out by the clock, one at a time, and each carries the moment
it was handed over in its callback.  The computing thread is plain Python that never waits: it keeps the GIL for
the interpreter's switch interval each time it gets it.  confluent-kafka's callbacks run where its user polls.  Each of
the usual ways to do that is tried in each case, in short runs that do not count, and the one with the lowest 99th
percentile is measured.
Beside a computing thread forebay's connections are logged, too (``bench/arrival.py``): when the system had each
record's request, when it had the acknowledgement, and when that was read.  The log does not need the GIL.  Before the
first round one run is thrown away, because the broker's compiler has seen nothing yet.  The client that begins changes
from round to round.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench.arrival import Moments, acknowledgements, entries_of, is_logged, preloaded, wire_log
from bench.part import Column, Part, Result, add_rounds, add_sink, print_figures, result_of, turned
from bench.peers import jars_alone
from bench.support import CHILD_TIMEOUT_S, ROOT, ChildFailed, percentile, run_child, say, work_of_child
from bench.target import Target, target

JAVA = "Java"
CONFLUENT = "confluent-kafka"
CLIENTS = ("forebay", CONFLUENT, JAVA)
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
WIRE = {"sent": "sent", "received": "received", "read": "arrival"}
"""A moment of the log, and what the figures of it begin with."""
LOGGED = ("computing", "always", "never")
FIRST_RUN_S = 5
"""At most, of the run that does not count."""
WARM_UP_S = 2
"""Records that are not counted, for each client alike: Java's compiler needs them."""

Send = Callable[[Callable[..., None]], object]
Rest = Callable[[float], object]


class Way(NamedTuple):
    """How a user of confluent-kafka polls: ``poll(seconds)`` on a thread of its own, or while sending."""

    name: str
    seconds: float | None = None
    after_each: bool = False


WAYS = (
    Way("a thread that calls poll(0.001)", 0.001),
    Way("a thread that calls poll(0.05)", 0.05),
    Way("a thread that calls poll(0.1)", 0.1),
    Way("a thread that calls poll(1)", 1.0),
    Way("poll(0) after each produce()", after_each=True),
    Way("poll() instead of sleep() between two records"),
)
WAY_OF = {way.name: way for way in WAYS}
TRIAL_S = 2
"""A trial of a way to poll."""
SWITCH_MS = 5.0
"""CPython's own switch interval."""


class Samples:
    """Of each record, in the order of acknowledgement: when it was handed over, and ns until its callback.

    Lists of plain numbers: nothing is worked out, and the garbage collector has nothing to do, while it is measured.
    ``metadata`` is kept in a process whose wire is logged, and only forebay's is ever read.
    """

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.taken: list[int] = []
        self.metadata: list[Any] | None = [] if is_logged() else None

    def callback(self) -> Callable[..., None]:
        """For one record, made as it is handed over; one client gives a report, the other the error and a message."""
        begun = time.perf_counter_ns()

        def acknowledged(one: Any, other: Any = None) -> None:
            self.taken.append(time.perf_counter_ns() - begun)
            self.begun.append(begun)
            if self.metadata is not None:
                self.metadata.append(one.metadata)

        return acknowledged

    def of_wire(self, find: Callable[[str, int, int], Moments], first: int) -> dict[str, Any]:
        """Shares of what the log says of each record from the ``first`` on, from its handing over as all others."""
        pairs = zip(self.begun[first:], (self.metadata or [])[first:], strict=True)
        found = [(begun, find(one.topic, one.partition, one.offset)) for begun, one in pairs]
        shares: dict[str, Any] = {}
        for kind, figure in WIRE.items():
            counted = [getattr(moments, kind) - begun for begun, moments in found]
            shares |= {f"{figure}_{name}": value for name, value in shares_of(counted).items()}
        return shares


def paced(records: int, rate: float, rest: Rest = time.sleep) -> Iterator[None]:
    """One step each 1/rate s; a step that is late does not move the next ones.  ``rest`` may return early."""
    begun = time.perf_counter()
    for number in range(records):
        due = begun + number / rate
        while (ahead := due - time.perf_counter()) > 0:
            rest(ahead)
        yield


def compute(ended: threading.Event) -> None:
    """Keeps one thread busy with plain Python."""
    total = 0
    while not ended.is_set():
        for number in range(100_000):
            total += number * number


def with_forebay(work: dict[str, Any], drive: Callable[[Send, Rest], None]) -> None:
    from forebay import KafkaProducer

    config = {"bootstrap.servers": work["bootstrap"], "linger.ms": work["linger_ms"], **work.get("config", {})}
    value, topic = bytes(100), work["topic"]
    with KafkaProducer(config) as producer:
        producer.partitions_for(topic)
        drive(lambda callback: producer.send(topic, value, on_delivery=callback), time.sleep)
        producer.flush()


def with_confluent(work: dict[str, Any], drive: Callable[[Send, Rest], None]) -> None:
    from confluent_kafka import Producer

    value, topic, way = bytes(100), work["topic"], WAY_OF[work["way"]]
    producer = Producer(
        {
            "bootstrap.servers": work["bootstrap"],
            "linger.ms": work["linger_ms"],
            "acks": "all",
            "enable.idempotence": True,
        }
    )
    producer.list_topics(topic, timeout=10)

    def send(callback: Callable[[Any, Any], None]) -> None:
        producer.produce(topic, value, on_delivery=callback)

    def send_and_poll(callback: Callable[[Any, Any], None]) -> None:
        producer.produce(topic, value, on_delivery=callback)
        producer.poll(0)

    if way.seconds is not None:
        with polling(producer, way.seconds):
            drive(send, time.sleep)
            producer.flush()
    else:
        drive(*((send_and_poll, time.sleep) if way.after_each else (send, producer.poll)))
        producer.flush()


@contextmanager
def polling(producer: Any, seconds: float) -> Iterator[None]:
    """A thread that polls meanwhile."""
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            producer.poll(seconds)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        yield
    finally:
        ended.set()
        poller.join()


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One client's run in this process: percentiles in ms, and the rate that was reached."""
    samples, seconds, ended = Samples(), [0.0], threading.Event()
    records = work["warm_up"] + work["records"]

    def drive(send: Send, rest: Rest) -> None:
        begun = time.perf_counter()
        for _ in paced(records, work["rate"], rest):
            send(samples.callback())
        seconds[0] = time.perf_counter() - begun

    sys.setswitchinterval(work["switch_ms"] / 1000)
    if work["computing"]:
        threading.Thread(target=compute, args=(ended,), daemon=True).start()
    try:
        (with_forebay if work["client"] == "forebay" else with_confluent)(work, drive)
    finally:
        ended.set()
    if len(samples.taken) != records:
        raise ChildFailed(f"{work['client']}: {len(samples.taken)} of {records} callbacks came")
    shares = shares_of(samples.taken[work["warm_up"] :])
    if samples.metadata is not None:
        shares |= samples.of_wire(acknowledgements(entries_of(wire_log())).of, work["warm_up"])
    return {**shares, "achieved_per_s": records / seconds[0]}


def shares_of(taken: Sequence[int]) -> dict[str, Any]:
    """Percentiles in ms and the whole distribution, of latencies in ns."""
    ordered = sorted(taken)
    shares: dict[str, Any] = {name: percentile(ordered, share) / 1e6 for name, share in SHARES.items()}
    return shares | {"distribution": distribution(ordered)}


def distribution(ordered: list[int]) -> list[tuple[float, float]]:
    """Pairs of percent and ms, closer together towards the end, where the interest is."""
    percents = [*range(0, 99, 3), *(99 + step / 10 for step in range(10)), 99.95, 99.99]
    return [(percent, percentile(ordered, percent / 100) / 1e6) for percent in percents]


class Setting(NamedTuple):
    """One row of the table."""

    client: str
    linger_ms: float
    computing: bool
    switch_ms: float = SWITCH_MS
    """The interpreter's switch interval; it counts beside a computing thread alone."""
    way: str = ""
    """How confluent-kafka is polled; empty before the trial, and for the others."""

    @property
    def case(self) -> tuple[float, bool, float]:
        """What is the same for all clients."""
        return self.linger_ms, self.computing, self.switch_ms

    def label(self) -> str:
        beside = ", computing thread" if self.computing else ""
        interval = "" if self.switch_ms == SWITCH_MS else f", switch interval {self.switch_ms:g} ms"
        return f"{self.client}, linger {self.linger_ms:g}{beside}{interval}"


def settings_of(options: argparse.Namespace) -> list[Setting]:
    """Java has no GIL, so it has no run with a computing thread."""
    cases: list[tuple[float, bool, float]] = []
    for linger in options.linger_ms:
        cases += [(linger, False, SWITCH_MS), *((linger, True, switch) for switch in options.switch_ms)]
    found = [Setting(client, *case) for case in cases for client in CLIENTS]
    return [one for one in found if one.client != JAVA or not one.computing]


def rounds_of(settings: Sequence[Setting], rounds: int) -> Iterator[Setting]:
    """Every setting once a round; of the clients in one case another one is the first each time."""
    for number in range(rounds):
        for case in dict.fromkeys(one.case for one in settings):
            yield from turned([one for one in settings if one.case == case], number)


class Runs:
    """What the runs have in common: the broker, the Java client's jars, and the library's environment."""

    def __init__(self, options: argparse.Namespace, to: Target, environment: dict[str, str]) -> None:
        self.options = options
        self.to = to
        self.environment = environment
        self.jars = to.kafka or jars_alone(True)

    def once(self, one: Setting, seconds: float) -> dict[str, Any]:
        """One client's run; raises ChildFailed."""
        rate = self.options.rate
        work: dict[str, Any] = {"client": one.client, "bootstrap": self.to.bootstrap_servers}
        work |= {"topic": self.to.fresh_topic(), "linger_ms": one.linger_ms, "computing": one.computing, "rate": rate}
        work |= {"records": int(rate * seconds), "warm_up": int(rate * WARM_UP_S), "way": one.way}
        work["switch_ms"] = one.switch_ms
        if one.client == JAVA:
            return run_java(self.jars, work)
        return run_child("bench.latency", work, environment=self.environment if self.is_logged(one) else None)

    def is_logged(self, one: Setting) -> bool:
        when = self.options.wire
        return one.client == "forebay" and (when == "always" or (when == "computing" and one.computing))


def with_best_way(runs: Runs, one: Setting) -> Setting:
    """A setting with the way of polling that had the lowest 99th percentile in a short run of each."""
    if one.client != CONFLUENT:
        return one
    tried = [one._replace(way=way.name) for way in WAYS]
    found = {each: runs.once(each, TRIAL_S)["p99"] for each in tried}
    for each, p99 in found.items():
        say(f"  trial: {each.label()}, {each.way}: p99 {p99:.2f} ms")
    return min(found, key=found.__getitem__)


def measure(options: argparse.Namespace) -> Result:
    """Every client in every setting, ``rounds`` times in turn."""
    found: list[dict[str, Any]] = []
    with target(options.sink) as to, preloaded() as environment:
        runs = Runs(options, to, environment)
        settings = [one for one in settings_of(options) if one.client != JAVA or runs.jars is not None]
        runs.once(Setting(CLIENTS[0], 0, False), min(options.seconds, FIRST_RUN_S))
        settings = [with_best_way(runs, one) for one in settings]
        for one in rounds_of(settings, options.rounds):
            once = runs.once(one, options.seconds)
            found.append({"label": one.label(), "rate": options.rate, **one._asdict(), **once})
            say(f"{one.label():60} p50 {once['p50']:.2f} ms, p99 {once['p99']:.2f} ms")
    order = [one.label() for one in settings]
    name = "latency-sink" if options.sink else "latency"
    return result_of(name, sorted(found, key=lambda run: order.index(run["label"])), to=to.name)


def run_java(jars: Any, work: dict[str, Any]) -> dict[str, Any]:
    """The same in the Java client.

    Raises:
        ChildFailed: it failed, or there is no Java compiler beside the runtime.
    """
    given = [str(work[name]) for name in ("bootstrap", "topic", "linger_ms", "warm_up", "records", "rate")]
    given[2] = str(int(work["linger_ms"]))
    command = jars.tool_command(str(ROOT / "bench" / "Latency.java"), *given)
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_TIMEOUT_S, check=False)
    if done.returncode:
        raise ChildFailed(f"the Java client: {done.stderr[-500:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return shares_of(found["taken"]) | {"achieved_per_s": (work["warm_up"] + work["records"]) / found["seconds"]}


def show(result: Result) -> None:
    settings = result["settings"]
    print(
        f"\nms from send to callback, {settings['rate']:g} records/s of 100 B, {result['to']}, median (lowest-highest)"
    )
    print(
        f"of {settings['rounds']} runs of {settings['seconds']:g} s; until the system had the request (sent), until it"
    )
    print("had the answer (received), until that was read (arrival)\n")
    for label, way in {run["label"]: run["way"] for run in result["runs"] if run.get("way")}.items():
        print(f"{label}: {way}")
    columns = [Column(name, name) for name in SHARES]
    columns += [Column(f"{figure} {name}", f"{figure}_{name}") for figure in WIRE.values() for name in SHARES]
    print_figures(result, [*columns, Column("records/s", "achieved_per_s", ".0f")])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=float, default=10_000, help="records/s (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="a run (default: %(default)s)")
    add_rounds(parser)
    parser.add_argument("--linger-ms", type=int, nargs="+", default=[0, 5], help="(default: 0 5)")
    parser.add_argument(
        "--switch-ms",
        type=float,
        nargs="+",
        default=[SWITCH_MS, 0.5],
        help="sys.setswitchinterval() beside a computing thread, in ms (default: 5 0.5)",
    )
    parser.add_argument(
        "--wire", choices=LOGGED, default=LOGGED[0], help="when forebay's connections are logged (default: %(default)s)"
    )
    add_sink(parser)


PART = Part("latency", __doc__, add_arguments, measure, show, quick=("--seconds", "4", "--rounds", "3"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.latency is run by `python -m bench latency`")
    print(json.dumps(run_work(given)))
