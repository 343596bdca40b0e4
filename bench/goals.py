"""The targets of forebay's speed, and what the newest results say of each: target, measured, met or not.

A goal is read off the benches' figures (medians), never measured here; a peer counts with the better of its own batch
size and ours.  What has no result is said to be not measured, which is not met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.support import print_table

MET, MISSED, UNKNOWN = "yes", "NO", "not measured"
CPU, RATE = "cpu_s_per_million", "records_per_s"
CONFLUENT = ("confluent-kafka", "confluent-kafka, 16 KiB batches")
CONFLUENT_CALLBACK = ("confluent-kafka, callback", "confluent-kafka, callback, 16 KiB batches")
JAVA = ("Java, callback", "Java, callback, 128 KiB batches")
CODECS = {"lz4": "lz4 fast", "zstd": "zstd 3"}
SIZES = ("16 KiB", "256 KiB", "1024 KiB")


class NotMeasured(KeyError):
    """No result has this figure."""


class Results:
    """The newest result of each bench."""

    def __init__(self, by_name: Mapping[str, Mapping[str, Any]]) -> None:
        self.by_name = by_name

    def value(self, bench: str, label: str, figure: str) -> float:
        """A median; NotMeasured where there is none."""
        try:
            return float(self.by_name[bench]["figures"][label][figure][0])
        except KeyError:
            raise NotMeasured(f"{bench}: {label}: {figure}") from None

    def best(self, bench: str, labels: Sequence[str], figure: str, choose: Callable[[Sequence[float]], float]) -> float:
        """Of those labels that were measured; NotMeasured for none."""
        found = []
        for label in labels:
            try:
                found.append(self.value(bench, label, figure))
            except NotMeasured:
                continue
        if not found:
            raise NotMeasured(f"{bench}: {', '.join(labels)}: {figure}")
        return choose(found)


class Goal(NamedTuple):
    """One target: the measured value may be at most ``limit``, or must be at least that."""

    what: str
    measure: str
    at_most: bool
    limit: float
    read: Callable[[Results], float]

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit


class Verdict(NamedTuple):
    """A goal beside its measured value; None where there is none."""

    goal: Goal
    value: float | None

    @property
    def met(self) -> str:
        if self.value is None:
            return UNKNOWN
        return MET if self.goal.holds(self.value) else MISSED

    def cells(self) -> tuple[str, str, str, str, str]:
        sign = "<=" if self.goal.at_most else ">="
        measured = "" if self.value is None else number(self.value)
        return (self.goal.what, self.goal.measure, f"{sign} {number(self.goal.limit)}", measured, self.met)


def number(value: float) -> str:
    """Three digits, thousands in full."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cpu_over(ours: str, theirs: Sequence[str]) -> Callable[[Results], float]:
    """CPU against a real broker, over the peer that needs least."""
    return lambda found: found.value("peers", ours, CPU) / found.best("peers", theirs, CPU, min)


def rate_over(ours: str, theirs: Sequence[str]) -> Callable[[Results], float]:
    """Records/s into the sink, over the peer's fastest."""
    return lambda found: found.value("peers-sink", ours, RATE) / found.best("peers-sink", theirs, RATE, max)


def codec_over(codec: str) -> Callable[[Results], float]:
    """Each client at its better batch size."""

    def read(found: Results) -> float:
        ours, theirs = ([f"{client}, {codec}, {size}" for size in SIZES] for client in ("forebay", "confluent-kafka"))
        return found.best("codecs", ours, RATE, max) / found.best("codecs", theirs, RATE, max)

    return read


def latency_over(client: str, linger: int, share: str, computing: bool = False) -> Callable[[Results], float]:
    """A percentile over the peer's."""
    beside = ", computing thread" if computing else ""

    def read(found: Results) -> float:
        ours, theirs = (
            found.value("latency", f"{name}, linger {linger}{beside}", share) for name in ("forebay", client)
        )
        return ours / theirs

    return read


def over(bench: str, ours: str, base: str, figure: str) -> Callable[[Results], float]:
    """One of our figures over another."""
    return lambda found: found.value(bench, ours, figure) / found.value(bench, base, figure)


def plain(bench: str, label: str, figure: str) -> Callable[[Results], float]:
    return lambda found: found.value(bench, label, figure)


def fewest_of_threads(callback: bool) -> Callable[[Results], float]:
    """The worst number of threads over one thread."""
    more = ", callback" if callback else ""

    def read(found: Results) -> float:
        worst = min(found.value("threads", f"{count} threads{more}", RATE) for count in (2, 4, 8))
        return worst / found.value("threads", f"1 thread{more}", RATE)

    return read


def of_latency() -> list[Goal]:
    """Within 10 % of each peer, or better; beside a computing thread not worse than confluent-kafka."""
    goals = []
    for linger in (0, 5):
        for client in ("confluent-kafka", "Java"):
            for share in ("p50", "p99", "p99.9"):
                measure = f"{share} over {client}, linger {linger}"
                goals.append(Goal("latency, 10,000/s", measure, True, 1.1, latency_over(client, linger, share)))
    for linger in (0, 5):
        for share in ("p50", "p99"):
            read = latency_over("confluent-kafka", linger, share, computing=True)
            goals.append(
                Goal("beside a computing thread", f"{share} over confluent-kafka, linger {linger}", True, 1, read)
            )
    return goals


def of_batch_cost() -> list[Goal]:
    return [
        Goal(
            "partitions grow",
            f"{load}, {many:,} over 6: {unit}",
            True,
            1.5,
            over("batch-cost", f"{load}, {many:,} partitions", f"{load}, 6 partitions", figure),
        )
        for load, unit, figure in (("no key", "CPU", CPU), ("keyed", "µs a batch", "batch_us"))
        for many in (1_000, 10_000)
    ]


PARTITIONS = (
    ("1,000 partitions", 2.0, 0.5, 0.6),
    ("4,000 partitions", 1.5, 0.6, 0.8),
    ("10,000 partitions", 1.0, 0.8, 1.0),
    ("1,000 topics", 1.5, 0.6, 0.8),
)
"""Records/s at least, client's CPU and the broker's CPU at most, over confluent-kafka's."""


def of_partitions() -> list[Goal]:
    """Keyed records of 100 B and default settings, on a real broker; and the first run on a broker that is cold."""
    goals = []
    for case, rate, cpu, broker in PARTITIONS:
        for measure, figure, at_most, limit in (
            ("records/s", RATE, False, rate),
            ("client CPU", CPU, True, cpu),
            ("broker's CPU", "broker_us", True, broker),
        ):
            read = over("partitions", f"forebay, {case}", f"confluent-kafka, {case}", figure)
            goals.append(Goal(f"keyed, {case}", f"{measure} over confluent-kafka", at_most, limit, read))
        read = over("partitions", f"forebay, {case}, cold broker", f"forebay, {case}", RATE)
        goals.append(Goal(f"keyed, {case}", "records/s of the first run, over later ones", False, 0.5, read))
    return goals


def of_tls() -> list[Goal]:
    """Over our own plaintext, and over confluent-kafka's TLS at its better batch size."""
    theirs = ("confluent-kafka, TLS", "confluent-kafka, TLS, 16 KiB batches")
    small, large = "forebay, TLS, 16 KiB", "forebay, TLS, 128 KiB"
    again, never = "10,000/s, re-authentication", "10,000/s, no re-authentication"

    def beside(found: Results) -> float:
        return found.value("tls", small, CPU) / found.best("tls", theirs, CPU, min)

    def more(ours: str, base: str, figure: str) -> Callable[[Results], float]:
        return lambda found: found.value("tls", ours, figure) - found.value("tls", base, figure)

    return [
        Goal("TLS, 16 KiB batches", "CPU over plaintext", True, 1.25,
             over("tls", small, "forebay, plaintext, 16 KiB", CPU)),
        Goal("TLS, 128 KiB batches", "CPU over plaintext", True, 1.35,
             over("tls", large, "forebay, plaintext, 128 KiB", CPU)),
        Goal("TLS, 16 KiB batches", "CPU over confluent-kafka's TLS", True, 0.35, beside),
        Goal("TLS handshake, RSA", "ms of client CPU", True, 1.5, plain("tls", "handshake, RSA", "handshake_ms")),
        Goal("TLS handshake, ECDSA", "ms of client CPU", True, 1, plain("tls", "handshake, ECDSA", "handshake_ms")),
        Goal("reconnection by SCRAM", "ms of CPU more than PLAIN", True, 1,
             more("reconnections, SCRAM-SHA-512", "reconnections, PLAIN", "reconnection_ms")),
        Goal("re-authentication every 5 s", "ms more at p99", True, 5, more(again, never, "p99_ms")),
        Goal("construction with TLS", "ms", True, 40,
             plain("tls", "construction, the system's authorities", "first_ms")),
        Goal("a second producer with TLS", "ms", True, 1,
             plain("tls", "construction, the system's authorities", "second_ms")),
        Goal("memory, three frozen brokers, TLS", "MiB over buffer.memory", True, 35,
             plain("tls", "three frozen brokers", "over_buffer_mib")),
    ]  # fmt: skip


def of_tls_sink() -> list[Goal]:
    """Against a sink, beside our own plaintext and confluent-kafka's TLS."""

    def more(what: str, figure: str) -> Callable[[Results], float]:
        ours, base = f"{what}, TLS", f"{what}, plaintext"
        return lambda found: found.value("tls-sink", ours, figure) - found.value("tls-sink", base, figure)

    one, beside = "one record a request", "10,000/s beside a computing thread"
    return [
        Goal("TLS to a sink", "records/s over confluent-kafka's TLS", False, 3,
             over("tls-sink", "forebay, TLS", "confluent-kafka, TLS", "records_per_s")),
        Goal("send_batch over TLS", "GB/s of the sender's CPU", False, 1.5,
             plain("tls-sink", "columns, 1 MiB, TLS", "sender_gb_s")),
        Goal(f"TLS, {one}", "ms more at p50", True, 0.05, more(one, "p50_ms")),
        Goal(f"TLS, {one}", "ms more at p99", True, 1, more(one, "p99_ms")),
        Goal(f"TLS, {one}", "µs of CPU more", True, 15, more(one, "request_us")),
        Goal(f"TLS, {beside}", "ms more at p50", True, 6, more(beside, "p50_ms")),
        Goal(f"TLS, {beside}", "ms more at p99", True, 15, more(beside, "p99_ms")),
    ]  # fmt: skip


def of_spark() -> list[Goal]:
    """DataFrames beside Spark's own sink: the CPU that each adds to reading, and rows/s.

    With batches of 1 MiB for both, and the settings of the pipeline runner (``--tuned``).
    """
    return [
        Goal("DataFrames", f"{case}, 1 MiB: {measure} over Spark's sink", at_most, limit,
             over("spark", f"{case}, 1 MiB, forebay", f"{case}, 1 MiB, kafka", figure))
        for case, cpu, rate in (
            ("100 B", 0.55, 1.5), ("1,000 B", 0.9, 1.2), ("JSON zstd", 0.45, 2.2), ("JSON lz4", 0.7, 1.5)
        )
        for measure, figure, at_most, limit in (("CPU", CPU, True, cpu), ("rows/s", "rows_per_s", False, rate))
    ]  # fmt: skip


GOALS: tuple[Goal, ...] = (
    Goal("send()", "client CPU over confluent-kafka", True, 0.30, cpu_over("forebay", CONFLUENT)),
    Goal("send()", "client CPU over Java's perf test", True, 0.20, cpu_over("forebay", JAVA)),
    Goal("send(), callback", "client CPU over confluent-kafka", True, 0.30,
         cpu_over("forebay, callback", CONFLUENT_CALLBACK)),
    Goal("send(), sink", "records/s over confluent-kafka", False, 3, rate_over("forebay", CONFLUENT)),
    Goal("send(), callback, sink", "records/s over confluent-kafka", False, 4,
         rate_over("forebay, callback", CONFLUENT_CALLBACK)),
    Goal("send(), sink", "records/s over aiokafka", False, 20, rate_over("forebay", ("aiokafka",))),
    Goal("send(), sink", "records/s over kafka-python", False, 60, rate_over("forebay", ("kafka-python",))),
    Goal("asyncio, sink", "records/s", False, 250_000, plain("peers-sink", "forebay, asyncio", RATE)),
    Goal("asyncio, sink", "µs of client CPU a record", True, 2.5, plain("peers-sink", "forebay, asyncio", CPU)),
    Goal("asyncio, callback, sink", "µs of client CPU a record", True, 2.5,
         plain("peers-sink", "forebay, asyncio, callback", CPU)),
    Goal("key and 2 headers", "client CPU over the plain record", True, 1.6,
         over("peers", "forebay, key and 2 headers", "forebay", CPU)),
    Goal("sender, a 16 KiB batch", "µs, six a request", True, 30,
         plain("sender", "six 16 KiB batches a request", "batch_us")),
    Goal("sender, a 16 KiB batch", "µs, flat out", True, 30, plain("sender", "16 KiB batches, flat out", "batch_us")),
    Goal("a request of one record, linger 0", "µs of client CPU", True, 60,
         plain("sender", "one record a request", "client_request_us")),
    Goal("columns, 1 MiB batches", "rows/s", False, 10e6, plain("columns", "1024 KiB", RATE)),
    Goal("columns, 1 MiB batches", "over a bare send of the bytes", False, 0.6,
         over("columns", "1024 KiB", "sendall of the same bytes", RATE)),
    Goal("columns, 1 MiB batches, keyed", "rows/s", False, 6e6, plain("columns", "1024 KiB, keyed", RATE)),
    *(Goal(f"columns of JSON, {name}", "rows/s over confluent-kafka", False, 3, codec_over(codec))
      for name, codec in CODECS.items()),
    *of_spark(),
    *of_latency(),
    Goal("memory, a queued 100 B record", "bytes", True, 115, plain("footprint", "forebay", "bytes_a_record")),
    Goal("memory, with a callback", "bytes", True, 140, plain("footprint", "forebay, callback", "bytes_a_record")),
    *of_batch_cost(),
    *of_partitions(),
    Goal("2, 4, 8 threads", "records/s of the worst over one", False, 1, fewest_of_threads(False)),
    Goal("2, 4, 8 threads, callback", "records/s of the worst over one", False, 1, fewest_of_threads(True)),
    Goal("import, construct, first ack", "ms", True, 150, plain("startup", "forebay", "total_ms")),
    Goal("100 producers in a process", "ms of CPU each", True, 3, plain("many", "forebay", "cpu_ms")),
    *of_tls(),
    *of_tls_sink(),
    *(Goal("exporters, 100 topics", f"% of one processor: {name}", True, 2,
           plain("telemetry", f"{name}, 100 topic(s)", "share_percent"))
      for name in ("Prometheus", "OpenTelemetry", "forebay top", "KIP-714 push")),
    Goal("rows of 5 columns as JSON", "rows/s of CPU", False, 1e6, plain("rows", "rows_as_json", "rows_a_cpu_s")),
    Goal("lines through the command line", "CPU s/million", True, 0.35, plain("cli", "forebay produce", CPU)),
    Goal("lines through the command line", "CPU over kcat", True, 1, over("cli", "forebay produce", "kcat", CPU)),
)  # fmt: skip
HEADS = ("what", "measure", "target", "measured", "met?")


def verdicts(by_name: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """Every goal, in the order of the list."""
    results, found = Results(by_name), []
    for goal in GOALS:
        try:
            found.append(Verdict(goal, goal.read(results)))
        except NotMeasured:
            found.append(Verdict(goal, None))
    return found


def show(found: Sequence[Verdict]) -> None:
    """The final table, and how many were met."""
    print_table(HEADS, [verdict.cells() for verdict in found], left=2)
    counts = {word: sum(verdict.met == word for verdict in found) for word in (MET, MISSED, UNKNOWN)}
    print(f"\n{counts[MET]} of {len(found)} met, {counts[MISSED]} missed, {counts[UNKNOWN]} not measured")
